//! What all handles of a cache share and its threads do not: the last handle closes the cache.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use crate::core::inner::Inner;
use crate::drive::driver::Driver;
use crate::drive::expiry::Rounds;
#[cfg(feature = "system")]
use crate::drive::threads::Threads;
use crate::error::BuildError;
use crate::sync::{Mutex, Ordering::SeqCst};

/// The last handle that goes drops it, which closes the cache.
pub(super) struct Owner<K, V, S> {
    pub(super) inner: Arc<Inner<K, V, S>>,
    /// [`shut`](Self::shut), for those who do not know that keys can be hashed: a handle's type and its drop have no
    /// bounds, so that neither need the types that hold one.
    close: fn(&Self),
    /// Where the caller's passes go on.
    pub(super) rounds: Mutex<Rounds>,
    #[cfg(feature = "system")]
    threads: Mutex<Threads>,
}

impl<K, V, S> Owner<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    pub(super) fn start(inner: &Arc<Inner<K, V, S>>, driver: Driver) -> Result<Self, BuildError> {
        #[cfg(feature = "system")]
        let threads = match driver {
            Driver::Thread => {
                Threads::start(inner).map_err(|error| BuildError::Thread(error.to_string()))?
            }
            Driver::Task | Driver::Manual => Threads::default(),
        };
        #[cfg(not(feature = "system"))]
        let _ = driver;
        Ok(Self {
            inner: Arc::clone(inner),
            close: Self::shut,
            rounds: Mutex::new(Rounds::default()),
            #[cfg(feature = "system")]
            threads: Mutex::new(threads),
        })
    }

    fn shut(&self) {
        let inner = &*self.inner;
        let first = !inner.closed.swap(true, SeqCst);
        inner.requests.stop();
        inner.refreshes.stop();
        #[cfg(feature = "system")]
        {
            // Joined without the lock: a thread that is waited for may be calling this, from a listener.
            let mut threads = crate::sync::lock(&self.threads).take();
            // They may be waiting for this thread's listener, loader or closure: then they end after it.
            if crate::core::midst::is_free() {
                threads.join();
            }
        }
        if first {
            inner.close_shards();
            inner.deliver(true);
        }
    }
}

impl<K, V, S> Owner<K, V, S> {
    pub(super) fn close(&self) {
        (self.close)(self);
    }
}

impl<K, V, S> Drop for Owner<K, V, S> {
    fn drop(&mut self) {
        self.close();
    }
}
