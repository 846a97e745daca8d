//! Locks and atomics: std's, or shuttle's in the test of the alarm.

#[cfg(not(all(shuttle, feature = "shuttle")))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
#[cfg(not(all(shuttle, feature = "shuttle")))]
pub(crate) use std::sync::{Mutex, MutexGuard};

#[cfg(all(shuttle, feature = "shuttle"))]
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
#[cfg(all(shuttle, feature = "shuttle"))]
pub(crate) use shuttle::sync::{Mutex, MutexGuard};

/// Locks a mutex. No user code runs under one, so what a panicking holder left behind is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
