//! Checks of memory: huge pages, swapping, other programs' unwritten pages.

use super::facts::Facts;
use super::finding::{Finding, State, in_force};
use super::wanted::{DIRTY, DIRTY_BACKGROUND, DIRTY_BYTES_MAX, SWAPPINESS};

/// `huge_pages`: the broker refuses transparent ones for itself, whatever the host says.
pub fn huge_pages(facts: &Facts) -> Finding {
    let Some(text) = facts.text("/sys/kernel/mm/transparent_hugepage/enabled") else {
        return Finding::absent("not visible here");
    };
    let now = in_force(text);
    let finding = Finding::fine(match now {
        "always" => "always (the broker refuses them for itself)".to_owned(),
        other => other.to_owned(),
    });
    finding
        .why(
            "clearing 2 MiB at the first touch stops a core for longer than a flush takes, so the \
             broker opts out (PR_SET_THP_DISABLE): nothing to do",
        )
        .measured(
            "p99 of 512 producers on one core 11-17 ms with huge pages, 7-8 ms without, at the \
             same rate (benches/commit_rate at 6909b8f)",
        )
}

/// `swappiness`: whether the broker's memory may be swapped out.
pub fn swappiness(facts: &Facts) -> Finding {
    let swaps = facts.text("/proc/swaps").unwrap_or_default();
    if swaps.lines().count() < 2 {
        return Finding::fine("no swap is in use");
    }
    super::sysctl_finding(facts, SWAPPINESS)
        .why(
            "a core that meets a page of its own on the swap device stands still, with every \
             partition it owns, until the disk has brought it back",
        )
        .expected("no stalls of milliseconds after quiet hours")
}

/// `dirty_pages`: how much other programs may leave unwritten before the disk gets it at once.
pub fn dirty_pages(facts: &Facts) -> Finding {
    let why = "the broker itself leaves none (direct I/O), but logs, backups and package updates \
               do; when the kernel writes gigabytes of them at once, flushes queue behind";
    let bytes = ["vm/dirty_background_bytes", "vm/dirty_bytes"]
        .map(|file| facts.number(&format!("/proc/sys/{file}")).unwrap_or(0));
    if bytes.iter().any(|bytes| *bytes > 0) {
        let most = bytes[0].max(bytes[1]);
        let now = format!("at most {} MiB", most >> 20);
        return match most <= DIRTY_BYTES_MAX {
            true => Finding::fine(now),
            false => Finding::new(State::ByHand, now)
                .wanted(format!("{} MiB or less", DIRTY_BYTES_MAX >> 20))
                .why(why)
                .fix("lower vm.dirty_bytes and vm.dirty_background_bytes where they are set"),
        };
    }
    let low = super::sysctl_finding(facts, DIRTY_BACKGROUND);
    let high = super::sysctl_finding(facts, DIRTY);
    if low.state == State::Absent || high.state == State::Absent {
        return low;
    }
    let now = format!("{} % / {} % of memory", low.now, high.now);
    let changes = [low.changes, high.changes].concat();
    if changes.is_empty() {
        return Finding::fine(now);
    }
    let fix = [low.fix, high.fix];
    let fix = fix.into_iter().flatten().collect::<Vec<_>>().join("; ");
    Finding::new(State::Change, now)
        .wanted(format!("{} % / {} %", DIRTY_BACKGROUND.value, DIRTY.value))
        .why(why)
        .expected("shorter waits for a flush while other programs write")
        .changes(changes)
        .fix(fix)
}
