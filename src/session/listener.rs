//! Accepting connections on one endpoint, within the limits on their number and rate.
//!
//! The accept loop is never cancelled (glommio would leak the accepted socket): it ends when its
//! listener is stopped. Lives on the endpoint's core.

use super::Session;
use super::connection;
use crate::env::net::Listener;
use core::net::IpAddr;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

/// How many connections one core may have.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// In all, on this core.
    pub total_max: usize,
    /// From one address, on this core; loopback is exempt.
    pub address_max: usize,
    /// Accepted per second.
    pub rate_max: u64,
}

/// The open connections of one core.
#[derive(Default)]
struct Open {
    total: Cell<usize>,
    by_address: RefCell<HashMap<IpAddr, usize>>,
}

impl Open {
    fn enter(&self, address: IpAddr) {
        self.total.set(self.total.get() + 1);
        *self.by_address.borrow_mut().entry(address).or_default() += 1;
    }

    fn leave(&self, address: IpAddr) {
        self.total.set(self.total.get() - 1);
        let mut by_address = self.by_address.borrow_mut();
        let count = by_address
            .get_mut(&address)
            .expect("a connection that leaves had entered");
        *count -= 1;
        if *count == 0 {
            by_address.remove(&address);
        }
    }
}

/// Accepts and serves connections until the listener is stopped.
pub async fn accept(session: Session, mut listener: Listener, limits: ConnectionLimits) {
    let open = Rc::new(Open::default());
    let clock = session.router.env.clock();
    let gap_ns = 1_000_000_000 / limits.rate_max;
    let mut next_ns = clock.now_ns();
    loop {
        let conn = match listener.accept().await {
            Ok(Some(conn)) => conn,
            Ok(None) => return,
            Err(error) => {
                // Out of descriptors, most likely: that may not end the loop.
                tracing::warn!(%error, "a connection could not be accepted");
                clock.sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        let now_ns = clock.now_ns();
        next_ns = next_ns.max(now_ns.saturating_sub(1_000_000_000 / 10)) + gap_ns;
        if next_ns > now_ns {
            clock.sleep(Duration::from_nanos(next_ns - now_ns)).await;
        }
        let metrics = session.metrics();
        let connections = &metrics.connections;
        let address = conn.peer().ip();
        if open.total.get() >= limits.total_max {
            connections.refused_process_limit.inc();
            continue;
        }
        let of_address = open.by_address.borrow().get(&address).copied().unwrap_or(0);
        if !address.is_loopback() && of_address >= limits.address_max {
            connections.refused_address_limit.inc();
            continue;
        }
        open.enter(address);
        let (id, replies, watch) = session.enter(&conn);
        let (session, open) = (session.clone(), Rc::clone(&open));
        let env = session.router.env.clone();
        env.spawn("connection", async move {
            connection::serve(session.clone(), conn, replies, watch).await;
            session.leave(id);
            open.leave(address);
        });
    }
}
