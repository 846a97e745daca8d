//! The hierarchical timing wheel, the production timer.
//!
//! # The picture
//!
//! The wheel is a stack of rings, one for each *level*. A ring has 512 slots. A slot of a level
//! spans as much as 256 slots of the level below. With ticks of one millisecond:
//!
//! | level | one slot spans | the ring reaches, at least |
//! |---|---|---|
//! | 0 | 1 ms | 0.26 s |
//! | 1 | 0.26 s | 66 s |
//! | 2 | 66 s | 4.7 h |
//! | 3 | 4.7 h | 50 days |
//! | … 7 | 2.3 million years | the last `u64` tick |
//!
//! An example. The wheel stands at tick 1,000, which lies in slot 3 of level 1 (ticks 768 to
//! 1,023). A timer due at 1,005 is filed at level 0, where its slot is this one tick. A timer due
//! at 3,000 is too far for level 0. It is filed at level 1, in slot 11, which spans the ticks from
//! 2,816 to 3,071. At tick 2,816 at the latest the wheel *splits* slot 11: it moves the slot's
//! records to level 0, each to its own tick.
//!
//! # The rule
//!
//! The *position* is the tick that the wheel stands at. Every timer that was due before it has
//! fired. A record is filed at the lowest level whose ring reaches its tick. With `e` for the
//! position, that is the smallest level `l` with `(tick >> 8(l+1)) <= (e >> 8(l+1)) + 1`. Each
//! level is allocated on first use (4 KiB).
//!
//! A ring has *twice* the 256 slots that make one slot of the next level. So it covers the slot of
//! the next level in which the position is, and the following one too. That keeps roll-overs flat:
//! the records of the coming slot can move down a few at a time before its start, instead of all at
//! once on it. A slot with many records asks for wake-ups ahead of its start ([`SPLIT_PER_TICK`]).
//!
//! # The life of a record
//!
//! A record is four bytes: the timer's id. The slot that it lies in tells the rest. The timer's
//! owner keeps the low 32 bits of the tick under which the timer was filed last, or some of them,
//! as its *registration*. A record is dead if its slot has no tick with these bits.
//!
//! 1. *Insert* files a record for the deadline and registers the timer for it.
//! 2. *Split* looks at the timer, and files the record again, for the deadline that the timer has
//!    by then: at a lower level, unless the timer was moved far ahead. So a record moves at most
//!    once for each level.
//! 3. *Fire* meets the record at its tick. If its timer is due, that goes to the caller. If it was
//!    moved later, a record for the new deadline is filed.
//! 4. A record *dies* when its timer is cancelled, or moved earlier, in which case a second record
//!    is filed. The wheel does nothing about a dead record until it meets it, and then drops it.
//!
//! There are more records than timers by those that are dead. When they outnumber the timers, every
//! insert and every [`maintain`](TimerQueue::maintain) *sweep* a few chunks of records: they drop
//! the dead ones and free sparse pages.
//!
//! A dead record may look alive: its slot spans many ticks, and its id may have been given to
//! another timer. That costs moves and memory, and nothing else. A timer is due when its deadline
//! has passed, whichever record leads to it. A split registers the timer anew, so that its other
//! record is the dead one. And a pass of the sweep keeps only one record of each timer, the first
//! that looks alive: it is met by the deadline, or the wheel is told of an earlier one.
//!
//! # Invariants
//!
//! - Nothing is filed before the position, except in the position's own level-0 slot, where due
//!   timers wait.
//! - Above level 0, the position's slot and the one after it receive no records; they only drain.
//! - The position never passes an occupied slot's start before that slot is empty.
//!
//! # Cost
//!
//! Insert, reschedule and cancel are O(1). A record moves down once a level at most: so twice at
//! most for a timer within 65 s, and three times within 4.6 h. `next_deadline` looks at each level
//! in use once.
//!
//! Sources: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (1987), scheme 7. The doubled
//! ring follows Erlang's two-wheel timer service, the chunks follow an MSD radix sort.

use crate::levels::{
    CHUNK_RECORDS, LEVELS, Levels, SPLIT_PER_TICK, Taken, may_be_live, registered_tick,
};
use crate::pool::Freed;
use crate::queue::{Progress, Span, Timer, TimerQueue, Timers};
use crate::ring::SLOTS;
use crate::sweep::Sweep;

/// The most records that one `advance` splits ahead of their slot's start.
const SPLIT_AHEAD_MAX: u32 = 4 * SPLIT_PER_TICK;

