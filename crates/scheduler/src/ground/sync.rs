//! Locks: std's, or shuttle's in its tests.

#[cfg(not(all(shuttle, feature = "shuttle")))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(all(shuttle, feature = "shuttle")))]
pub(crate) use std::thread_local;

#[cfg(all(shuttle, feature = "shuttle"))]
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
#[cfg(all(shuttle, feature = "shuttle"))]
pub(crate) use shuttle::thread_local;

/// Locks a mutex, also one whose holder panicked: handlers never run under one, and what a key's
/// `Hash` or `Eq` may break by panicking is the caller's own.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
