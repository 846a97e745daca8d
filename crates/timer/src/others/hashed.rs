//! One level with rounds: the classic hashed timing wheel.
//!
//! An example: with 64 slots, a timer due at tick 70 is in slot 70 mod 64 = 6. The hand comes to
//! slot 6 at tick 6 for the first time, finds that the timer has a round to go, and leaves it
//! there. It fires at tick 70.
//!
//! The wheel is simple, and good when most deadlines lie within one turn. Its price: a timer that
//! lies `r` turns ahead is touched `r` times, and `next_deadline` asks for a wake-up in each of
//! those turns.
//!
//! As in the hierarchical wheel, a timer that is cancelled or moved later leaves its record where
//! it is. A record's 32 bits tell its tick within 2^31 ticks of the position. A timer further ahead
//! is registered 2^30 ticks ahead, and filed again when it is met there.
//!
//! Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (1987), scheme 6.

use alloc::vec;
use alloc::vec::Vec;

use crate::marks::Marks;
use crate::pool::{NIL, Pool};
use crate::queue::{Progress, Span, Timer, TimerQueue, Timers};

/// Furthest tick ahead that a record is registered for.
const HORIZON: u64 = 1 << 30;

/// Records a chunk holds.
const CHUNK_RECORDS: usize = 15;

/// Nobody asks a chunk for its chain.
const CHAIN: u16 = 0;

/// This many dead records are tolerated, even beside fewer living ones.
const DEAD_FLOOR: usize = 1024;
/// One more dead record is tolerated for every 16 slots, so that looking through the slots is worth
/// it.
const DEAD_SLOTS: usize = 16;

/// A timer's id and the low 32 bits of the tick that it is registered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Record {
    id: u32,
    tick: u32,
}

/// A single-level timing wheel with rounds over timers that somebody else owns.
#[derive(Debug)]
pub struct HashedWheel {
    heads: Vec<u32>,
    occupied: Vec<u64>,
    pool: Pool<Record, CHUNK_RECORDS>,
    elapsed: u64,
    /// The latest clock seen, never before `elapsed`.
    latest: u64,
    /// Records that were due when they were filed.
    due: u32,
    /// The rest of the slot of `elapsed`, whose visit ran out of budget or has not begun.
    visiting: u32,
    records: usize,
    dead: usize,
    /// Before this position, no record is looked for beyond the turn.
    scan_at: u64,
}

impl HashedWheel {
    /// An empty wheel of `slots` slots that stands at `now`.
    ///
    /// # Panics
    ///
    /// When `slots` is not a power of two between 64 and 2^24.
    #[must_use]
    pub fn new(slots: usize, now: u64) -> Self {
        assert!(
            slots.is_power_of_two() && (64..=1 << 24).contains(&slots),
            "slots must be a power of two between 64 and 2^24"
        );
        Self {
            heads: vec![NIL; slots],
            occupied: vec![0; slots / 64],
            pool: Pool::new(),
            elapsed: now,
            latest: now,
            due: NIL,
            visiting: NIL,
            records: 0,
            dead: 0,
            scan_at: now,
        }
    }

    fn slot(&self, tick: u64) -> usize {
        tick as usize & (self.heads.len() - 1)
    }

    fn file(&mut self, deadline: u64, id: u32) -> u32 {
        self.records += 1;
        // A deadline that has passed registers for the position: 32 bits do not tell the far past
        // from the future.
        let tick = deadline.clamp(self.elapsed, self.elapsed.saturating_add(HORIZON));
        let record = Record {
            id,
            tick: tick as u32,
        };
        if tick == self.elapsed {
            self.pool.push(&mut self.due, CHAIN, record);
        } else {
            self.push(tick, record);
        }
        record.tick
    }

