//! The sweep: it goes through the wheel chunk by chunk, and drops dead records.

use crate::levels::{CHUNK_RECORDS, LEVELS, Levels, may_be_live, slot_start};
use crate::marks::Marks;
use crate::pool::{NIL, Pool};
use crate::queue::Timers;
use crate::ring::{Ring, SLOTS};

/// Where the sweep stands, and what it has kept.
#[derive(Debug)]
pub(crate) struct Sweep {
    /// `LEVELS` at the end of a pass.
    level: usize,
    slot: usize,
    /// The last chunk of the slot that was swept, or `NIL` before its first.
    previous: u32,
    /// Timers of which this pass has kept a record. It drops any other record of such a timer, even
    /// one that looks alive. A timer that is filed leaves the set, since its record is a new one.
    kept: Marks,
}

impl Sweep {
    pub(crate) const fn new() -> Self {
        Self {
            level: 0,
            slot: 0,
            previous: NIL,
            kept: Marks::new(),
        }
    }

    /// A new record of a timer was filed.
    #[inline]
    pub(crate) fn filed(&mut self, id: u32) {
        self.kept.remove(id);
    }

    /// Records were taken out of a slot. The chunk at which the sweep stood may be gone. The rest
    /// of the slot waits for the next pass.
    #[inline]
    pub(crate) fn taken(&mut self, levels: &Levels, level: usize, slot: usize) {
        if self.previous == NIL || self.level != level || self.slot != slot {
            return;
        }
        if let Some(ring) = &levels.rings[level] {
            self.leave_slot(ring);
        }
    }

    /// Begins another pass.
    pub(crate) fn restart(&mut self) {
        self.enter(0, 0);
        self.kept.clear();
    }

    /// Returns whether this pass has kept records.
    pub(crate) fn has_kept(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Frees memory of what earlier passes kept. Returns whether there is more.
    pub(crate) fn shrink(&mut self, budget: u32) -> bool {
        self.kept.shrink(budget)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.kept.bytes()
    }

    /// Sweeps one chunk, or goes on to the next slot with records: drops dead records, joins
    /// half-empty chunks, moves chunks down.
    pub(crate) fn step<T: Timers>(&mut self, levels: &mut Levels, timers: &T) {
        let (level, slot) = (self.level, self.slot);
        if level == LEVELS {
            self.restart();
            return;
        }
        let elapsed = levels.elapsed;
        let pool = &mut levels.pool;
        let Some(ring) = levels.rings[level].as_mut().filter(|ring| ring.records > 0) else {
            self.enter(level + 1, 0);
            return;
        };
        let head = &mut ring.heads[slot];
        let at = if self.previous == NIL {
            *head
        } else {
            pool.chunk(self.previous).next
        };
        if at == NIL {
            self.leave_slot(ring);
            return;
        }
        let first = slot_start(elapsed, level, slot);
        let gone = pool.retain(at, |id| {
            timers
                .timer(id)
                .is_some_and(|timer| may_be_live::<T>(timer, elapsed, level, first))
                && self.kept.insert(id)
        });
        self.previous = tidy_chunk(pool, head, self.previous, at);
        if gone > 0 {
            ring.removed(slot, gone);
            levels.records -= gone as usize;
        }
    }

    /// Goes on to the next slot worth a sweep: the next occupied one, or the next level's first.
    fn leave_slot(&mut self, ring: &Ring) {
        let next = self.slot + 1;
        match ring.distance(next % SLOTS) {
            Some(distance) if next + (distance as usize) < SLOTS => {
                self.enter(self.level, next + distance as usize);
            }
            _ => self.enter(self.level + 1, 0),
        }
    }

    fn enter(&mut self, level: usize, slot: usize) {
        (self.level, self.slot, self.previous) = (level, slot, NIL);
    }
}

/// Joins a chunk to the one before it if both fit into one, or moves it down. Returns the chunk
/// that now comes before the rest of the chain.
fn tidy_chunk(pool: &mut Pool<u32, CHUNK_RECORDS>, head: &mut u32, previous: u32, at: u32) -> u32 {
    let next = pool.chunk(at).next;
    let empty = pool.chunk(at).records().is_empty();
    if empty || previous != NIL && pool.merge(previous, at) {
        pool.link(head, previous, next);
        pool.release(at);
        return previous;
    }
    let Some(lower) = pool.lower(at) else {
        return at;
    };
    pool.link(head, previous, lower);
    lower
}
