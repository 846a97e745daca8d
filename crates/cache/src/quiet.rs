//! Drops user values so that a panic of their `Drop` harms nothing else.
//!
//! Such a panic could leave an operation half done, or end the driver's thread. During another
//! panic it would end the process. So the cache drops keys and values one by one, after all
//! accounting, and catches each panic. The panic hook has reported it by then, and it is counted.

use std::any::Any;
use std::mem::needs_drop;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::stats::{Count, Counters};

/// A value that is dropped quietly, wherever it goes out of scope.
pub(crate) struct Quiet<'a, T> {
    value: Option<T>,
    counters: &'a Counters,
}

impl<'a, T> Quiet<'a, T> {
    pub(crate) fn new(value: T, counters: &'a Counters) -> Self {
        Self {
            value: Some(value),
            counters,
        }
    }

    pub(crate) fn into_inner(mut self) -> T {
        self.value.take().expect("taken once")
    }
}

impl<T> Deref for Quiet<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("not taken yet")
    }
}

impl<T> Drop for Quiet<'_, T> {
    fn drop(&mut self) {
        self.counters.discard(self.value.take());
    }
}

impl Counters {
    /// Drops something of the user's.
    #[inline]
    pub(crate) fn discard<T>(&self, value: T) {
        if needs_drop::<T>() {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
                self.drop_panicked(panic);
            }
        }
    }

    /// Drops a key and a value, each on its own.
    #[inline]
    pub(crate) fn discard_pair<K, V>(&self, key: K, value: V) {
        self.discard(key);
        self.discard(value);
    }

    /// Drops keys and values.
    pub(crate) fn discard_pairs<K, V>(&self, pairs: impl Iterator<Item = (K, V)>) {
        for (key, value) in pairs {
            self.discard_pair(key, value);
        }
    }

    #[cold]
    fn drop_panicked(&self, panic: Box<dyn Any + Send>) {
        self.add(Count::DropPanic, 1);
        forget_quietly(panic);
    }

    /// Drops all, though some may panic.
    pub(crate) fn discard_all<T>(&self, mut all: impl Iterator<Item = T>) {
        while let Err(panic) = catch_unwind(AssertUnwindSafe(|| all.by_ref().for_each(drop))) {
            self.drop_panicked(panic);
        }
    }
}

/// Drops a panic's payload, which may panic in turn.
pub(crate) fn forget_quietly(panic: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(again);
    }
}
