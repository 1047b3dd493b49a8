//! What the kernel's files say about this host, as far as the checks ask. Everything may be missing
//! or nonsense; then it is `None` or empty.

use crate::env::process::HostTree;
use crate::limits::{CORES_MAX, HOST_DEVICE_LEVELS_MAX};
use std::collections::{BTreeMap, BTreeSet};

/// The broker that the host is checked for.
#[derive(Clone, Debug)]
pub struct Broker {
    /// Its data directory, absolute.
    pub data: String,
    /// The CPUs of its cores.
    pub cpus: Vec<usize>,
    /// Connections it may have.
    pub connections: u64,
    /// Whether io_uring works here, or why not; `None` where it was not tried.
    pub io_uring: Option<Result<(), String>>,
}

/// Everything that the checks look at.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The broker.
    pub broker: Broker,
    /// Text of each file that is asked for by its path.
    pub texts: BTreeMap<String, String>,
    /// The broker's CPUs.
    pub cpus: Vec<Cpu>,
    /// CPUs of each NUMA node.
    pub nodes: Vec<(u32, Vec<usize>)>,
    /// The mount that holds the data.
    pub mount: Option<Mount>,
    /// The devices under it that are no compounds of others.
    pub disks: Vec<Disk>,
    /// Network cards.
    pub cards: Vec<Card>,
}

/// One CPU.
#[derive(Clone, Debug)]
pub struct Cpu {
    /// Its number.
    pub number: usize,
    /// Its frequency governor.
    pub governor: Option<String>,
    /// The governors it could have.
    pub governors: String,
    /// Its idle states.
    pub idle: Vec<Idle>,
}

/// One idle state.
#[derive(Clone, Debug)]
pub struct Idle {
    /// Its file that switches it off.
    pub switch: String,
    /// Its name.
    pub name: String,
    /// Time to wake up, in microseconds.
    pub exit_us: u64,
    /// Whether it is used.
    pub used: bool,
}

/// A mount.
#[derive(Clone, Debug, Default)]
pub struct Mount {
    /// Where.
    pub point: String,
    /// Kind of file system.
    pub kind: String,
    /// What is mounted.
    pub source: String,
    /// Options of mount and file system.
    pub options: BTreeSet<String>,
    /// Device number, `major:minor`.
    pub device: String,
}

/// A block device.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// Its name, such as nvme0n1.
    pub name: String,
    /// Its folder.
    pub folder: String,
    /// Whether it says that it turns.
    pub turns: bool,
    /// `write back` or `write through`.
    pub cache: Option<String>,
    /// Whether it takes a write and a flush in one.
    pub fua: bool,
    /// Its hardware queues.
    pub queues: usize,
    /// Its NUMA node.
    pub node: Option<u32>,
}

/// A network card.
#[derive(Clone, Debug, Default)]
pub struct Card {
    /// Its name, such as eth0.
    pub name: String,
    /// Its receiving queues: folder, and mask of CPUs that share the work.
    pub receiving: Vec<(String, Option<String>)>,
    /// Its sending queues: folder, and mask of CPUs that use it.
    pub sending: Vec<(String, Option<String>)>,
    /// Its interrupts that carry traffic: number and CPUs.
    pub interrupts: Vec<(u32, Vec<usize>)>,
    /// Packets lost because nobody took them from the ring.
    pub missed: Option<u64>,
    /// Its NUMA node.
    pub node: Option<u32>,
}

/// Files that are looked at as they are.
const TEXTS: [&str; 24] = [
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/io_uring_disabled",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/random/boot_id",
    "/proc/sys/fs/aio-max-nr",
    "/proc/sys/fs/nr_open",
    "/proc/sys/net/core/somaxconn",
    "/proc/sys/net/ipv4/tcp_max_syn_backlog",
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/dirty_bytes",
    "/proc/sys/vm/dirty_background_bytes",
    "/proc/sys/vm/zone_reclaim_mode",
    "/proc/self/limits",
    "/proc/self/mountinfo",
    "/proc/self/status",
    "/proc/stat",
    "/proc/swaps",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    "/sys/devices/system/cpu/online",
];

