//! The refresher that the builder was given, and the queue of what it is to load.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::core::flight::{Flight, Negative};
use crate::core::hash::Hashed;
use crate::lifetime::Loaded;
use crate::sync::{
    AtomicBool, AtomicUsize, Condvar, Mutex, Ordering::Relaxed, Ordering::SeqCst, lock,
};

/// Refreshes that wait at a time unless told otherwise.
pub(crate) const REFRESH_QUEUE: usize = 1024;

type Load<K, V> = Box<dyn Fn(&K) -> Result<Loaded<V>, Negative> + Send + Sync>;

/// What the builder was told.
pub(crate) struct Refresher<K, V> {
    pub(crate) clone_key: fn(&K) -> K,
    pub(crate) load: Load<K, V>,
}

impl<K: Clone, V> Refresher<K, V> {
    pub(crate) fn new<T, E>(load: impl Fn(&K) -> Result<T, E> + Send + Sync + 'static) -> Self
    where
        T: Into<Loaded<V>>,
        E: Send + Sync + 'static,
    {
        Self {
            clone_key: K::clone,
            load: Box::new(move |key| {
                load(key)
                    .map(Into::into)
                    .map_err(|error| Negative::error(&Arc::new(error)))
            }),
        }
    }
}

/// The queue of refreshes.
#[derive(Debug)]
pub(crate) struct Refreshes<V> {
    queue: Mutex<VecDeque<Job<V>>>,
    arrived: Condvar,
    /// Places that are taken: those in the queue, and those about to be.
    taken: AtomicUsize,
    limit: usize,
    stop: AtomicBool,
}

/// The vacant flight of a stale entry.
#[derive(Debug)]
pub(crate) struct Job<V> {
    pub(crate) hash: Hashed,
    pub(crate) flight: Arc<Flight<V>>,
}

impl<V> Refreshes<V> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            queue: Mutex::new(VecDeque::new()),
            arrived: Condvar::new(),
            taken: AtomicUsize::new(0),
            limit,
            stop: AtomicBool::new(false),
        }
    }

    /// Whether no more can wait.
    pub(crate) fn is_full(&self) -> bool {
        self.taken.load(Relaxed) >= self.limit
    }

    /// Takes a place, for a job that is about to be pushed.
    pub(crate) fn reserve(&self) -> bool {
        let taken = self.taken.fetch_update(SeqCst, SeqCst, |taken| {
            (taken < self.limit).then_some(taken + 1)
        });
        taken.is_ok()
    }

    /// Gives a place back that was reserved for nothing.
    pub(crate) fn unreserve(&self) {
        self.taken.fetch_sub(1, SeqCst);
    }

    pub(crate) fn push(&self, job: Job<V>) {
        let mut queue = lock(&self.queue);
        if self.stop.load(SeqCst) {
            drop(queue);
            self.unreserve();
            return;
        }
        queue.push_back(job);
        drop(queue);
        self.arrived.notify_one();
    }

    pub(crate) fn pop(&self) -> Option<Job<V>> {
        let job = lock(&self.queue).pop_front()?;
        self.taken.fetch_sub(1, SeqCst);
        Some(job)
    }

    /// Waits for a job; `None` once the cache is closed.
    #[cfg(feature = "system")]
    pub(crate) fn wait(&self) -> Option<Job<V>> {
        let mut queue = lock(&self.queue);
        loop {
            if self.stop.load(SeqCst) {
                return None;
            }
            if let Some(job) = queue.pop_front() {
                self.taken.fetch_sub(1, SeqCst);
                return Some(job);
            }
            queue = self
                .arrived
                .wait(queue)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Ends the worker after what it is doing, and forgets the queue.
    pub(crate) fn stop(&self) {
        let mut queue = lock(&self.queue);
        self.stop.store(true, SeqCst);
        let forgotten = std::mem::take(&mut *queue);
        drop(queue);
        self.taken.fetch_sub(forgotten.len(), SeqCst);
        self.arrived.notify_all();
    }
}