/// This many dead records are tolerated, even beside fewer living ones.
const DEAD_FLOOR: usize = 1024;

/// Chunks that an insert sweeps while dead records outnumber the living.
const SWEEP_PER_INSERT: u32 = 2;

/// A hierarchical timing wheel over timers that somebody else owns: O(1), tickless, any `u64`
/// deadline. The head of `wheel.rs` has a picture, the rule and the invariants.
#[derive(Debug)]
pub struct HierarchicalWheel {
    levels: Levels,
    /// The latest clock seen, never before the position.
    latest: u64,
    /// Timers that are pending. There is a record for each, and there are dead ones.
    timers: usize,
    sweep: Sweep,
}

/// Memory that a wheel no longer needs. Dropping it frees it.
#[derive(Debug)]
#[allow(dead_code, reason = "kept to be dropped")]
pub struct FreedRecords(Freed<u32, CHUNK_RECORDS>);

impl HierarchicalWheel {
    /// An empty wheel that stands at `now`. Allocates nothing.
    #[must_use]
    pub const fn new(now: u64) -> Self {
        Self {
            levels: Levels::new(now),
            latest: now,
            timers: 0,
            sweep: Sweep::new(),
        }
    }

    /// Dead records that are still filed: cancelling a timer or moving it earlier leaves one
    /// behind.
    #[must_use]
    pub fn dead(&self) -> usize {
        debug_assert!(
            self.timers <= self.levels.records,
            "a timer without a record"
        );
        self.levels.records.saturating_sub(self.timers)
    }

    /// Records filed at each level, dead ones included; a slot of level `l` spans `256^l` ticks.
    #[must_use]
    pub fn records_by_level(&self) -> [usize; 8] {
        core::array::from_fn(|level| self.levels.records_at(level))
    }

    /// Files a record for a timer's deadline and registers the timer for it.
    #[inline]
    fn register<T: Timers>(&mut self, timers: &mut T, id: u32, deadline: u64) {
        // What has passed waits in the position's own slot.
        let tick = deadline.max(self.levels.elapsed);
        timers.set_registration(id, tick as u32);
        self.levels.file(tick, id);
        self.sweep.filed(id);
    }

    /// From now on the wheel keeps the memory that it no longer needs, until
    /// [`take_freed`](Self::take_freed) is called. An owner that holds a lock can so free it after
    /// unlocking.
    pub fn defer_frees(&mut self) {
        self.levels.pool.defer_frees();
    }

    /// Returns whether there is memory for [`take_freed`](Self::take_freed).
    #[inline]
    #[must_use]
    pub fn has_freed(&self) -> bool {
        self.levels.pool.has_freed()
    }

    /// Memory that is no longer needed, to be dropped; `None` when there is none, or frees are not
    /// deferred.
    #[inline]
    pub fn take_freed(&mut self) -> Option<FreedRecords> {
        self.levels.pool.take_freed().map(FreedRecords)
    }

    /// Visits some of the pending timers, in no order, until `visit` returns false. They are those
    /// whose records lie in `chunks` chunks of 30 records, from chunk number `from` on. Behind the
    /// last chunk comes the first again. So calls whose `from` grows by `chunks` visit every timer
    /// that stays, some more than once.
    pub fn sample<T: Timers>(
        &self,
        timers: &T,
        from: u32,
        chunks: u32,
        mut visit: impl FnMut(u32) -> bool,
    ) {
        for (id, _) in self.levels.records_near(from, chunks) {
            if timers.timer(id).is_some() && !visit(id) {
                return;
            }
        }
    }

