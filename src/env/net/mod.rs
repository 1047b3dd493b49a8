//! TCP as a session needs it: an exclusive listener, connections whose halves two tasks can use,
//! and deadlines that lose nothing. Lives on the core that listens; always real. [`Poll`] is apart:
//! non-blocking sockets without an executor, for the load generator.
//!
//! glommio's traps met here: its own `bind` always shares the port, so two brokers on one address
//! would split the clients in silence; a dropped `accept` leaks the accepted socket; its read
//! timeout goes stale; `write_vectored` sends the first slice only; a dropped stream says goodbye
//! only on a later turn of the reactor.

mod conn;
mod http;
mod listener;
mod poll;

pub use conn::{Conn, ConnControl, ReadHalf, WriteHalf};
pub use listener::{BoundSocket, Listener, ListenerStop, bind};
pub use poll::{Poll, PollSocket, PollWaker, Ready};

#[cfg(test)]
mod tests;
