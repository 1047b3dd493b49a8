//! What this process and the CPUs it runs on have used so far, as the kernel counts it. Reading
//! `/proc` takes tens of microseconds, so never on an executor.

use std::fs;

/// Used CPU time, in ns, since the process started or, of CPUs, since the host did.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    /// CPU time of all threads of this process.
    pub process_cpu_ns: u64,
    /// Resident memory of this process, in bytes.
    pub resident_bytes: u64,
    /// Time in which the CPUs asked about ran anything.
    pub cpus_busy_ns: u64,
    /// Time in which they had work and the hypervisor ran somebody else.
    pub cpus_steal_ns: u64,
}

/// Reads it; `cpus` are those this process has executors on. What `/proc` does not tell is 0.
#[must_use]
pub fn usage(cpus: &[usize]) -> Usage {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let (cpus_busy_ns, cpus_steal_ns) = parse_cpus(&stat, cpus, tick_ns());
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    Usage {
        process_cpu_ns: process_cpu_ns(),
        resident_bytes: parse_resident_pages(&statm) * page_bytes(),
        cpus_busy_ns,
        cpus_steal_ns,
    }
}

/// Sums busy and stolen time of some CPUs, from the text of `/proc/stat`.
fn parse_cpus(stat: &str, cpus: &[usize], tick_ns: u64) -> (u64, u64) {
    let (mut busy, mut steal) = (0, 0);
    for line in stat.lines() {
        let mut fields = line.split_ascii_whitespace();
        let number = fields.next().and_then(|name| name.strip_prefix("cpu"));
        let number = number.and_then(|number| number.parse::<usize>().ok());
        if !number.is_some_and(|number| cpus.contains(&number)) {
            continue;
        }
        // user nice system idle iowait irq softirq steal
        let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
        let tick = |index: usize| ticks.get(index).copied().unwrap_or(0);
        busy += tick(0) + tick(1) + tick(2) + tick(5) + tick(6);
        steal += tick(7);
    }
    (busy * tick_ns, steal * tick_ns)
}

fn parse_resident_pages(statm: &str) -> u64 {
    let second = statm.split_ascii_whitespace().nth(1);
    second.and_then(|pages| pages.parse().ok()).unwrap_or(0)
}

fn process_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes a timespec into one that lives here.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Length of the kernel's accounting tick, in ns.
fn tick_ns() -> u64 {
    // SAFETY: a plain question.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1_000_000_000 / u64::try_from(per_second).unwrap_or(100).max(1)
}

fn page_bytes() -> u64 {
    // SAFETY: a plain question.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the right CPUs are summed. Method: a recorded text; the line of all CPUs, and those of
    /// others, do not count.
    #[test]
    fn the_right_cpus_are_summed() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\n\
                    cpu0 100 1 20 5000 7 3 4 50 0 0\n\
                    cpu1 1 1 1 1 1 1 1 1 0 0\n\
                    cpu12 10 0 5 90 0 0 1 2 0 0\nintr 5\n";
        assert_eq!(parse_cpus(stat, &[0, 12], 10), (1440, 520));
        assert_eq!(parse_cpus(stat, &[7], 10), (0, 0));
        assert_eq!(parse_cpus("", &[0], 10), (0, 0));
    }

    /// Goal: this process uses memory and time. Method: ask.
    #[test]
    fn this_process_uses_something() {
        let usage = usage(&[0]);
        assert!(usage.resident_bytes > 100 << 10, "{usage:?}");
        assert!(usage.process_cpu_ns > 0);
    }
}
