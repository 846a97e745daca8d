//! The hierarchical timing wheel, the production timer.
//!
//! # The picture
//!
//! The wheel is a stack of rings, one for each *level*. A ring has 512 slots. A slot of a level spans as much as
//! 256 slots of the level below. With ticks of one millisecond:
//!
//! | level | one slot spans | the ring reaches, at least |
//! |---|---|---|
//! | 0 | 1 ms | 0.26 s |
//! | 1 | 0.26 s | 66 s |
//! | 2 | 66 s | 4.7 h |
//! | 3 | 4.7 h | 50 days |
//! | … 7 | 2.3 million years | the last `u64` tick |
//!
//! An example. The wheel stands at tick 1,000, which lies in slot 3 of level 1 (ticks 768 to 1,023). A timer due at
//! 1,005 is filed at level 0, where its slot is this one tick. A timer due at 3,000 is too far for level 0. It is
//! filed at level 1, in slot 11, which spans the ticks from 2,816 to 3,071. At tick 2,816 at the latest the wheel
//! *splits* slot 11: it moves the slot's records to level 0, each to its own tick.
//!
//! # The rule
//!
//! The *position* is the tick that the wheel stands at. Every timer that was due before it has fired. A record is filed
//! at the lowest level whose ring reaches its tick. With `e` for the position, that is the smallest level `l` with
//! `(tick >> 8(l+1)) <= (e >> 8(l+1)) + 1`. Each level is allocated on first use (4 KiB).
//!
//! A ring has *twice* the 256 slots that make one slot of the next level. So it covers the slot of the next level
//! in which the position is, and the following one too. That keeps roll-overs flat: the records of the coming slot
//! can move down a few at a time before its start, instead of all at once on it. A slot with many records asks for
//! wake-ups ahead of its start ([`SPLIT_PER_TICK`]).
//!
//! # The life of a record
//!
//! A record is eight bytes: the timer's id and the low 32 bits of a tick. The timer's owner keeps the same bits as
//! the timer's *registration*. A record is alive if and only if it equals the registration.
//!
//! 1. *Insert* files a record for the deadline and registers the timer for it.
//! 2. *Split* moves the record down, at most once for each level. Up to level 4 the record's 32 bits tell where to,
//!    so the timer is not looked at.
//! 3. *Fire* meets the record at its tick and compares it with its timer. If the timer is due, it goes to the
//!    caller. If the timer was moved later, a record for the new deadline is filed.
//! 4. A record *dies* when its timer is cancelled, or moved earlier, in which case a second record is filed. The
//!    wheel does nothing about a dead record until it meets it, and then drops it.
//!
//! Dead records are counted. When they outnumber the living ones, every insert and every
//! [`maintain`](TimerQueue::maintain) *sweep* a few chunks of records: they drop the dead ones and free sparse
//! pages. A dead record may look alive, because its id was given to another timer whose registration has the same
//! bits. So a pass of the sweep keeps only one record of each timer: the first that looks alive and is met by the
//! deadline.
//!
//! # Invariants
//!
//! - Nothing is filed before the position, except in the position's own level-0 slot, where due timers wait.
//! - Above level 0, the position's slot and the one after it receive no records; they only drain.
//! - The position never passes an occupied slot's start before that slot is empty.
//!
//! # Cost
//!
//! Insert, reschedule and cancel are O(1). A record moves down once a level at most: so twice at most for a timer
//! within 65 s, and three times within 4.6 h. `next_deadline` looks at each level in use once.
//!
//! Sources: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (1987), scheme 7. The doubled ring follows
//! Erlang's two-wheel timer service, the chunks follow an MSD radix sort.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use crate::marks::Marks;
use crate::pool::{FreedRecords, NIL, Pool, Record};
use crate::queue::{Forecast, Progress, Timer, TimerQueue, Timers, forecast_evenly};
use crate::ring::{Ring, SLOTS};

/// Levels of 8 bits that cover a `u64`.
const LEVELS: usize = 8;

/// Up to this level a record's 32 bits tell its whole tick.
const LEVEL_EXACT: usize = 4;

/// Records per tick at which a large coming slot is split; sets how early its wake-ups begin.
pub const SPLIT_PER_TICK: u32 = 256;

