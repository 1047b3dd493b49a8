//! Checks of the kernel itself and of the limits of the process: what the broker cannot start
//! without, and what it can do only on newer ones.

use super::facts::Facts;
use super::finding::{Finding, State};
use super::wanted::UNIT_OPEN_FILES;
use crate::limits::{LOCKED_MEMORY_BYTES_MIN, LOCKED_MEMORY_CORE_BYTES, READ_FILES_MAX};

const UNIT: &str = "tuning/penstock.service";

/// `kernel`: its version.
pub fn kernel(facts: &Facts) -> Finding {
    let Some(release) = facts.text("/proc/sys/kernel/osrelease") else {
        return Finding::absent("the kernel does not say");
    };
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        return Finding::absent("the kernel's version is not a number");
    };
    let newer = "install a newer kernel (Debian: linux-image-amd64 of backports)";
    match (major, minor) {
        (..=4, _) | (5, ..=10) => Finding::new(State::ByHand, release)
            .wanted("6.1 or newer")
            .why("io_uring lacks what the broker needs before 5.11")
            .fix(newer),
        (5, _) => Finding::new(State::ByHand, release)
            .wanted("6.1 or newer")
            .why("before 6.0 each completion interrupts the core that is at work")
            .measured(
                "TCP throughput 1.8-2.6 times as high with the ring flags of 6.0, 16 connections \
                 and more (prototype, 2 virtual CPUs)",
            )
            .fix(newer),
        (6, ..=14) => Finding::fine(release).why(
            "before 6.15 an idle broker shows as I/O wait in `top` and in pressure figures: the \
             kernel counts waiting for requests as waiting for a disk. It is harmless",
        ),
        _ => Finding::fine(release),
    }
}

/// `io_uring`: whether it may be used.
pub fn io_uring(facts: &Facts) -> Finding {
    let path = "/proc/sys/kernel/io_uring_disabled";
    let disabled = facts.number(path).unwrap_or(0);
    let why = "the broker does all its I/O through it and does not start without";
    if disabled > 0 {
        let who = if disabled == 1 {
            "forbidden to ordinary users"
        } else {
            "forbidden to all"
        };
        // Somebody may have decided so for the host's safety: that is not undone in passing.
        return Finding::new(State::ByHand, format!("{who} ({disabled})"))
            .wanted("allowed (0), or to its group (1)")
            .why(format!(
                "{why}. If it is forbidden on purpose, use 1 and put the broker's user into the \
                 group of kernel.io_uring_group"
            ))
            .fix("sysctl -w kernel.io_uring_disabled=0; and in /etc/sysctl.d to keep it");
    }
    match &facts.broker.io_uring {
        Some(Err(reason)) => Finding::new(State::ByHand, "refused")
            .wanted("allowed")
            .why(why)
            .fix(reason.clone()),
        Some(Ok(())) => Finding::fine("allowed (a ring was made)"),
        None => Finding::fine("not forbidden by sysctl"),
    }
}

/// `aio_limit`: often raised for brokers; not needed by this one.
pub fn aio_limit(facts: &Facts) -> Finding {
    match facts.number("/proc/sys/fs/aio-max-nr") {
        Some(now) => Finding::fine(format!("{now} (not used)"))
            .why("other brokers need fs.aio-max-nr raised; io_uring takes nothing from it"),
        None => Finding::absent("not visible here (and not needed)"),
    }
}

/// Soft and hard limit of a row of `/proc/self/limits`; `u64::MAX` is none.
fn limits(facts: &Facts, row: &str) -> Option<(u64, u64)> {
    let text = facts.texts.get("/proc/self/limits")?;
    let rest = text.lines().find_map(|line| line.strip_prefix(row))?;
    let mut values = rest.split_whitespace().map(|word| match word {
        "unlimited" => Some(u64::MAX),
        word => word.parse().ok(),
    });
    Some((values.next()??, values.next()??))
}

/// `locked_memory`: what the rings and their buffers may lock.
pub fn locked_memory(facts: &Facts) -> Finding {
    let Some((_, hard)) = limits(facts, "Max locked memory") else {
        return Finding::absent("the kernel does not say");
    };
    let cores = facts.broker.cpus.len() as u64;
    let wanted = cores * LOCKED_MEMORY_CORE_BYTES;
    let shown = match hard {
        u64::MAX => "unlimited".to_owned(),
        bytes => format!("{} KiB in this shell", bytes / 1024),
    };
    if hard >= wanted {
        return Finding::fine(shown);
    }
    let least = hard < LOCKED_MEMORY_BYTES_MIN;
    let state = if least { State::ByHand } else { State::Note };
    let why = if least {
        "the broker does not start with less than 512 KiB"
    } else {
        "rings and their registered buffers are locked; with too little the executors of the last \
         cores do not start"
    };
    Finding::new(state, shown)
        .wanted(format!("{} KiB for {cores} cores", wanted / 1024))
        .why(why)
        .fix(format!(
            "{UNIT} has LimitMEMLOCK=infinity; in a container --ulimit memlock=-1"
        ))
}

/// `open_files`: what connections and segments may take.
pub fn open_files(facts: &Facts) -> Finding {
    let Some((_, hard)) = limits(facts, "Max open files") else {
        return Finding::absent("the kernel does not say");
    };
    let cores = facts.broker.cpus.len() as u64;
    let files = cores * (READ_FILES_MAX as u64 + 64);
    let wanted = facts.broker.connections + files;
    let shown = match hard {
        u64::MAX => "unlimited".to_owned(),
        count => format!("{count} in this shell"),
    };
    if hard >= wanted {
        return Finding::fine(shown);
    }
    Finding::new(State::Note, shown)
        .wanted(format!("{wanted} or more"))
        .why(format!(
            "max_connections = {} and {files} for segments; a connection beyond the limit is \
             refused",
            facts.broker.connections
        ))
        .fix(format!(
            "{UNIT} has LimitNOFILE={UNIT_OPEN_FILES}; in a container --ulimit nofile={wanted}"
        ))
}
