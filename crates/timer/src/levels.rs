//! The levels of the wheel, and the records that are filed at them around the position.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use crate::pool::{NIL, Pool, Record, Taken};
use crate::queue::{Span, Timer, Timers};
use crate::ring::{Ring, SLOTS};

/// Levels of 8 bits that cover a `u64`.
pub(crate) const LEVELS: usize = 8;

/// Up to this level a record's 32 bits tell its whole tick.
pub(crate) const LEVEL_EXACT: usize = 4;

/// Records per tick at which a large coming slot is split; sets how early its wake-ups begin.
pub const SPLIT_PER_TICK: u32 = 256;

/// Records of one slot that a forecast looks at.
const LOOKED_AT_MAX: u32 = 1_024;

/// The records that are filed.
#[derive(Debug)]
pub(crate) struct Levels {
    pub(crate) rings: [Option<Box<Ring>>; LEVELS],
    pub(crate) pool: Pool,
    /// The position: every tick before it is done with.
    pub(crate) elapsed: u64,
    /// No occupied slot starts before this; `u64::MAX` may also mean that nothing is filed.
    pub(crate) next: u64,
    pub(crate) records: usize,
}

impl Levels {
    /// Nothing is filed, and the position is `now`. Allocates nothing.
    pub(crate) const fn new(now: u64) -> Self {
        Self {
            rings: [const { None }; LEVELS],
            pool: Pool::new(),
            elapsed: now,
            next: u64::MAX,
            records: 0,
        }
    }

    /// Frees everything. All records must have been taken out.
    pub(crate) fn clear(&mut self) {
        debug_assert_eq!(self.records, 0, "a record is lost");
        let deferring = self.pool.is_deferring();
        *self = Self::new(self.elapsed);
        if deferring {
            self.pool.defer_frees();
        }
    }

    /// The lowest level whose ring reaches `tick`.
    #[inline]
    fn level_of(&self, tick: u64) -> usize {
        let e = self.elapsed;
        if tick <= e {
            return 0;
        }
        let mut level = (63 - (tick ^ e).leading_zeros() as usize) / 8;
        // `tick` is in another slot of the level above than the position. If that is the very next
        // slot, the ring of the level below covers it too.
        while level > 0 && tick >> (8 * level) <= (e >> (8 * level)) + 1 {
            level -= 1;
        }
        level
    }

    /// Files a record under `tick`.
    #[inline]
    pub(crate) fn file(&mut self, tick: u64, record: Record) {
        let tick = tick.max(self.elapsed);
        let level = self.level_of(tick);
        let shift = 8 * level;
        let slot = (tick >> shift) as usize % SLOTS;
        let ring = match &mut self.rings[level] {
            Some(ring) => ring,
            none => none.insert(new_ring()),
        };
        self.pool.push(&mut ring.heads[slot], record);
        ring.added(slot);
        self.records += 1;
        self.next = self.next.min((tick >> shift) << shift);
    }

    /// Takes up to `limit` records out of a slot.
    #[inline]
    pub(crate) fn take(&mut self, level: usize, slot: usize, limit: u32) -> Taken {
        let ring = self.rings[level].as_mut().expect("occupied level");
        let taken = self.pool.pop(&mut ring.heads[slot], limit);
        ring.removed(slot, taken.records().len() as u32);
        self.records -= taken.records().len();
        taken
    }

    /// The start and the level of the occupied slot that starts first. Of two slots with one start
    /// the higher level's comes first: its records must be split before any of them can fire.
    #[inline]
    pub(crate) fn earliest(&self) -> Option<(u64, usize)> {
        let mut best: Option<(u64, usize)> = None;
        for (level, ring) in self.rings.iter().enumerate() {
            let Some(ring) = ring else { continue };
            let at = self.elapsed >> (8 * level);
            let Some(distance) = ring.distance(at as usize % SLOTS) else {
                continue;
            };
            let start = ((at + distance) << (8 * level)).max(self.elapsed);
            if best.is_none_or(|(s, _)| start <= s) {
                best = Some((start, level));
            }
        }
        best
    }

    /// Records filed in a slot, dead ones included.
    pub(crate) fn count(&self, level: usize, slot: usize) -> u32 {
        self.rings[level]
            .as_ref()
            .map_or(0, |ring| ring.counts[slot])
    }

    /// The number of a level's next occupied slot, if it has so many records that it is to be split
    /// ahead of its start, and the tick at which to begin. That is not before the position enters
    /// the slot in front of it: only then does the ring below reach its ticks.
    #[inline]
    pub(crate) fn split_begin(&self, level: usize) -> Option<(u64, u64)> {
        let ring = self.rings[level].as_ref()?;
        if ring.records <= SPLIT_PER_TICK as usize {
            return None;
        }
        let coming = (self.elapsed >> (8 * level)) + 1;
        let number = coming + ring.distance(coming as usize % SLOTS)?;
        let count = ring.counts[number as usize % SLOTS];
        if count <= SPLIT_PER_TICK {
            return None;
        }
        let span = 1 << (8 * level);
        let start = number.checked_mul(span)?;
        let lead = u64::from(count / SPLIT_PER_TICK) + 2;
        Some((number, start - lead.min(span)))
    }

