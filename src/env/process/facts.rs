//! What the kernel says about this host and this process.

use std::fs;
use std::path::Path;

/// The CPUs this process may run on, ascending: its affinity mask, which containers and `taskset`
/// narrow; never empty.
#[must_use]
pub fn affinity_cpus() -> Vec<usize> {
    // SAFETY: all zeros is an empty set; the kernel fills at most the size it is given; `CPU_ISSET`
    // only reads.
    let cpus: Vec<usize> = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return vec![0];
        }
        let bits = size_of::<libc::cpu_set_t>() * 8;
        (0..bits)
            .filter(|cpu| libc::CPU_ISSET(*cpu, &set))
            .collect()
    };
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Memory this process may use, in bytes: the least of the host's and of every control group it
/// is in.
#[must_use]
pub fn memory_bytes() -> u64 {
    let host = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| parse_meminfo_total(&text))
        .unwrap_or(u64::MAX);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = cgroup_limit_files(&groups).into_iter().filter_map(|path| {
        // "max" (no limit) does not parse, which is what is wanted.
        fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()
    });
    limits.fold(host, u64::min)
}

fn parse_meminfo_total(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// The files that may limit this process, from the text of `/proc/self/cgroup`: its group and all
/// the groups above, version 2 and 1. In a container the visible root is the container's own group.
fn cgroup_limit_files(groups: &str) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        for folder in Path::new(group.trim_start_matches('/')).ancestors() {
            files.push(Path::new(root).join(folder).join(file));
        }
    }
    files
}

/// The host's name, or "localhost".
#[must_use]
pub fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

/// The processor's model, or "unknown".
#[must_use]
pub fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = |line: &str| line.starts_with("model name") || line.starts_with("Model");
    let model = text.lines().find(|line| named(line));
    let model = model.and_then(|line| line.split_once(':'));
    model.map_or_else(|| "unknown".to_owned(), |(_, name)| name.trim().to_owned())
}

/// What the kernel's clocks are read from, or nothing.
#[must_use]
pub fn clock_source() -> String {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The kernel's release, as `uname -r` prints it.
#[must_use]
pub fn kernel_release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

/// The command that started this process, quoted where a shell would need it.
#[must_use]
pub fn command_line() -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:=,+@%^".contains(letter);
    let words = std::env::args_os().map(|word| {
        let word = word.to_string_lossy().into_owned();
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// This process' number.
#[must_use]
pub fn process_id() -> u32 {
    std::process::id()
}

/// Whether this process has the rights of root as far as its user id tells.
#[must_use]
pub fn user_is_root() -> bool {
    // SAFETY: a plain system call that cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Random bytes of the kernel.
#[must_use]
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("Linux has had getrandom(2) since 3.17");
    bytes
}

/// Keeps the kernel from backing this process' memory with huge pages. Clearing 2 MiB at the first
/// touch stops a core for longer than a flush takes. Measured with 512 producers on one core: p99
/// 11–17 ms with huge pages, 7.4 ms without, at the same rate (benches/commit_rate).
pub fn refuse_huge_pages() {
    // SAFETY: a flag of this process; an old kernel refuses it, and nothing changes.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
}

/// CPU time that the calling thread has used, in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes a timespec into one that lives here.
    let outcome = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(outcome, 0, "every Linux has this clock");
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the mask is the process' own. Method: compare with what the kernel prints elsewhere.
    #[test]
    fn affinity_agrees_with_proc() {
        let status = fs::read_to_string("/proc/self/status").expect("proc");
        let line = status
            .lines()
            .find(|line| line.starts_with("Cpus_allowed_list:"))
            .expect("mask");
        let mut expected = Vec::new();
        for range in line.split_whitespace().nth(1).expect("list").split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let first: usize = first.parse().expect("number");
            expected.extend(first..=last.parse().expect("number"));
        }
        assert_eq!(affinity_cpus(), expected);
    }

    /// Goal: both control group layouts and every ancestor are asked. Method: a recorded text of
    /// each.
    #[test]
    fn control_groups_are_found() {
        let files = cgroup_limit_files("0::/system.slice/penstock.service\n");
        let text: Vec<String> = files
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        assert_eq!(
            text,
            [
                "/sys/fs/cgroup/system.slice/penstock.service/memory.max",
                "/sys/fs/cgroup/system.slice/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
        let files = cgroup_limit_files("7:memory:/docker/ab\n3:cpu,cpuacct:/docker/ab\n");
        assert_eq!(
            files[0].to_str(),
            Some("/sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes")
        );
        assert_eq!(files.len(), 3);
    }

    /// Goal: memory is a sane figure on this host. Method: the total must parse and bound it.
    #[test]
    fn memory_is_bounded_by_the_host() {
        let text = fs::read_to_string("/proc/meminfo").expect("proc");
        let host = parse_meminfo_total(&text).expect("a total");
        assert!(memory_bytes() <= host);
        assert!(memory_bytes() > 1 << 20);
    }

    /// Goal: chance is not constant. Method: two draws of 128 bits differ.
    #[test]
    fn random_bytes_differ() {
        assert_ne!(random_bytes::<16>(), random_bytes::<16>());
    }
}
