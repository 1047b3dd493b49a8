//! Crash images: every disk that a power cut at some instant could leave behind.
//!
//! [`CrashPoints`] replays an event log; at each instant [`Media::undecided`] lists what a crash
//! may still choose (a sector's versions, a length, a change of names), and [`Media::crash`] builds
//! the disk for one choice. Small sets of choices are enumerated, large ones sampled by a seed,
//! always with the extremes (nothing kept, everything kept).

use super::media::{Dir, Entry, Event, Inode, InodeId, Media, change_names, slot_mut};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

/// One thing a crash decides.
#[derive(Clone, Debug)]
enum Item {
    /// Which version of a sector is on the platter.
    Sector(InodeId, usize),
    /// Which length a file has.
    Length(InodeId),
    /// Whether a change of names happened: the n-th pending one of a directory, by rank.
    Names(Rc<Path>, usize),
}

/// Everything a crash decides at one instant. A *choice* is one number per item: 0 keeps the
/// durable value, `n` takes the n-th undecided one.
#[derive(Clone, Debug, Default)]
pub struct Undecided {
    items: Vec<(Item, u8)>,
}

impl Undecided {
    /// Number of different choices, saturating.
    #[must_use]
    pub fn choices(&self) -> u64 {
        let radices = self.items.iter().map(|(_, radix)| u64::from(*radix));
        radices.fold(1, u64::saturating_mul)
    }

    /// Number of things to decide.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether the crash has nothing to decide.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The choice with number `index`; 0 keeps only what is durable.
    #[must_use]
    pub fn choice(&self, mut index: u64) -> Vec<u8> {
        let digits = self.items.iter().map(|(_, radix)| {
            let digit = index % u64::from(*radix);
            index /= u64::from(*radix);
            u8::try_from(digit).expect("a digit is below its radix")
        });
        digits.collect()
    }

    /// A random choice: even, mostly lost or mostly kept, so that both near-extremes are met often.
    pub fn sample(&self, rng: &mut fastrand::Rng) -> Vec<u8> {
        let kept_of_16 = match rng.u8(0..3) {
            0 => 8,
            1 => 2,
            _ => 14,
        };
        let mut digit = |radix: u8| match rng.u8(0..16) < kept_of_16 {
            true => 1 + rng.u8(0..radix - 1),
            false => 0,
        };
        self.items.iter().map(|(_, radix)| digit(*radix)).collect()
    }

    /// All choices if there are at most `limit`, else both extremes and `limit - 2` samples.
    pub fn some(&self, limit: u64, rng: &mut fastrand::Rng) -> Vec<Vec<u8>> {
        let choices = self.choices();
        if choices <= limit {
            return (0..choices).map(|index| self.choice(index)).collect();
        }
        let everything = self.items.iter().map(|(_, radix)| radix - 1).collect();
        let mut some = vec![self.choice(0), everything];
        some.extend((2..limit).map(|_| self.sample(rng)));
        some
    }
}

impl Media {
    /// What a crash at this instant would decide. Files no name can lead to are left out.
    #[must_use]
    pub fn undecided(&self) -> Undecided {
        let mut items = Vec::new();
        let mut reachable = BTreeSet::new();
        for (path, dir) in &self.dirs {
            let durable = dir.durable.values().copied();
            let pending = dir
                .pending
                .iter()
                .filter_map(|version| match &version.value {
                    super::media::DirChange::Link(_, entry)
                    | super::media::DirChange::Rename(_, _, entry) => Some(*entry),
                    super::media::DirChange::Unlink(_) => None,
                });
            reachable.extend(durable.chain(pending).filter_map(|entry| match entry {
                Entry::File(inode) => Some(inode),
                Entry::Folder => None,
            }));
            items.extend(
                (0..dir.pending.len()).map(|index| (Item::Names(Rc::clone(path), index), 2)),
            );
        }
        for inode in reachable {
            let file = &self.inodes[&inode];
            if !file.len_pending.is_empty() {
                items.push((Item::Length(inode), radix(file.len_pending.len())));
            }
            let sectors = file.pending.iter();
            items.extend(
                sectors.map(|(sector, all)| (Item::Sector(inode, *sector), radix(all.len()))),
            );
        }
        Undecided { items }
    }

