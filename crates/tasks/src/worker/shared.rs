//! The state that the threads of a worker share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tidewheel_scheduler::Handle;
use tidewheel_time::Clock;

use super::around::Arounds;
use super::held::{Claims, Stage};
use super::mailbox::{End, Mailbox};
use super::run::Handler;
use super::seen::SeenEnds;
use super::settings::Settings;
use super::stats::{Counters, Stats, count};
use super::turns::Turns;
use super::waits::DeadEnds;
use crate::engine_clock::{Answer, EngineClock};
use crate::shape::error::StoreError;
use crate::shape::timestamp::Timestamp;
use crate::store::TaskStore;
use crate::wait::wait_for;

/// The wheel that claims wait in, by their number.
pub(super) type Wheel = Handle<u64, ()>;

/// The state that the threads of a worker share. Each lock is taken alone.
pub(crate) struct Shared<S> {
    pub(super) store: S,
    pub(super) settings: Settings,
    pub(super) clock: AnyClock,
    pub(super) handler: Handler,
    pub(super) around: Arounds,
    pub(super) counters: Counters,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) turns: Turns,
    #[cfg(feature = "metrics")]
    pub(super) published: super::metrics::Published,
    held: Mutex<Claims>,
    dead_ends: Mutex<DeadEnds>,
    seen_ends: Mutex<SeenEnds>,
    engine: Mutex<EngineClock>,
}

impl<S> Shared<S> {
    pub(super) fn new(
        store: S,
        settings: Settings,
        clock: AnyClock,
        (handler, around): (Handler, Arounds),
    ) -> Self {
        Self {
            held: Mutex::new(Claims::new(settings.threads)),
            store,
            settings,
            clock,
            handler,
            around,
            counters: Counters::default(),
            mailbox: Arc::default(),
            turns: Turns::default(),
            #[cfg(feature = "metrics")]
            published: Default::default(),
            dead_ends: Mutex::default(),
            seen_ends: Mutex::default(),
            engine: Mutex::default(),
        }
    }

    pub(super) fn held(&self) -> MutexGuard<'_, Claims> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn dead_ends(&self) -> MutexGuard<'_, DeadEnds> {
        self.dead_ends
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn seen_ends(&self) -> MutexGuard<'_, SeenEnds> {
        self.seen_ends
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn engine(&self) -> MutexGuard<'_, EngineClock> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A time that the engine's clock has reached. `None` before its first answer.
    pub(super) fn engine_now(&self) -> Option<Timestamp> {
        let now = self.clock.now();
        self.engine().now(now)
    }

    pub(super) fn is_skewed(&self) -> bool {
        self.engine().is_skewed()
    }

    /// Takes an answer of the engine's clock into account. Returns whether the offset has come to
    /// be too large.
    pub(super) fn learn(&self, sent: Duration, engine: Timestamp) -> bool {
        let (received, wall) = (self.clock.now(), self.clock.wall().into());
        let mut clock = self.engine();
        let before = clock.is_skewed();
        clock.learn(Answer {
            sent,
            received,
            engine,
            wall,
        });
        !before && clock.is_skewed()
    }

    /// Gives claims that wait back to the engine.
    pub(super) fn give_back(&self, keys: impl Iterator<Item = u64>) {
        for key in keys {
            self.held().set_stage(key, Stage::Ended);
            self.mailbox.end(key, End::Back);
        }
    }
}

impl<S: TaskStore> Shared<S> {
    /// Makes one call of the engine, within the limit of time.
    pub(super) fn call<T>(
        &self,
        future: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let result = wait_for(&self.clock, self.settings.limit, future);
        if result.is_err() {
            count(&self.counters.errors);
        }
        result
    }

    pub(super) fn stats(&self) -> Stats {
        let (held, running) = {
            let claims = self.held();
            (claims.len(), claims.running())
        };
        let (offset_us, skewed) = {
            let engine = self.engine();
            (engine.offset_us(), engine.is_skewed())
        };
        Stats {
            held,
            running,
            offset_us,
            skewed,
            ..self.counters.read()
        }
    }
}

/// A clock that the wheel and the engine loop share.
#[derive(Debug, Clone)]
pub(crate) struct AnyClock(pub(crate) Arc<dyn Clock>);

impl Clock for AnyClock {
    fn now(&self) -> Duration {
        self.0.now()
    }

    fn bounds(&self) -> (Duration, Duration) {
        self.0.bounds()
    }

    fn wall(&self) -> SystemTime {
        self.0.wall()
    }

    fn wake_when_moved(&self, sleeper: &std::task::Waker) {
        self.0.wake_when_moved(sleeper);
    }
}
