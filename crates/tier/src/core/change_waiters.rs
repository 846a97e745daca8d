//! Loads wait here for a change of a key.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Loads that wait for a change, by key. Each process has one load of a key at a time, so there are
/// few.
#[derive(Debug, Default)]
pub(crate) struct ChangeWaiters(Mutex<HashMap<Vec<u8>, Vec<Arc<ChangeWaiter>>>>);

#[derive(Debug, Default)]
struct ChangeWaiter {
    is_notified: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl ChangeWaiters {
    /// Waits from now on for changes of a key.
    pub(crate) fn listen<'a>(&'a self, key: &'a [u8]) -> Waiting<'a> {
        let waiter = Arc::new(ChangeWaiter::default());
        let all = Arc::clone(&waiter);
        self.lock().entry(key.to_vec()).or_default().push(all);
        Waiting {
            waiters: self,
            key,
            waiter,
        }
    }

    /// A key has changed.
    pub(crate) fn notify(&self, key: &[u8]) {
        let waiters = self.lock().get(key).cloned().unwrap_or_default();
        for waiter in waiters {
            waiter.is_notified.store(true, SeqCst);
            let waker = waiter.lock().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Vec<Arc<ChangeWaiter>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChangeWaiter {
    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A registration that waits for changes of a key.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    waiters: &'a ChangeWaiters,
    key: &'a [u8],
    waiter: Arc<ChangeWaiter>,
}

impl Waiting<'_> {
    /// Waits until the key changes; returns at once if it has since the last time.
    pub(crate) async fn changed(&self) {
        poll_fn(|context| {
            *self.waiter.lock() = Some(context.waker().clone());
            if self.waiter.is_notified.swap(false, SeqCst) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut all = self.waiters.lock();
        if let Some(waiters) = all.get_mut(self.key) {
            waiters.retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
            if waiters.is_empty() {
                all.remove(self.key);
            }
        }
    }
}
