//! The producers: a crowd, one request of one message in flight each.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::shared::crowd::Crowd;
use crate::shared::{produce_frame, thread_cpu, was_refused};
use crate::support::cluster::Cluster;

/// Bytes of each message's value.
const MESSAGE_BYTES: usize = 100;
/// Time before counting begins.
const WARM: Duration = Duration::from_millis(300);
/// Time without any answer after which the broker counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Where the messages go.
pub struct Target {
    pub endpoint: SocketAddr,
    pub topic: String,
    pub partitions: i32,
}

/// One run.
pub struct Measured {
    pub per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// Processor time of the client's thread against elapsed time.
    pub client_cpu_percent: f64,
}

/// Runs `producers` producers for `span` after a short warm-up.
pub fn run(target: &Target, producers: usize, span: Duration) -> Measured {
    let mut crowd = Crowd::connect(requests(target, producers));
    let mut begun = vec![Instant::now(); producers];
    for (index, begin) in begun.iter_mut().enumerate() {
        *begin = Instant::now();
        crowd.send(index);
    }
    let mut histogram = Histogram::<u64>::new(3).expect("a valid precision");
    let counting_from = Instant::now() + WARM;
    let until = counting_from + span;
    let mut cpu_from = None;
    let mut counted = 0u64;
    let mut open = producers;
    let mut heard = Instant::now();
    while open > 0 {
        let answered = crowd.wait(1000);
        let now = Instant::now();
        if !answered.is_empty() {
            heard = now;
        }
        assert!(now - heard < SILENCE_MAX, "no answer for ten seconds");
        if now >= counting_from && cpu_from.is_none() {
            cpu_from = Some(thread_cpu());
        }
        for index in answered {
            let refused = was_refused(&target.topic, crowd.answer(index));
            assert!(!refused, "a produce was refused");
            if now >= counting_from && now < until {
                counted += 1;
                let took_ns = now.duration_since(begun[index]).as_nanos() as u64;
                histogram.record(took_ns).expect("the histogram grows");
            }
            if now < until {
                begun[index] = Instant::now();
                crowd.send(index);
            } else {
                open -= 1;
            }
        }
    }
    let cpu = thread_cpu().saturating_sub(cpu_from.unwrap_or_default());
    let us = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1000.0;
    Measured {
        per_second: counted as f64 / span.as_secs_f64(),
        p50_us: us(0.5),
        p99_us: us(0.99),
        client_cpu_percent: cpu.as_secs_f64() / span.as_secs_f64() * 100.0,
    }
}

/// Each producer's endpoint and request.
fn requests(target: &Target, producers: usize) -> Vec<(SocketAddr, Vec<u8>)> {
    let timeout = Duration::from_secs(30);
    let cluster = Cluster::open(target.endpoint, &[&target.topic], timeout);
    let cluster = cluster.expect("Metadata answers");
    assert_eq!(
        cluster.partitions(&target.topic),
        target.partitions as usize
    );
    let make = |index: usize| {
        let partition = index as i32 % target.partitions;
        let leader = cluster.leader(&target.topic, partition);
        let request = produce_frame(&target.topic, partition, index as i32, MESSAGE_BYTES);
        (leader, request)
    };
    (0..producers).map(make).collect()
}
