//! One file of the simulated disk: what the system shows, and what the disk has.

use std::collections::BTreeSet;

use super::dice::Dice;

const PAGE: usize = 4096;
const SECTOR: usize = 512;

/// A file.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    /// What who reads is shown.
    pub(super) shown: Vec<u8>,
    /// What a crash leaves. Bytes behind `disk_len` may be left too, if the length is.
    disk: Vec<u8>,
    disk_len: usize,
    /// Pages that differ from the disk, as far as the system knows.
    dirty: BTreeSet<usize>,
    is_len_dirty: bool,
    /// The shortest that the file was since its length was last on disk.
    cut: usize,
}

impl Inode {
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if end > self.shown.len() {
            self.shown.resize(end, 0);
        }
        // Also if a sync that failed has lost the length.
        self.is_len_dirty |= end > self.disk_len;
        self.shown[offset..end].copy_from_slice(bytes);
        self.dirty.extend(offset / PAGE..end.div_ceil(PAGE));
    }

    pub(super) fn truncate(&mut self, len: usize) {
        let before = self.shown.len().max(self.disk_len);
        self.shown.resize(len, 0);
        self.is_len_dirty = true;
        self.cut = self.cut.min(len);
        self.dirty.extend(len / PAGE..before.div_ceil(PAGE));
    }

    /// Writes one page back, as the system does whenever it likes.
    pub(super) fn write_back(&mut self, dice: &mut Dice) {
        let place = dice.below(self.dirty.len() as u64) as usize;
        if let Some(&page) = self.dirty.iter().nth(place) {
            self.write_page(page);
        }
    }

    fn write_page(&mut self, page: usize) {
        self.dirty.remove(&page);
        let from = page * PAGE;
        let to = (from + PAGE).min(self.shown.len());
        if from < to {
            self.disk.resize(self.disk.len().max(to), 0);
            self.disk[from..to].copy_from_slice(&self.shown[from..to]);
        }
    }

    pub(super) fn sync(&mut self) {
        while let Some(&page) = self.dirty.first() {
            self.write_page(page);
        }
        if self.is_len_dirty {
            self.disk_len = self.shown.len();
            self.disk.resize(self.disk_len, 0);
            self.cut = self.disk_len;
            self.is_len_dirty = false;
        }
    }

    /// What a sync that fails does: some pages reach the disk, and the others are not written
    /// again.
    pub(super) fn fail_to_sync(&mut self, dice: &mut Dice) {
        for page in std::mem::take(&mut self.dirty) {
            if dice.once_in(2) {
                self.write_page(page);
            }
        }
        if dice.once_in(2) {
            self.is_len_dirty = false;
        }
    }

    /// The process is gone. What is shown and clean may be read from the disk again.
    pub(super) fn forget(&mut self, dice: &mut Dice) {
        if dice.once_in(2) {
            return;
        }
        if !self.is_len_dirty {
            self.shown.resize(self.disk_len, 0);
        }
        for page in (0..self.shown.len().div_ceil(PAGE)).filter(|page| !self.dirty.contains(page)) {
            let from = page * PAGE;
            let to = (from + PAGE).min(self.shown.len());
            let known = to.min(self.disk.len()).max(from);
            self.shown[known..to].fill(0);
            if from < known {
                self.shown[from..known].copy_from_slice(&self.disk[from..known]);
            }
        }
    }

    /// What is there after a crash.
    pub(super) fn crash(mut self, dice: &mut Dice) -> Self {
        let safe = self.disk_len.min(self.cut);
        let len = self.len_after_crash(dice);
        self.disk.resize(len.max(self.disk.len()), 0);
        // What was never on disk, or was cut off, may be anything.
        for page in safe / PAGE..len.div_ceil(PAGE) {
            let (from, to) = (safe.max(page * PAGE), len.min((page + 1) * PAGE));
            let kind = if self.dirty.contains(&page) {
                dice.below(4)
            } else {
                3
            };
            for byte in &mut self.disk[from.min(to)..to] {
                match kind {
                    0 => *byte = 0,
                    1 => *byte = dice.number() as u8,
                    _ => break,
                }
            }
        }
        for page in std::mem::take(&mut self.dirty) {
            // Lost, written, or torn.
            let kind = dice.below(3);
            for sector in 0..PAGE / SECTOR {
                let from = page * PAGE + sector * SECTOR;
                let to = (from + SECTOR).min(self.shown.len()).min(self.disk.len());
                if from < to && (kind == 1 || kind == 2 && dice.once_in(2)) {
                    self.disk[from..to].copy_from_slice(&self.shown[from..to]);
                }
            }
        }
        self.disk.truncate(len);
        Self {
            shown: self.disk.clone(),
            disk: self.disk,
            disk_len: len,
            dirty: BTreeSet::new(),
            is_len_dirty: false,
            cut: len,
        }
    }

    fn len_after_crash(&self, dice: &mut Dice) -> usize {
        let least = self.disk_len.min(self.shown.len());
        let most = self.disk_len.max(self.shown.len());
        match dice.below(3) {
            0 if self.is_len_dirty => self.shown.len(),
            1 if self.is_len_dirty => least + dice.below((most - least) as u64 + 1) as usize,
            _ => self.disk_len,
        }
    }

    /// Alters a bit, wherever the byte is. Does nothing behind the end.
    pub(super) fn flip(&mut self, byte: usize, bit: u8) {
        for bytes in [&mut self.shown, &mut self.disk] {
            if let Some(byte) = bytes.get_mut(byte) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }
}
