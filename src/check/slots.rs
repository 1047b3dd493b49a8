//! What was seen at each offset of one partition: a paged array, 12 bytes a slot, so that a dense
//! log costs little and one wild offset costs one page.

use std::collections::BTreeMap;

const PAGE_SLOTS: i64 = 1024;
const NOBODY: u32 = u32::MAX;

/// An acknowledgement named this offset.
pub const ACKED: u8 = 1;
/// A poll or a read returned it.
pub const READ: u8 = 2;
/// The final read returned it.
pub const FINAL: u8 = 4;
/// A poll or a read returned it before the deadline of L10 could have passed.
pub const TIMELY: u8 = 8;

/// One value seen at one offset.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The offset.
    pub offset: i64,
    /// The value's number in the values table.
    pub value: u32,
    /// Line number of the first event that saw it here.
    pub line: u32,
    /// Who saw it: `ACKED`, `READ`, `FINAL`, `TIMELY`.
    pub marks: u8,
}

#[derive(Clone, Copy)]
struct Slot {
    value: u32,
    line: u32,
    marks: u8,
}

const EMPTY: Slot = Slot {
    value: NOBODY,
    line: 0,
    marks: 0,
};

/// All sightings of one partition. The first value seen at an offset is its *claimant*; any other
/// is a *rival*, which is what L1 forbids, and is kept beside.
#[derive(Default)]
pub struct Slots {
    pages: BTreeMap<i64, Box<[Slot]>>,
    rivals: BTreeMap<(i64, u32), Slot>,
}

impl Slots {
    /// Notes that `line` saw `value` at `offset`.
    pub fn note(&mut self, offset: i64, value: u32, line: u32, marks: u8) {
        assert!(value != NOBODY, "the values table is full");
        let page = self
            .pages
            .entry(offset.div_euclid(PAGE_SLOTS))
            .or_insert_with(|| vec![EMPTY; PAGE_SLOTS as usize].into_boxed_slice());
        let slot = &mut page[offset.rem_euclid(PAGE_SLOTS) as usize];
        if slot.value == NOBODY {
            *slot = Slot { value, line, marks };
        } else if slot.value == value {
            slot.marks |= marks;
        } else {
            let rival = self.rivals.entry((offset, value));
            rival
                .or_insert(Slot {
                    value,
                    line,
                    marks: 0,
                })
                .marks |= marks;
        }
    }

    /// The claimant of `offset`, if anything was ever seen there.
    pub fn claimant(&self, offset: i64) -> Option<Seen> {
        let page = self.pages.get(&offset.div_euclid(PAGE_SLOTS))?;
        let slot = page[offset.rem_euclid(PAGE_SLOTS) as usize];
        (slot.value != NOBODY).then(|| seen(offset, slot))
    }

    /// What the final read returned at `offset`: the claimant, or a rival.
    pub fn at_final(&self, offset: i64) -> Option<Seen> {
        let claimant = self.claimant(offset).filter(|seen| seen.marks & FINAL != 0);
        let rivals = self.rivals.range((offset, 0)..=(offset, u32::MAX));
        claimant.or_else(|| {
            let mut rivals = rivals.map(|(&(offset, _), &slot)| seen(offset, slot));
            rivals.find(|seen| seen.marks & FINAL != 0)
        })
    }

    /// Every sighting but rivals, by offset.
    pub fn claimants(&self) -> impl Iterator<Item = Seen> + '_ {
        self.pages.iter().flat_map(|(&page, slots)| {
            let offsets = (page * PAGE_SLOTS)..;
            let taken = offsets
                .zip(slots.iter())
                .filter(|(_, slot)| slot.value != NOBODY);
            taken.map(|(offset, slot)| seen(offset, *slot))
        })
    }

    /// Every rival, by offset.
    pub fn rivals(&self) -> impl Iterator<Item = Seen> + '_ {
        self.rivals
            .iter()
            .map(|(&(offset, _), &slot)| seen(offset, slot))
    }

    /// Every sighting; claimants by offset, then rivals by offset.
    pub fn all(&self) -> impl Iterator<Item = Seen> + '_ {
        self.claimants().chain(self.rivals())
    }

    /// The first offset in `from..to` at which the final read returned something. Costs the pages
    /// that exist, not the width of the range.
    pub fn first_final_in(&self, from: i64, to: i64) -> Option<Seen> {
        if from >= to {
            return None;
        }
        let pages = from.div_euclid(PAGE_SLOTS)..=(to - 1).div_euclid(PAGE_SLOTS);
        for (&page, slots) in self.pages.range(pages) {
            let taken = ((page * PAGE_SLOTS)..).zip(slots.iter());
            let mut taken =
                taken.filter(|(offset, slot)| (from..to).contains(offset) && slot.value != NOBODY);
            if let Some(found) = taken.find_map(|(offset, _)| self.at_final(offset)) {
                return Some(found);
            }
        }
        None
    }
}

fn seen(offset: i64, slot: Slot) -> Seen {
    Seen {
        offset,
        value: slot.value,
        line: slot.line,
        marks: slot.marks,
    }
}
