//! What a handler and the engine loop tell each other of a run: its progress and result one way,
//! its cancellation the other.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use super::mailbox::Mailbox;

/// The control of one run.
#[derive(Debug)]
pub(super) struct Control {
    key: u64,
    mailbox: Arc<Mailbox>,
    is_cancelled: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
    /// The latest progress that the engine was not told.
    progress: Mutex<Option<Vec<u8>>>,
    result: Mutex<Option<Vec<u8>>>,
    /// How many of those around the run have let it pass.
    passed: AtomicUsize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Control {
    pub(super) fn new(key: u64, mailbox: Arc<Mailbox>) -> Self {
        Self {
            key,
            mailbox,
            is_cancelled: AtomicBool::new(false),
            wakers: Mutex::default(),
            progress: Mutex::default(),
            result: Mutex::default(),
            passed: AtomicUsize::new(0),
        }
    }

    pub(super) fn set_passed(&self, passed: usize) {
        self.passed.store(passed, SeqCst);
    }

    pub(super) fn passed(&self) -> usize {
        self.passed.load(SeqCst)
    }

    /// The engine says that the claim is not the worker's any more.
    pub(super) fn cancel(&self) {
        self.is_cancelled.store(true, SeqCst);
        let wakers = std::mem::take(&mut *lock(&self.wakers));
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(SeqCst)
    }

    pub(super) fn poll_cancelled(&self, waker: &Waker) -> Poll<()> {
        let mut wakers = lock(&self.wakers);
        // Read under the lock: whoever cancels sets it before it takes the wakers.
        if self.is_cancelled() {
            return Poll::Ready(());
        }
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
        Poll::Pending
    }

    /// Notes a progress. The engine loop hears of it once until it has told it.
    pub(super) fn set_progress(&self, progress: Vec<u8>) {
        if lock(&self.progress).replace(progress).is_none() {
            self.mailbox.progress(self.key);
        }
    }

    pub(super) fn take_progress(&self) -> Option<Vec<u8>> {
        lock(&self.progress).take()
    }

    /// The engine was not told a progress, unless there is a newer one.
    pub(super) fn put_back(&self, progress: Vec<u8>) {
        lock(&self.progress).get_or_insert(progress);
    }

    pub(super) fn set_result(&self, result: Vec<u8>) {
        *lock(&self.result) = Some(result);
    }

    /// The result; the engine may be told it more than once.
    pub(super) fn result(&self) -> Option<Vec<u8>> {
        lock(&self.result).clone()
    }
}
