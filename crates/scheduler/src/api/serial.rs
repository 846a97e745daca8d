//! `Serial` makes keys for tasks that have none of their own.

use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::api::handle::Handle;
use crate::ground::error::Error;

/// A key for tasks that have none: a number that nobody else has got.
///
/// [`Handle::add`] and `TaskStream::add` give one to each task. It is unique in this process.
///
/// ```
/// use std::time::Duration;
/// use tidewheel_scheduler::{Scheduler, Serial};
///
/// let scheduler = Scheduler::<Serial, &str>::builder()
///     .start(|_, run| println!("{}", run.value))?;
/// let first = scheduler.add("a message", Duration::from_secs(30))?;
/// let second = scheduler.add("a message", Duration::from_secs(30))?;
/// assert_ne!(first, second);
/// assert_eq!(scheduler.remove(&first), Some("a message"));
/// assert_eq!(scheduler.len(), 1);
/// # Ok::<(), tidewheel_scheduler::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serial(pub(crate) u64);

static NEXT: AtomicU64 = AtomicU64::new(1);

impl Serial {
    /// The next one: no other call in this process has got it.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "no two are equal")]
    pub fn new() -> Self {
        Self(NEXT.fetch_add(1, Relaxed))
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<V, S: BuildHasher> Handle<Serial, V, S> {
    /// Sets a task that has no key of its own, and returns the one that it gets: see
    /// [`set`](Self::set).
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`].
    pub fn add(&self, value: V, delay: Duration) -> Result<Serial, Error> {
        let key = Serial::new();
        self.set(key, value, delay)?;
        Ok(key)
    }
}
