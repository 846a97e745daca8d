//! Tidying: entries leave sparse pages, so that memory goes back.

use tidewheel_timer::TimerQueue;

use super::blocks::Blocks;
use super::entry;
use super::store::Store;
use crate::slot::Slot;

impl<O> Store<O> {
    /// Tidies: moves entries off sparse pages and drops dead timer records. Does about `budget`
    /// units of work at most, and returns whether more is worth doing.
    pub fn maintain(&mut self, budget: u32) -> bool {
        self.maintain_and_tell(budget, |_, _| {})
    }

    /// As [`maintain`](Self::maintain), and tells `moved` of each entry that moves: from which
    /// slot, and to which.
    pub fn maintain_and_tell(&mut self, budget: u32, mut moved: impl FnMut(Slot, Slot)) -> bool {
        let records = self.wheel.maintain(&mut self.blocks, budget / 8 + 1);
        for _ in 0..budget {
            let page = match self.blocks.retired() {
                Some(page) => page,
                None => {
                    self.evacuated_to = 0;
                    match self.blocks.sparse_page() {
                        Some(page) => page,
                        None => return records,
                    }
                }
            };
            let Some(id) = self.blocks.live_on(page, self.evacuated_to) else {
                // All entries have left the page, or the page was freed with its last one.
                return true;
            };
            self.evacuated_to = Blocks::offset(id);
            moved(Slot(id), Slot(self.move_block(id)));
        }
        true
    }

    /// Frees the memory that an empty store keeps for its next entries. Returns false, and does
    /// nothing, if there is an entry, or no such memory.
    pub fn give_back(&mut self) -> bool {
        let gives = self.is_empty() && self.bytes() > 0;
        if gives {
            let filed = self.filed;
            *self = Self::new(self.hasher.clone());
            self.filed = filed;
        }
        gives
    }

    /// Copies a block as it is to another page; returns where it is now.
    fn move_block(&mut self, id: u32) -> u32 {
        let mut old = std::mem::take(&mut self.scratch);
        old.clear();
        old.extend_from_slice(self.blocks.block(id));
        let new = self.blocks.allocate(old.len());
        self.blocks.block_mut(new)[..old.len()].copy_from_slice(&old);
        let layout = entry::layout(&old);
        let place = self.place(&old[layout.key_at..layout.value_at()]);
        self.index.replace(place, id, new);
        if let Some(timer) = entry::timer(&old) {
            // The timer's record names the old block. It is dead from now on, and another one is
            // filed.
            self.wheel.cancel(&mut self.blocks, id, timer);
            let now = self.wheel.elapsed();
            self.blocks.release(id);
            self.filed = self.filed.wrapping_add(1);
            self.wheel
                .insert(&mut self.blocks, new, timer.deadline, now);
        } else {
            self.blocks.release(id);
        }
        self.scratch = old;
        new
    }
}
