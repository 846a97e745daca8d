//! The state that all handles of a cache share. When the last handle goes, it ends the cache.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use crate::core::inner::Inner;
use crate::core::workers::{WorkerGuard, WorkerKind};
use crate::drive::driver::Driver;
use crate::drive::expiry::Rounds;
use crate::drive::shared::SharedDriver;
use crate::error::BuildError;
use crate::sync::Mutex;

/// The last handle that goes drops it.
pub(super) struct Owner<K, V, S> {
    pub(super) inner: Arc<Inner<K, V, S>>,
    /// [`shut`](Self::shut), for those who do not know that keys can be hashed: a handle's type and
    /// its drop have no bounds, so that neither need the types that hold one.
    close: fn(&Self),
    /// The state of the caller's own passes.
    pub(super) rounds: Mutex<Rounds>,
    /// First told to stop, then without a driver.
    _guard: WorkerGuard,
    /// The driver, unless that is the caller; true if it is the cache's own.
    #[cfg_attr(
        not(feature = "system"),
        allow(dead_code, reason = "kept while there is a handle")
    )]
    driver: Option<(SharedDriver, bool)>,
}

/// Joins a cache to a shared driver. The builder's method that takes one names it.
pub(super) type Join<K, V, S> = fn(&SharedDriver, &Arc<Inner<K, V, S>>) -> Result<(), BuildError>;

impl<K, V, S> Owner<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    pub(super) fn start(
        inner: &Arc<Inner<K, V, S>>,
        driver: Driver,
        join: Option<Join<K, V, S>>,
    ) -> Result<Self, BuildError> {
        let guard = WorkerGuard::join(inner, WorkerKind::Handles);
        let driver = match driver {
            #[cfg(feature = "system")]
            Driver::Thread => Some((SharedDriver::of_one(inner)?, true)),
            Driver::Shared(shared) => {
                if let Some(join) = join {
                    join(&shared, inner)?;
                }
                Some((shared, false))
            }
            _ => None,
        };
        Ok(Self {
            inner: Arc::clone(inner),
            close: Self::shut,
            rounds: Mutex::new(Rounds::default()),
            _guard: guard,
            driver,
        })
    }

    fn shut(&self) {
        self.inner.close();
        #[cfg(feature = "system")]
        if let Some((driver, true)) = &self.driver {
            if crate::events::reentrancy::is_free() {
                driver.end();
            }
        }
    }
}

impl<K, V, S> Owner<K, V, S> {
    pub(super) fn close(&self) {
        (self.close)(self);
    }
}
