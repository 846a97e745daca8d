//! The levels of the wheel, and the records that are filed at them around the position.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use crate::pool::{NIL, Pool};
use crate::queue::{BATCH_MAX, Span, Timer, Timers};
use crate::ring::{Ring, SLOTS};

/// Levels of 8 bits that cover a `u64`.
pub(crate) const LEVELS: usize = 8;

/// Records a chunk holds: they are handed out together.
pub(crate) const CHUNK_RECORDS: usize = BATCH_MAX;

/// Records that were taken out of a slot: the ids of their timers.
pub(crate) type Taken = crate::pool::Taken<u32, CHUNK_RECORDS>;

/// Records per tick at which a large coming slot is split; sets how early its wake-ups begin.
pub const SPLIT_PER_TICK: u32 = 256;

/// Records of one slot that a forecast looks at.
const LOOKED_AT_MAX: u32 = 1_024;

/// The records that are filed.
#[derive(Debug)]
pub(crate) struct Levels {
    pub(crate) rings: [Option<Box<Ring>>; LEVELS],
    pub(crate) pool: Pool<u32, CHUNK_RECORDS>,
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

    /// Files a record of a timer under `tick`, which is not before the position.
    #[inline]
    pub(crate) fn file(&mut self, tick: u64, id: u32) {
        let level = self.level_of(tick);
        let shift = 8 * level;
        let slot = (tick >> shift) as usize % SLOTS;
        let ring = match &mut self.rings[level] {
            Some(ring) => ring,
            none => none.insert(new_ring()),
        };
        self.pool
            .push(&mut ring.heads[slot], chain(level, slot), id);
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
    pub(crate) fn records_of(&self, level: usize, start: u64) -> impl Iterator<Item = u32> + '_ {
        let slot = (start >> (8 * level)) as usize % SLOTS;
        let head = self.rings[level]
            .as_ref()
            .map_or(NIL, |ring| ring.heads[slot]);
        self.pool.records_of(head)
    }

    /// Shows what is filed, slot by slot. Of a slot that has an edge in it the timers are asked, if
    /// they are not too many. One that has moved out of the slot, or is gone, is shown at the end
    /// of the slot that is nearer.
    pub(crate) fn spans<T: Timers>(
        &self,
        timers: &T,
        now: u64,
        edges: &[u64],
        mut show: impl FnMut(Span),
    ) {
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
                    if count > LOOKED_AT_MAX || !span.has_edge(edges) {
                        show(span);
                        continue;
                    }
                    for id in self.records_of(level, start) {
                        let deadline = timers.timer(id).map_or(start, |timer| timer.deadline);
                        let tick = deadline.clamp(start, last);
                        show(Span::one(tick.saturating_sub(now)));
                    }
                }
            }
        }
    }

    /// The records of `count` chunks from chunk `from` on: each with the first tick of the slot
    /// that its chunk was made for. Some may be out of date.
    pub(crate) fn records_near(&self, from: u32, count: u32) -> impl Iterator<Item = (u32, u64)> {
        self.pool.chunks_near(from, count).flat_map(|chunk| {
            let (level, slot) = (
                usize::from(chunk.chain) / SLOTS,
                usize::from(chunk.chain) % SLOTS,
            );
            let first = slot_start(self.elapsed, level, slot);
            chunk.records().iter().map(move |id| (*id, first))
        })
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
                    for &id in chunk.records() {
                        count += 1;
                        let Some(timer) = timers.timer(id) else {
                            continue;
                        };
                        if !may_be_live::<T>(timer, self.elapsed, level, start) {
                            continue;
                        }
                        live += 1;
                        // Several records of a timer may look alive: one of them is in time.
                        let first = first_start.entry(id).or_insert((start, timer.deadline));
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

/// The name of a slot's chain.
fn chain(level: usize, slot: usize) -> u16 {
    (level * SLOTS + slot) as u16
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

/// Returns whether a slot's record of a timer may be the one under which the timer is registered,
/// as far as the bits tell that the owner keeps of the registration. If it may be, the timer is met
/// in time by this record alone: an earlier deadline is filed anew, since
/// [`registered_tick`] is not before the slot.
#[inline]
pub(crate) fn may_be_live<T: Timers>(
    timer: Timer,
    elapsed: u64,
    level: usize,
    slot_start: u64,
) -> bool {
    // All ticks of a slot have these bits in common.
    let common = u32::MAX.checked_shl(8 * level as u32).unwrap_or(0) & T::REGISTRATION_BITS;
    let differs = (timer.registration ^ slot_start as u32) & common != 0;
    !differs && (slot_start <= elapsed || registered_tick::<T>(timer, elapsed) >= slot_start)
}

/// The full tick of a timer's registration if its bits tell; else one that is not before it.
#[inline]
pub(crate) fn registered_tick<T: Timers>(timer: Timer, elapsed: u64) -> u64 {
    if T::REGISTRATION_BITS != u32::MAX {
        return latest_with(timer, T::REGISTRATION_BITS);
    }
    if timer.registration == timer.deadline as u32 {
        return timer.deadline;
    }
    if timer.deadline.saturating_sub(elapsed) > u64::from(u32::MAX) {
        // Several ticks have these 32 bits. The latest is the one that is safe to assume.
        return timer.deadline;
    }
    let ahead = timer.registration.wrapping_sub(elapsed as u32);
    elapsed.saturating_add(u64::from(ahead))
}

/// The latest tick that a timer may be registered under, of whose registration the owner keeps
/// these `bits`: the latest one with these bits that is not after the deadline.
#[inline]
fn latest_with(timer: Timer, bits: u32) -> u64 {
    let Timer {
        deadline,
        registration,
    } = timer;
    if bits == 0 {
        return deadline;
    }
    // All ticks of a block have the same bits. So many blocks before the deadline's is the latest
    // one with these.
    let shift = bits.trailing_zeros();
    let number = deadline >> shift;
    let back = number.wrapping_sub(u64::from(registration >> shift)) & u64::from(bits >> shift);
    let last = (1 << shift) - 1;
    number
        .checked_sub(back)
        .map_or(deadline, |block| (block << shift | last).min(deadline))
}
