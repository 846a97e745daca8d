//! A clock that is moved by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, SystemTime};

use crate::clock::Clock;
use crate::moment::nanos;

/// A clock that is moved by hand. Clones are the same clock, and a move wakes everybody who sleeps by it.
///
/// ```
/// use std::time::Duration;
/// use tidewheel_time::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// clock.advance(Duration::from_millis(1500));
/// assert_eq!(clock.now(), Duration::from_millis(1500));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<Hands>);

#[derive(Debug, Default)]
struct Hands {
    nanos: AtomicU64,
    wall_nanos: AtomicU64,
    /// Who sleeps, since the last move: everybody once.
    sleepers: Mutex<Vec<Waker>>,
}

/// The last reading of a manual clock, 292 years ahead: it stays there.
const LAST_NANOS: u64 = i64::MAX as u64;

impl ManualClock {
    /// A clock that shows zero; its wall time is the Unix epoch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves both the monotonic and the wall time on, and wakes who sleeps by this clock. It stands still 292
    /// years after its start.
    pub fn advance(&self, by: Duration) {
        let moved = |at: u64| Some(at.saturating_add(nanos(by)).min(LAST_NANOS));
        for hand in [&self.0.nanos, &self.0.wall_nanos] {
            let _ = hand.fetch_update(SeqCst, SeqCst, moved);
        }
        let sleepers = std::mem::take(&mut *self.0.sleepers());
        sleepers.into_iter().for_each(Waker::wake);
    }

    /// Steps the wall time alone, as an operator or NTP would.
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
