//! Listener and connections against plain blocking sockets of the standard library.

use super::*;
use crate::env::Env;
use crate::env::raw_os_error;
use crate::env::real::executor::run_one;
use bytes::BytesMut;
use std::cell::Cell;
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

const STALL: Duration = Duration::from_secs(5);

/// Serves one connection on an executor with `server` while `client` runs on this thread; both
/// outcomes.
fn with_connection<F, T, C>(
    server: impl FnOnce(Env, Conn) -> F + Clone + Send + 'static,
    client: impl FnOnce(TcpStream) -> C,
) -> (T, C)
where
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let bound = bind("127.0.0.1:0").expect("a free port");
    let address = bound.address();
    let (sender, receiver) = flume::bounded(1);
    sender.send(bound).expect("room for one");
    let (listening, is_listening) = flume::bounded(1);
    let thread = std::thread::spawn(move || {
        run_one("net", move |core| async move {
            let mut listener = receiver
                .recv()
                .expect("sent before")
                .listen(16)
                .expect("listening");
            listening.send(()).expect("waited for");
            let conn = listener
                .accept()
                .await
                .expect("accepted")
                .expect("not stopped");
            server(core.env, conn).await
        })
        .expect("an executor")
    });
    is_listening.recv().expect("the server listens");
    let stream = TcpStream::connect(address).expect("connected");
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("set");
    let client = client(stream);
    (thread.join().expect("the server ended"), client)
}

/// Goal: a second broker on the address is refused at once, by number and with the address, and the
/// first keeps it; also through the wildcard address. Method: bind twice.
#[test]
fn second_bind_is_refused() {
    run_one("bind", |_core| async move {
        let first = bind("127.0.0.1:0").expect("a free port");
        let address = first.address();
        let _listener = first.listen(16).expect("listening");
        for text in [address.to_string(), format!("0.0.0.0:{}", address.port())] {
            let error = bind(&text).expect_err("taken");
            assert_eq!(raw_os_error(&error), Some(libc::EADDRINUSE), "{error}");
            assert!(error.to_string().contains(&text), "{error}");
        }
    })
    .expect("an executor");
}

/// Goal: what is no address, or a port of the privileged kind of nonsense, is an error that repeats
/// it. Method: one of each.
#[test]
fn bad_addresses_are_named() {
    for text in ["nonsense", "127.0.0.1:99999", "no-such-host.invalid:1"] {
        let error = bind(text).expect_err("no address");
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// Goal: the address can be taken again at once after a broker with connections has gone. Method:
/// close a connection from the server's side (which leaves TIME_WAIT) and listen again.
#[test]
fn address_is_free_again_at_once() {
    let (address, ()) = with_connection(
        |_env, conn| async move { conn.local() },
        |mut stream| {
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).expect("closed by the server");
        },
    );
    let bound = bind(&address.to_string()).expect("free again");
    run_one("again", {
        let (sender, receiver) = flume::bounded(1);
        sender.send(bound).expect("room");
        move |_core| async move {
            receiver
                .recv()
                .expect("sent")
                .listen(16)
                .expect("listening again");
        }
    })
    .expect("an executor");
}

/// Goal: stopping ends a suspended accept, and later clients are refused. Method: stop from another
/// task while nobody connects.
#[test]
fn stop_ends_a_suspended_accept() {
    run_one("stop", |core| async move {
        let mut listener = bind("127.0.0.1:0")
            .expect("free")
            .listen(16)
            .expect("listening");
        let (address, stopper, clock) = (listener.address(), listener.stopper(), core.env.clock());
        core.env.spawn("stopper", async move {
            clock.sleep(Duration::from_millis(20)).await;
            stopper.stop();
        });
        assert!(listener.accept().await.expect("no error").is_none());
        assert!(
            listener.accept().await.expect("no error").is_none(),
            "and stays so"
        );
        let error = TcpStream::connect(address).expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    })
    .expect("an executor");
}

/// Goal: the halves work in two tasks at the same time, both directions full. Method: echo 8 MiB
/// through bounded buffers while the client writes and reads at its own pace.
#[test]
fn halves_work_in_two_tasks() {
    const TOTAL: usize = 8 << 20;
    let byte_at = |index: usize| (index / 3 % 251) as u8;
    let (count, echoed) = with_connection(
        |env, conn| async move {
            let (mut reader, mut writer) = conn.split();
            let (sender, receiver) = flume::bounded::<BytesMut>(4);
            let (done, is_done) = flume::bounded::<()>(1);
            env.spawn("writer", async move {
                while let Ok(bytes) = receiver.recv_async().await {
                    writer.write_all(&[&bytes], STALL).await.expect("written");
                }
                writer.finish();
                let _ = done.send(());
            });
            let mut count = 0;
            loop {
                let mut buffer = BytesMut::new();
                let read = reader.read_into(&mut buffer, 64 << 10).await.expect("read");
                assert_eq!(read, buffer.len());
                if read == 0 {
                    break;
                }
                count += read;
                sender.send_async(buffer).await.expect("the writer lives");
            }
            drop(sender);
            is_done.recv_async().await.expect("the writer ended");
            count
        },
        |mut stream| {
            let mut writing = stream.try_clone().expect("cloned");
            let thread = std::thread::spawn(move || {
                let bytes: Vec<u8> = (0..TOTAL).map(byte_at).collect();
                writing.write_all(&bytes).expect("sent");
                writing.shutdown(std::net::Shutdown::Write).expect("ended");
            });
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).expect("received");
            thread.join().expect("writer");
            bytes
        },
    );
    assert_eq!(count, TOTAL);
    assert_eq!(echoed.len(), TOTAL);
    assert!(
        echoed
            .iter()
            .enumerate()
            .all(|(index, byte)| *byte == byte_at(index))
    );
}

