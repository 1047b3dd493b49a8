//! Checks of the disk under the data directory: file system, mount, and the queue of each device.

use super::facts::{Disk, Facts};
use super::finding::{Change, Finding, State, in_force};
use super::wanted::{NOMERGES, SCHEDULER, SCHEDULER_TURNING};

const NO_MOUNT: &str = "the mount of the data directory is not visible";
const NO_DEVICE: &str = "the data directory lies on no block device that is visible here";

/// `file_system`: whether direct I/O on pre-written files works as measured.
pub fn file_system(facts: &Facts) -> Finding {
    let Some(mount) = &facts.mount else {
        return Finding::absent(NO_MOUNT);
    };
    let now = format!("{} on {}", mount.kind, mount.source);
    let move_it = "put the data directory (`data`) on ext4 or XFS on a local disk";
    let bad = |why: &str| {
        Finding::new(State::ByHand, now.clone())
            .wanted("ext4 or xfs")
            .why(why)
            .fix(move_it)
    };
    match mount.kind.as_str() {
        "ext4" | "xfs" => Finding::fine(now),
        "tmpfs" | "ramfs" => {
            bad("it lives in memory: every acknowledged record is lost at the next restart")
        }
        "overlay" => bad(
            "this is a container's own layer: it goes with the container, and each commit passes \
             through a second file system",
        ),
        "btrfs" | "zfs" | "bcachefs" | "f2fs" => bad(
            "it writes each block to a new place, so a commit into a pre-written segment costs \
             metadata writes as well; the broker's figures were measured on ext4 and XFS",
        ),
        "nfs" | "nfs4" | "cifs" | "9p" | "ceph" => bad(
            "a flush is as durable and as fast as a server and a network are; the broker counts on \
             a local disk",
        ),
        _ => Finding::new(State::Note, now)
            .wanted("ext4 or xfs")
            .why("nothing was measured on it; `penstock probe` shows what it can do"),
    }
}

/// `mount_options`: options that take durability or speed away.
pub fn mount_options(facts: &Facts) -> Finding {
    let Some(mount) = &facts.mount else {
        return Finding::absent(NO_MOUNT);
    };
    let has = |option: &str| mount.options.contains(option);
    let remount = |option: &str| format!("mount -o remount,{option} {}", mount.point);
    if has("nobarrier") || has("barrier=0") {
        return Finding::new(State::ByHand, "nobarrier")
            .wanted("barriers (the default)")
            .why(
                "DANGER: a flush does not reach the device, so a power cut may take back what was \
                 acknowledged",
            )
            .fix(format!("{}; and mend /etc/fstab", remount("barrier")));
    }
    if has("ro") {
        return Finding::new(State::ByHand, "read-only")
            .wanted("rw")
            .why("the broker cannot write; a file system error may have caused it: see dmesg")
            .fix(remount("rw"));
    }
    if has("data=journal") {
        return Finding::new(State::ByHand, "data=journal")
            .wanted("data=ordered (the default)")
            .why("ext4 refuses true direct I/O with it, and writes every byte twice")
            .fix("remove data=journal from /etc/fstab, unmount and mount again");
    }
    if has("sync") {
        return Finding::new(State::ByHand, "sync")
            .wanted("async (the default)")
            .why("every write becomes a flush, also those that the broker flushes together")
            .fix(format!("{}; and mend /etc/fstab", remount("async")));
    }
    if has("discard") {
        return Finding::new(State::Note, "discard")
            .wanted("nodiscard")
            .why(
                "each removed file sends TRIM to the device in the middle of the journal's commit; \
                 segments are recycled and seldom removed, so here it matters little",
            )
            .fix(format!(
                "{}; systemctl enable --now fstrim.timer",
                remount("nodiscard")
            ));
    }
    let now = ["noatime", "relatime", "strictatime"]
        .into_iter()
        .find(|option| has(option))
        .unwrap_or("no option that harms");
    if now == "strictatime" {
        return Finding::new(State::ByHand, now)
            .wanted("noatime")
            .why("each read of old records changes the file system too")
            .fix(format!("{}; and mend /etc/fstab", remount("noatime")));
    }
    Finding::fine(now)
}

/// `scheduler`: whether something reorders the journal's writes.
pub fn scheduler(facts: &Facts) -> Finding {
    queue_setting(facts, "scheduler", wanted_scheduler)
        .why(
            "the journal issues aligned writes in the order in which it needs them; a scheduler in \
             between costs CPU for each and may hold one back behind another",
        )
        .expected("less CPU for each commit, a steadier p99; compare with `penstock probe`")
}

