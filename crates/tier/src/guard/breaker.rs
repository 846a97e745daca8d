//! The circuit breaker leaves an engine alone that fails again and again.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidewheel_time::{Moment, nanos};

use crate::engine::EngineError;

/// Failures in a row after which the engine is left alone.
const FAILURES: u32 = 5;

/// The breaker is open for so long, at first, and at most: it doubles with each attempt that fails.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Counts failures in a row. When it is open, one caller at a time tries.
#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// The time from which somebody may try, while it is open.
    open_until: Option<u64>,
}

impl Breaker {
    /// Ok if the engine may be asked now. While the breaker is open, one caller may for the length
    /// of a pause.
    pub(crate) fn admit(&self, now: Moment) -> Result<(), EngineError> {
        let mut state = self.lock();
        match state.open_until {
            Some(until) if now.0 < until => Err(EngineError::LeftAlone),
            Some(_) => {
                let pause = state.pause();
                state.open_until = Some(now.0.saturating_add(pause));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Notes the outcome of a question.
    pub(crate) fn done<T>(&self, result: &Result<T, EngineError>, now: Moment) {
        let mut state = self.lock();
        match result {
            Err(error) if error.is_outage() => {
                state.failures = state.failures.saturating_add(1);
                if state.failures >= FAILURES {
                    state.open_until = Some(now.0.saturating_add(state.pause()));
                }
            }
            _ => *state = State::default(),
        }
    }

    /// True if it is open.
    pub(crate) fn is_open(&self) -> bool {
        self.lock().open_until.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn pause(&self) -> u64 {
        let doublings = self.failures.saturating_sub(FAILURES).min(16);
        let pause = FIRST_PAUSE.saturating_mul(1 << doublings);
        nanos(pause.min(LONGEST_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn an_engine_that_fails_again_and_again_is_left_alone_and_tried_by_one() {
        let breaker = Breaker::default();
        let failed: Result<(), _> = Err(EngineError::TimedOut);
        for _ in 0..FAILURES {
            assert_eq!(breaker.admit(Moment(0)), Ok(()));
            breaker.done(&failed, Moment(0));
        }
        assert_eq!(breaker.admit(Moment(99 * MS)), Err(EngineError::LeftAlone));
        assert_eq!(breaker.admit(Moment(100 * MS)), Ok(()));
        assert!(breaker.admit(Moment(101 * MS)).is_err(), "one tries");
        breaker.done(&failed, Moment(102 * MS));
        assert!(breaker.admit(Moment(300 * MS)).is_err(), "a longer pause");
        assert_eq!(breaker.admit(Moment(302 * MS)), Ok(()));
        breaker.done(&Ok(()), Moment(303 * MS));
        assert!(!breaker.is_open());
    }

    #[test]
    fn an_answer_that_is_an_error_is_no_outage() {
        let breaker = Breaker::default();
        let refused: Result<(), _> = Err(EngineError::Refused("no".into()));
        for _ in 0..100 {
            breaker.done(&refused, Moment(0));
        }
        assert_eq!(breaker.admit(Moment(0)), Ok(()));
    }
}
