//! Checks of the network: queues of the cards, who handles them, and the listener's backlog.

use super::facts::{Card, Facts};
use super::finding::{Change, Finding, State};
use super::wanted::{SOMAXCONN, SYN_BACKLOG};
use std::collections::BTreeSet;

const NO_CARD: &str = "no network card is visible here";

/// `nic_queues`: whether packets can arrive on several cores.
pub fn nic_queues(facts: &Facts) -> Finding {
    let cores = facts.broker.cpus.len();
    let known = facts.cards.iter().filter(|card| !card.receiving.is_empty());
    let known: Vec<&Card> = known.collect();
    if known.is_empty() {
        return Finding::absent(NO_CARD);
    }
    let shown = known
        .iter()
        .map(|card| format!("{} on {}", card.receiving.len(), card.name));
    let now = format!("{}, {cores} cores", shown.collect::<Vec<_>>().join(", "));
    let Some(few) = known.iter().find(|card| card.receiving.len() < cores) else {
        return Finding::fine(now);
    };
    Finding::new(State::Note, now)
        .wanted(format!("{cores} queues, if the card has them"))
        .why(
            "one queue is emptied by one CPU; the core on it serves its own clients and receives \
             for all the others too",
        )
        .expected("more even cores in `penstock dump`; nothing while the network is not the limit")
        .fix(format!(
            "ethtool -l {0}; ethtool -L {0} combined {cores}   # a virtual card: in the hypervisor",
            few.name
        ))
}

/// `nic_irqs`: whether the queues' interrupts are spread over the broker's cores.
pub fn nic_irqs(facts: &Facts) -> Finding {
    let known: Vec<&Card> = facts
        .cards
        .iter()
        .filter(|card| !card.interrupts.is_empty())
        .collect();
    if known.is_empty() {
        return Finding::absent("no interrupts of a network card are visible here");
    }
    let cpus = &facts.broker.cpus;
    let mut changes = Vec::new();
    let mut shown = Vec::new();
    for card in known {
        let count = card.interrupts.len();
        let first_cpus = card.interrupts.iter().filter_map(|(_, on)| on.first());
        let used: BTreeSet<usize> = first_cpus.copied().collect();
        shown.push(format!(
            "{}: {count} interrupting {} CPU{}",
            card.name,
            used.len(),
            if used.len() == 1 { "" } else { "s" }
        ));
        if used.len() < count.min(cpus.len()) {
            let moved = card.interrupts.iter().enumerate();
            changes.extend(moved.filter_map(|(index, (number, on))| {
                let target = cpus[index % cpus.len()];
                (on.as_slice() != [target]).then(|| Change {
                    path: format!("/proc/irq/{number}/smp_affinity_list"),
                    value: target.to_string(),
                    before: super::cpu::ranges(on),
                })
            }));
        }
    }
    let now = shown.join(", ");
    if changes.is_empty() {
        return Finding::fine(now);
    }
    Finding::new(State::Change, now)
        .wanted("one core each, in turn")
        .why(
            "packets are received on the CPU that is interrupted; queues that share one CPU are \
             no better than one queue. `irqbalance`, if it runs, moves them again: stop it",
        )
        .expected("more even cores in `penstock dump`")
        .changes(changes)
}

/// `nic_drops`: whether the card's ring was too short.
pub fn nic_drops(facts: &Facts) -> Finding {
    let known = facts
        .cards
        .iter()
        .filter_map(|card| Some((card, card.missed?)));
    let known: Vec<_> = known.collect();
    let Some((worst, missed)) = known.iter().max_by_key(|(_, missed)| *missed) else {
        return Finding::absent("no counters of a network card are visible here");
    };
    if *missed == 0 {
        return Finding::fine("no packet lost in a ring since boot");
    }
    Finding::new(
        State::ByHand,
        format!("{missed} packets lost in {}'s ring", worst.name),
    )
    .wanted("0")
    .why("a lost packet costs its connection a retransmission: a very late answer")
    .expected("no retransmissions from bursts")
    .fix(format!(
        "ethtool -g {0}; ethtool -G {0} rx 4096   # the largest that -g shows",
        worst.name
    ))
}

