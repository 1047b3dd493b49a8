//! How many acknowledgements a second some waiting producers get from a server that is already
//! running, whatever protocol it speaks: the one loader of `scripts/compare.sh`, so that all
//! systems are asked by the same loop and only the bytes differ.
//!
//! ```text
//! peers --protocol kafka|nats|amqp|redis --address IP:PORT --pid PID [--producers 8]
//!       [--partitions 1] [--message-bytes 100] [--batch-messages 1] [--span-ms 2000]
//! ```
//!
//! One line of JSON. The server's processor time and written bytes are those of the process PID
//! between the first and the last counted request; its memory is what it holds at the end. Without
//! arguments it tries itself on a broker of its own for a moment, as a test.

#[path = "../closed_loop/mod.rs"]
mod closed_loop;
mod server;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::net::SocketAddr;
use std::time::Duration;

use closed_loop::Protocol;
use closed_loop::amqp::Amqp;
use closed_loop::kafka::Kafka;
use closed_loop::nats::Nats;
use closed_loop::redis::Redis;
use server::Usage;

/// What to do, as on the command line.
struct Plan {
    protocol: String,
    address: SocketAddr,
    pid: u32,
    producers: usize,
    partitions: i32,
    message_bytes: usize,
    batch_messages: usize,
    span: Duration,
}

impl Plan {
    fn new(protocol: &str, address: SocketAddr, pid: u32) -> Plan {
        Plan {
            protocol: protocol.to_owned(),
            address,
            pid,
            producers: 8,
            partitions: 1,
            message_bytes: 100,
            batch_messages: 1,
            span: Duration::from_secs(2),
        }
    }

    fn from_arguments(arguments: &[String]) -> Plan {
        let nobody: SocketAddr = ([127, 0, 0, 1], 0).into();
        let mut plan = Plan::new("", nobody, 0);
        for pair in arguments.chunks(2) {
            let [name, value] = pair else {
                panic!("{} has no value", pair[0]);
            };
            let number = || -> usize { value.parse().expect("the value is a number") };
            match name.as_str() {
                "--protocol" => plan.protocol.clone_from(value),
                "--address" => plan.address = value.parse().expect("an address"),
                "--pid" => plan.pid = value.parse().expect("a process id"),
                "--producers" => plan.producers = number(),
                "--partitions" => plan.partitions = value.parse().expect("a count"),
                "--message-bytes" => plan.message_bytes = number(),
                "--batch-messages" => plan.batch_messages = number(),
                "--span-ms" => plan.span = Duration::from_millis(number() as u64),
                _ => panic!("no such flag: {name}"),
            }
        }
        plan
    }

    fn open(&self) -> Box<dyn Protocol> {
        let shape = (self.message_bytes, self.batch_messages);
        match self.protocol.as_str() {
            "kafka" => {
                let topic = format!("rate-{}", self.partitions);
                Box::new(Kafka::open(self.address, &topic, self.partitions, shape))
            }
            "nats" => Box::new(Nats::open(self.address, self.message_bytes)),
            "amqp" => Box::new(Amqp::open(self.address, self.message_bytes)),
            "redis" => Box::new(Redis {
                address: self.address,
                message_bytes: self.message_bytes,
            }),
            other => panic!("no protocol {other}: kafka, nats, amqp or redis"),
        }
    }
}

fn measure(plan: &Plan) -> serde_json::Value {
    let protocol = plan.open();
    let mut usage = Vec::new();
    let run = closed_loop::run(&*protocol, plan.producers, plan.span, || {
        usage.push(Usage::of(plan.pid));
    });
    let [before, after] = &usage[..] else {
        panic!("counting begins once and ends once");
    };
    let messages = plan.batch_messages as f64;
    let bytes_per_s = run.per_second * messages * plan.message_bytes as f64;
    let server_cpu_s = after.cpu_s - before.cpu_s;
    let accepted = run.counted as f64 * messages * plan.message_bytes as f64;
    serde_json::json!({
        "producers": plan.producers,
        "partitions": plan.partitions,
        "message_bytes": plan.message_bytes,
        "batch_messages": plan.batch_messages,
        "span_s": plan.span.as_secs_f64(),
        "acks_per_s": run.per_second,
        "messages_per_s": run.per_second * messages,
        "mb_per_s": bytes_per_s / 1e6,
        "p50_us": run.p50_us,
        "p99_us": run.p99_us,
        "p999_us": run.p999_us,
        "max_us": run.max_us,
        "samples": run.counted,
        "server_cpu_s": server_cpu_s,
        "server_cpu_us_per_message": server_cpu_s * 1e6 / (run.counted as f64 * messages),
        "server_cpu_s_per_gb": server_cpu_s / (accepted / 1e9),
        "server_rss_bytes": after.rss_bytes,
        "server_written_bytes": after.written_bytes.saturating_sub(before.written_bytes),
        "accepted_bytes": accepted,
        "client_cpu_percent": run.client_cpu_percent,
    })
}

/// A moment against a broker of our own: the loader works, and its figures are no absurd ones.
fn try_itself() {
    let home = support::broker::home("peers");
    let options = support::broker::Options::new(home.path());
    let (broker, ready) = support::broker::Broker::start(&options);
    let mut plan = Plan::new("kafka", ready.kafka[0], broker.pid());
    plan.span = Duration::from_millis(300);
    for batch_messages in [1, 3000] {
        plan.batch_messages = batch_messages;
        let run = measure(&plan);
        println!("{run}");
        assert!(run["acks_per_s"].as_f64().is_some_and(|rate| rate > 0.0));
        assert!(run["p50_us"].as_f64() <= run["max_us"].as_f64());
    }
    broker.stop(Duration::from_secs(60));
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<String> = arguments
        .into_iter()
        .filter(|argument| argument != "--bench")
        .collect();
    if arguments.is_empty() {
        try_itself();
    } else {
        println!("{}", measure(&Plan::from_arguments(&arguments)));
    }
}