    /// The chunks of 30 records that there are, for [`scan`](Self::scan). Some may be empty.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        self.levels.pool.end()
    }

    /// Shows the ids in `chunks` chunks of 30 records, from chunk number `from` on, each with the
    /// first tick of the slot in which its record lies. An id may be out of date, or come twice.
    /// Returns where to go on; `None` at the end. So calls that go on until then show every timer
    /// that stays, at least once with a tick that is not after its deadline. No timer is looked at.
    pub fn scan(&self, from: u32, chunks: u32, mut visit: impl FnMut(u32, u64)) -> Option<u32> {
        let end = self.levels.pool.end();
        let until = from.saturating_add(chunks).min(end);
        let records = self.levels.records_near(from, until.saturating_sub(from));
        records.for_each(|(id, first)| visit(id, first));
        (until < end).then_some(until)
    }

    /// A timer that is due at `now`. [`advance`](TimerQueue::advance) may have to move many records
    /// before it meets such a timer; this looks only at the first `look` records of the slot that
    /// starts first. If it returns `None`, timers may still be due.
    #[must_use]
    pub fn find_due<T: Timers>(&self, timers: &T, now: u64, look: usize) -> Option<u32> {
        let (start, level) = self.levels.earliest().filter(|(start, _)| *start <= now)?;
        let mut ids = self.levels.records_of(level, start).take(look);
        ids.find(|id| {
            let timer = timers.timer(*id);
            timer.is_some_and(|timer| timer.deadline <= now)
        })
    }

    /// Returns whether the wheel has to be told that a timer moves to a deadline. If not, its
    /// record comes before that.
    #[inline(always)]
    #[must_use]
    pub fn must_hear<T: Timers>(&self, old: Timer, deadline: u64) -> bool {
        deadline < registered_tick::<T>(old, self.levels.elapsed)
    }

    /// Takes up to `limit` records out of a slot.
    #[inline]
    fn take(&mut self, level: usize, slot: usize, limit: u32) -> Taken {
        let taken = self.levels.take(level, slot, limit);
        self.sweep.taken(&self.levels, level, slot);
        taken
    }

    /// Fires the timers of the position's slot that are due; files those again that were moved
    /// later.
    fn fire<T: Timers>(
        &mut self,
        timers: &mut T,
        left: &mut u32,
        progress: &mut Progress,
        sink: &mut impl FnMut(&mut T, &[u32]),
    ) {
        let slot = self.levels.elapsed as usize % SLOTS;
        while *left > 0 && self.levels.count(0, slot) > 0 {
            // Else no timer has two records.
            let has_dead = self.dead() > 0;
            let taken = self.take(0, slot, *left);
            *left -= taken.records().len() as u32;
            let found = load(timers, &taken);
            let mut due = [0; CHUNK_RECORDS];
            let mut count = 0;
            for (timer, &id) in found.iter().zip(taken.records()) {
                let Some(timer) = *timer else {
                    progress.moved += 1;
                    continue;
                };
                if timer.deadline <= self.levels.elapsed {
                    // A second record of a timer must not fire it twice.
                    if !has_dead || !due[..count].contains(&id) {
                        due[count] = id;
                        count += 1;
                        continue;
                    }
                } else if self.may_be_live::<T>(timer, 0, self.levels.elapsed) {
                    // Moved later. It may still be due in this call: then it comes in its order.
                    self.register(timers, id, timer.deadline);
                }
                progress.moved += 1;
            }
            if count > 0 {
                progress.fired += count as u32;
                self.ended(count);
                sink(timers, &due[..count]);
            }
        }
    }

    /// Timers are no longer pending. A release build that has counted too few goes on with 0: then
    /// the sweep begins earlier, but nothing else is wrong.
    #[inline]
    fn ended(&mut self, count: usize) {
        debug_assert!(self.timers >= count, "more timers ended than there were");
        self.timers = self.timers.saturating_sub(count);
    }

    #[inline]
    fn may_be_live<T: Timers>(&self, timer: Timer, level: usize, slot_start: u64) -> bool {
        may_be_live::<T>(timer, self.levels.elapsed, level, slot_start)
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
        while *left > 0 && self.levels.count(level, slot) > 0 {
            let taken = self.take(level, slot, *left);
            *left -= taken.records().len() as u32;
            progress.moved += taken.records().len() as u32;
            for (timer, &id) in load(timers, &taken).iter().zip(taken.records()) {
                let Some(timer) = *timer else { continue };
                let deadline = timer.deadline;
                let stays = timer.registration == deadline as u32 & T::REGISTRATION_BITS;
                let is_here = deadline >> (8 * level) == slot_number;
                if stays && is_here && deadline >= self.levels.elapsed {
                    // Nearly all: nobody has moved it since it was registered.
                    self.levels.file(deadline, id);
                    self.sweep.filed(id);
                } else if self.may_be_live::<T>(timer, level, start) {
                    self.register(timers, id, deadline);
                }
            }
        }
    }

    fn split_ahead<T: Timers>(&mut self, timers: &mut T, left: u32, progress: &mut Progress) {
        let mut left = left.min(SPLIT_AHEAD_MAX);
        for level in 1..LEVELS {
            match self.levels.split_begin(level) {
                Some((number, begin)) if begin <= self.levels.elapsed => {
                    self.split(timers, level, number, &mut left, progress);
                }
                _ => {}
            }
        }
    }

    fn has_garbage(&self) -> bool {
        self.dead() > self.levels.records / 2 + DEAD_FLOOR || self.levels.pool.is_sparse()
    }

    /// Sweeps `chunks` chunks.
    fn sweep<T: Timers>(&mut self, timers: &T, chunks: u32) {
        for _ in 0..chunks {
            self.sweep.step(&mut self.levels, timers);
        }
    }

    /// Moves the position towards `now`, up to the first occupied slot. So new records are filed at
    /// the lowest level that they can have.
    fn follow_clock(&mut self, now: u64) {
        if now > self.levels.elapsed {
            self.latest = self.latest.max(now);
            self.levels.elapsed = now.min(self.levels.next.max(self.levels.elapsed));
        }
    }
}

