//! Engine time from clock time: freeze, resume and shift every deadline by changing one number.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maps a clock that only runs forward to engine time, for many threads.
///
/// Deadlines are engine time. Freezing stops engine time, so nothing expires ("the origin is
/// down"); resuming goes on where it stopped, so every deadline has moved by the pause. Each is
/// O(1), whatever the number of timers. The unit is the caller's: ticks, or nanoseconds. Readings
/// lie below 2^63.
///
/// ```
/// use tidewheel_time::Timeline;
///
/// let time = Timeline::new();
/// assert_eq!(time.now(1_000), 1_000);
/// time.freeze(|| 1_000);
/// assert_eq!(time.now(5_000), 1_000);
/// time.resume(|| 5_000);
/// assert_eq!(time.now(5_010), 1_010);
/// ```
#[derive(Debug, Default)]
pub struct Timeline {
    /// The engine time's lag behind the clock, times two; or, with the lowest bit set, the engine
    /// time at which it stands still.
    word: AtomicU64,
    /// Held while the word is changed.
    control: Mutex<Control>,
}

/// The parts of the word.
#[derive(Debug, Default)]
struct Control {
    /// Engine time is clock time minus this.
    behind: u64,
    /// The clock's reading at the freeze.
    frozen_at: Option<u64>,
}

/// Engine time at a reading of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// It runs.
    Runs(u64),
    /// It stands still.
    Stands(u64),
}

/// The greatest number that the word has room for.
const LAST: u64 = u64::MAX >> 1;

/// The meaning of the word.
enum TimelineState {
    Behind(u64),
    Standing(u64),
}

impl TimelineState {
    #[inline(always)]
    const fn of(word: u64) -> Self {
        if word & 1 == 0 {
            Self::Behind(word >> 1)
        } else {
            Self::Standing(word >> 1)
        }
    }
}