/// The most records that one `advance` splits ahead of their slot's start.
const SPLIT_AHEAD_MAX: u32 = 4 * SPLIT_PER_TICK;

/// This many dead records are tolerated, even beside fewer living ones.
const DEAD_FLOOR: usize = 1024;

/// Chunks that an insert sweeps while dead records outnumber the living.
const SWEEP_PER_INSERT: u32 = 2;

/// A hierarchical timing wheel over timers that somebody else owns: O(1), tickless, any `u64` deadline.
/// The head of `wheel.rs` has a picture, the rule and the invariants.
#[derive(Debug)]
pub struct HierarchicalWheel {
    rings: [Option<Box<Ring>>; LEVELS],
    pool: Pool,
    /// The position: every tick before it is done with.
    elapsed: u64,
    /// The latest clock seen, never before the position.
    latest: u64,
    /// No occupied slot starts before this; `u64::MAX` may also mean that nothing is filed.
    next: u64,
    records: usize,
    dead: usize,
    sweep: Sweep,
    /// Timers of which this pass of the sweep has kept a record. It drops any other record of such a timer,
    /// even one that looks alive. A timer that is filed leaves the set, since its record is a new one.
    kept: Marks,
}

/// Where the sweep for dead records stands.
#[derive(Debug)]
struct Sweep {
    /// `LEVELS` at the end of a pass.
    level: usize,
    slot: usize,
    /// The last chunk of the slot that was swept, or `NIL` before its first.
    previous: u32,
}

impl Sweep {
    /// Before the first slot of a level.
    const fn start_of(level: usize) -> Self {
        Self {
            level,
            slot: 0,
            previous: NIL,
        }
    }
}

impl HierarchicalWheel {
    /// An empty wheel that stands at `now`. Allocates nothing.
    #[must_use]
    pub const fn new(now: u64) -> Self {
        Self {
            rings: [const { None }; LEVELS],
            pool: Pool::new(),
            elapsed: now,
            latest: now,
            next: u64::MAX,
            records: 0,
            dead: 0,
            sweep: Sweep::start_of(0),
            kept: Marks::new(),
        }
    }

    /// Dead records that are still filed: cancelling a timer or moving it earlier leaves one behind.
    #[must_use]
    pub fn dead(&self) -> usize {
        self.dead
    }

    /// Records filed at each level, dead ones included; a slot of level `l` spans `256^l` ticks.
    #[must_use]
    pub fn records_by_level(&self) -> [usize; 8] {
        core::array::from_fn(|level| self.rings[level].as_ref().map_or(0, |ring| ring.records))
    }

    /// The lowest level whose ring reaches `tick`.
    #[inline]
    fn level_of(&self, tick: u64) -> usize {
        let e = self.elapsed;
        if tick <= e {
            return 0;
        }
        let mut level = (63 - (tick ^ e).leading_zeros() as usize) / 8;
        // `tick` is in another slot of the level above than the position. If that is the very next slot, the ring
        // of the level below covers it too.
        while level > 0 && tick >> (8 * level) <= (e >> (8 * level)) + 1 {
            level -= 1;
        }
        level
    }

    /// Files a record under `tick`.
    #[inline]
    fn file(&mut self, tick: u64, record: Record) {
        let tick = tick.max(self.elapsed);
        let level = self.level_of(tick);
        let shift = 8 * level;
        let slot = (tick >> shift) as usize % SLOTS;
        let ring = self.rings[level].get_or_insert_with(|| Box::new(Ring::new()));
        self.pool.push(&mut ring.heads[slot], record);
        ring.added(slot);
        self.kept.remove(record.id);
        self.records += 1;
        self.next = self.next.min((tick >> shift) << shift);
    }

    /// Files a record for a timer's deadline and registers the timer for it.
    #[inline]
    fn register<T: Timers>(&mut self, timers: &mut T, id: u32, deadline: u64) {
        let tick = deadline as u32;
        timers.set_registration(id, tick);
        self.file(deadline, Record { id, tick });
    }

