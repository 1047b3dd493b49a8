//! Checks of the CPUs: clock, sleep, what the hypervisor takes, and where memory lies.

use super::facts::Facts;
use super::finding::{Change, Finding, State, in_force, one_line};
use super::wanted::{GOVERNOR, IDLE_EXIT_US_MAX, NUMA_BALANCING, STEAL_PERMILLE_MAX, ZONE_RECLAIM};
use std::collections::{BTreeMap, BTreeSet};

/// `governor`: whether a core runs at full speed from the first microsecond.
pub fn governor(facts: &Facts) -> Finding {
    let known: Vec<_> = facts
        .cpus
        .iter()
        .filter_map(|cpu| Some((cpu, cpu.governor.as_deref()?)))
        .collect();
    if known.is_empty() {
        return Finding::absent("no frequency scaling is visible here (usual in a VM)");
    }
    let (good, slow): (Vec<_>, Vec<_>) = known.iter().partition(|(_, now)| *now == GOVERNOR);
    if slow.is_empty() {
        return Finding::fine(format!("{GOVERNOR} on {} cores", good.len()));
    }
    let names: BTreeSet<&str> = slow.iter().map(|(_, now)| *now).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    let state = format!("{names} on {} of {} cores", slow.len(), known.len());
    let can = slow
        .iter()
        .all(|(cpu, _)| cpu.governors.split_whitespace().any(|it| it == GOVERNOR));
    let why = "a core works in bursts of microseconds between two flushes; a governor that \
               watches the load raises the clock only when the burst is over";
    let expected = "lower latency of lone messages, more power drawn";
    if !can {
        return Finding::new(State::ByHand, state)
            .wanted(GOVERNOR)
            .why(why)
            .expected(expected)
            .fix("let firmware and driver offer it: BIOS profile \"maximum performance\"");
    }
    let changes = slow.iter().map(|(cpu, now)| Change {
        path: format!(
            "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor",
            cpu.number
        ),
        value: GOVERNOR.to_owned(),
        before: (*now).to_owned(),
    });
    Finding::new(State::Change, state)
        .wanted(GOVERNOR)
        .why(why)
        .expected(expected)
        .changes(changes.collect())
}

/// `idle_states`: how deep a core sleeps while it waits for the disk.
pub fn idle_states(facts: &Facts) -> Finding {
    let known = facts.cpus.iter().filter(|cpu| !cpu.idle.is_empty()).count();
    if known == 0 {
        return Finding::absent("no idle states are visible here (usual in a VM)");
    }
    let mut deep: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    let mut changes = Vec::new();
    for cpu in &facts.cpus {
        let used = cpu.idle.iter().filter(|idle| idle.used);
        for idle in used.filter(|idle| idle.exit_us > IDLE_EXIT_US_MAX) {
            let entry = deep.entry(&idle.name).or_default();
            *entry = (entry.0.max(idle.exit_us), entry.1 + 1);
            changes.push(Change {
                path: idle.switch.clone(),
                value: "1".to_owned(),
                before: "0".to_owned(),
            });
        }
    }
    if changes.is_empty() {
        return Finding::fine(format!("every core wakes within {IDLE_EXIT_US_MAX} us"));
    }
    let names = deep
        .iter()
        .map(|(name, (us, _))| format!("{name} ({us} us)"))
        .collect::<Vec<_>>();
    Finding::new(State::Change, format!("used: {}", names.join(", ")))
        .wanted(format!("none above {IDLE_EXIT_US_MAX} us"))
        .why(
            "a core sleeps while the disk writes and must wake to answer; a deep state adds its \
             exit time to each flush, and can be as long as one",
        )
        .expected("lower latency of lone messages, more power drawn")
        .changes(changes)
}

/// `clock_source`: whether reading the time needs no system call.
pub fn clock_source(facts: &Facts) -> Finding {
    let folder = "/sys/devices/system/clocksource/clocksource0";
    let path = format!("{folder}/current_clocksource");
    let Some(now) = facts.text(&path) else {
        return Finding::absent("the kernel does not say");
    };
    let quick = [
        "tsc",
        "kvm-clock",
        "hyperv_clocksource_tsc_page",
        "arch_sys_counter",
    ];
    if quick.contains(&now) {
        return Finding::fine(now);
    }
    let why = "the broker reads the time many times for each request; this clock takes a system \
               call or a slow device for each";
    let offered = facts
        .text(&format!("{folder}/available_clocksource"))
        .unwrap_or_default();
    match quick
        .iter()
        .find(|name| offered.split_whitespace().any(|it| it == **name))
    {
        Some(better) => Finding::new(State::Change, now)
            .wanted(*better)
            .why(why)
            .expected("less CPU for each request")
            .changes(vec![Change {
                path,
                value: (*better).to_owned(),
                before: in_force(now).to_owned(),
            }]),
        None => Finding::new(State::ByHand, now)
            .wanted("tsc")
            .why(why)
            .fix("see `dmesg | grep -i -e tsc -e clocksource` for why the kernel distrusts it"),
    }
}

