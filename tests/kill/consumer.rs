//! Readers that keep their own positions, and a watcher that asks where partitions end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use penstock::check::event::Ends;
use penstock::check::{Action, Outcome};

use crate::field::{Field, PARTITIONS, TOPIC};
use crate::support::batch;
use crate::support::client::{Failure, Fetched, code};
use crate::support::cluster::Cluster;
use crate::support::history;

/// Reads all partitions by offset, with long poll.
pub struct Reader {
    client: u32,
    op_next: u64,
    random: fastrand::Rng,
    positions: [i64; PARTITIONS as usize],
    /// Starts over as a new client whenever it has caught up.
    laps: bool,
}

impl Reader {
    /// A reader that follows the tail for the whole campaign.
    pub fn tailing(client: u32, field: &Field) -> Reader {
        let positions = [0; PARTITIONS as usize];
        Reader {
            client,
            op_next: 0,
            random: field.random(client),
            positions,
            laps: false,
        }
    }

    /// A reader that reads everything, then everything again: old data must not change.
    pub fn again_and_again(client: u32, field: &Field) -> Reader {
        Reader {
            laps: true,
            ..Reader::tailing(client, field)
        }
    }

    /// Reads until everything there will be is read, or time is up.
    pub fn run(mut self, field: &Field) {
        let mut cluster: Option<Cluster> = None;
        while !field.is_all_read(&self.positions) && !field.is_over() {
            let Some(connected) = cluster.as_mut() else {
                cluster = field.connect(self.client);
                if cluster.is_none() {
                    thread::sleep(Duration::from_millis(self.random.u64(1..20)));
                }
                continue;
            };
            match self.round(field, connected) {
                Ok(records) => self.maybe_start_over(field, records),
                Err(Failure::Io(_)) => cluster = None,
                Err(Failure::Malformed(why)) => {
                    field.fault(format!("reader {}: {why}", self.client));
                    cluster = None;
                }
            }
        }
    }

    /// One fetch to every endpoint that leads something: how many records came.
    fn round(&mut self, field: &Field, cluster: &mut Cluster) -> Result<usize, Failure> {
        let mut leaders: BTreeMap<SocketAddr, Vec<(i32, i64)>> = BTreeMap::new();
        for partition in 0..PARTITIONS {
            let wanted = (partition, self.positions[partition as usize]);
            leaders
                .entry(cluster.leader(TOPIC, partition))
                .or_default()
                .push(wanted);
        }
        let mut records = 0;
        for (address, wanted) in leaders {
            let wait_ms = if self.laps {
                0
            } else {
                self.random.i32(0..200)
            };
            let bytes_max = [1, 5_000, 200_000, 4 << 20][self.random.usize(0..4)];
            let t_invoke = field.recorder.now();
            let connection = cluster.connection(address)?;
            for fetched in connection.fetch(TOPIC, &wanted, wait_ms, bytes_max)? {
                records += self.take(field, t_invoke, &fetched)?;
            }
        }
        Ok(records)
    }

    fn take(&mut self, field: &Field, t_invoke: u64, fetched: &Fetched) -> Result<usize, Failure> {
        let partition = fetched.partition;
        if fetched.topic != TOPIC || !(0..PARTITIONS).contains(&partition) {
            return Err(Failure::Malformed(
                "a fetch answers a partition nobody asked for",
            ));
        }
        let from = self.positions[partition as usize];
        match fetched.error {
            code::NONE => {}
            code::OFFSET_OUT_OF_RANGE => {
                let end = fetched.high_watermark;
                let client = self.client;
                field.fault(format!(
                    "reader {client}: {partition}@{from} out of range (end {end})"
                ));
                return Err(Failure::Malformed(
                    "a position that was reached is out of range",
                ));
            }
            _ => return Err(Failure::Io(std::io::ErrorKind::NotConnected.into())),
        }
        let records = batch::parse(&fetched.batches)?;
        let ends = Some(history::bounds(fetched.log_start, fetched.high_watermark));
        let place = history::place(TOPIC, partition);
        let polled = history::polled(place, from, &records, ends);
        let (next, count) = (polled.next.0, polled.records.len());
        if next > fetched.high_watermark {
            field.fault(format!(
                "reader {}: a record at or past the watermark",
                self.client
            ));
        }
        self.op_next += 1;
        let action = Action::Poll(polled);
        field
            .recorder
            .note(self.client, self.op_next, t_invoke, Outcome::Ok, action);
        self.positions[partition as usize] = next;
        Ok(count)
    }

    fn maybe_start_over(&mut self, field: &Field, records: usize) {
        if !self.laps || records > 0 || field.is_draining() {
            return;
        }
        self.client += 1;
        self.positions = [0; PARTITIONS as usize];
        thread::sleep(Duration::from_millis(self.random.u64(20..200)));
    }
}

/// Asks where the partitions begin and end.
pub struct Watcher {
    client: u32,
}

impl Watcher {
    pub fn new(client: u32) -> Watcher {
        Watcher { client }
    }

    pub fn run(self, field: &Field) {
        let mut op = 0;
        while !field.is_finished() && !field.is_over() {
            if let Some(mut cluster) = field.connect(self.client) {
                match self.ask_all(field, &mut cluster, &mut op) {
                    Ok(()) | Err(Failure::Io(_)) => {}
                    Err(Failure::Malformed(why)) => field.fault(format!("watcher: {why}")),
                }
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn ask_all(&self, field: &Field, cluster: &mut Cluster, op: &mut u64) -> Result<(), Failure> {
        for partition in 0..PARTITIONS {
            let t_invoke = field.recorder.now();
            let connection = cluster.to(TOPIC, partition)?;
            let first = connection.list_offset(TOPIC, partition, -2)?;
            let end = connection.list_offset(TOPIC, partition, -1)?;
            if first.0 != code::NONE || end.0 != code::NONE {
                continue;
            }
            *op += 1;
            let place = history::place(TOPIC, partition);
            let ends = Ends {
                place,
                bounds: history::bounds(first.1, end.1),
            };
            let action = Action::EndOffsets(ends);
            field
                .recorder
                .note(self.client, *op, t_invoke, Outcome::Ok, action);
        }
        Ok(())
    }
}
