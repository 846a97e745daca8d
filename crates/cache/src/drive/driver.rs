//! The choice of a cache's driver: threads, an async task, or the caller.

use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;

use crate::core::inner::Inner;
use crate::drive::registry::DriverRegistry;
#[cfg(feature = "system")]
use crate::drive::step::TurnBudget;
#[cfg(feature = "system")]
use crate::drive::worker_threads::WorkerThreads;
use crate::error::BuildError;

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

/// Refreshes that the threads of a shared driver run at a time unless told otherwise.
#[cfg(feature = "system")]
const REFRESH_THREADS: usize = 4;

/// One driver for many caches, of any types: [`Builder::driver`](crate::Builder::driver) takes it.
///
/// ```
/// use std::time::Duration;
/// use tidewheel::{Cache, ManualClock, SharedDriver};
///
/// # async fn serve() -> Result<(), tidewheel::BuildError> {
/// let driver = SharedDriver::task();
/// tokio::spawn(driver.drive(tokio::time::sleep));
///
/// let names = Cache::<u64, String>::builder()
///     .max_capacity(1000)
///     .time_to_live(Duration::from_secs(60))
///     .clock(ManualClock::new())
///     .driver(&driver)
///     .build()?;
/// # Ok(())
/// # }
/// ```
///
/// A clone is another handle to the same driver. Caches join when they are built, and leave when
/// they are closed; a cache keeps its driver. A wake-up costs what is due: caches that have nothing
/// to do are not looked at.
///
/// # What caches take from each other
///
/// They are driven in turns. A turn for expiry ends after 0.2 ms with the 16 entries that it is at;
/// it drops these, so a `Drop` that takes its time delays others by 16 times that for each such
/// cache. A listener that takes its time delays other caches' events by 16 calls; with
/// [`threads`](Self::threads) it does not delay their expiry, with [`task`](Self::task) it does, by
/// as much. (An async listener delays nobody while it awaits.) A panic of user code concerns nobody
/// else. When a listener does not return at all, other caches' events wait, and once their queues
/// are full, so does the removal of what is due; readers see none of it.
#[derive(Clone)]
pub struct SharedDriver(Arc<DriverKind>);

impl std::fmt::Debug for SharedDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_task() { "Task" } else { "Threads" })
    }
}

enum DriverKind {
    #[cfg(feature = "system")]
    Threads(WorkerThreads),
    Task(Arc<DriverRegistry>),
}

impl Drop for DriverKind {
    fn drop(&mut self) {
        match self {
            // It ends when it is dropped.
            #[cfg(feature = "system")]
            Self::Threads(_) => {}
            Self::Task(registry) => registry.end(),
        }
    }
}

impl SharedDriver {
    /// Threads: one for expiry, one for the listeners once a cache has one, and for refreshes one
    /// to four. They start when a cache that needs them is built, and end when the last handle of
    /// this driver and its last cache are gone.
    #[cfg(feature = "system")]
    #[must_use]
    #[inline]
    pub fn threads() -> Self {
        Self::threads_named("tidewheel", REFRESH_THREADS)
    }

    /// As [`threads`](Self::threads), under another name than `tidewheel`, and with another number
    /// of refreshes that run at a time, at least 1; of each cache no more than its own
    /// [`refresh_parallelism`](crate::Builder::refresh_parallelism). No thread has a name with a
    /// NUL character: no cache is built on such a driver.
    #[cfg(feature = "system")]
    #[must_use]
    #[inline]
    pub fn threads_named(name: &str, refresh_threads: usize) -> Self {
        Self(Arc::new(DriverKind::Threads(WorkerThreads::new(
            name,
            refresh_threads.max(1),
        ))))
    }

    /// A future, which you spawn on any runtime: [`drive`](Self::drive).
    #[must_use]
    #[inline]
    pub fn task() -> Self {
        Self(Arc::new(DriverKind::Task(Arc::new(DriverRegistry::new()))))
    }

    /// Drives the caches of a [`task`](Self::task): spawn it. `sleep` is the runtime's timer. It
    /// ends when the last handle of this driver and the last cache are gone; it keeps neither. (Of
    /// [`threads`](Self::threads), it ends at once.)
    ///
    /// Dropped before its end, it can be made anew: the caches go on where they were. One drives at
    /// a time: of two of them one drives a cache, and the other one waits until that ends or is
    /// dropped.
    ///
    /// It counts from this call on, polled or not: a cache whose last handle goes is emptied, and
    /// its last events are delivered, by the next poll, even if the cache was built and dropped
    /// between two polls. (So a future that is kept, and never polled nor dropped, keeps the
    /// entries of such caches.) While there is no such future, the drop of the last handle removes
    /// the entries and calls a blocking listener itself; an async listener is not told.
    ///
    /// # Panics
    ///
    /// Where `sleep` panics, or its future does: in its poll, or when it is dropped. Make the
    /// future anew then; it goes on with all caches.
    pub fn drive<T, F>(&self, sleep: T) -> impl Future<Output = ()> + Send + use<T, F>
    where
        T: Fn(Duration) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let driving = match &*self.0 {
            #[cfg(feature = "system")]
            DriverKind::Threads(_) => None,
            DriverKind::Task(registry) => Some(Arc::clone(registry).begin()),
        };
        async move {
            if let Some(driving) = driving {
                driving.run(sleep).await;
            }
        }
    }

    pub(crate) fn is_task(&self) -> bool {
        matches!(&*self.0, DriverKind::Task(_))
    }

    /// Threads of one cache.
    #[cfg(feature = "system")]
    pub(crate) fn of_one<K, V, S>(inner: &Arc<Inner<K, V, S>>) -> Result<Self, BuildError>
    where
        K: Hash + Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
        S: BuildHasher + Send + Sync + 'static,
    {
        let threads =
            WorkerThreads::new(&inner.rules.config.name, inner.refreshes.parallel().max(1));
        threads.join(inner, TurnBudget::OWN).map_err(not_started)?;
        Ok(Self(Arc::new(DriverKind::Threads(threads))))
    }

    /// Drives a cache, as one of many.
    pub(crate) fn join<K, V, S>(&self, inner: &Arc<Inner<K, V, S>>) -> Result<(), BuildError>
    where
        K: Hash + Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
        S: BuildHasher + Send + Sync + 'static,
    {
        match &*self.0 {
            #[cfg(feature = "system")]
            DriverKind::Threads(threads) => {
                threads.join(inner, TurnBudget::SHARED).map_err(not_started)
            }
            DriverKind::Task(registry) => {
                registry.join(inner);
                Ok(())
            }
        }
    }

    /// Ends the threads of a cache that is closed, and waits for that.
    #[cfg(feature = "system")]
    pub(crate) fn end(&self) {
        if let DriverKind::Threads(threads) = &*self.0 {
            threads.end();
            threads.wait();
        }
    }
}

/// A thread could not be started.
#[cfg(feature = "system")]
fn not_started(error: std::io::Error) -> BuildError {
    BuildError::Thread(error.to_string())
}