/// `steal`: whether the hypervisor gives these CPUs to others.
pub fn steal(facts: &Facts) -> Finding {
    let line = facts.text("/proc/stat").unwrap_or_default();
    let times = line.lines().next().and_then(|line| {
        let numbers = line.strip_prefix("cpu ")?.split_whitespace().take(8);
        numbers
            .map(|text| text.parse::<u64>().ok())
            .collect::<Option<Vec<_>>>()
    });
    let Some(times) = times.filter(|times| times.len() == 8) else {
        return Finding::absent("the kernel does not say");
    };
    let idle = times[3].saturating_add(times[4]);
    let total = times
        .iter()
        .fold(0u64, |sum, time| sum.saturating_add(*time));
    // Of the time that was wanted: an idle host hides what a busy one would lose.
    let wanted = total.saturating_sub(idle);
    let permille = u128::from(times[7]) * 1000 / u128::from(wanted.max(1));
    let now = format!(
        "{}.{} % of busy time since boot",
        permille / 10,
        permille % 10
    );
    if permille <= u128::from(STEAL_PERMILLE_MAX) {
        return Finding::fine(now);
    }
    Finding::new(State::Note, now)
        .wanted(format!("{} % or less", STEAL_PERMILLE_MAX / 10))
        .why(
            "while the hypervisor runs another guest on a core, everything on that core waits: it \
             shows as p99 that no setting of this host can mend",
        )
        .fix("ask for dedicated CPUs, or run on bare metal")
}

/// `numa_nodes`: whether the broker's cores are near its disk and card.
pub fn numa_nodes(facts: &Facts) -> Finding {
    if facts.nodes.len() < 2 {
        return Finding::fine("one node");
    }
    let node_of = |cpu: &usize| {
        let node = facts.nodes.iter().find(|(_, cpus)| cpus.contains(cpu));
        node.map(|(number, _)| *number)
    };
    let cores: BTreeSet<u32> = facts.broker.cpus.iter().filter_map(node_of).collect();
    let disks: BTreeSet<u32> = facts.disks.iter().filter_map(|disk| disk.node).collect();
    let cards: BTreeSet<u32> = facts.cards.iter().filter_map(|card| card.node).collect();
    let list = |nodes: &BTreeSet<u32>| match nodes.is_empty() {
        true => "?".to_owned(),
        false => nodes
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(","),
    };
    let now = format!(
        "cores on node {}; disk on {}; network on {}",
        list(&cores),
        list(&disks),
        list(&cards)
    );
    let devices: BTreeSet<u32> = disks.union(&cards).copied().collect();
    if devices.is_empty() || devices.len() == 1 && cores == devices {
        return Finding::fine(now);
    }
    let why = "a transfer between a core and a device of the other node crosses the link between \
               the sockets; each core's own memory is near it in any case";
    let home = disks.first().or(cards.first()).copied().unwrap_or_default();
    let cpus = facts.nodes.iter().find(|(number, _)| *number == home);
    let cpus = cpus.map_or(String::new(), |(_, cpus)| ranges(cpus));
    let fix = format!("penstock serve --cores {cpus}   # if one node has cores enough");
    let state = if cores.is_disjoint(&devices) {
        State::ByHand
    } else {
        State::Note
    };
    Finding::new(state, now)
        .wanted(format!("cores on node {home}"))
        .why(why)
        .expected("less CPU for each byte; without need while cores of one node do not suffice")
        .fix(fix)
}

/// `numa_balancing`: whether the kernel moves pages behind the cores' backs.
pub fn numa_balancing(facts: &Facts) -> Finding {
    if facts.nodes.len() < 2 {
        return Finding::absent("one node: nothing to move");
    }
    super::sysctl_finding(facts, NUMA_BALANCING).why(
        "to find out who uses a page the kernel takes it away for a moment; cores are pinned here \
         and their memory lies near them from the first touch",
    )
}

/// `zone_reclaim`: whether a full node gives up pages while another has free ones.
pub fn zone_reclaim(facts: &Facts) -> Finding {
    super::sysctl_finding(facts, ZONE_RECLAIM).why(
        "a core that needs memory would stand still while the kernel cleans its own node, although \
         another node has memory free",
    )
}

/// "0-3,8" for these CPUs.
pub fn ranges(cpus: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => parts.push((*cpu, *cpu)),
        }
    }
    let parts = parts.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    one_line(&parts.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: CPUs are written as `--cores` reads them. Method: samples.
    #[test]
    fn ranges_are_written() {
        assert_eq!(ranges(&[0, 1, 2, 8, 10, 11]), "0-2,8,10-11");
        assert_eq!(ranges(&[]), "");
    }
}
