//! Sampling: ten times a second, twenty random entries; as long as many of them are dead, twenty more.
//!
//! Redis and its kin find expired keys so. A key that is told costs O(1) and four bytes of a list to
//! draw from. A call costs twenty looks when little is dead, and up to a quarter of the processor when
//! much is. There is no bound on how late an entry is found: while fewer than one in ten of all are
//! dead, at most a few hundred are looked at in a second, however many there are. So a tenth of the
//! memory may be dead for as long as it likes, and more where entries fall due faster than the
//! quarter of the processor finds them.
//!
//! The numbers are those of Redis 6 and later at its default effort: 20 a round, another round above
//! 10 % (25 % before), 25 ms of each 100 at most, the clock read every 16 rounds. Redis walks on with a
//! cursor where this draws at random, as Redis itself did before; the expected finds are the same. Its
//! fast cycle between commands and its looks at keys that are being read are left out. The 25 ms end the
//! search alone here; what a cache does with what was found comes on top.

use tidewheel_timer::Timer;

use super::{Entries, Expiry};
use crate::rng::Rng;

const EVERY_MS: u64 = 100;
const ROUND: usize = 20;
/// Of a round, in percent: more dead than this ask for another round.
const DEAD_PERCENT: usize = 10;
const ROUNDS_PER_LOOK: u32 = 16;
const CAP_NS: u64 = 25_000_000;

/// What sampling needs of the world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) seed: u64,
    /// The clock by which a call ends after 25 ms, in nanoseconds; without one it ends by itself.
    pub(crate) clock_ns: Option<fn() -> u64>,
}

/// Looks at random entries, ten times a second.
#[derive(Debug)]
pub(super) struct Sampling {
    /// Every entry with a deadline; an entry's registration is its index here.
    ids: Vec<u32>,
    rng: Rng,
    clock_ns: Option<fn() -> u64>,
    next_ms: u64,
}

impl Sampling {
    pub(super) fn new(now_ms: u64, settings: Settings) -> Self {
        Self {
            ids: Vec::new(),
            rng: Rng::new(settings.seed),
            clock_ns: settings.clock_ns,
            next_ms: now_ms.saturating_add(EVERY_MS),
        }
    }

    fn remove<E: Entries>(&mut self, entries: &mut E, at: usize) {
        self.ids.swap_remove(at);
        if let Some(&moved) = self.ids.get(at) {
            entries.set_registration(moved, at as u32);
        }
    }

    /// Whether enough of a round was dead to look on.
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

    fn advance(&mut self, entries: &mut E, now_ms: u64, _: u32, due: &mut Vec<u32>) -> bool {
        if now_ms < self.next_ms {
            return false;
        }
        self.next_ms = now_ms.saturating_add(EVERY_MS);
        let from_ns = self.clock_ns.map(|clock_ns| clock_ns());
        let mut rounds = 0;
        while self.round(entries, now_ms, due) {
            rounds += 1;
            if rounds % ROUNDS_PER_LOOK == 0
                && let (Some(clock_ns), Some(from_ns)) = (self.clock_ns, from_ns)
                && clock_ns().saturating_sub(from_ns) > CAP_NS
            {
                break;
            }
        }
        false
    }

    fn wake(&self) -> Option<u64> {
        Some(self.next_ms)
    }

    fn bytes(&self) -> usize {
        self.ids.capacity() * size_of::<u32>()
    }
}