impl Facts {
    /// Reads them.
    #[must_use]
    pub fn read(tree: &HostTree, broker: Broker) -> Facts {
        let mut texts = BTreeMap::new();
        for path in TEXTS {
            if let Some(text) = tree.read(path) {
                texts.insert(path.to_owned(), text);
            }
        }
        let mounts = texts.get("/proc/self/mountinfo").map_or("", String::as_str);
        let mount = mount_of(mounts, &broker.data);
        let disks = mount.as_ref().map(|mount| disks(tree, &mount.device));
        let disks = disks.unwrap_or_default();
        for path in disks.iter().flat_map(queue_files) {
            if let Some(text) = tree.read(&path) {
                texts.insert(path, text);
            }
        }
        Facts {
            cpus: broker
                .cpus
                .iter()
                .map(|cpu| cpu_facts(tree, *cpu))
                .collect(),
            nodes: nodes(tree),
            disks,
            cards: cards(tree),
            mount,
            texts,
            broker,
        }
    }

    /// The text of a file of `TEXTS`, without blanks around it.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(|text| text.trim())
    }

    /// The number in such a file.
    #[must_use]
    pub fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }
}

/// The CPUs that a process of this host may use: the broker's, where nothing else is said.
#[must_use]
pub fn allowed_cpus(tree: &HostTree) -> Vec<usize> {
    let status = tree.read("/proc/self/status").unwrap_or_default();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let online = tree.read("/sys/devices/system/cpu/online");
    let cpus = list.map_or_else(|| cpu_list(&online.unwrap_or_default()), cpu_list);
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// CPUs of a list such as "0-3,8"; at most as many as a broker has cores.
#[must_use]
pub fn cpu_list(text: &str) -> Vec<usize> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse(), last.trim().parse::<usize>()) {
            cpus.extend((first..=last).take(CORES_MAX - cpus.len().min(CORES_MAX)));
        }
    }
    cpus.into_iter().collect()
}

fn cpu_facts(tree: &HostTree, number: usize) -> Cpu {
    let folder = format!("/sys/devices/system/cpu/cpu{number}");
    let read = |file: &str| tree.read(&format!("{folder}/{file}"));
    let states = tree.list(&format!("{folder}/cpuidle"));
    let idle = states.iter().filter_map(|state| {
        let part = |file: &str| read(&format!("cpuidle/{state}/{file}"));
        Some(Idle {
            switch: format!("{folder}/cpuidle/{state}/disable"),
            name: part("name")?.trim().to_owned(),
            exit_us: part("latency")?.trim().parse().ok()?,
            used: part("disable")?.trim() == "0",
        })
    });
    Cpu {
        number,
        governor: read("cpufreq/scaling_governor").map(|text| text.trim().to_owned()),
        governors: read("cpufreq/scaling_available_governors").unwrap_or_default(),
        idle: idle.collect(),
    }
}

fn nodes(tree: &HostTree) -> Vec<(u32, Vec<usize>)> {
    let folder = "/sys/devices/system/node";
    let names = tree.list(folder);
    let nodes = names.iter().filter_map(|name| {
        let number = name.strip_prefix("node")?.parse().ok()?;
        let cpus = tree.read(&format!("{folder}/{name}/cpulist"))?;
        Some((number, cpu_list(&cpus)))
    });
    nodes.collect()
}

/// The mount that holds a path: the last of the longest ones above it.
fn mount_of(mountinfo: &str, path: &str) -> Option<Mount> {
    let mut found: Option<Mount> = None;
    for line in mountinfo.lines() {
        let Some(mount) = mount_line(line) else {
            continue;
        };
        let is_above = mount.point == "/"
            || path
                .strip_prefix(&mount.point)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let longest = found.as_ref().map_or(0, |found| found.point.len());
        if is_above && mount.point.len() >= longest {
            found = Some(mount);
        }
    }
    found
}

