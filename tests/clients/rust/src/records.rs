//! The records both clients send, and what each place of the topic must hold afterwards.
//!
//! Record `i` goes to partition `i mod 16`, so a broker that keeps order and loses nothing gives it
//! offset `i div 16`. Every thousand records carry a few odd ones: no key, no value, an empty
//! value, no headers.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Partitions of every topic made here.
pub const PARTITIONS: usize = 16;
/// Records read at each place that is asked for by offset or by time.
pub const SPAN: usize = 500;

/// One record as both clients can carry it.
#[derive(Debug, PartialEq, Eq)]
pub struct Record {
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Vec<u8>)>,
    pub timestamp_ms: i64,
}

/// `count` records with times one millisecond apart that end now.
pub struct Records {
    pub count: usize,
    first_ms: i64,
    words: Vec<String>,
}

impl Records {
    pub fn new(count: usize) -> Records {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("the clock is past 1970");
        let first_ms = now.as_millis() as i64 - count as i64;
        let letter = |n: usize, m: usize| char::from(b'a' + ((n * 7 + m * m) % 26) as u8);
        let word = |n: usize| (0..70).map(|m| letter(n, m)).collect::<String>();
        Records {
            count,
            first_ms,
            words: (0..61).map(word).collect(),
        }
    }

    pub fn timestamp_ms(&self, i: usize) -> i64 {
        self.first_ms + i as i64
    }

    pub fn record(&self, i: usize) -> Record {
        let value = match i % 1000 {
            998 => None,
            997 => Some(Vec::new()),
            _ => Some(format!("{i:09} {}", self.words[i % 61]).into_bytes()),
        };
        let headers = match i % 1000 {
            996 => Vec::new(),
            _ => vec![("n".to_owned(), i.to_string().into_bytes())],
        };
        let key = (i % 1000 != 999).then(|| format!("key-{}", i % 5003).into_bytes());
        Record {
            key,
            value,
            headers,
            timestamp_ms: self.timestamp_ms(i),
        }
    }

    pub fn in_partition(&self, partition: usize) -> usize {
        (self.count + PARTITIONS - 1 - partition) / PARTITIONS
    }

    /// Offset of the partition's first record whose number is at least `i`.
    pub fn first_at_or_after(&self, i: usize, partition: usize) -> usize {
        (i + PARTITIONS - 1).saturating_sub(partition) / PARTITIONS
    }

    /// Record numbers to look up: both ends, the middle, odd spots.
    pub fn places(&self) -> [usize; 5] {
        let count = self.count;
        [0, count / 3, count / 2 + 5, count - 200, count - 1]
    }

    /// Panics unless `found` is what was sent to this place.
    pub fn check(&self, partition: usize, offset: usize, found: &Record) {
        let sent = self.record(offset * PARTITIONS + partition);
        assert_eq!(found, &sent, "partition {partition} offset {offset}");
    }
}

/// One line of report per client and mode.
pub struct Stopwatch {
    title: String,
    last: Instant,
}

impl Stopwatch {
    pub fn new(title: String) -> Stopwatch {
        Stopwatch {
            title,
            last: Instant::now(),
        }
    }

    pub fn lap(&mut self, what: &str) {
        let seconds = self.last.elapsed().as_secs_f64();
        self.title.push_str(&format!(", {what} {seconds:.1} s"));
        self.last = Instant::now();
    }

    pub fn report(self) {
        println!("{}: ok", self.title);
    }
}
