//! Who waits for a change of a key.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Loads that wait for a change, by key. Each process has one load of a key at a time, so there are
/// few.
#[derive(Debug, Default)]
pub(crate) struct Bells(Mutex<HashMap<Vec<u8>, Vec<Arc<Bell>>>>);

#[derive(Debug, Default)]
struct Bell {
    rung: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Bells {
    /// Waits from now on for changes of a key.
    pub(crate) fn listen<'a>(&'a self, key: &'a [u8]) -> Listening<'a> {
        let bell = Arc::new(Bell::default());
        let all = Arc::clone(&bell);
        self.lock().entry(key.to_vec()).or_default().push(all);
        Listening {
            bells: self,
            key,
            bell,
        }
    }

    /// A key has changed.
    pub(crate) fn ring(&self, key: &[u8]) {
        let bells = self.lock().get(key).cloned().unwrap_or_default();
        for bell in bells {
            bell.rung.store(true, SeqCst);
            let waker = bell.lock().take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Vec<Arc<Bell>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that waits for changes of a key.
#[derive(Debug)]
pub(crate) struct Listening<'a> {
    bells: &'a Bells,
    key: &'a [u8],
    bell: Arc<Bell>,
}

impl Listening<'_> {
    /// Until the key changes; at once if it has since the last time.
    pub(crate) async fn rung(&self) {
        poll_fn(|context| {
            *self.bell.lock() = Some(context.waker().clone());
            if self.bell.rung.swap(false, SeqCst) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let mut all = self.bells.lock();
        if let Some(bells) = all.get_mut(self.key) {
            bells.retain(|bell| !Arc::ptr_eq(bell, &self.bell));
            if bells.is_empty() {
                all.remove(self.key);
            }
        }
    }
}