/// A line such as `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw`.
fn mount_line(line: &str) -> Option<Mount> {
    let (head, tail) = line.split_once(" - ")?;
    let mut head = head.split(' ').skip(2);
    let (device, _, point, options) = (head.next()?, head.next()?, head.next()?, head.next()?);
    let mut tail = tail.split(' ');
    let (kind, source) = (tail.next()?, tail.next()?);
    let more = tail.next().unwrap_or_default();
    let options = options.split(',').chain(more.split(','));
    Some(Mount {
        point: unescaped(point),
        kind: kind.to_owned(),
        source: unescaped(source),
        options: options
            .filter(|option| !option.is_empty())
            .map(str::to_owned)
            .collect(),
        device: device.to_owned(),
    })
}

/// The kernel writes blanks and backslashes of a path as `\040`, `\011`, `\012`, `\134`.
fn unescaped(text: &str) -> String {
    text.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
}

/// The devices under `major:minor` that are no compounds: through partitions, RAID, encryption and
/// volumes.
fn disks(tree: &HostTree, device: &str) -> Vec<Disk> {
    let Some(folder) = tree.resolve(&format!("/sys/dev/block/{device}")) else {
        return Vec::new();
    };
    let mut level = BTreeSet::from([folder]);
    let mut leaves = BTreeSet::new();
    for _ in 0..HOST_DEVICE_LEVELS_MAX {
        let mut next = BTreeSet::new();
        for folder in level {
            let folder = whole_device(tree, folder);
            let below = tree.list(&format!("{folder}/slaves"));
            let below = below
                .iter()
                .filter_map(|name| tree.resolve(&format!("{folder}/slaves/{name}")));
            let below: Vec<String> = below.collect();
            if below.is_empty() {
                leaves.insert(folder);
            } else {
                next.extend(below);
            }
        }
        level = next;
    }
    leaves
        .into_iter()
        .map(|folder| disk(tree, folder))
        .collect()
}

/// A partition has its settings in the device that it is a part of.
fn whole_device(tree: &HostTree, folder: String) -> String {
    let is_part = tree.exists(&format!("{folder}/partition"));
    match folder.rsplit_once('/') {
        Some((above, _)) if is_part => above.to_owned(),
        _ => folder,
    }
}

fn disk(tree: &HostTree, device: String) -> Disk {
    let name = device.rsplit('/').next().unwrap_or_default().to_owned();
    // The same folder under a name that a person can type.
    let short = format!("/sys/block/{name}");
    let folder = if tree.exists(&format!("{short}/queue")) {
        short
    } else {
        device.clone()
    };
    let queue = |file: &str| {
        let text = tree.read(&format!("{folder}/queue/{file}"));
        text.map(|text| text.trim().to_owned())
    };
    Disk {
        name,
        turns: queue("rotational").as_deref() == Some("1"),
        cache: queue("write_cache"),
        fua: queue("fua").as_deref() == Some("1"),
        queues: tree.list(&format!("{folder}/mq")).len(),
        node: node_above(tree, &device),
        folder,
    }
}

/// Settings of a device's queue that are looked at as they are.
fn queue_files(disk: &Disk) -> [String; 2] {
    ["scheduler", "nomerges"].map(|file| format!("{}/queue/{file}", disk.folder))
}

/// The NUMA node of the nearest device above that names one.
fn node_above(tree: &HostTree, folder: &str) -> Option<u32> {
    let mut folder = folder;
    while let Some((above, _)) = folder.rsplit_once('/').filter(|_| !folder.is_empty()) {
        if let Some(text) = tree.read(&format!("{folder}/numa_node")) {
            // -1 is none.
            return text.trim().parse().ok();
        }
        folder = above;
    }
    None
}

/// Cards with a device behind them that are not down: no loopback, bridge or tunnel.
fn cards(tree: &HostTree) -> Vec<Card> {
    let names = tree.list("/sys/class/net");
    let real = names.iter().filter(|name| {
        let folder = format!("/sys/class/net/{name}");
        let state = tree.read(&format!("{folder}/operstate"));
        tree.exists(&format!("{folder}/device")) && state.is_none_or(|text| text.trim() != "down")
    });
    let lines = tree.read("/proc/interrupts").unwrap_or_default();
    real.map(|name| card(tree, name, &lines)).collect()
}