impl Timeline {
    /// Engine time that equals clock time.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            control: Mutex::new(Control {
                behind: 0,
                frozen_at: None,
            }),
        }
    }

    /// Engine time at a clock reading, and whether it runs. Costs one load; saturates at 0.
    ///
    /// A freeze or a shift between the reading and this call counts as before the reading.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, clock: u64) -> Engine {
        match TimelineState::of(self.word.load(Relaxed)) {
            TimelineState::Behind(behind) => Engine::Runs(clock.saturating_sub(behind)),
            TimelineState::Standing(at) => Engine::Stands(at),
        }
    }

    /// Engine time at a clock reading.
    #[inline]
    #[must_use]
    pub fn now(&self, clock: u64) -> u64 {
        match self.at(clock) {
            Engine::Runs(now) | Engine::Stands(now) => now,
        }
    }

    /// Reads the clock by `read` at a moment with a known offset.
    ///
    /// A thread that sleeps through a freeze between its reading and its look at the offset reads
    /// again: so engine time never goes back, for nobody.
    ///
    /// # Errors
    ///
    /// The engine time, if it stands still.
    #[inline(always)]
    pub fn read<T>(&self, read: impl Fn() -> T) -> Result<(T, u64), u64> {
        loop {
            let word = self.word.load(Acquire);
            let behind = match TimelineState::of(word) {
                TimelineState::Behind(behind) => behind,
                TimelineState::Standing(at) => return Err(at),
            };
            let clock = read();
            // The offset only grows, so an equal word is the same one.
            if self.word.load(Acquire) == word {
                return Ok((clock, behind));
            }
        }
    }

    /// A number that engine time has not passed, where `read` returns one that the clock has not
    /// passed. Cheaper than [`read`](Self::read): the offset only grows, so the one from before the
    /// reading never gives too little.
    ///
    /// The result wraps where the clock reads less than the offset.
    #[inline(always)]
    pub fn bound(&self, read: impl FnOnce() -> u64) -> u64 {
        match self.word.load(Acquire) {
            0 => read(),
            word => Self::bound_apart(word, read),
        }
    }

    /// As [`bound`](Self::bound), of a timeline that was frozen or moved once.
    #[cold]
    #[inline(never)]
    fn bound_apart(word: u64, read: impl FnOnce() -> u64) -> u64 {
        match TimelineState::of(word) {
            TimelineState::Behind(behind) => read().wrapping_sub(behind),
            TimelineState::Standing(at) => at,
        }
    }

    /// The clock's reading at which engine time reaches a deadline. While it stands still: one that
    /// has passed for a deadline that was reached before, `u64::MAX` for the others.
    #[must_use]
    pub fn clock_of(&self, deadline: u64) -> u64 {
        match TimelineState::of(self.word.load(Relaxed)) {
            TimelineState::Behind(behind) => deadline.saturating_add(behind),
            TimelineState::Standing(at) if deadline <= at => deadline,
            TimelineState::Standing(_) => u64::MAX,
        }
    }

    /// Returns whether engine time stands still.
    #[inline]
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.word.load(Relaxed) & 1 == 1
    }

    /// Stops engine time. Does nothing when it is stopped already.
    pub fn freeze(&self, clock: impl FnOnce() -> u64) {
        let mut control = self.lock();
        control.frozen_at.get_or_insert_with(clock);
        self.publish(&control);
    }

    /// Lets engine time go on from where it stopped. Returns how long it stood still: 0 if it did
    /// not, or if the clock reads earlier than at the freeze.
    pub fn resume(&self, clock: impl FnOnce() -> u64) -> u64 {
        let mut control = self.lock();
        let Some(frozen_at) = control.frozen_at.take() else {
            return 0;
        };
        let pause = clock().saturating_sub(frozen_at);
        control.behind = control.behind.saturating_add(pause);
        self.publish(&control);
        pause
    }

    /// Moves every deadline later by `by`, by holding engine time back; frozen or not.
    pub fn shift(&self, by: u64) {
        let mut control = self.lock();
        control.behind = control.behind.saturating_add(by);
        self.publish(&control);
    }

    fn publish(&self, control: &Control) {
        let word = match control.frozen_at {
            Some(at) => at.saturating_sub(control.behind).min(LAST) << 1 | 1,
            None => control.behind.min(LAST) << 1,
        };
        self.word.store(word, Release);
    }

    fn lock(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_frozen_timeline_stands_still_and_goes_on_where_it_stopped() {
        let time = Timeline::new();
        assert_eq!(time.at(1000), Engine::Runs(1000));
        time.freeze(|| 1000);
        time.freeze(|| 1100);
        assert!(time.is_frozen());
        assert_eq!(time.at(5000), Engine::Stands(1000));
        assert_eq!(time.clock_of(1500), u64::MAX);
        assert_eq!(time.clock_of(999), 999, "what was dead before stays due");
        assert_eq!(time.resume(|| 5000), 4000);
        assert_eq!(time.resume(|| 6000), 0);
        assert_eq!(time.at(5010), Engine::Runs(1010));
        assert_eq!(time.clock_of(1500), 5500);
        time.freeze(|| 5010);
        assert_eq!(time.resume(|| 5000), 0, "the clock went back");
        assert_eq!(time.now(5010), 1010);
    }

    #[test]
    fn second_freeze_does_not_move_the_first() {
        let time = Timeline::new();
        time.freeze(|| 100);
        time.freeze(|| 300);
        assert_eq!(time.now(400), 100);
        assert_eq!(time.resume(|| 500), 400);
        assert_eq!(time.now(501), 101);
        assert!(!time.is_frozen());
    }

    #[test]
    fn resume_without_a_freeze_does_nothing() {
        let time = Timeline::new();
        time.shift(5);
        assert_eq!(time.resume(|| 1_000), 0);
        assert_eq!(time.now(1_000), 995);
    }

    #[test]
    fn pauses_and_shifts_add_up_in_any_order() {
        let time = Timeline::new();
        time.shift(10);
        time.freeze(|| 1_000);
        assert_eq!(time.now(1_000), 990);
        time.shift(7);
        assert_eq!(time.now(2_000), 983);
        assert_eq!(time.resume(|| 3_000), 2_000);
        time.shift(3);
        time.freeze(|| 4_000);
        assert_eq!(time.resume(|| 4_500), 500);
        for clock in [4_500, 10_000] {
            assert_eq!(time.now(clock), clock - 10 - 7 - 3 - 2_000 - 500);
        }
    }

    /// A shift back beyond the start must not be cut short, frozen or not. Engine time stays at 0
    /// until the clock has made up for it.
    #[test]
    fn shift_beyond_the_start_is_not_lost_while_frozen() {
        let (frozen, running) = (Timeline::new(), Timeline::new());
        frozen.freeze(|| 100);
        frozen.shift(500);
        frozen.resume(|| 1_000);
        running.shift(500 + 900);
        for clock in [1_000, 1_400, 1_401, 2_000] {
            assert_eq!(frozen.now(clock), running.now(clock), "at {clock}");
        }
        assert_eq!(frozen.now(1_450), 50);
    }

    #[test]
    fn timeline_saturates_at_both_ends_of_time() {
        let time = Timeline::new();
        time.shift(u64::MAX);
        time.shift(1);
        assert_eq!(time.now(u64::MAX >> 1), 0);
        time.freeze(|| 5);
        assert_eq!(time.resume(|| u64::MAX), u64::MAX - 5);
        assert_eq!(time.now(u64::MAX >> 1), 0);
        assert_eq!(Timeline::new().now(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_clock_that_runs_backwards_moves_no_deadline_earlier() {
        let time = Timeline::new();
        time.freeze(|| 1_000);
        assert_eq!(time.now(900), 1_000, "frozen");
        // As if it had not been frozen: no deadline comes nearer than it was.
        assert_eq!(time.resume(|| 900), 0);
        assert_eq!(time.now(1_000), 1_000);
        time.freeze(|| 800);
        assert_eq!(time.now(2_000), 800);
        assert_eq!(time.resume(|| 2_000), 1_200);
        assert_eq!(time.now(2_000), 800);
    }

    /// A reading took the clock before a freeze and the offset after it. So it was too early by the
    /// length of the freeze.
    #[test]
    fn a_freeze_in_the_middle_of_a_reading_turns_no_time_back() {
        let time = Timeline::new();
        let hand = Cell::new(100);
        let readings = Cell::new(0);
        let (clock, behind) = time
            .read(|| {
                let shown = hand.get();
                readings.set(readings.get() + 1);
                if readings.get() == 1 {
                    time.freeze(|| hand.get());
                    hand.set(160);
                    time.resume(|| hand.get());
                }
                shown
            })
            .expect("time goes on");
        assert_eq!(readings.get(), 2, "the first reading is too old");
        assert_eq!(clock - behind, 100);
    }

    #[test]
    fn a_bound_is_not_before_engine_time_though_that_stood_still_meanwhile() {
        let time = Timeline::new();
        let bound = time.bound(|| {
            time.freeze(|| 100);
            time.resume(|| 160);
            160
        });
        assert!(bound >= time.now(160));
        assert_eq!(time.now(160), 100);
        assert_eq!(time.bound(|| 170), 110);
        assert_eq!(time.bound(|| 59), u64::MAX, "before the beginning");
        time.freeze(|| 200);
        assert_eq!(time.bound(|| 300), 140);
    }
}