/// Loads all timers of what was taken, so that their cache misses overlap.
#[inline]
fn load<T: Timers>(timers: &T, taken: &Taken) -> [Option<Timer>; CHUNK_RECORDS] {
    let mut found = [None; CHUNK_RECORDS];
    for (found, &id) in found.iter_mut().zip(taken.records()) {
        *found = timers.timer(id);
    }
    found
}

impl TimerQueue for HierarchicalWheel {
    #[inline]
    fn insert<T: Timers>(&mut self, timers: &mut T, id: u32, deadline: u64, now: u64) {
        // Before the new record is filed: the owner may not show its timer yet.
        if self.dead() > DEAD_FLOOR && self.has_garbage() {
            self.sweep(timers, SWEEP_PER_INSERT);
        }
        self.follow_clock(now);
        self.timers += 1;
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
        // The record's tick comes first: there the wheel finds the new deadline and files another
        // record. The registered tick is never after the old deadline, which is at hand.
        if deadline >= old.deadline || !self.must_hear::<T>(old, deadline) {
            return;
        }
        self.ended(1);
        self.insert(timers, id, deadline, now);
    }

    #[inline]
    fn cancel<T: Timers>(&mut self, _timers: &mut T, _id: u32, _old: Timer) {
        self.ended(1);
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
        if now >= self.levels.next {
            loop {
                let Some((start, level)) = self.levels.earliest() else {
                    self.levels.next = u64::MAX;
                    break;
                };
                self.levels.next = start;
                if start > now {
                    break;
                }
                if left == 0 {
                    progress.backlog = true;
                    break;
                }
                self.levels.elapsed = start;
                if level == 0 {
                    self.fire(timers, &mut left, &mut progress, &mut sink);
                } else {
                    let number = start >> (8 * level);
                    self.split(timers, level, number, &mut left, &mut progress);
                }
            }
        }
        if !progress.backlog {
            self.levels.elapsed = now;
            self.split_ahead(timers, left, &mut progress);
        }
        progress.next_deadline = self.next_deadline();
        progress
    }

    fn drain<T: Timers>(&mut self, timers: &mut T, mut sink: impl FnMut(&mut T, &[u32])) {
        for level in 0..LEVELS {
            for slot in 0..SLOTS {
                while self.levels.count(level, slot) > 0 {
                    let taken = self.take(level, slot, u32::MAX);
                    for &id in taken.records() {
                        if timers.timer(id).is_some() {
                            self.ended(1);
                            sink(timers, &[id]);
                        }
                    }
                }
            }
        }
        self.levels.clear();
        self.sweep.restart();
    }

    #[inline]
    fn next_deadline(&self) -> Option<u64> {
        if self.levels.records == 0 {
            return None;
        }
        let mut wake = self.levels.next;
        for level in 1..LEVELS {
            if let Some((_, begin)) = self.levels.split_begin(level) {
                wake = wake.min(begin.max(self.levels.elapsed + 1));
            }
        }
        Some(wake)
    }

    fn spans<T: Timers>(&self, timers: &T, now: u64, edges: &[u64], show: impl FnMut(Span)) {
        self.levels.spans(timers, now, edges, show);
    }

    fn maintain<T: Timers>(&mut self, timers: &mut T, budget: u32) -> bool {
        if self.has_garbage() {
            self.sweep(timers, budget);
            self.has_garbage() || self.sweep.has_kept()
        } else {
            self.sweep.shrink(budget)
        }
    }

    fn elapsed(&self) -> u64 {
        self.levels.elapsed
    }

    fn len(&self) -> usize {
        self.timers
    }

    fn bytes(&self) -> usize {
        self.levels.bytes() + self.sweep.bytes()
    }

    fn validate<T: Timers>(&self, timers: &T) {
        let live = self.levels.validate(timers);
        assert!(
            live >= self.len(),
            "{live} live records, {} timers",
            self.len()
        );
    }
}
