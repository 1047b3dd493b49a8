//! A broken cable: passes everything on between a client and the broker, but flips one bit of one
//! self-describing payload on its way to the client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The broker's port on another loopback address, which the broker advertises.
pub struct Proxy {
    pub address: SocketAddr,
    flipped: Arc<AtomicBool>,
}

impl Proxy {
    /// Passes on what comes for `broker`; the payload after so many others is damaged.
    pub fn start(broker: SocketAddr, after: u64) -> Proxy {
        let address = SocketAddr::from(([127, 0, 0, 2], broker.port()));
        let listener = TcpListener::bind(address).expect("the port is free on this address");
        let flipped = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(AtomicU64::new(0));
        let proxy = Proxy {
            address,
            flipped: flipped.clone(),
        };
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(broker).expect("the broker listens");
                let (from_client, to_server) = (client.try_clone(), server.try_clone());
                let (from_client, to_server) = (
                    from_client.expect("a descriptor"),
                    to_server.expect("a descriptor"),
                );
                std::thread::spawn(move || pass(from_client, to_server, |_| {}));
                let (flipped, seen) = (flipped.clone(), seen.clone());
                std::thread::spawn(move || {
                    pass(server, client, |bytes| {
                        damage(bytes, &seen, after, &flipped)
                    });
                });
            }
        });
        proxy
    }

    /// Whether the bit was flipped.
    pub fn has_flipped(&self) -> bool {
        self.flipped.load(Ordering::SeqCst)
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut change: impl FnMut(&mut [u8])) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        change(&mut bytes[..count]);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// Flips a bit well behind the head of a payload, once.
fn damage(bytes: &mut [u8], seen: &AtomicU64, after: u64, flipped: &AtomicBool) {
    let heads = bytes.windows(4).enumerate();
    let heads: Vec<usize> = heads
        .filter(|(_, window)| window == b"pnsv")
        .map(|(at, _)| at)
        .collect();
    for at in heads {
        let number = seen.fetch_add(1, Ordering::SeqCst);
        if let (true, Some(byte)) = (number >= after, bytes.get_mut(at + 100))
            && !flipped.swap(true, Ordering::SeqCst)
        {
            *byte ^= 0x10;
        }
    }
}