    /// From now on the wheel keeps the memory that it no longer needs, until [`take_freed`](Self::take_freed)
    /// is called. An owner that holds a lock can so free it after unlocking.
    pub fn defer_frees(&mut self) {
        self.pool.defer_frees();
    }

    /// Memory that is no longer needed, to be dropped; `None` when there is none, or frees are not
    /// deferred.
    #[inline]
    pub fn take_freed(&mut self) -> Option<FreedRecords> {
        self.pool.take_freed()
    }

    /// Loads the memory that filing a timer for `deadline` will write. A caller with other memory to load can so
    /// let the cache misses overlap. Returns some of the bits, so that the compiler keeps the load.
    #[inline]
    #[must_use]
    pub fn touch(&self, deadline: u64) -> u32 {
        let level = self.level_of(deadline);
        let slot = (deadline >> (8 * level)) as usize % SLOTS;
        match &self.rings[level] {
            Some(ring) => ring.counts[slot] ^ self.pool.touch(ring.heads[slot]),
            None => 0,
        }
    }

    /// Visits some of the pending timers, in no order, until `visit` returns false. They are those whose records
    /// lie in `chunks` chunks of 15 records, from chunk number `from` on. Behind the last chunk comes the first
    /// again. So calls whose `from` grows by `chunks` visit every timer that stays, some more than once. Dead
    /// records are skipped.
    pub fn sample<T: Timers>(
        &self,
        timers: &T,
        from: u32,
        chunks: u32,
        mut visit: impl FnMut(u32) -> bool,
    ) {
        for record in self.pool.records_near(from, chunks) {
            let timer = timers.timer(record.id);
            if timer.is_some_and(|timer| is_live::<T>(&timer, &record)) && !visit(record.id) {
                return;
            }
        }
    }

    /// A timer that is due at `now`. [`advance`](TimerQueue::advance) may have to move many records before it meets
    /// such a timer; this looks only at the first `look` records of the slot that starts first. If it returns `None`,
    /// timers may still be due.
    #[must_use]
    pub fn find_due<T: Timers>(&self, timers: &T, now: u64, look: usize) -> Option<u32> {
        let (start, level) = self.earliest().filter(|(start, _)| *start <= now)?;
        let ring = self.rings[level].as_ref()?;
        let slot = (start >> (8 * level)) as usize % SLOTS;
        let mut records = self.pool.records_of(ring.heads[slot]).take(look);
        let due = records.find(|record| {
            let timer = timers.timer(record.id);
            timer.is_some_and(|timer| timer.deadline <= now && is_live::<T>(&timer, record))
        });
        due.map(|record| record.id)
    }

    /// Takes up to `limit` records out of a slot.
    #[inline]
    fn take(&mut self, level: usize, slot: usize, limit: u32) -> crate::pool::Taken {
        let ring = self.rings[level].as_mut().expect("occupied level");
        let taken = self.pool.pop(&mut ring.heads[slot], limit);
        ring.removed(slot, taken.records().len() as u32);
        self.records -= taken.records().len();
        if self.sweep.previous != NIL && self.sweep.level == level && self.sweep.slot == slot {
            // The chunk at which the sweep stood may be gone. The rest of the slot waits for the next pass.
            self.sweep = Self::after_slot(ring, level, slot);
        }
        taken
    }

