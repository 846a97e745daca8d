//! Sampling: ten times a second, twenty random entries; as long as many of them are dead, twenty
//! more.
//!
//! Redis and its kin find expired keys so. A key that is told costs O(1) and four bytes of a list
//! to draw from. A call costs twenty looks when little is dead, and up to a quarter of the
//! processor when much is. There is no bound on how late an entry is found: while fewer than one in
//! ten of all are dead, at most a few hundred are looked at in a second, however many there are. So
//! a tenth of the memory may be dead for as long as it likes, and more where entries fall due
//! faster than the quarter of the processor finds them.
//!
//! The numbers are those of Redis 6 and later at its default effort: 20 a round, another round
//! above 10 % (25 % before), 25 ms of each 100 at most, the clock read every 16 rounds. The 25 ms
//! bound the removal as well: after those rounds the owner removes what they found before the clock
//! is read, so a call runs over by 16 rounds and their removal at most. What the owner frees once
//! others have their turn again is not in it. Redis walks on with a cursor where this draws at
//! random, as Redis itself did before; the expected finds are the same. Its fast cycle between
//! commands and its looks at keys that are being read are left out.

use tidewheel_timer::Timer;

use super::{Entries, Expiry, Left};
use crate::rng::Rng;

const EVERY_MS: u64 = 100;
const ROUND: usize = 20;
/// More dead than this part of a round, in percent, ask for another round.
const DEAD_PERCENT: usize = 10;
const ROUNDS_PER_LOOK: u32 = 16;
const CAP_NS: u64 = 25_000_000;

/// Looks at random entries, ten times a second.
#[derive(Debug)]
pub(crate) struct Sampling {
    /// Every entry with a deadline; an entry's registration is its index here.
    ids: Vec<u32>,
    rng: Rng,
    /// The clock by which a call ends after 25 ms; where it stands still, a call ends by itself.
    clock_ns: fn() -> u64,
    next_ms: u64,
    /// The time at which the unfinished call began.
    began_ns: Option<u64>,
}

impl Sampling {
    pub(crate) fn new(now_ms: u64, seed: u64, clock_ns: fn() -> u64) -> Self {
        Self {
            ids: Vec::new(),
            rng: Rng::new(seed),
            clock_ns,
            next_ms: now_ms.saturating_add(EVERY_MS),
            began_ns: None,
        }
    }

    fn remove<E: Entries>(&mut self, entries: &mut E, at: usize) {
        self.ids.swap_remove(at);
        if let Some(&moved) = self.ids.get(at) {
            entries.set_registration(moved, at as u32);
        }
    }

    /// True if enough of a round was dead to look on.
    fn round<E: Entries>(&mut self, entries: &mut E, now_ms: u64, due: &mut Vec<u32>) -> bool {
        let looks = ROUND.min(self.ids.len());
        let mut dead = 0;
        for _ in 0..looks {
            let at = self.rng.below(self.ids.len() as u64) as usize;
            let id = self.ids[at];
            if entries.timer(id).is_some_and(|t| t.deadline <= now_ms) {
                self.remove(entries, at);
                entries.clear(id);
                due.push(id);
                dead += 1;
            }
        }
        dead * 100 > looks * DEAD_PERCENT
    }
}

impl<E: Entries> Expiry<E> for Sampling {
    fn insert(&mut self, entries: &mut E, id: u32, _: u64, _: u64) {
        entries.set_registration(id, self.ids.len() as u32);
        self.ids.push(id);
    }

    fn reschedule(&mut self, _: &mut E, _: u32, _: Timer, _: u64, _: u64) {}

    fn cancel(&mut self, entries: &mut E, _: u32, old: Timer) {
        self.remove(entries, old.registration as usize);
    }

    fn advance(&mut self, entries: &mut E, now_ms: u64, _: u32, due: &mut Vec<u32>) -> Left {
        let clock_ns = self.clock_ns;
        let began_ns = match self.began_ns.take() {
            // What was found before has been removed by now.
            Some(began_ns) if clock_ns().saturating_sub(began_ns) > CAP_NS => return Left::Nothing,
            Some(began_ns) => began_ns,
            None if now_ms < self.next_ms => return Left::Nothing,
            None => {
                self.next_ms = now_ms.saturating_add(EVERY_MS);
                clock_ns()
            }
        };
        for _ in 0..ROUNDS_PER_LOOK {
            if !self.round(entries, now_ms, due) {
                return Left::Nothing;
            }
        }
        self.began_ns = Some(began_ns);
        Left::Unfinished
    }

    fn wake(&self) -> Option<u64> {
        Some(self.next_ms)
    }

    fn bytes(&self) -> usize {
        self.ids.capacity() * size_of::<u32>()
    }
}