/// Goal: a read that its deadline drops loses nothing and does not make the next one fail. Method:
/// the client sends one byte every 15 ms; the server reads with deadlines of 4 ms.
#[test]
fn dropped_reads_lose_nothing() {
    let ((late, received), ()) = with_connection(
        |env, mut conn| async move {
            let clock = env.clock();
            let (mut late, mut received) = (0, Vec::new());
            loop {
                let mut bytes = [0; 16];
                let reading = conn.reader().read(&mut bytes);
                match clock.deadline(Duration::from_millis(4), reading).await {
                    None => late += 1,
                    Some(count) => match count.expect("read") {
                        0 => break,
                        count => received.extend_from_slice(&bytes[..count]),
                    },
                }
            }
            (late, received)
        },
        |mut stream| {
            for byte in 0..40 {
                stream.write_all(&[byte]).expect("sent");
                std::thread::sleep(Duration::from_millis(15));
            }
        },
    );
    assert!(late >= 5, "{late} reads were dropped");
    assert_eq!(received, (0..40).collect::<Vec<u8>>());
}

/// Goal: many parts, empty ones among them and more than one call takes, arrive in order through a
/// full socket. Method: 1,000 parts of 0 to 8 KiB against a reader that starts late.
#[test]
fn parts_arrive_in_order() {
    let parts: Vec<Vec<u8>> = (0..1000)
        .map(|index| vec![(index % 251) as u8; index * 37 % 8192])
        .collect();
    let expected = parts.concat();
    let ((), received) = with_connection(
        move |_env, mut conn| async move {
            let slices: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            conn.writer()
                .write_all(&slices, STALL)
                .await
                .expect("written");
            conn.writer().write_all(&[], STALL).await.expect("nothing");
            conn.writer()
                .write_all(&[b"", b""], STALL)
                .await
                .expect("nothing");
        },
        |mut stream| {
            std::thread::sleep(Duration::from_millis(100));
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).expect("received");
            bytes
        },
    );
    assert!(
        received == expected,
        "{} of {} bytes",
        received.len(),
        expected.len()
    );
}

/// Goal: a reader that stands still is given up after the stall time, not before, and its
/// connection is ended. Method: a client that reads nothing.
#[test]
fn still_reader_is_given_up() {
    // The client's socket is given back, so that it stays open until the server has ended.
    let ((error, elapsed, next), _socket) = with_connection(
        |_env, mut conn| async move {
            let bytes = vec![1; 64 << 20];
            let start = Instant::now();
            let stall_max = Duration::from_millis(200);
            let error = conn
                .writer()
                .write_all(&[&bytes], stall_max)
                .await
                .expect_err("still");
            let elapsed = start.elapsed();
            let next = conn.reader().read(&mut [0; 8]).await.expect("ended");
            (error, elapsed, next)
        },
        |stream| stream,
    );
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(error.to_string().contains("127.0.0.1"), "{error}");
    assert!(elapsed >= Duration::from_millis(200), "{elapsed:?}");
    assert!(elapsed < STALL, "{elapsed:?}");
    assert_eq!(next, 0, "the connection was shut down");
}

/// Goal: a control wakes a suspended reader, and the client sees the end at once although the
/// halves still live. Method: shut down from another task.
#[test]
fn control_wakes_a_suspended_reader() {
    let (waited, ()) = with_connection(
        |env, mut conn| async move {
            let (control, clock) = (conn.control(), env.clock());
            env.spawn("controller", async move {
                clock.sleep(Duration::from_millis(30)).await;
                control.shutdown();
            });
            let start = Instant::now();
            assert_eq!(conn.reader().read(&mut [0; 8]).await.expect("ended"), 0);
            start.elapsed()
        },
        |mut stream| assert_eq!(stream.read(&mut [0; 8]).expect("ended"), 0),
    );
    assert!(
        waited >= Duration::from_millis(30) && waited < Duration::from_secs(2),
        "{waited:?}"
    );
}

/// Goal: dropping a connection says goodbye at once, although the executor is busy. Method: drop it
/// and block the executor for longer than the client waits.
#[test]
fn drop_says_goodbye_at_once() {
    let ((), waited) = with_connection(
        |_env, conn| async move {
            drop(conn);
            std::thread::sleep(Duration::from_secs(1));
        },
        |mut stream| {
            let start = Instant::now();
            assert_eq!(stream.read(&mut [0; 8]).expect("ended"), 0);
            start.elapsed()
        },
    );
    assert!(waited < Duration::from_millis(700), "{waited:?}");
}

/// Goal: connecting out works, and a refusal names the address. Method: an executor talks to
/// itself.
#[test]
fn connect_works_and_refusals_are_named() {
    run_one("connect", |core| async move {
        let mut listener = bind("127.0.0.1:0")
            .expect("free")
            .listen(16)
            .expect("listening");
        let address: SocketAddr = listener.address();
        let served = Rc::new(Cell::new(false));
        let witness = Rc::clone(&served);
        core.env.spawn("server", async move {
            let mut conn = listener
                .accept()
                .await
                .expect("accepted")
                .expect("not stopped");
            conn.writer()
                .write_all(&[b"hello"], STALL)
                .await
                .expect("written");
            witness.set(true);
        });
        let mut conn = Conn::connect(address, STALL).await.expect("connected");
        assert_eq!(conn.peer(), address);
        let mut buffer = BytesMut::new();
        while conn
            .reader()
            .read_into(&mut buffer, 16)
            .await
            .expect("read")
            > 0
        {}
        assert_eq!(&buffer[..], b"hello");
        assert!(served.get());
        let error = Conn::connect(address, STALL)
            .await
            .err()
            .expect("the listener is gone");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    })
    .expect("an executor");
}
