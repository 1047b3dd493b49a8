fn main() { let _ = (rdkafka::util::get_rdkafka_version(),); let _ = rskafka::client::ClientBuilder::new(vec![]); }
