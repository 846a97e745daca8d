//! A clock that is moved by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, SystemTime};

use crate::clock::Clock;
use crate::moment::nanos;

/// A clock that is moved by hand. Clones are the same clock, and a move wakes everybody who sleeps
/// by it.
///
/// ```
/// use std::time::Duration;
/// use tidewheel_time::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// clock.advance(Duration::from_millis(1500));
/// assert_eq!(clock.now(), Duration::from_millis(1500));
/// ```
///
/// It shows at most 292 years, and a wall time of at most 584 years after the Unix epoch. There it
/// stands still.
///
/// A program that counts by it counts 34.8 years, from its own first reading on. A move that leads
/// beyond is taken for a clock that was set, and counts as a year: see [`Clock::now`].
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<Hands>);

#[derive(Debug, Default)]
struct Hands {
    nanos: AtomicU64,
    wall_nanos: AtomicU64,
    /// The wakers of the sleepers since the last move: each one once.
    sleepers: Mutex<Vec<Waker>>,
}

/// The last reading of a manual clock, 292 years ahead: differences of two readings have a sign.
const LAST_NANOS: u64 = i64::MAX as u64;

impl ManualClock {
    /// A clock that shows zero; its wall time is the Unix epoch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves both the monotonic and the wall time on, and wakes who sleeps by this clock.
    pub fn advance(&self, by: Duration) {
        for (hand, last) in [(&self.0.nanos, LAST_NANOS), (&self.0.wall_nanos, u64::MAX)] {
            let moved = |at: u64| Some(at.saturating_add(nanos(by)).min(last));
            let _ = hand.fetch_update(SeqCst, SeqCst, moved);
        }
        let sleepers = std::mem::take(&mut *self.0.sleepers());
        sleepers.into_iter().for_each(Waker::wake);
    }

    /// Steps the wall time alone, as an operator or NTP would: to so long after the Unix epoch.
    pub fn set_wall(&self, since_epoch: Duration) {
        self.0.wall_nanos.store(nanos(since_epoch), SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.nanos.load(SeqCst))
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.0.wall_nanos.load(SeqCst))
    }

    fn wake_when_moved(&self, sleeper: &Waker) {
        let mut sleepers = self.0.sleepers();
        if !sleepers.iter().any(|other| other.will_wake(sleeper)) {
            sleepers.push(sleeper.clone());
        }
    }
}

impl Hands {
    fn sleepers(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::Moment;
    use crate::readings::Readings;

    const YEAR: Duration = Duration::from_secs(365 * 86_400);

    fn wall(clock: &ManualClock) -> Duration {
        let since = clock.wall().duration_since(SystemTime::UNIX_EPOCH);
        since.expect("not before it")
    }

    /// It went back by eight years.
    #[test]
    fn a_wall_time_of_more_than_292_years_goes_on() {
        let clock = ManualClock::new();
        clock.set_wall(300 * YEAR);
        clock.advance(YEAR);
        assert_eq!((clock.now(), wall(&clock)), (YEAR, 301 * YEAR));
    }

    #[test]
    fn at_its_last_reading_a_clock_stands_still() {
        let clock = ManualClock::new();
        for by in [292 * YEAR, YEAR, Duration::MAX, YEAR] {
            clock.advance(by);
            clock.set_wall(wall(&clock) + 300 * YEAR);
        }
        assert_eq!(clock.now(), Duration::from_nanos(i64::MAX as u64));
        assert_eq!(wall(&clock), Duration::from_nanos(u64::MAX));
    }

    /// The documentation promises this to programs that count by the clock.
    #[test]
    fn a_move_beyond_all_deadlines_counts_as_a_year() {
        let reach = Duration::from_millis(1 << 40);
        for (by, counted) in [
            (
                reach - Duration::from_nanos(1),
                reach - Duration::from_nanos(1),
            ),
            (reach, YEAR),
            (Duration::MAX, YEAR),
        ] {
            let clock = ManualClock::new();
            let readings = Readings::given(Box::new(clock.clone()));
            clock.advance(by);
            assert_eq!(readings.now(), Moment(nanos(counted)), "{by:?}");
        }
        let clock = ManualClock::new();
        clock.advance(100 * YEAR);
        let readings = Readings::given(Box::new(clock.clone()));
        clock.advance(30 * YEAR);
        clock.advance(4 * YEAR);
        assert_eq!(
            readings.now(),
            Moment(nanos(34 * YEAR)),
            "from its first reading"
        );
    }
}
