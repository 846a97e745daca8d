//! The choice of a cache's driver: threads, an async task, or the caller.

use crate::drive::shared::SharedDriver;

/// The driver of a cache. It removes entries whose time is over, tidies memory, calls the listener,
/// and loads stale entries again.
///
/// ```
/// use std::time::Duration;
/// use tidewheel::{Cache, Driver, SharedDriver};
///
/// # #[cfg(feature = "system")]
/// # fn main() -> Result<(), tidewheel::BuildError> {
/// let driver = SharedDriver::threads();
/// let users = Cache::<u64, String>::builder()
///     .max_capacity(1000)
///     .time_to_live(Duration::from_secs(60))
///     .driver(&driver)
///     .build()?;
/// let prices = Cache::<String, f64>::builder()
///     .unbounded()
///     .no_default_ttl()
///     .driver(Driver::shared(&driver)) // the long form of the same; starts no further threads
///     .build()?;
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "system"))]
/// # fn main() {}
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Driver {
    /// Threads of the cache's own, asleep until the next deadline: one for expiry, one for the
    /// listener if there is one, and some for the refresher if there is one
    /// ([`refresh_parallelism`](crate::Builder::refresh_parallelism)). Threads that cause events
    /// help the listener's when its queue is full: see
    /// [`Builder::eviction_listener`](crate::Builder::eviction_listener).
    #[default]
    Thread,
    /// The future of [`Cache::drive`](crate::Cache::drive), on any runtime.
    Task,
    /// Calls of [`Cache::advance`](crate::Cache::advance).
    Manual,
    /// A driver that this cache shares with others.
    Shared(SharedDriver),
}

impl Driver {
    /// A driver that many caches share; [`Builder::driver`](crate::Builder::driver) takes it as it
    /// is, too.
    #[must_use]
    pub fn shared(driver: &SharedDriver) -> Self {
        Self::Shared(driver.clone())
    }

    /// Returns whether this driver is a task. Only a task can poll futures of the user, such as an
    /// async listener's.
    pub(crate) fn is_task(&self) -> bool {
        match self {
            Self::Task => true,
            Self::Shared(shared) => shared.is_task(),
            Self::Thread | Self::Manual => false,
        }
    }

    #[cfg(not(feature = "system"))]
    pub(crate) fn has_threads(&self) -> bool {
        matches!(self, Self::Thread)
    }
}

impl From<&SharedDriver> for Driver {
    fn from(driver: &SharedDriver) -> Self {
        Self::shared(driver)
    }
}

impl From<SharedDriver> for Driver {
    fn from(driver: SharedDriver) -> Self {
        Self::Shared(driver)
    }
}
