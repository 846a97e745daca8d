//! This module estimates the engine's time without asking: a lower bound that is never ahead of it.
//!
//! A worker asks the engine for its time now and then. Suppose it sends the question at 10.000 by
//! its own monotonic clock, and gets the answer "12:00:00.000" at 10.004. The engine wrote the
//! answer somewhere between. So at 10.004 it is 12:00:00.000 *or later*, and 12:00:00.004 at most.
//! The worker believes the earlier of the two: a task that is due by this bound is due by the
//! engine's clock. Of several answers the one with the latest bound counts.
//!
//! Clocks run at different rates. So a bound that is old is lowered by 100 microseconds for each
//! second of its age.

use std::time::Duration;

use crate::shape::timestamp::Timestamp;

/// A bound is lowered by this part of its age: a ten-thousandth. Crystals differ by less.
const RATE_PART: u32 = 10_000;

/// An offset of the wall clock that is too large: something is wrong with one of the clocks.
const OFFSET_MAX_US: u64 = 1_000_000;

/// One answer of the engine, and when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The time at which the question was sent, by the monotonic clock.
    pub(crate) sent: Duration,
    /// The time at which the answer had come.
    pub(crate) received: Duration,
    /// The engine's time within it.
    pub(crate) engine: Timestamp,
    /// The worker's wall clock when the answer had come.
    pub(crate) wall: Timestamp,
}

/// The engine's clock, as a worker knows it.
#[derive(Debug, Default)]
pub(crate) struct EngineClock {
    best: Option<Answer>,
    /// The engine's time less the wall clock's, in microseconds.
    offset_us: i64,
}

impl EngineClock {
    /// Takes an answer into account.
    pub(crate) fn learn(&mut self, answer: Answer) {
        self.offset_us = answer
            .engine
            .0
            .cast_signed()
            .wrapping_sub(answer.wall.0.cast_signed());
        let latest = answer
            .engine
            .plus(answer.received.saturating_sub(answer.sent));
        let keeps = self.now(answer.received).is_some_and(|bound| {
            // Beyond what the engine says it can be: the engine's clock was set back, or another
            // node answers.
            bound > answer.engine && bound <= latest
        });
        if !keeps {
            self.best = Some(answer);
        }
    }

    /// The engine's time when the monotonic clock shows `at`, or earlier. `None` before the first
    /// answer.
    pub(crate) fn now(&self, at: Duration) -> Option<Timestamp> {
        let best = self.best?;
        let age = at.saturating_sub(best.received);
        let trusted = age - age / RATE_PART;
        let us = u64::try_from(trusted.as_micros()).unwrap_or(u64::MAX);
        Some(Timestamp(best.engine.0.saturating_add(us)))
    }

    /// The estimate of [`now`](Self::now), if the answer is no older than `age`.
    #[cfg(feature = "nats")]
    pub(crate) fn now_if_young(&self, at: Duration, age: Duration) -> Option<Timestamp> {
        let best = self.best?;
        let is_young = at.saturating_sub(best.received) <= age;
        is_young.then(|| self.now(at)).flatten()
    }

    /// The engine's time less the wall clock's, in microseconds.
    pub(crate) fn offset_us(&self) -> i64 {
        self.offset_us
    }

    /// True if the wall clock and the engine's differ by more than a second.
    pub(crate) fn is_skewed(&self) -> bool {
        self.offset_us.unsigned_abs() > OFFSET_MAX_US
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn answer(sent_ms: u64, received_ms: u64, engine_ms: u64) -> Answer {
        Answer {
            sent: MS(sent_ms),
            received: MS(received_ms),
            engine: Timestamp(engine_ms * 1000),
            wall: Timestamp(engine_ms * 1000),
        }
    }

    #[test]
    fn the_bound_is_what_the_engine_said_when_its_answer_came() {
        let mut clock = EngineClock::default();
        assert_eq!(clock.now(MS(5)), None);
        clock.learn(answer(0, 4, 1_000_000));
        assert_eq!(clock.now(MS(4)), Some(Timestamp(1_000_000_000)));
        // A tenth of a millisecond is lost in a second.
        assert_eq!(clock.now(MS(1004)), Some(Timestamp(1_000_999_900)));
    }

    #[test]
    fn the_quickest_answer_counts_until_it_is_old() {
        let mut clock = EngineClock::default();
        // The engine's clock shows 100 s more than ours.
        clock.learn(answer(0, 1, 100_000));
        clock.learn(answer(100, 150, 100_110));
        assert_eq!(clock.now(MS(151)).map(|at| at.0 / 1000), Some(100_149));
        clock.learn(answer(60_000, 60_001, 160_000));
        assert_eq!(clock.now(MS(60_001)), Some(Timestamp(160_000_000)));
    }

    #[test]
    fn an_engine_whose_clock_is_set_back_is_believed() {
        let mut clock = EngineClock::default();
        clock.learn(answer(0, 1, 100_000));
        clock.learn(answer(10, 12, 99_000));
        assert_eq!(clock.now(MS(12)), Some(Timestamp(99_000_000)));
    }

    #[test]
    fn an_offset_of_more_than_a_second_is_told() {
        let mut clock = EngineClock::default();
        for (wall, skewed) in [
            (5_000_000, false),
            (6_000_000, false),
            (6_000_001, true),
            (3_999_999, true),
        ] {
            let mut answer = answer(0, 0, 5000);
            answer.wall = Timestamp(wall);
            clock.learn(answer);
            assert_eq!(clock.is_skewed(), skewed, "{wall}");
        }
        assert_eq!(clock.offset_us(), 1_000_001);
    }
}
