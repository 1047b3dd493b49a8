//! A plain blocking Kafka client for the verbs: finds leaders, follows them, retries what may be
//! retried. One thread, no io_uring.

mod connection;
mod error;
mod fetch;
pub mod http;
mod offsets;
mod retry;
mod topics;

pub use connection::{Connection, check};
pub use error::{ClientError, describe_code};
pub use fetch::{Fetched, Fetcher};
pub use offsets::Landmark;
pub use retry::Backoff;
pub use topics::{Partition, Topic};

use crate::admin::cli::BrokerArgs;
use crate::wire::{Request, Response};
use std::collections::BTreeMap;

/// Connections to the brokers of one cluster, and what is known of it.
pub struct Client {
    bootstrap: Vec<String>,
    connections: BTreeMap<String, Connection>,
    brokers: BTreeMap<i32, String>,
    controller: i32,
    topics: BTreeMap<String, Topic>,
}

impl Client {
    /// A client that has not connected yet.
    #[must_use]
    pub fn new(args: &BrokerArgs) -> Client {
        let bootstrap = args.broker.split(',').map(|part| with_port(part.trim()));
        Client {
            bootstrap: bootstrap.collect(),
            connections: BTreeMap::new(),
            brokers: BTreeMap::new(),
            controller: -1,
            topics: BTreeMap::new(),
        }
    }

    /// The connection to a broker, made if need be.
    ///
    /// # Errors
    /// The broker cannot be reached.
    pub fn connection(&mut self, address: &str) -> Result<&mut Connection, ClientError> {
        if !self.connections.contains_key(address) {
            let connection = Connection::open(address).map_err(|error| match error {
                ClientError::Unreachable { address, error, .. } => ClientError::Unreachable {
                    address,
                    first: self.brokers.is_empty(),
                    error,
                },
                other => other,
            })?;
            self.connections.insert(address.to_owned(), connection);
        }
        Ok(self.connections.get_mut(address).expect("it was just made"))
    }

    /// Forgets a connection, after an error on it.
    pub fn disconnect(&mut self, address: &str) {
        self.connections.remove(address);
    }

    /// Asks one broker; a connection that fails is forgotten.
    ///
    /// # Errors
    /// The connection failed. A refusal inside the answer is not looked at.
    pub fn ask_at(&mut self, address: &str, request: &Request) -> Result<Response, ClientError> {
        let answer = self.connection(address)?.ask(request);
        if answer.is_err() {
            self.disconnect(address);
        }
        answer
    }

    /// Asks any broker: those named first, in order, then those that were learnt of.
    ///
    /// # Errors
    /// None could be asked; the error of the first.
    pub fn ask_any(&mut self, request: &Request) -> Result<Response, ClientError> {
        let mut addresses = self.bootstrap.clone();
        addresses.extend(self.brokers.values().cloned());
        // A connection that stands is better than a new one.
        addresses.sort_by_key(|address| !self.connections.contains_key(address));
        let mut first_error = None;
        for address in addresses {
            match self.ask_at(&address, request) {
                Ok(answer) => return Ok(answer),
                Err(error @ ClientError::Protocol { .. }) => return Err(error),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.expect("there is at least one address to try"))
    }

    /// Asks the controller, which alone may change topics.
    ///
    /// # Errors
    /// As `ask_any`.
    pub fn ask_controller(&mut self, request: &Request) -> Result<Response, ClientError> {
        self.refresh(&[], false)?;
        match self.brokers.get(&self.controller).cloned() {
            Some(address) => self.ask_at(&address, request),
            None => self.ask_any(request),
        }
    }

    /// The address of a broker.
    #[must_use]
    pub fn address(&self, broker: i32) -> Option<&str> {
        self.brokers.get(&broker).map(String::as_str)
    }

    /// Some connection's address in use, for messages.
    fn unexpected(&self) -> ClientError {
        let address = self.bootstrap.first().cloned().unwrap_or_default();
        let problem = "the answer is of another kind than the request".into();
        ClientError::Protocol { address, problem }
    }
}

/// A bare host means Kafka's port.
fn with_port(address: &str) -> String {
    let has_port = match address.strip_prefix('[') {
        Some(rest) => rest.contains("]:"),
        None => address.contains(':'),
    };
    if has_port {
        address.to_owned()
    } else {
        format!("{address}:9092")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: addresses may leave out the port. Method: each form.
    #[test]
    fn a_bare_host_means_the_usual_port() {
        assert_eq!(with_port("localhost"), "localhost:9092");
        assert_eq!(with_port("localhost:1"), "localhost:1");
        assert_eq!(with_port("[::1]"), "[::1]:9092");
        assert_eq!(with_port("[::1]:1"), "[::1]:1");
    }
}
