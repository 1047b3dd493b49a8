//! Two Rust clients against a running broker: all records out and back, in order.
//!
//! Usage: `penstock-clients rdkafka|rskafka BOOTSTRAP RECORDS`

mod rdkafka_client;
mod records;
mod rskafka_client;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, client, bootstrap, count] = arguments.as_slice() else {
        panic!("usage: penstock-clients rdkafka|rskafka BOOTSTRAP RECORDS");
    };
    let count: usize = count.parse().expect("RECORDS is a number");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    match client.as_str() {
        "rdkafka" => runtime.block_on(rdkafka_client::run_all(bootstrap, count)),
        "rskafka" => runtime.block_on(rskafka_client::run_all(bootstrap, count)),
        other => panic!("no client {other}"),
    }
}
