//! A miss asks the engine, loads, and stores. If the engine fails, the loader runs without it; if
//! the loader fails too, an old value is answered.

mod alone;
mod lead;
mod miss;
mod open;
mod versions;
mod write;

use std::hash::Hash;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tidewheel::{Cache, Outcome, WeakCache};

use crate::codec::{Codec, TierKey};
use crate::core::faults::fault;
use crate::core::invalidation_stream::{InvalidationStream, Local};
use crate::engine::{Answer, Backend, EngineError, Signed};
use crate::guard::breaker::Breaker;
use crate::guard::pending::Pending;
use crate::guard::recent::Recent;
use crate::handle::held::Held;
use crate::handle::life::Life;
use crate::stats::Counters;

/// The settings of a tier.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) life: Life,
    pub(crate) negative_ttl: Duration,
    pub(crate) jitter: f64,
    pub(crate) lease: Duration,
    pub(crate) compress_above: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            life: Life::ttl(Duration::from_secs(60)),
            negative_ttl: Duration::ZERO,
            jitter: 0.05,
            lease: Duration::from_secs(10),
            compress_above: None,
        }
    }
}

/// The state that all handles share.
pub(crate) struct Inner<K, V> {
    pub(crate) first: Cache<K, Held<V>>,
    pub(crate) stream: Arc<InvalidationStream>,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) breaker: Breaker,
    pub(crate) counters: Arc<Counters>,
    /// The counters that the `metrics` facade was given last.
    #[cfg(feature = "metrics")]
    pub(crate) published: std::sync::Mutex<crate::stats::TierStats>,
    codec: Box<dyn Codec<V>>,
    settings: Settings,
    pub(crate) pending: Pending,
    pub(crate) recent: Recent,
}

impl<K, V> Inner<K, V>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(crate) fn new(
        first: Cache<K, Held<V>>,
        stream: Arc<InvalidationStream>,
        backend: Arc<dyn Backend>,
        codec: Box<dyn Codec<V>>,
        settings: Settings,
    ) -> Self {
        let recent = Recent::new(stream.lag());
        Self {
            first,
            stream,
            backend,
            breaker: Breaker::default(),
            counters: Arc::default(),
            #[cfg(feature = "metrics")]
            published: Default::default(),
            codec,
            settings,
            pending: Pending::default(),
            recent,
        }
    }

    /// Begins to listen to the engine.
    pub(crate) fn start(self: &Arc<Self>) {
        let local = FirstTier {
            inner: Arc::downgrade(self),
            cache: self.first.downgrade(),
            counters: Arc::clone(&self.counters),
        };
        self.stream.set_local(Box::new(local), self.first.tick());
        self.backend.attach(Arc::clone(&self.stream));
    }

    /// Takes an entry away that may not be believed, and returns it if it may be answered in place
    /// of an error.
    pub(crate) fn remove_unbelieved(&self, key: &K) -> Option<Held<V>> {
        let clock = self.stream.clock();
        let mut old = None;
        let removed = self.first.remove_if(key, |held| {
            let is_doubtful = !held.is_believed(clock);
            old = is_doubtful.then(|| held.clone());
            is_doubtful
        });
        if removed {
            self.counters.unbelieved();
        }
        old.filter(|_| removed)
    }

    /// True if the answer of the first tier may be given. It may not if it was stored a moment ago,
    /// and is doubtful since.
    pub(crate) fn may_answer(&self, held: &Held<V>, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Hit | Outcome::Stale => held.is_believed(self.stream.clock()),
            _ => true,
        }
    }

    /// Asks the engine, unless it is left alone. The answer of another server than the one that is
    /// watched is none.
    async fn ask<'a, T: Signed>(
        &'a self,
        question: impl FnOnce(&'a dyn Backend) -> Answer<'a, T>,
    ) -> Result<T, EngineError> {
        if self.stream.is_between() {
            return Err(EngineError::Away("another server has taken over".into()));
        }
        self.breaker.admit(self.stream.now())?;
        let mut answer = question(&*self.backend).await;
        self.breaker.done(&answer, self.stream.now());
        if answer
            .as_ref()
            .is_ok_and(|answer| self.stream.is_stranger(answer.server()))
        {
            let why = "another server has answered than the one that is watched";
            answer = Err(EngineError::Away(why.into()));
        }
        if answer.is_err() {
            self.counters.engine_errors();
        }
        answer
    }
}

impl<K, V> Drop for Inner<K, V> {
    fn drop(&mut self) {
        self.backend.detach(&self.stream);
        self.stream.close();
    }
}

/// The first tier, as the invalidation stream changes it.
struct FirstTier<K, V> {
    inner: Weak<Inner<K, V>>,
    cache: WeakCache<K, Held<V>>,
    counters: Arc<Counters>,
}

impl<K, V> Local for FirstTier<K, V>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    fn settle(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let inner = self.inner.upgrade()?;
        inner.pending.any().then(|| {
            let work = async move {
                inner.settle_pending().await;
            };
            Box::pin(work) as Pin<Box<dyn Future<Output = ()> + Send>>
        })
    }

    fn taken_over(&self) {
        let Some(inner) = self.inner.upgrade() else {
            return;
        };
        let lost = inner.recent.taken_over(inner.stream.now());
        if !fault!(H14) {
            lost.into_iter().for_each(|what| inner.pending.add(what));
        }
    }

    fn forget(&self, key: &[u8]) {
        let Some((key, cache)) = K::read(key).zip(self.cache.upgrade()) else {
            return;
        };
        if fault!(H1) && !cache.contains_key(&key) {
            return;
        }
        if fault!(H11) && cache.peek(&key).is_some_and(|held| held.value.is_none()) {
            return;
        }
        self.counters.changes();
        // Entry and load in one step: either the load stores before, and that is removed, or it
        // stores nothing.
        cache.invalidate(&key);
    }
}
