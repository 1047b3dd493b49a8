//! What a host should be set to: the one table that the checks, `tuning/penstock.sysctl.conf`, the
//! unit and the udev rule agree with (`tests/tune.rs` compares them).

use crate::limits::LISTEN_BACKLOG;

/// How a number is compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bound {
    /// This or less.
    AtMost,
    /// This or more.
    AtLeast,
    /// This only.
    Exactly,
}

/// A number of `sysctl`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sysctl {
    /// Its name, with dots.
    pub name: &'static str,
    /// How it is compared.
    pub bound: Bound,
    /// With what, and what it is set to.
    pub value: u64,
}

impl Sysctl {
    /// Its file.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/proc/sys/{}", self.name.replace('.', "/"))
    }

    /// Whether a value will do.
    #[must_use]
    pub fn accepts(&self, value: u64) -> bool {
        match self.bound {
            Bound::AtMost => value <= self.value,
            Bound::AtLeast => value >= self.value,
            Bound::Exactly => value == self.value,
        }
    }

    /// In words.
    #[must_use]
    pub fn text(&self) -> String {
        match self.bound {
            Bound::AtMost if self.value > 0 => format!("{} or less", self.value),
            Bound::AtLeast => format!("{} or more", self.value),
            Bound::AtMost | Bound::Exactly => self.value.to_string(),
        }
    }
}

const fn sysctl(name: &'static str, bound: Bound, value: u64) -> Sysctl {
    Sysctl { name, bound, value }
}

/// Swapping: the kernel's least inclination that still prefers it to killing processes.
pub const SWAPPINESS: Sysctl = sysctl("vm.swappiness", Bound::AtMost, 1);
/// Unwritten pages of other programs at which the kernel begins to write, in percent of memory.
pub const DIRTY_BACKGROUND: Sysctl = sysctl("vm.dirty_background_ratio", Bound::AtMost, 3);
/// The same, at which it makes those programs wait.
pub const DIRTY: Sysctl = sysctl("vm.dirty_ratio", Bound::AtMost, 10);
/// Moving of pages between NUMA nodes behind the process' back.
pub const NUMA_BALANCING: Sysctl = sysctl("kernel.numa_balancing", Bound::Exactly, 0);
/// Reclaiming pages of the own node rather than taking free ones of another.
pub const ZONE_RECLAIM: Sysctl = sysctl("vm.zone_reclaim_mode", Bound::Exactly, 0);
/// Connections that wait to be accepted: the kernel cuts what the broker asks for down to this.
pub const SOMAXCONN: Sysctl = sysctl("net.core.somaxconn", Bound::AtLeast, LISTEN_BACKLOG as u64);
/// Connections half made.
pub const SYN_BACKLOG: Sysctl = sysctl(
    "net.ipv4.tcp_max_syn_backlog",
    Bound::AtLeast,
    LISTEN_BACKLOG as u64,
);

/// Every number that `tuning/penstock.sysctl.conf` sets.
pub const SYSCTLS: [Sysctl; 7] = [
    SWAPPINESS,
    DIRTY_BACKGROUND,
    DIRTY,
    NUMA_BALANCING,
    ZONE_RECLAIM,
    SOMAXCONN,
    SYN_BACKLOG,
];

/// Order in which a disk that does not turn is given its requests: as they come.
pub const SCHEDULER: &str = "none";
/// The same for one that turns.
pub const SCHEDULER_TURNING: &str = "mq-deadline";
/// Requests are not searched for neighbours.
pub const NOMERGES: &str = "2";
/// Clock of a core.
pub const GOVERNOR: &str = "performance";
/// Deepest sleep of a core, in microseconds to wake up: what it polls before it parks.
pub const IDLE_EXIT_US_MAX: u64 = crate::limits::SPIN_BEFORE_PARK_US;
/// Time that the hypervisor may take, in thousandths.
pub const STEAL_PERMILLE_MAX: u64 = 10;
/// Unwritten bytes of other programs, where they are limited in bytes.
pub const DIRTY_BYTES_MAX: u64 = 1 << 30;

/// Settings of `tuning/penstock.service` that the broker depends on.
pub const UNIT: [(&str, &str); 10] = [
    ("Type", "notify"),
    ("NotifyAccess", "main"),
    ("WatchdogSec", "30s"),
    ("TimeoutStopSec", "20s"),
    ("KillSignal", "SIGTERM"),
    ("Restart", "on-failure"),
    ("RestartPreventExitStatus", "1 2 3 4"),
    ("LimitMEMLOCK", "infinity"),
    ("LimitNOFILE", "1048576"),
    ("LimitCORE", "0"),
];
/// Descriptors that the unit allows.
pub const UNIT_OPEN_FILES: u64 = 1 << 20;
