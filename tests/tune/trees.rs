//! Hosts made of files: what `/proc` and `/sys` show on machines that the test does not run on.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A host, in a temporary folder.
pub struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    /// A host that shows nothing at all.
    pub fn empty() -> Tree {
        Tree {
            folder: tempfile::tempdir().expect("temporary directory"),
        }
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path.trim_start_matches('/'))
    }

    /// Writes a file, with the folders above it.
    pub fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("folders");
        fs::write(&path, text).expect("written");
    }

    pub fn folder(&self, path: &str) {
        fs::create_dir_all(self.path(path)).expect("folders");
    }

    /// Makes a link to a path of the tree, relative as in sysfs.
    pub fn link(&self, path: &str, target: &str) {
        let depth = path.trim_start_matches('/').matches('/').count();
        let target = format!("{}{}", "../".repeat(depth), target.trim_start_matches('/'));
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("folders");
        symlink(target, path).expect("linked");
    }

    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect(path)
    }

    /// Every file with its bytes, links not followed.
    pub fn snapshot(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.root().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("listed") {
                let entry = entry.expect("listed");
                let kind = entry.file_type().expect("known");
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() {
                    let bytes = fs::read(entry.path()).expect("read");
                    files.insert(entry.path(), bytes);
                }
            }
        }
        files
    }

    fn process(&self, cpus: &str, mounts: &str, limits: &str) {
        self.put(
            "/proc/self/status",
            format!("Name:\tx\nCpus_allowed_list:\t{cpus}\n"),
        );
        self.put("/proc/self/mountinfo", mounts);
        self.put("/proc/self/limits", limits);
        self.put("/proc/sys/kernel/hostname", "fixture\n");
        self.put("/proc/sys/kernel/random/boot_id", "11111111-2222\n");
        self.put("/proc/swaps", "Filename Type Size Used Priority\n");
    }

    fn sysctls(&self, values: &[(&str, &str)]) {
        for (name, value) in values {
            let path = format!("/proc/sys/{}", name.replace('.', "/"));
            self.put(&path, format!("{value}\n"));
        }
    }

    fn disk(&self, device: &str, name: &str, number: &str, queue: &[(&str, &str)], queues: usize) {
        let folder = format!("{device}/block/{name}");
        for (file, value) in queue {
            self.put(&format!("{folder}/queue/{file}"), format!("{value}\n"));
        }
        for queue in 0..queues {
            self.folder(&format!("{folder}/mq/{queue}"));
        }
        self.link(&format!("/sys/dev/block/{number}"), &folder);
        self.link(&format!("/sys/block/{name}"), &folder);
    }
}

const LIMITS_LOW: &str = "\
Limit                     Soft Limit           Hard Limit           Units
Max open files            1024                 4096                 files
Max locked memory         65536                65536                bytes
";
const LIMITS_NONE: &str = "\
Limit                     Soft Limit           Hard Limit           Units
Max open files            1048576              1048576              files
Max locked memory         unlimited            unlimited            bytes
";

/// Two sockets, NVMe under encryption, a card of eight queues, everything as a careless
/// installation leaves it.
pub fn bare_metal() -> Tree {
    let tree = Tree::empty();
    tree.process(
        "0-7",
        "1 0 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
         2 1 253:0 / /srv/penstock rw,relatime - ext4 /dev/mapper/data rw,nobarrier\n",
        LIMITS_LOW,
    );
    tree.put("/proc/sys/kernel/osrelease", "5.15.0-91-generic\n");
    tree.put("/proc/swaps", "Filename Type\n/dev/sda2 partition\n");
    tree.put("/proc/stat", "cpu  1000 0 500 8000 10 0 5 0 0 0\n");
    tree.sysctls(&[
        ("vm.swappiness", "60"),
        ("vm.dirty_ratio", "20"),
        ("vm.dirty_background_ratio", "10"),
        ("vm.dirty_bytes", "0"),
        ("vm.dirty_background_bytes", "0"),
        ("vm.zone_reclaim_mode", "1"),
        ("kernel.numa_balancing", "1"),
        ("kernel.io_uring_disabled", "2"),
        ("net.core.somaxconn", "128"),
        ("net.ipv4.tcp_max_syn_backlog", "512"),
        ("fs.aio-max-nr", "65536"),
    ]);
    tree.put(
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "[always] madvise never\n",
    );
    let clock = "/sys/devices/system/clocksource/clocksource0";
    tree.put(&format!("{clock}/current_clocksource"), "hpet\n");
    tree.put(
        &format!("{clock}/available_clocksource"),
        "tsc hpet acpi_pm \n",
    );
    for cpu in 0..8 {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
        tree.put(&format!("{folder}/cpufreq/scaling_governor"), "powersave\n");
        tree.put(
            &format!("{folder}/cpufreq/scaling_available_governors"),
            "performance powersave\n",
        );
        for (state, name, us) in [(0, "POLL", 0), (1, "C1", 2), (2, "C6", 133)] {
            let folder = format!("{folder}/cpuidle/state{state}");
            tree.put(&format!("{folder}/name"), format!("{name}\n"));
            tree.put(&format!("{folder}/latency"), format!("{us}\n"));
            tree.put(&format!("{folder}/disable"), "0\n");
        }
    }
    tree.put("/sys/devices/system/node/node0/cpulist", "0-3\n");
    tree.put("/sys/devices/system/node/node1/cpulist", "4-7\n");
    bare_metal_disk(&tree);
    bare_metal_card(&tree);
    tree
}