fn card(tree: &HostTree, name: &str, interrupts: &str) -> Card {
    let folder = format!("/sys/class/net/{name}");
    let queues = |start: &str, mask: &str| {
        let names = tree.list(&format!("{folder}/queues"));
        let mine = names.iter().filter(|queue| queue.starts_with(start));
        let queues = mine.map(|queue| {
            let folder = format!("{folder}/queues/{queue}");
            let mask = tree.read(&format!("{folder}/{mask}"));
            (folder, mask.map(|text| text.trim().to_owned()))
        });
        queues.collect::<Vec<_>>()
    };
    let device = tree
        .resolve(&format!("{folder}/device"))
        .unwrap_or_default();
    let missed = ["rx_missed_errors", "rx_fifo_errors"].map(|file| {
        let text = tree.read(&format!("{folder}/statistics/{file}"))?;
        text.trim().parse::<u64>().ok()
    });
    Card {
        name: name.to_owned(),
        receiving: queues("rx-", "rps_cpus"),
        sending: queues("tx-", "xps_cpus"),
        interrupts: card_interrupts(tree, &device, interrupts),
        missed: missed.into_iter().flatten().max(),
        node: node_above(tree, &device),
    }
}

/// Interrupts of a card that bring packets. A virtual one has them at the device above it.
fn card_interrupts(tree: &HostTree, device: &str, lines: &str) -> Vec<(u32, Vec<usize>)> {
    let above = device.rsplit_once('/').map_or("", |(above, _)| above);
    let numbers = [device, above]
        .map(|folder| tree.list(&format!("{folder}/msi_irqs")))
        .into_iter()
        .find(|list| !list.is_empty())
        .unwrap_or_default();
    let other = [
        "config", "control", "event", "async", "misc", "output", "mbx",
    ];
    let mut found = Vec::new();
    for number in numbers.iter().filter_map(|text| text.parse::<u32>().ok()) {
        let name = interrupt_name(lines, number).to_lowercase();
        let sends_only = name.contains("-tx") && !name.contains("rx");
        if name.is_empty() || sends_only || other.iter().any(|word| name.contains(word)) {
            continue;
        }
        let read = |file: &str| tree.read(&format!("/proc/irq/{number}/{file}"));
        let list = read("effective_affinity_list").or_else(|| read("smp_affinity_list"));
        let cpus = cpu_list(&list.unwrap_or_default());
        if !cpus.is_empty() {
            found.push((number, cpus));
        }
    }
    found
}

/// The last word of an interrupt's line.
fn interrupt_name(lines: &str, number: u32) -> &str {
    let line = lines.lines().find(|line| {
        let first = line.split(':').next().unwrap_or_default();
        first.trim().parse() == Ok(number)
    });
    line.and_then(|line| line.split_whitespace().last())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the right mount is found. Method: nested mounts, one above another, a name that only
    /// begins alike, an escaped blank.
    #[test]
    fn the_mount_is_found() {
        let lines = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
            2 1 8:2 / /var/lib rw,noatime shared:1 - xfs /dev/sda2 rw,discard\n\
            3 1 8:3 / /var/lib rw - ext4 /dev/sda3 rw,nobarrier\n\
            4 1 8:4 / /my\\040data rw - ext4 /dev/sda4 rw\n\
            nonsense\n";
        let at = |path| mount_of(lines, path).expect("found");
        assert_eq!(at("/var/lib/penstock").device, "8:3");
        assert!(at("/var/lib/penstock").options.contains("nobarrier"));
        assert_eq!(at("/var/library").device, "8:1");
        assert_eq!(at("/my data/x").kind, "ext4");
        assert_eq!(at("/my data/x").point, "/my data");
        assert!(mount_of("", "/x").is_none());
    }

    /// Goal: lists of CPUs are read, and none is endless. Method: samples.
    #[test]
    fn cpu_lists_are_bounded() {
        assert_eq!(cpu_list("0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(cpu_list("x,3-1,,5"), [5]);
        let most = cpu_list("0-18446744073709551615,7");
        assert_eq!(most.len(), CORES_MAX);
    }
}