    fn push(&mut self, tick: u64, record: Record) {
        let slot = self.slot(tick);
        self.pool.push(&mut self.heads[slot], CHAIN, record);
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// Ticks from `elapsed + 1` to the next occupied slot.
    fn next_occupied(&self) -> Option<u64> {
        let words = self.occupied.len();
        let from = self.slot(self.elapsed.wrapping_add(1));
        let (word, bit) = (from / 64, from % 64);
        let first = self.occupied[word] >> bit;
        if first != 0 {
            return Some(u64::from(first.trailing_zeros()));
        }
        (1..=words).find_map(|i| {
            let bits = self.occupied[(word + i) % words];
            (bits != 0).then(|| (i * 64 - bit) as u64 + u64::from(bits.trailing_zeros()))
        })
    }

    fn for_each_record(&self, mut f: impl FnMut(Record)) {
        for &head in self.heads.iter().chain([&self.due, &self.visiting]) {
            let mut at = head;
            while at != NIL {
                let chunk = self.pool.chunk(at);
                chunk.records().iter().for_each(|&record| f(record));
                at = chunk.next;
            }
        }
    }

    /// The full tick of a record: within 2^31 of the position, on either side.
    fn tick_of(&self, low: u32) -> u64 {
        let ahead = low.wrapping_sub(self.elapsed as u32) as i32;
        self.elapsed.saturating_add_signed(i64::from(ahead))
    }

    /// Returns whether dead records outnumber the living by so much that dropping them costs O(1)
    /// for each.
    fn has_garbage(&self) -> bool {
        self.dead > self.records / 2 + DEAD_FLOOR + self.heads.len() / DEAD_SLOTS
    }

    /// Drops every dead record, and of those that look alike all but one. O(n + slots).
    fn sweep<T: Timers>(&mut self, timers: &T) {
        let mut met = Marks::new();
        for word in 0..self.occupied.len() {
            let mut bits = self.occupied[word];
            while bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                self.heads[slot] = self.living(timers, &mut met, self.heads[slot]);
                if self.heads[slot] == NIL {
                    self.occupied[word] &= !(1 << (slot % 64));
                }
            }
        }
        self.due = self.living(timers, &mut met, self.due);
        self.visiting = self.living(timers, &mut met, self.visiting);
    }

    /// Takes a chain and returns one of its live records.
    fn living<T: Timers>(&mut self, timers: &T, met: &mut Marks, mut chain: u32) -> u32 {
        let mut kept = NIL;
        while chain != NIL {
            for &record in self.pool.pop(&mut chain, u32::MAX).records() {
                let is_live = timers
                    .timer(record.id)
                    .is_some_and(|t| t.registration == record.tick);
                // Within the horizon equal bits are the same tick.
                if is_live && met.insert(record.id) {
                    self.pool.push(&mut kept, CHAIN, record);
                } else {
                    self.records -= 1;
                    self.count_dropped();
                }
            }
        }
        kept
    }

    /// A dead record has been dropped.
    fn count_dropped(&mut self) {
        debug_assert!(self.dead > 0, "more records were dropped than died");
        self.dead = self.dead.saturating_sub(1);
    }

    /// Moves the position to the next tick worth a visit; `None` when that lies after `now`.
    fn step(&mut self, now: u64) -> Option<()> {
        let mut tick = self
            .elapsed
            .checked_add(1)?
            .checked_add(self.next_occupied()?)?;
        let turn = self.heads.len() as u64;
        if now.saturating_sub(self.elapsed) >= turn && self.elapsed >= self.scan_at {
            // More than a turn behind: look for the earliest record instead of going round. Both
            // are O(n), so do it once a turn at most.
            let mut earliest = u64::MAX;
            self.for_each_record(|record| earliest = earliest.min(self.tick_of(record.tick)));
            tick = tick.max(earliest);
            if tick <= now {
                self.scan_at = tick.saturating_add(turn);
            }
        }
        if tick > now {
            return None;
        }
        self.elapsed = tick;
        let slot = self.slot(tick);
        self.visiting = core::mem::replace(&mut self.heads[slot], NIL);
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        Some(())
    }

    /// Handles records of the due chain or of the visited slot.
    fn visit<T: Timers>(
        &mut self,
        timers: &mut T,
        now: u64,
        left: &mut u32,
        progress: &mut Progress,
        sink: &mut impl FnMut(&mut T, &[u32]),
    ) {
        while *left > 0 && (self.due != NIL || self.visiting != NIL) {
            let chain = if self.due != NIL {
                &mut self.due
            } else {
                &mut self.visiting
            };
            let taken = self.pool.pop(chain, *left);
            *left -= taken.records().len() as u32;
            let mut due = [0; CHUNK_RECORDS];
            let mut count = 0;
            for &record in taken.records() {
                let tick = self.tick_of(record.tick);
                if tick > self.elapsed {
                    // It has rounds to go.
                    self.push(tick, record);
                    continue;
                }
                self.records -= 1;
                let timer = timers
                    .timer(record.id)
                    .filter(|t| t.registration == record.tick);
                match timer {
                    Some(timer) if timer.deadline > now => {
                        let registration = self.file(timer.deadline, record.id);
                        timers.set_registration(record.id, registration);
                        progress.moved += 1;
                    }
                    Some(timer) if timer.deadline > self.elapsed => {
                        // Moved later, yet due in this call: keep the order of deadlines.
                        let registration = self.file(timer.deadline, record.id);
                        timers.set_registration(record.id, registration);
                        progress.moved += 1;
                    }
                    Some(_) if !due[..count].contains(&record.id) => {
                        due[count] = record.id;
                        count += 1;
                    }
                    _ => {
                        self.count_dropped();
                        progress.moved += 1;
                    }
                }
            }
            if count > 0 {
                progress.fired += count as u32;
                sink(timers, &due[..count]);
            }
        }
    }
}

