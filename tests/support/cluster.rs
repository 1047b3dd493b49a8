//! Connections to the endpoints that lead partitions, found through Metadata as every client does.

use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use super::client::{Connection, Failure};

/// What one client knows of the broker: who leads what, and its connections.
pub struct Cluster {
    bootstrap: SocketAddr,
    timeout: Duration,
    leaders: HashMap<(String, i32), SocketAddr>,
    connections: HashMap<SocketAddr, Connection>,
}

impl Cluster {
    /// Asks `bootstrap` about `topics`. A topic whose partitions have no leader yet is left out.
    pub fn open(
        bootstrap: SocketAddr,
        topics: &[&str],
        timeout: Duration,
    ) -> Result<Cluster, Failure> {
        let mut connection = Connection::open(bootstrap, timeout)?;
        let metadata = connection.metadata(Some(topics))?;
        let mut brokers = HashMap::new();
        for (id, host, port) in &metadata.brokers {
            let port = u16::try_from(*port).map_err(|_| Failure::Malformed("a port"))?;
            let addresses = (host.as_str(), port).to_socket_addrs()?;
            let address = addresses
                .into_iter()
                .next()
                .ok_or(Failure::Malformed("a host"))?;
            brokers.insert(*id, address);
        }
        let mut leaders = HashMap::new();
        for (error, topic, partitions) in metadata.topics {
            for leader in partitions
                .iter()
                .filter(|leader| error == 0 && leader.error == 0)
            {
                let address = brokers.get(&leader.broker);
                let &address = address.ok_or(Failure::Malformed("a leader that is no broker"))?;
                leaders.insert((topic.clone(), leader.partition), address);
            }
        }
        let connections = HashMap::from([(bootstrap, connection)]);
        Ok(Cluster {
            bootstrap,
            timeout,
            leaders,
            connections,
        })
    }

    /// How many partitions with a leader `topic` has.
    pub fn partitions(&self, topic: &str) -> usize {
        self.leaders
            .keys()
            .filter(|(name, _)| name == topic)
            .count()
    }

    /// The address that leads a partition; the bootstrap address if nobody is known to.
    pub fn leader(&self, topic: &str, partition: i32) -> SocketAddr {
        let known = self.leaders.get(&(topic.to_owned(), partition));
        known.copied().unwrap_or(self.bootstrap)
    }

    /// The connection to an endpoint, made on first use.
    pub fn connection(&mut self, address: SocketAddr) -> Result<&mut Connection, Failure> {
        if !self.connections.contains_key(&address) {
            let connection = Connection::open(address, self.timeout)?;
            self.connections.insert(address, connection);
        }
        Ok(self
            .connections
            .get_mut(&address)
            .expect("inserted above if it was not there"))
    }

    /// The connection to a partition's leader.
    pub fn to(&mut self, topic: &str, partition: i32) -> Result<&mut Connection, Failure> {
        self.connection(self.leader(topic, partition))
    }
}
