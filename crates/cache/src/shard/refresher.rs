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

impl<K: Clone, V> Refresher<K, V> {
    pub(crate) fn blocking(load: impl Fn(&K) -> Refreshed<V> + Send + Sync + 'static) -> Self {
        Self::of(Load::Blocking(Box::new(move |key, _| load(key))))
    }

    pub(crate) fn future<F>(load: impl Fn(K) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Refreshed<V>> + Send + 'static,
    {
        let begin = move |key: &K, _| -> RefreshFuture<V> { Box::pin(load(key.clone())) };
        Self::of(Load::Async(Box::new(begin)))
    }

    fn of(load: Load<K, V>) -> Self {
        Self {
            clone_key: K::clone,
            clone_old: None,
            load,
        }
    }
}

/// Refreshers that want the old value.
impl<K: Clone, V: Clone> Refresher<K, V> {
    pub(crate) fn blocking_with_old(
        load: impl Fn(&K, V) -> Refreshed<V> + Send + Sync + 'static,
    ) -> Self {
        let load = move |key: &K, old| load(key, given(old));
        Self {
            clone_old: Some(V::clone),
            ..Self::of(Load::Blocking(Box::new(load)))
        }
    }

    pub(crate) fn future_with_old<F>(load: impl Fn(K, V) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Refreshed<V>> + Send + 'static,
    {
        let begin =
            move |key: &K, old| -> RefreshFuture<V> { Box::pin(load(key.clone(), given(old))) };
        Self {
            clone_old: Some(V::clone),
            ..Self::of(Load::Async(Box::new(begin)))
        }
    }
}

fn given<V>(old: Option<V>) -> V {
    old.expect("asked for by `clone_old`")
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
