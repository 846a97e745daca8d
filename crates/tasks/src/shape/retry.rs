//! A task that failed runs again: back-off with jitter, and the last attempt.

use std::time::Duration;

use tidewheel_time::mix;

/// The number of attempts of a task, and the waits between them.
///
/// The first retry waits for [`base`](Self::base). Each further one waits [`factor`](Self::factor)
/// times as long, up to [`cap`](Self::cap). Of each wait a random part is left out,
/// [`jitter`](Self::jitter) of it at most, so that tasks that failed together do not come back
/// together. By default there are 10 attempts, the first wait is a second, each further one twice
/// as long, up to five minutes, and a fifth of a wait may be left out.
///
/// ```
/// use std::time::Duration;
/// use tidewheel_tasks::Retry;
///
/// let retry = Retry::default()
///     .attempts(5)
///     .base(Duration::from_secs(2))
///     .factor(3.0)
///     .cap(Duration::from_secs(60))
///     .jitter(0.0);
/// let waits: Vec<u64> = (1..5).map(|attempt| retry.delay(attempt, 0).as_secs()).collect();
/// assert_eq!(waits, [2, 6, 18, 54]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retry {
    attempts: u32,
    base: Duration,
    factor: f64,
    cap: Duration,
    jitter: f64,
}

impl Default for Retry {
    /// Ten attempts; waits of 1, 2, 4 … seconds, 5 minutes at most, shortened by up to a fifth.
    fn default() -> Self {
        Self {
            attempts: 10,
            base: Duration::from_secs(1),
            factor: 2.0,
            cap: Duration::from_secs(300),
            jitter: 0.2,
        }
    }
}

impl Retry {
    /// A single attempt: a task that fails is dead at once.
    #[must_use]
    pub fn never() -> Self {
        Self::default().attempts(1)
    }

    /// Attempts until a task is dead, the first included; 0 counts as 1. `u32::MAX` for a task
    /// that is never dead.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// The wait before the second attempt.
    #[must_use]
    pub fn base(mut self, base: Duration) -> Self {
        self.base = base;
        self
    }

    /// Sets by how much each wait is longer than the one before: 1 or more.
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        // What is not a number counts as 1.
        self.factor = factor.max(1.0);
        self
    }

    /// The longest wait.
    #[must_use]
    pub fn cap(mut self, cap: Duration) -> Self {
        self.cap = cap;
        self
    }

    /// The greatest part of a wait that is left out at random: from 0 to 1.
    #[must_use]
    pub fn jitter(mut self, jitter: f64) -> Self {
        // What is not a number counts as 0.
        self.jitter = if jitter > 0.0 { jitter.min(1.0) } else { 0.0 };
        self
    }

    /// The wait after an attempt that failed, counted from 1. The same `seed` gives the same
    /// jitter; a worker's seed is the claim's fence.
    #[must_use]
    pub fn delay(&self, attempt: u32, seed: u64) -> Duration {
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let longest = self.cap.as_secs_f64();
        let whole = self.base.as_secs_f64() * self.factor.powi(exponent);
        // A product of nothing and infinity is no number: the least of it and the cap is the cap.
        let whole = if self.base.is_zero() {
            0.0
        } else {
            whole.min(longest)
        };
        let random =
            (mix(seed ^ u64::from(attempt).rotate_left(32)) >> 11) as f64 / (1u64 << 53) as f64;
        // What is too long to be said is the cap.
        let wait = Duration::try_from_secs_f64(whole * (1.0 - self.jitter * random));
        wait.unwrap_or(self.cap).min(self.cap)
    }

    /// True if no attempt comes after this one.
    #[must_use]
    pub fn is_last(&self, attempt: u32) -> bool {
        attempt >= self.attempts && self.attempts < u32::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_cap_whatever_the_numbers() {
        let retry = Retry::default().jitter(0.0);
        let waits: Vec<u64> = (1..12).map(|n| retry.delay(n, 7).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        let wild = Retry::default()
            .factor(f64::INFINITY)
            .cap(Duration::MAX)
            .jitter(0.0);
        assert_eq!(wild.delay(3, 1), Duration::MAX);
        for factor in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
            for base in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
                let retry = Retry::default().factor(factor).base(base).jitter(f64::NAN);
                for attempt in [0, 1, 2, u32::MAX] {
                    let wait = retry.delay(attempt, u64::MAX);
                    assert!(wait <= Duration::from_secs(300), "{factor} {base:?}");
                }
            }
        }
    }

    #[test]
    fn jitter_shortens_and_differs_from_task_to_task() {
        let retry = Retry::default().jitter(0.5).cap(Duration::from_secs(8));
        let waits: Vec<f64> = (0..1000)
            .map(|id| retry.delay(9, id).as_secs_f64())
            .collect();
        assert!(waits.iter().all(|wait| (4.0..=8.0).contains(wait)));
        let mean = waits.iter().sum::<f64>() / 1000.0;
        assert!((5.8..6.2).contains(&mean), "{mean}");
    }

    #[test]
    fn the_last_attempt_is_the_one_that_was_said() {
        assert!(Retry::never().is_last(1) && Retry::default().attempts(0).is_last(1));
        let three = Retry::default().attempts(3);
        assert!(!three.is_last(2) && three.is_last(3) && three.is_last(4));
        assert!(!Retry::default().attempts(u32::MAX).is_last(u32::MAX));
    }
}
