//! Locks and atomics, from std or from shuttle in its tests; and the check against re-entry.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64 as PlainU64, Ordering::Relaxed as PlainRelaxed};
use std::sync::{PoisonError, TryLockError};

#[cfg(not(all(shuttle, feature = "shuttle")))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard},
    thread_local,
};

#[cfg(all(shuttle, feature = "shuttle"))]
pub(crate) use shuttle::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard},
    thread_local,
};

/// Numbers of threads, from 1.
static NEXT_THREAD: PlainU64 = PlainU64::new(1);

thread_local! {
    static THREAD: u64 = NEXT_THREAD.fetch_add(1, PlainRelaxed);
}

/// Tells this thread from others.
pub(crate) fn thread_number() -> u64 {
    THREAD.with(|number| *number)
}

/// Locks a mutex; what a panicking holder left behind is whole, since no user code runs under one.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until a condition variable is notified, whoever may have panicked meanwhile.
pub(crate) fn wait_on<'a, T>(on: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    on.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Locks a mutex if that is possible at once.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The number of tries of a reader before it sleeps, and the pause between two of them: about 10 to
/// 20 µs in all.
const READ_TRIES: u32 = if cfg!(all(shuttle, feature = "shuttle")) {
    1
} else {
    64
};
const PAUSES_PER_TRY: u32 = 8;

/// A shard's lock. The user's `Hash`, `Eq`, `Clone` and `view` closures run under it. If one of
/// them calls the same cache, it panics instead of waiting for itself.
///
/// A panic of theirs leaves the shard whole, so poison says nothing.
pub(crate) struct ShardLock<T>(RwLock<T>);

impl<T> ShardLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(RwLock::new(value))
    }

    /// `cache` tells caches apart: a closure may well read another one.
    #[inline]
    pub(crate) fn read(&self, cache: usize) -> ReadGuard<'_, T> {
        let note = HoldNote::enter(cache);
        let guard = match self.0.try_read() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => self.read_soon(),
        };
        ReadGuard { guard, _note: note }
    }

    /// A writer holds the lock for a few microseconds: to wait for it awake is shorter than to fall
    /// asleep and be woken, for both.
    #[cold]
    fn read_soon(&self) -> RwLockReadGuard<'_, T> {
        for _ in 0..READ_TRIES {
            for _ in 0..PAUSES_PER_TRY {
                std::hint::spin_loop();
            }
            match self.0.try_read() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(crate) fn write(&self, cache: usize) -> WriteGuard<'_, T> {
        let note = HoldNote::enter(cache);
        WriteGuard {
            guard: self.0.write().unwrap_or_else(PoisonError::into_inner),
            _note: note,
        }
    }
}

pub(crate) struct ReadGuard<'a, T> {
    guard: RwLockReadGuard<'a, T>,
    _note: HoldNote,
}

pub(crate) struct WriteGuard<'a, T> {
    guard: RwLockWriteGuard<'a, T>,
    _note: HoldNote,
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// Caches that one thread may be in at the same time, each within user code of the one before.
const NESTED_MAX: usize = 8;

/// The caches that a thread is in.
pub(crate) struct NestedCaches {
    caches: [Cell<usize>; NESTED_MAX],
    depth: Cell<usize>,
}

impl NestedCaches {
    pub(crate) const fn new() -> Self {
        Self {
            caches: [const { Cell::new(0) }; NESTED_MAX],
            depth: Cell::new(0),
        }
    }

    #[inline]
    pub(crate) fn depth(&self) -> usize {
        self.depth.get()
    }

    /// Returns whether the thread may enter a cache: it is not in this one, nor in too many.
    pub(crate) fn has_room_for(&self, cache: usize) -> bool {
        let depth = self.depth();
        depth < NESTED_MAX
            && self.caches[..depth]
                .iter()
                .all(|other| other.get() != cache)
    }

    #[inline]
    pub(crate) fn enter(&self, cache: usize) {
        let depth = self.depth();
        self.caches[depth].set(cache);
        self.depth.set(depth + 1);
    }

    #[inline]
    pub(crate) fn leave(&self) {
        self.depth.set(self.depth() - 1);
    }
}

thread_local! {
    /// The caches of which this thread holds a shard.
    static HELD: NestedCaches = const { NestedCaches::new() };
}

/// Notes that this thread holds a shard of a cache.
struct HoldNote;

impl HoldNote {
    #[inline]
    fn enter(cache: usize) -> Self {
        HELD.with(|held| {
            if held.depth() > 0 {
                return Self::enter_nested(held, cache);
            }
            held.caches[0].set(cache);
            held.depth.set(1);
        });
        Self
    }

    /// Within a closure that runs under another cache's lock.
    #[cold]
    fn enter_nested(held: &NestedCaches, cache: usize) {
        assert!(
            held.has_room_for(cache),
            "a cache was called from within its own Hash, Eq, Clone or view"
        );
        held.enter(cache);
    }
}

/// Returns whether this thread holds a shard of any cache: then it runs user code under that
/// shard's lock.
pub(crate) fn holds_a_shard() -> bool {
    HELD.with(|held| held.depth() > 0)
}

impl Drop for HoldNote {
    #[inline]
    fn drop(&mut self) {
        HELD.with(NestedCaches::leave);
    }
}