    /// The start and the level of the occupied slot that starts first. Of two slots with one start the higher
    /// level's comes first: its records must be split before any of them can fire.
    #[inline]
    fn earliest(&self) -> Option<(u64, usize)> {
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

    /// Fires the timers of the position's slot that are due; files those again that were moved later.
    fn fire<T: Timers>(
        &mut self,
        timers: &mut T,
        left: &mut u32,
        progress: &mut Progress,
        sink: &mut impl FnMut(&mut T, &[u32]),
    ) {
        let slot = self.elapsed as usize % SLOTS;
        while *left > 0 && self.ring_count(0, slot) > 0 {
            let taken = self.take(0, slot, *left);
            let records = taken.records();
            *left -= records.len() as u32;
            // First load all timers, so that their cache misses overlap; then act.
            let mut found = [None; crate::pool::CHUNK_RECORDS];
            for (found, record) in found.iter_mut().zip(records) {
                *found = timers.timer(record.id);
            }
            let mut due = [0; crate::pool::CHUNK_RECORDS];
            let mut count = 0;
            for (timer, record) in found.iter().zip(records) {
                match timer {
                    Some(timer) if is_live::<T>(timer, record) => {
                        if timer.deadline <= self.elapsed {
                            // A second record of the same registration must not fire it twice.
                            if !due[..count].contains(&record.id) {
                                due[count] = record.id;
                                count += 1;
                                continue;
                            }
                        } else {
                            // Moved later. It may still be due in this call: then it comes in its order.
                            self.register(timers, record.id, timer.deadline);
                            progress.moved += 1;
                            continue;
                        }
                        self.drop_dead(progress);
                    }
                    _ => self.drop_dead(progress),
                }
            }
            if count > 0 {
                progress.fired += count as u32;
                sink(timers, &due[..count]);
            }
        }
    }

    fn drop_dead(&mut self, progress: &mut Progress) {
        self.count_dropped(1);
        progress.moved += 1;
    }

    /// Dead records have been dropped. A release build whose count is too low goes on with 0: then the sweep begins
    /// later, but nothing else is wrong.
    #[inline]
    fn count_dropped(&mut self, count: usize) {
        debug_assert!(self.dead >= count, "more records were dropped than died");
        self.dead = self.dead.saturating_sub(count);
    }

    /// Moves the records of a slot above level 0 to the levels below.
    fn split<T: Timers>(
        &mut self,
        timers: &mut T,
        level: usize,
        slot_number: u64,
        left: &mut u32,
        progress: &mut Progress,
    ) {
        let slot = slot_number as usize % SLOTS;
        let start = slot_number << (8 * level);
        while *left > 0 && self.ring_count(level, slot) > 0 {
            let taken = self.take(level, slot, *left);
            *left -= taken.records().len() as u32;
            progress.moved += taken.records().len() as u32;
            for &record in taken.records() {
                if level <= LEVEL_EXACT {
                    let ahead = record.tick.wrapping_sub(start as u32);
                    self.file(start + u64::from(ahead), record);
                    continue;
                }
                // The record's 32 bits do not tell a tick this far ahead: ask the timer.
                match timers.timer(record.id) {
                    Some(timer) if is_live::<T>(&timer, &record) => {
                        self.register(timers, record.id, timer.deadline);
                    }
                    _ => self.count_dropped(1),
                }
            }
        }
    }

    fn ring_count(&self, level: usize, slot: usize) -> u32 {
        self.rings[level]
            .as_ref()
            .map_or(0, |ring| ring.counts[slot])
    }

    /// The number of a level's next occupied slot, if it has so many records that it is to be split ahead of its
    /// start, and the tick at which to begin. That is not before the position enters the slot in front of it: only
    /// then does the ring below reach its ticks.
    #[inline]
    fn split_begin(&self, level: usize) -> Option<(u64, u64)> {
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

    fn split_ahead<T: Timers>(&mut self, timers: &mut T, left: u32, progress: &mut Progress) {
        let mut left = left.min(SPLIT_AHEAD_MAX);
        for level in 1..LEVELS {
            if let Some((number, begin)) = self.split_begin(level)
                && begin <= self.elapsed
            {
                self.split(timers, level, number, &mut left, progress);
            }
        }
    }

    fn has_garbage(&self) -> bool {
        self.dead > self.records / 2 + DEAD_FLOOR || self.pool.is_sparse()
    }

    /// Sweeps `chunks` chunks: drops dead records, joins half-empty chunks, moves chunks down.
    fn sweep<T: Timers>(&mut self, timers: &T, chunks: u32) {
        for _ in 0..chunks {
            let Sweep {
                level,
                slot,
                previous,
            } = self.sweep;
            if level == LEVELS {
                self.sweep = Sweep::start_of(0);
                self.kept.clear();
                continue;
            }
            let Some(ring) = self.rings[level].as_mut().filter(|ring| ring.records > 0) else {
                self.sweep = Sweep::start_of(level + 1);
                continue;
            };
            let head = &mut ring.heads[slot];
            let at = if previous == NIL {
                *head
            } else {
                self.pool.chunk(previous).next
            };
            if at == NIL {
                self.sweep = Self::after_slot(ring, level, slot);
                continue;
            }
            let first = slot_start(self.elapsed, level, slot);
            let gone = self.pool.retain(at, |record| {
                timers.timer(record.id).is_some_and(|timer| {
                    is_live::<T>(&timer, &record)
                        && met_at(level, first, record) <= timer.deadline.max(self.elapsed)
                        && self.kept.insert(record.id)
                })
            });
            let next = self.pool.chunk(at).next;
            let empty = self.pool.chunk(at).records().is_empty();
            if empty || previous != NIL && self.pool.merge(previous, at) {
                self.pool.link(head, previous, next);
                self.pool.release(at);
            } else {
                let at = match self.pool.lower(at) {
                    Some(lower) => {
                        self.pool.link(head, previous, lower);
                        lower
                    }
                    None => at,
                };
                self.sweep.previous = at;
            }
            if gone > 0 {
                ring.removed(slot, gone);
                self.records -= gone as usize;
                self.count_dropped(gone as usize);
            }
        }
    }

    /// The next slot worth a sweep: the next occupied one, or the next level's first.
    fn after_slot(ring: &Ring, level: usize, slot: usize) -> Sweep {
        match ring.distance((slot + 1) % SLOTS) {
            Some(d) if slot + 1 + (d as usize) < SLOTS => Sweep {
                level,
                slot: slot + 1 + d as usize,
                previous: NIL,
            },
            _ => Sweep::start_of(level + 1),
        }
    }

    /// The full tick of a timer's registration if its 32 bits tell; else its deadline, which is not before it.
    fn registered_tick<T: Timers>(&self, timer: Timer) -> u64 {
        if T::REGISTRATION_BITS != u32::MAX || timer.registration == timer.deadline as u32 {
            return timer.deadline;
        }
        if timer.deadline.saturating_sub(self.elapsed) > u64::from(u32::MAX) {
            // Several ticks have these 32 bits. The latest is the one that is safe to assume.
            return timer.deadline;
        }
        let ahead = timer.registration.wrapping_sub(self.elapsed as u32);
        self.elapsed.saturating_add(u64::from(ahead))
    }

    /// Moves the position towards `now`, up to the first occupied slot. So new records are filed at the lowest
    /// level that they can have.
    fn follow_clock(&mut self, now: u64) {
        if now > self.elapsed {
            self.latest = self.latest.max(now);
            self.elapsed = now.min(self.next.max(self.elapsed));
        }
    }
}

impl TimerQueue for HierarchicalWheel {
    #[inline]
    fn insert<T: Timers>(&mut self, timers: &mut T, id: u32, deadline: u64, now: u64) {
        // Before the new record is filed: the owner may not show its timer yet.
        if self.dead > DEAD_FLOOR && self.has_garbage() {
            self.sweep(timers, SWEEP_PER_INSERT);
        }
        self.follow_clock(now);
        self.register(timers, id, deadline);
    }

    #[inline]
    fn reschedule<T: Timers>(
        &mut self,
        timers: &mut T,
        id: u32,
        old: Timer,
        deadline: u64,
        now: u64,
    ) {
        // The record's tick comes first: there the wheel finds the new deadline and files another record. The
        // registered tick is never after the old deadline, which is at hand.
        if deadline >= old.deadline || deadline >= self.registered_tick::<T>(old) {
            return;
        }
        self.dead += 1;
        self.insert(timers, id, deadline, now);
    }

    #[inline]
    fn cancel<T: Timers>(&mut self, _timers: &mut T, _id: u32, _old: Timer) {
        self.dead += 1;
    }

    fn advance<T: Timers>(
        &mut self,
        timers: &mut T,
        now: u64,
        budget: u32,
        mut sink: impl FnMut(&mut T, &[u32]),
    ) -> Progress {
        let mut progress = Progress::default();
        let mut left = budget;
        let now = now.max(self.latest);
        self.latest = now;
        if now >= self.next {
            loop {
                let Some((start, level)) = self.earliest() else {
                    self.next = u64::MAX;
                    break;
                };
                self.next = start;
                if start > now {
                    break;
                }
                if left == 0 {
                    progress.backlog = true;
                    break;
                }
                self.elapsed = start;
                if level == 0 {
                    self.fire(timers, &mut left, &mut progress, &mut sink);
                } else {
                    let number = start >> (8 * level);
                    self.split(timers, level, number, &mut left, &mut progress);
                }
            }
        }
        if !progress.backlog {
            self.elapsed = now;
            self.split_ahead(timers, left, &mut progress);
        }
        progress.next_deadline = self.next_deadline();
        progress
    }

    fn drain<T: Timers>(&mut self, timers: &mut T, mut sink: impl FnMut(&mut T, &[u32])) {
        for level in 0..LEVELS {
            for slot in 0..SLOTS {
                while self.ring_count(level, slot) > 0 {
                    let taken = self.take(level, slot, u32::MAX);
                    for record in taken.records() {
                        if timers
                            .timer(record.id)
                            .is_some_and(|timer| is_live::<T>(&timer, record))
                        {
                            sink(timers, &[record.id]);
                        }
                    }
                }
            }
        }
        self.rings = [const { None }; LEVELS];
        let deferring = self.pool.is_deferring();
        self.pool = Pool::new();
        if deferring {
            self.pool.defer_frees();
        }
        self.sweep = Sweep::start_of(0);
        self.kept.clear();
        self.next = u64::MAX;
        self.dead = 0;
    }

    #[inline]
    fn next_deadline(&self) -> Option<u64> {
        if self.records == 0 {
            return None;
        }
        let mut wake = self.next;
        for level in 1..LEVELS {
            if let Some((_, begin)) = self.split_begin(level) {
                wake = wake.min(begin.max(self.elapsed + 1));
            }
        }
        Some(wake)
    }

    fn forecast(&self, now: u64, forecast: &mut Forecast) {
        for (level, ring) in self.rings.iter().enumerate() {
            let Some(ring) = ring else { continue };
            let at = self.elapsed >> (8 * level);
            for distance in 0..SLOTS as u64 {
                let count = ring.counts[at.wrapping_add(distance) as usize % SLOTS];
                if count > 0 {
                    let start = (at + distance) << (8 * level);
                    let last = start + ((1 << (8 * level)) - 1);
                    let (nearest, farthest) = (start.saturating_sub(now), last.saturating_sub(now));
                    forecast_evenly(nearest, farthest, count, forecast);
                }
            }
        }
    }

    fn maintain<T: Timers>(&mut self, timers: &mut T, budget: u32) -> bool {
        if self.has_garbage() {
            self.sweep(timers, budget);
            self.has_garbage() || !self.kept.is_empty()
        } else {
            self.kept.shrink(budget)
        }
    }

    fn elapsed(&self) -> u64 {
        self.elapsed
    }

    fn len(&self) -> usize {
        debug_assert!(self.dead <= self.records, "more dead records than records");
        self.records.saturating_sub(self.dead)
    }

    fn bytes(&self) -> usize {
        self.pool.bytes()
            + self.kept.bytes()
            + self.rings.iter().flatten().count() * size_of::<Ring>()
    }

    fn validate<T: Timers>(&self, timers: &T) {
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
        assert!(
            live >= self.len(),
            "{live} live records, {} timers",
            self.len()
        );
    }
}

/// The first tick of a slot, which is not before the position's own.
#[inline]
fn slot_start(elapsed: u64, level: usize, slot: usize) -> u64 {
    let at = elapsed >> (8 * level);
    let distance = slot.wrapping_sub(at as usize) % SLOTS;
    (at + distance as u64) << (8 * level)
}

/// The tick at which a record of a slot is met at the latest: there it fires, or it is filed again.
#[inline]
fn met_at(level: usize, slot_start: u64, record: Record) -> u64 {
    if level == 0 || level > LEVEL_EXACT {
        return slot_start;
    }
    slot_start + u64::from(record.tick.wrapping_sub(slot_start as u32))
}

/// Whether a record is the one that its timer is registered under.
#[inline]
fn is_live<T: Timers>(timer: &Timer, record: &Record) -> bool {
    timer.registration == record.tick & T::REGISTRATION_BITS
}
