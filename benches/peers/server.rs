//! What a process has used so far, as the kernel counts it.

/// Counters of one process, all its threads together.
pub struct Usage {
    /// Processor time in user and kernel mode, in seconds.
    pub cpu_s: f64,
    /// Resident memory now.
    pub rss_bytes: u64,
    /// Bytes it caused to be sent to the storage.
    pub written_bytes: u64,
}

/// The unit of times in `/proc`: 10 ms on every Linux that matters here.
const TICKS_PER_S: f64 = 100.0;

impl Usage {
    pub fn of(pid: u32) -> Usage {
        let read = |file: &str| {
            std::fs::read_to_string(format!("/proc/{pid}/{file}")).expect("the server lives")
        };
        let stat = read("stat");
        // Fields are counted from behind the name, which may hold anything.
        let fields = stat.rsplit(')').next().expect("a process has a name");
        let ticks: u64 = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(|field| field.parse::<u64>().expect("a count of ticks"))
            .sum();
        Usage {
            cpu_s: ticks as f64 / TICKS_PER_S,
            rss_bytes: field(&read("status"), "VmRSS:") * 1024,
            written_bytes: field(&read("io"), "write_bytes:"),
        }
    }
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .expect("the kernel names it")
}