fn bare_metal_disk(tree: &Tree) {
    let pci = "/sys/devices/pci0000:80/0000:81:00.0";
    tree.put(&format!("{pci}/numa_node"), "1\n");
    tree.disk(
        &format!("{pci}/nvme/nvme0"),
        "nvme0n1",
        "259:0",
        &[
            ("scheduler", "none [mq-deadline] kyber"),
            ("nomerges", "0"),
            ("write_cache", "write back"),
            ("fua", "1"),
            ("rotational", "0"),
        ],
        8,
    );
    let disk = format!("{pci}/nvme/nvme0/block/nvme0n1");
    tree.put(&format!("{disk}/nvme0n1p1/partition"), "1\n");
    let mapper = "/sys/devices/virtual/block/dm-0";
    tree.put(&format!("{mapper}/queue/scheduler"), "none\n");
    tree.link(
        &format!("{mapper}/slaves/nvme0n1p1"),
        &format!("{disk}/nvme0n1p1"),
    );
    tree.link("/sys/dev/block/253:0", mapper);
}

fn bare_metal_card(tree: &Tree) {
    let pci = "/sys/devices/pci0000:00/0000:01:00.0";
    tree.put(&format!("{pci}/numa_node"), "0\n");
    let card = format!("{pci}/net/eth0");
    tree.put(&format!("{card}/operstate"), "up\n");
    tree.put(&format!("{card}/statistics/rx_missed_errors"), "12\n");
    tree.link(&format!("{card}/device"), pci);
    tree.link("/sys/class/net/eth0", &card);
    tree.put("/sys/devices/virtual/net/lo/operstate", "unknown\n");
    tree.link("/sys/class/net/lo", "/sys/devices/virtual/net/lo");
    let mut lines = "           CPU0 CPU1\n".to_owned();
    for queue in 0..4 {
        tree.put(&format!("{card}/queues/rx-{queue}/rps_cpus"), "00\n");
        tree.put(&format!("{card}/queues/tx-{queue}/xps_cpus"), "00\n");
        let number = 40 + queue;
        tree.put(&format!("{pci}/msi_irqs/{number}"), "msix\n");
        for file in ["smp_affinity_list", "effective_affinity_list"] {
            tree.put(&format!("/proc/irq/{number}/{file}"), "0\n");
        }
        lines.push_str(&format!(
            " {number}:  9  0  PCI-MSIX 1-edge  eth0-TxRx-{queue}\n"
        ));
    }
    tree.put("/proc/interrupts", lines);
}

/// A virtual machine of two CPUs as a cloud gives it, with little left to set.
pub fn virtual_machine() -> Tree {
    let tree = Tree::empty();
    tree.process(
        "0-1",
        "1 0 254:1 / / rw,noatime - ext4 /dev/vda1 rw\n",
        LIMITS_NONE,
    );
    tree.put("/proc/sys/kernel/osrelease", "6.18.1\n");
    tree.put("/proc/stat", "cpu  1000 0 500 8000 10 0 5 300 0 0\n");
    tree.sysctls(&[
        ("vm.swappiness", "60"),
        ("vm.dirty_ratio", "10"),
        ("vm.dirty_background_ratio", "3"),
        ("net.core.somaxconn", "4096"),
        ("net.ipv4.tcp_max_syn_backlog", "4096"),
    ]);
    tree.put(
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "kvm-clock\n",
    );
    tree.put("/sys/devices/system/node/node0/cpulist", "0-1\n");
    let device = "/sys/devices/pci0000:00/0000:00:02.0/virtio1";
    tree.disk(
        device,
        "vda",
        "254:0",
        &[
            ("scheduler", "[none] mq-deadline"),
            ("nomerges", "2"),
            ("write_cache", "write through"),
            ("rotational", "1"),
        ],
        2,
    );
    tree.put(&format!("{device}/block/vda/vda1/partition"), "1\n");
    tree.link("/sys/dev/block/254:1", &format!("{device}/block/vda/vda1"));
    tree
}

/// A container that sees itself and hardly anything of its host.
pub fn container() -> Tree {
    let tree = Tree::empty();
    tree.process(
        "2,5",
        "1 0 0:77 / / rw - overlay overlay rw,lowerdir=/a:/b\n",
        LIMITS_LOW,
    );
    tree.put("/proc/sys/kernel/osrelease", "6.1.0\n");
    tree
}

/// Five hundred CPUs and interrupts by the thousand.
pub fn huge() -> Tree {
    let tree = bare_metal();
    tree.process("0-511", "1 0 259:0 / / rw - xfs /dev/x rw\n", LIMITS_NONE);
    let mut lines = String::new();
    for number in 0..4000 {
        lines.push_str(&format!("{number:4}: {} name-{number}\n", "1 ".repeat(512)));
    }
    tree.put("/proc/interrupts", lines);
    for cpu in 8..512 {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq");
        tree.put(&format!("{folder}/scaling_governor"), "schedutil\n");
        tree.put(
            &format!("{folder}/scaling_available_governors"),
            "performance\n",
        );
    }
    tree
}