impl TimerQueue for HashedWheel {
    fn insert<T: Timers>(&mut self, timers: &mut T, id: u32, deadline: u64, now: u64) {
        // Before the new record is filed: the owner may not show its timer yet.
        if self.has_garbage() {
            self.sweep(timers);
        }
        self.latest = self.latest.max(now);
        if self.records == 0 {
            self.elapsed = self.latest;
        }
        let registration = self.file(deadline, id);
        timers.set_registration(id, registration);
    }

    fn reschedule<T: Timers>(
        &mut self,
        timers: &mut T,
        id: u32,
        old: Timer,
        deadline: u64,
        now: u64,
    ) {
        // The record will be met in time and re-file itself.
        if deadline >= self.tick_of(old.registration) {
            return;
        }
        self.dead += 1;
        self.insert(timers, id, deadline, now);
    }

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
        loop {
            self.visit(timers, now, &mut left, &mut progress, &mut sink);
            if self.due != NIL || self.visiting != NIL {
                progress.backlog = true;
                break;
            }
            if left == 0 && self.next_deadline().is_some_and(|next| next <= now) {
                progress.backlog = true;
                break;
            }
            if self.step(now).is_none() {
                self.elapsed = now;
                break;
            }
        }
        progress.next_deadline = self.next_deadline();
        progress
    }

    fn drain<T: Timers>(&mut self, timers: &mut T, mut sink: impl FnMut(&mut T, &[u32])) {
        let mut ids = Vec::new();
        self.for_each_record(|record| ids.push(record));
        for record in ids {
            if timers
                .timer(record.id)
                .is_some_and(|t| t.registration == record.tick)
            {
                sink(timers, &[record.id]);
            }
        }
        *self = Self {
            latest: self.latest,
            ..Self::new(self.heads.len(), self.elapsed)
        };
    }

    fn next_deadline(&self) -> Option<u64> {
        if self.due != NIL || self.visiting != NIL {
            return Some(self.elapsed);
        }
        let distance = self.next_occupied()?;
        Some(self.elapsed.saturating_add(1).saturating_add(distance))
    }

    /// O(n): a slot does not know its rounds.
    fn spans<T: Timers>(&self, _: &T, now: u64, _: &[u64], mut show: impl FnMut(Span)) {
        self.for_each_record(|record| {
            show(Span::one(self.tick_of(record.tick).saturating_sub(now)));
        });
    }

    /// Visits every slot once when dead records outnumber the living; `budget` is not divided.
    fn maintain<T: Timers>(&mut self, timers: &mut T, _budget: u32) -> bool {
        if self.has_garbage() {
            self.sweep(timers);
        }
        false
    }

    fn elapsed(&self) -> u64 {
        self.elapsed
    }

    fn len(&self) -> usize {
        self.records.saturating_sub(self.dead)
    }

    fn bytes(&self) -> usize {
        self.pool.bytes() + self.heads.capacity() * 4 + self.occupied.capacity() * 8
    }

    fn validate<T: Timers>(&self, timers: &T) {
        let mut records = 0;
        let mut live = 0;
        self.for_each_record(|record| {
            records += 1;
            if let Some(t) = timers
                .timer(record.id)
                .filter(|t| t.registration == record.tick)
            {
                live += 1;
                let tick = self.tick_of(record.tick);
                assert!(
                    tick <= t.deadline.max(self.elapsed),
                    "a record lies after its deadline"
                );
            }
        });
        assert_eq!(records, self.records, "record count");
        assert!(
            live >= self.len(),
            "{live} live records, {} timers",
            self.len()
        );
        for (slot, &head) in self.heads.iter().enumerate() {
            let occupied = self.occupied[slot / 64] >> (slot % 64) & 1 == 1;
            assert_eq!(head != NIL, occupied, "occupied bit of slot {slot}");
        }
    }
}