    /// The disk a crash leaves behind for one choice: nothing on it is undecided any more.
    #[must_use]
    pub fn crash(&self, undecided: &Undecided, choice: &[u8]) -> Media {
        assert_eq!(
            undecided.items.len(),
            choice.len(),
            "a choice decides every item"
        );
        let mut kept_names: BTreeMap<&Rc<Path>, Vec<usize>> = BTreeMap::new();
        let mut inodes: BTreeMap<InodeId, Inode> = BTreeMap::new();
        for ((item, _), digit) in undecided.items.iter().zip(choice) {
            let Some(index) = usize::from(*digit).checked_sub(1) else {
                continue;
            };
            match item {
                Item::Names(path, pending) => kept_names.entry(path).or_default().push(*pending),
                Item::Length(inode) => {
                    let file = inodes.entry(*inode).or_insert_with(|| self.settled(*inode));
                    file.len_durable = self.inodes[inode].len_pending[index].value;
                }
                Item::Sector(inode, sector) => {
                    let file = inodes.entry(*inode).or_insert_with(|| self.settled(*inode));
                    let value = self.inodes[inode].pending[sector][index].value.clone();
                    *slot_mut(&mut file.durable, *sector) = value;
                }
            }
        }
        let mut dirs: BTreeMap<Rc<Path>, Dir> = BTreeMap::new();
        for (path, dir) in &self.dirs {
            let lost = path.parent().is_some_and(|parent| {
                let name = path.file_name().and_then(|name| name.to_str());
                let up = dirs.get(parent);
                !up.is_some_and(|up| name.is_some_and(|name| up.durable.contains_key(name)))
            });
            if lost {
                continue;
            }
            let mut names = Rc::clone(&dir.durable);
            let mut kept: Vec<_> = kept_names.remove(path).unwrap_or_default();
            kept.sort_by_key(|index| dir.pending[*index].rank());
            for index in kept {
                change_names(Rc::make_mut(&mut names), &dir.pending[index].value);
            }
            for entry in names.values() {
                if let Entry::File(inode) = entry {
                    inodes.entry(*inode).or_insert_with(|| self.settled(*inode));
                }
            }
            let visible = Rc::clone(&names);
            dirs.insert(
                Rc::clone(path),
                Dir {
                    durable: names,
                    visible,
                    pending: Vec::new(),
                },
            );
        }
        for file in inodes.values_mut() {
            file.visible = Rc::clone(&file.durable);
            file.len_visible = file.len_durable;
        }
        Media::quiet(inodes, dirs)
    }

    /// The disk as a running process sees it, all of it durable: a clean stop of the machine.
    #[must_use]
    pub fn stopped(&self) -> Media {
        let mut media = self.clone();
        for file in media.inodes.values_mut() {
            file.durable = Rc::clone(&file.visible);
            file.len_durable = file.len_visible;
            file.pending.clear();
            file.len_pending.clear();
        }
        for dir in media.dirs.values_mut() {
            dir.durable = Rc::clone(&dir.visible);
            dir.pending.clear();
        }
        Media::quiet(media.inodes, media.dirs)
    }

    fn settled(&self, inode: InodeId) -> Inode {
        let file = &self.inodes[&inode];
        Inode {
            durable: Rc::clone(&file.durable),
            visible: Rc::clone(&file.durable),
            pending: BTreeMap::new(),
            len_durable: file.len_durable,
            len_visible: file.len_durable,
            len_pending: Vec::new(),
        }
    }
}

/// A walk through an event log, instant by instant.
pub struct CrashPoints<'log> {
    media: Media,
    events: &'log [Event],
    index: usize,
}

impl<'log> CrashPoints<'log> {
    /// Starts before the first event of `events`, on the disk they were recorded on.
    #[must_use]
    pub fn new(before: &Media, events: &'log [Event]) -> Self {
        Self {
            media: before.clone(),
            events,
            index: 0,
        }
    }

    /// Carries out the next event and shows it; `None` at the end.
    pub fn step(&mut self) -> Option<&'log Event> {
        let event = self.events.get(self.index)?;
        self.media.apply(event);
        self.index += 1;
        Some(event)
    }

    /// The disk at this instant.
    #[must_use]
    pub fn media(&self) -> &Media {
        &self.media
    }

    /// Number of events carried out.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }
}

fn radix(pending: usize) -> u8 {
    u8::try_from(pending + 1).expect("a sector has few versions in flight")
}