/// Virtual disks say that they turn although the host below knows better.
fn wanted_scheduler(disk: &Disk) -> &'static str {
    let is_virtual = disk.name.starts_with("vd") || disk.name.starts_with("xvd");
    if disk.turns && !is_virtual {
        SCHEDULER_TURNING
    } else {
        SCHEDULER
    }
}

/// `nomerges`: whether every write is searched for neighbours it never has.
pub fn nomerges(facts: &Facts) -> Finding {
    let wanted = |disk: &Disk| match wanted_scheduler(disk) {
        SCHEDULER => NOMERGES,
        _ => "0",
    };
    queue_setting(facts, "nomerges", wanted)
        .why("a journal block is one large write already; looking for neighbours only costs CPU")
        .expected("a little less CPU for each commit")
}

/// A file of each device's queue that should hold a value.
fn queue_setting(facts: &Facts, file: &str, wanted: fn(&Disk) -> &'static str) -> Finding {
    let known: Vec<_> = facts
        .disks
        .iter()
        .filter_map(|disk| {
            let path = format!("{}/queue/{file}", disk.folder);
            let text = facts.texts.get(&path)?;
            Some((disk, path, text.as_str()))
        })
        .collect();
    if known.is_empty() {
        return Finding::absent(NO_DEVICE);
    }
    let shown = known.iter().map(|(disk, _, text)| {
        let now = in_force(text);
        format!(
            "{} on {}",
            if now.is_empty() { "?" } else { now },
            disk.name
        )
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    let wrong = known
        .iter()
        .filter(|(disk, _, text)| in_force(text) != wanted(disk));
    let changes: Vec<Change> = wrong
        .map(|(disk, path, text)| Change {
            path: path.clone(),
            value: wanted(disk).to_owned(),
            before: in_force(text).to_owned(),
        })
        .collect();
    match changes.first() {
        None => Finding::fine(shown),
        Some(first) => {
            let value = first.value.clone();
            Finding::new(State::Change, shown)
                .wanted(value)
                .changes(changes)
        }
    }
}

/// `write_cache`: what a flush costs here, and what it is worth.
pub fn write_cache(facts: &Facts) -> Finding {
    let known: Vec<_> = facts
        .disks
        .iter()
        .filter_map(|disk| Some((disk, disk.cache.as_deref()?)))
        .collect();
    if known.is_empty() {
        return Finding::absent(NO_DEVICE);
    }
    let shown = known.iter().map(|(disk, cache)| {
        let fua = if disk.fua { ", FUA" } else { "" };
        format!("{cache}{fua} ({})", disk.name)
    });
    let shown = shown.collect::<Vec<_>>().join(", ");
    if known.iter().any(|(_, cache)| *cache == "write through") {
        return Finding::new(State::Note, shown).why(
            "the kernel takes the device's word that nothing is lost without power, and sends it \
             no flush: right for drives with capacitors, fatal if somebody wrote that word into \
             sysfs for a drive without",
        );
    }
    Finding::fine(shown).why(
        "each commit sends a flush, and is acknowledged when the device says that it is done. A \
         drive with power-loss protection answers at once, one without has to write first: \
         `penstock probe` shows which this is",
    )
}

/// `disk_queues`: whether each core has a way of its own to the device.
pub fn disk_queues(facts: &Facts) -> Finding {
    let known: Vec<_> = facts.disks.iter().filter(|disk| disk.queues > 0).collect();
    let Some(fewest) = known.iter().min_by_key(|disk| disk.queues) else {
        return Finding::absent(NO_DEVICE);
    };
    let cores = facts.broker.cpus.len();
    let now = format!("{} on {}, {cores} cores", fewest.queues, fewest.name);
    // A drive's interrupts are bound by the kernel, one queue each; there is nothing to set.
    if fewest.queues >= cores || fewest.turns && !fewest.name.starts_with("vd") {
        return Finding::fine(now);
    }
    Finding::new(State::Note, now)
        .wanted(format!("{cores} queues"))
        .why(
            "cores that share a queue share its lock and its interrupt: one CPU is interrupted for \
             every completion of the others",
        )
        .expected("less CPU on that core at high rates")
        .fix(if fewest.name.starts_with("vd") {
            "in the hypervisor: queues=N of the virtio disk (num-queues)".to_owned()
        } else {
            "nothing, if the drive has no more; see `nvme get-feature -f 7`".to_owned()
        })
}
