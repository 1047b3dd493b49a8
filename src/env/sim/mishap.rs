//! What befalls a disk outside the rules of power loss: rot, lost and swapped files, and the death
//! of the process while the machine lives on.

use super::media::{Change, Entry, InFlight, Inode, Media, SECTOR_BYTES, cut_slots, slot_mut};
use std::path::Path;
use std::rc::Rc;

impl Media {
    /// Turns one bit of a file on the platter: rot, behind everybody's back.
    ///
    /// # Panics
    /// If `path` names no file or the byte lies past its end.
    pub fn flip_bit(&mut self, path: &Path, byte: u64, bit: u8) {
        let Some(Entry::File(inode)) = self.lookup(path) else {
            panic!("rot needs a file at {}", path.display());
        };
        let file = self.inodes.get_mut(&inode).expect("a name leads to a file");
        assert!(byte < file.len_visible, "rot lies inside the file");
        let byte = usize::try_from(byte).expect("a simulated file fits in memory");
        for slots in [&mut file.durable, &mut file.visible] {
            let slot = slot_mut(slots, byte / SECTOR_BYTES);
            let sector = Rc::make_mut(slot.get_or_insert_with(|| Rc::new([0; SECTOR_BYTES])));
            sector[byte % SECTOR_BYTES] ^= 1 << bit;
        }
    }

    /// Replaces a file's contents on the platter (a stale or swapped copy), or makes the file.
    pub fn plant_file(&mut self, path: &Path, bytes: &[u8]) {
        let dir = path.parent().expect("a file lies in a folder");
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a file has a name");
        let inode = self.inode_next();
        let slots = Rc::new(cut_slots(bytes));
        let len = bytes.len() as u64;
        let file = Inode {
            durable: Rc::clone(&slots),
            visible: slots,
            len_durable: len,
            len_visible: len,
            ..Inode::default()
        };
        self.inodes.insert(inode, file);
        let dir = self.dirs.get_mut(dir).expect("the folder exists");
        for names in [&mut dir.durable, &mut dir.visible] {
            Rc::make_mut(names).insert(Rc::from(name), Entry::File(inode));
        }
    }

    /// Takes a file away behind everybody's back; whether there was one.
    pub fn lose_file(&mut self, path: &Path) -> bool {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str()))
        else {
            return false;
        };
        let Some(dir) = self.dirs.get_mut(dir) else {
            return false;
        };
        Rc::make_mut(&mut dir.durable).remove(name);
        Rc::make_mut(&mut dir.visible).remove(name).is_some()
    }

    /// The disk after the *process* died at this instant and the machine lived on. The kernel
    /// settles each change in flight: it is carried out (a write perhaps only up to some sector) or
    /// never will be. Flushes in flight promise nothing, and what was not flushed stays volatile:
    /// visible to the next process, at the mercy of the next power cut.
    #[must_use]
    pub fn killed(&self, rng: &mut fastrand::Rng) -> Media {
        let mut media = self.clone();
        for (op, flight) in &self.in_flight {
            match flight {
                InFlight::Change(_) if rng.bool() => media.complete(*op, None),
                InFlight::Change(Change::Write { slots, .. }) => {
                    media.complete(*op, Some(rng.usize(0..=slots.len())));
                }
                InFlight::Change(_) => media.complete(*op, Some(0)),
                InFlight::Sync(..) => {
                    media.in_flight.remove(op);
                }
            }
            media.forget(*op);
        }
        media
    }
}
