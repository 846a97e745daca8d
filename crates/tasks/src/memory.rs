//! A store in memory, with the time of any clock: for tests, and for tasks that need not survive.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tidewheel_time::{Clock, SystemClock};

use crate::shape::error::StoreError;
use crate::shape::timestamp::Timestamp;
use crate::steps::Steps;
use crate::table::Table;
use crate::wakes::Wakes;

/// Tasks in memory. The wall time of its clock is the engine's time. Several workers can share one
/// by an `Arc`.
///
/// With [`set_down`](Self::set_down) it is an engine that cannot be reached.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Box<dyn Clock>,
    inside: Mutex<Inside>,
    wakes: Wakes,
}

#[derive(Default)]
struct Inside {
    table: Table,
    down: bool,
}

impl std::fmt::Debug for Inside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inside")
            .field("tasks", &self.table.len())
            .field("down", &self.down)
            .finish_non_exhaustive()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// Makes a store by the operating system's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(SystemClock::new())
    }

    /// Makes a store by another clock, such as a [`ManualClock`](crate::ManualClock).
    #[must_use]
    pub fn with_clock(clock: impl Clock) -> Self {
        Self {
            clock: Box::new(clock),
            inside: Mutex::default(),
            wakes: Wakes::default(),
        }
    }

    /// Makes every call fail from now on, and change nothing.
    pub fn set_down(&self, down: bool) {
        self.lock().down = down;
    }

    /// Tasks that are pending or claimed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().table.len()
    }

    /// True if the store has no tasks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Steps for MemoryStore {
    /// Runs one step of the table, unless the engine is down.
    fn step<T>(&self, act: impl FnOnce(&mut Table, Timestamp) -> T) -> Result<T, StoreError> {
        let mut inside = self.lock();
        if inside.down {
            return Err(StoreError::engine("it is down"));
        }
        let now = Timestamp::from(self.clock.wall());
        let value = act(&mut inside.table, now);
        // There is no disk here that wants to know.
        inside.table.take_touched();
        Ok(value)
    }

    fn time(&self) -> Result<Timestamp, StoreError> {
        self.step(|_, now| now)
    }

    fn wakes(&self) -> &Wakes {
        &self.wakes
    }
}