/// `rps`: whether a card with few queues has its packets spread in software.
pub fn rps(facts: &Facts) -> Finding {
    let cores = facts.broker.cpus.len();
    let known = |card: &&Card| card.receiving.iter().any(|(_, mask)| mask.is_some());
    let known: Vec<&Card> = facts.cards.iter().filter(known).collect();
    if known.is_empty() {
        return Finding::absent(NO_CARD);
    }
    let short: Vec<&Card> = known
        .into_iter()
        .filter(|card| card.receiving.len() < cores)
        .collect();
    if short.is_empty() {
        return Finding::fine("not needed: a queue for each core");
    }
    let mask = mask(&facts.broker.cpus);
    let mut changes = Vec::new();
    for card in &short {
        for (folder, now) in &card.receiving {
            if let Some(now) = now.as_ref().filter(|now| is_empty_mask(now)) {
                changes.push(Change {
                    path: format!("{folder}/rps_cpus"),
                    value: mask.clone(),
                    before: now.clone(),
                });
            }
        }
    }
    if changes.is_empty() {
        return Finding::fine("on for each queue");
    }
    let names: Vec<&str> = short.iter().map(|card| card.name.as_str()).collect();
    Finding::new(State::Change, format!("off on {}", names.join(", ")))
        .wanted(format!("on for the broker's {cores} cores"))
        .why(
            "this card has fewer queues than the broker has cores; without it one core does the \
             TCP work of every arriving packet",
        )
        .expected("more even cores when the network is busy, an interrupt more for each packet")
        .changes(changes)
}

/// `xps`: whether each core sends through a queue of its own.
pub fn xps(facts: &Facts) -> Finding {
    let known = |card: &&Card| {
        let masks = card.sending.iter().filter(|(_, mask)| mask.is_some());
        masks.count() > 1
    };
    let known: Vec<&Card> = facts.cards.iter().filter(known).collect();
    if known.is_empty() {
        return Finding::absent("no network card with several sending queues is visible here");
    }
    let cpus = &facts.broker.cpus;
    let mut changes = Vec::new();
    for card in &known {
        let off = |(_, mask): &(String, Option<String>)| mask.as_deref().is_none_or(is_empty_mask);
        if !card.sending.iter().all(off) {
            continue;
        }
        let queues = card.sending.len();
        for (index, (folder, now)) in card.sending.iter().enumerate() {
            let mine = cpus.iter().enumerate().filter(|(k, _)| k % queues == index);
            let mine: Vec<usize> = mine.map(|(_, cpu)| *cpu).collect();
            if let Some(now) = now.as_ref().filter(|_| !mine.is_empty()) {
                changes.push(Change {
                    path: format!("{folder}/xps_cpus"),
                    value: mask(&mine),
                    before: now.clone(),
                });
            }
        }
    }
    if changes.is_empty() {
        return Finding::fine("on");
    }
    Finding::new(State::Change, "off")
        .wanted("each core a queue")
        .why("cores that send through one queue wait for its lock in turn")
        .expected("less CPU for sending at high rates")
        .changes(changes)
}

/// `accept_backlog`: how many connections may wait to be accepted.
pub fn accept_backlog(facts: &Facts) -> Finding {
    super::sysctl_finding(facts, SOMAXCONN)
        .why(
            "the kernel cuts the backlog that the broker asks for down to this; after a restart \
             all clients come back at once, and those beyond it wait a second to try again",
        )
        .expected("quicker return of thousands of clients")
}

/// `syn_backlog`: how many connections may be half made.
pub fn syn_backlog(facts: &Facts) -> Finding {
    super::sysctl_finding(facts, SYN_BACKLOG)
        .why(
            "connections whose handshake is under way; beyond it the kernel falls back to cookies, \
             which lose the connection's options",
        )
        .expected("quicker return of thousands of clients")
}

/// A mask as the kernel reads it: groups of 32 CPUs in hexadecimal, the highest first.
fn mask(cpus: &[usize]) -> String {
    let groups = cpus.iter().max().map_or(1, |most| most / 32 + 1);
    let mut words = vec![0u32; groups];
    for cpu in cpus {
        words[cpu / 32] |= 1 << (cpu % 32);
    }
    let words = words.iter().rev().enumerate();
    let words = words.map(|(index, word)| match index {
        0 => format!("{word:x}"),
        _ => format!("{word:08x}"),
    });
    words.collect::<Vec<_>>().join(",")
}

fn is_empty_mask(mask: &str) -> bool {
    !mask.is_empty() && mask.chars().all(|c| matches!(c, '0' | ','))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: masks are as the kernel writes them. Method: around the edges of a group.
    #[test]
    fn masks_are_grouped() {
        assert_eq!(mask(&[0, 1]), "3");
        assert_eq!(mask(&[31, 32]), "1,80000000");
        assert_eq!(mask(&[70]), "40,00000000,00000000");
        assert!(is_empty_mask("00000000,00000000"));
        assert!(!is_empty_mask(""));
        assert!(!is_empty_mask("00,01"));
    }
}
