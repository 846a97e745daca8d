//! The refresher that the builder was given.

use std::future::Future;
use std::pin::Pin;

use super::flight::Negative;
use crate::loaded::Presence;

/// Refreshes that run at a time unless told otherwise: each has a thread.
const PARALLEL_THREADS: usize = 4;

/// Refreshes that run at a time unless told otherwise, where they are futures and need no threads.
const PARALLEL_FUTURES: usize = 64;

/// The answer of a refresher.
pub(crate) type Refreshed<V> = Result<Presence<V>, Negative>;

/// A refresh as a future.
pub(crate) type RefreshFuture<V> = Pin<Box<dyn Future<Output = Refreshed<V>> + Send>>;

type Blocking<K, V> = Box<dyn Fn(&K, Option<V>) -> Refreshed<V> + Send + Sync>;

type Async<K, V> = Box<dyn Fn(&K, Option<V>) -> RefreshFuture<V> + Send + Sync>;

/// The refresher's function, which loads a key again.
pub(crate) enum Load<K, V> {
    Blocking(Blocking<K, V>),
    Async(Async<K, V>),
}

/// The refresher that the builder was given.
pub(crate) struct Refresher<K, V> {
    pub(crate) clone_key: fn(&K) -> K,
    /// Clones the old value, for a refresher that wants it.
    pub(crate) clone_old: Option<fn(&V) -> V>,
    pub(crate) load: Load<K, V>,
}

impl<K, V> Refresher<K, V> {
    pub(crate) fn is_async(&self) -> bool {
        matches!(self.load, Load::Async(_))
    }

    /// Returns the number of refreshes that run at a time if the builder sets none.
    pub(crate) fn usual_parallelism(&self) -> usize {
        match self.load {
            Load::Blocking(_) => PARALLEL_THREADS,
            Load::Async(_) => PARALLEL_FUTURES,
        }
    }
}