    /// Records filed at a level, dead ones included.
    pub(crate) fn records_at(&self, level: usize) -> usize {
        self.rings[level].as_ref().map_or(0, |ring| ring.records)
    }

    /// The records of the slot of a level that starts at `start`.
    pub(crate) fn records_of(&self, level: usize, start: u64) -> impl Iterator<Item = Record> + '_ {
        let slot = (start >> (8 * level)) as usize % SLOTS;
        let head = self.rings[level]
            .as_ref()
            .map_or(NIL, |ring| ring.heads[slot]);
        self.pool.records_of(head)
    }

    /// Shows what is filed, slot by slot. A slot that has an edge in it is shown record by record,
    /// if those are not too many.
    pub(crate) fn spans(&self, now: u64, edges: &[u64], mut show: impl FnMut(Span)) {
        for (level, ring) in self.rings.iter().enumerate() {
            let Some(ring) = ring else { continue };
            let at = self.elapsed >> (8 * level);
            for distance in 0..SLOTS as u64 {
                let count = ring.counts[at.wrapping_add(distance) as usize % SLOTS];
                if count > 0 {
                    let start = (at + distance) << (8 * level);
                    let last = start + ((1 << (8 * level)) - 1);
                    let span = Span {
                        first: start.saturating_sub(now),
                        last: last.saturating_sub(now),
                        count: count.into(),
                    };
                    let looks = level <= LEVEL_EXACT && count <= LOOKED_AT_MAX;
                    if !looks || !span.has_edge(edges) {
                        show(span);
                        continue;
                    }
                    for record in self.records_of(level, start) {
                        let tick = start + (u64::from(record.tick) & (last - start));
                        show(Span::one(tick.saturating_sub(now)));
                    }
                }
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.pool.bytes() + self.rings.iter().flatten().count() * size_of::<Ring>()
    }

    /// Panics if the structure is broken. Returns how many records look alive. O(n).
    pub(crate) fn validate<T: Timers>(&self, timers: &T) -> usize {
        let mut records = 0;
        let mut live = 0;
        let mut chunks = 0;
        let mut first_start = BTreeMap::new();
        for (level, ring) in self.rings.iter().enumerate() {
            let Some(ring) = ring else { continue };
            let at = self.elapsed >> (8 * level);
            let mut in_level = 0;
            for distance in 0..SLOTS as u64 {
                let slot = at.wrapping_add(distance) as usize % SLOTS;
                let start = at.wrapping_add(distance) << (8 * level);
                let mut count = 0;
                let mut head = ring.heads[slot];
                while head != NIL {
                    chunks += 1;
                    let chunk = self.pool.chunk(head);
                    assert!(!chunk.records().is_empty(), "an empty chunk is in a chain");
                    for record in chunk.records() {
                        count += 1;
                        let timer = timers.timer(record.id);
                        let Some(timer) = timer.filter(|t| is_live::<T>(t, record)) else {
                            continue;
                        };
                        live += 1;
                        // A dead record may look alive when its 32 bits happen to be those of the
                        // timer that has its id now; then the true one is there as well.
                        let first = first_start
                            .entry(record.id)
                            .or_insert((start, timer.deadline));
                        first.0 = first.0.min(start);
                        assert!(
                            self.next <= timer.deadline.max(self.elapsed),
                            "next is after a live deadline"
                        );
                    }
                    head = chunk.next;
                }
                assert_eq!(count, ring.counts[slot], "slot count");
                assert_eq!(count > 0, ring.is_occupied(slot), "occupied bit");
                if count > 0 && distance > 0 && level + 1 < LEVELS {
                    assert!(
                        start >> (8 * (level + 1)) <= (self.elapsed >> (8 * (level + 1))) + 1,
                        "a slot of level {level} is beyond the ring"
                    );
                }
                in_level += count as usize;
            }
            assert_eq!(in_level, ring.records, "level count");
            records += in_level;
        }
        for (id, (start, deadline)) in first_start {
            let met = deadline.max(self.elapsed);
            assert!(
                start <= met,
                "no record of timer {id} is met by its deadline"
            );
        }
        assert_eq!(records, self.records, "record count");
        assert_eq!(chunks, self.pool.used(), "chunks leak");
        live
    }
}

/// Apart from where records are filed: it is made on the stack, which is touched for that.
#[cold]
#[inline(never)]
fn new_ring() -> Box<Ring> {
    Box::new(Ring::new())
}

/// The first tick of a slot, which is not before the position's own.
#[inline]
pub(crate) fn slot_start(elapsed: u64, level: usize, slot: usize) -> u64 {
    let at = elapsed >> (8 * level);
    let distance = slot.wrapping_sub(at as usize) % SLOTS;
    (at + distance as u64) << (8 * level)
}

/// The tick at which a record of a slot is met at the latest: there it fires, or it is filed again.
#[inline]
pub(crate) fn met_at(level: usize, slot_start: u64, record: Record) -> u64 {
    if level == 0 || level > LEVEL_EXACT {
        return slot_start;
    }
    slot_start + u64::from(record.tick.wrapping_sub(slot_start as u32))
}

/// Returns whether a record is the one under which its timer is registered.
#[inline]
pub(crate) fn is_live<T: Timers>(timer: &Timer, record: &Record) -> bool {
    timer.registration == record.tick & T::REGISTRATION_BITS
}
