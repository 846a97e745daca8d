//! A set of futures with one poller: it polls those that were woken, and the others cost nothing.
//!
//! Each future has a waker of its own. It puts the future into a list and wakes the poller of the
//! set.
//!
//! No wake-up is lost: the poller first says how it is woken and then takes the list; a waker first
//! puts its future into the list and then reads the poller. Both are under one lock. A future is in
//! the list once at most, so the list is no longer than there are futures (and those that have
//! ended since).

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::quiet::forget_quietly;
use crate::sync::{AtomicBool, Mutex, Ordering::SeqCst, lock};

/// A future that has nothing to say in the end.
pub(crate) type BoxFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Futures of one poller.
pub(crate) struct TaskSet<'a> {
    slots: Vec<Option<TaskSlot<'a>>>,
    free: Vec<usize>,
    woken: Arc<ReadyQueue>,
}

struct TaskSlot<'a> {
    work: BoxFuture<'a>,
    task_waker: Arc<TaskWaker>,
    waker: Waker,
}

/// The futures that were woken, and the waker of their poller.
struct ReadyQueue(Mutex<ReadyList>);

struct ReadyList {
    queue: Vec<Arc<TaskWaker>>,
    poller: Option<Waker>,
    /// True if the set was dropped: the list stays empty.
    over: bool,
}

/// The waker of one future.
struct TaskWaker {
    index: usize,
    is_queued: AtomicBool,
    woken: Arc<ReadyQueue>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if !self.is_queued.swap(true, SeqCst) {
            let woken = Arc::clone(&self.woken);
            woken.wake(self);
        }
    }
}

impl ReadyQueue {
    /// Queues a future and wakes the poller.
    fn wake(&self, task_waker: Arc<TaskWaker>) {
        let mut list = lock(&self.0);
        if list.over {
            return;
        }
        list.queue.push(task_waker);
        let poller = list.poller.clone();
        drop(list);
        if let Some(poller) = poller {
            poller.wake();
        }
    }
}

impl<'a> TaskSet<'a> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            woken: Arc::new(ReadyQueue(Mutex::new(ReadyList {
                queue: Vec::new(),
                poller: None,
                over: false,
            }))),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns whether a future was woken and not polled since.
    #[cfg(feature = "system")]
    pub(crate) fn is_woken(&self) -> bool {
        !lock(&self.woken.0).queue.is_empty()
    }

    /// Adds a future, to be polled soon.
    pub(crate) fn push(&mut self, work: BoxFuture<'a>) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let task_waker = Arc::new(TaskWaker {
            index,
            is_queued: AtomicBool::new(false),
            woken: Arc::clone(&self.woken),
        });
        let waker = Waker::from(Arc::clone(&task_waker));
        Arc::clone(&task_waker).wake();
        self.slots[index] = Some(TaskSlot {
            work,
            task_waker,
            waker,
        });
    }

    /// Polls each future that was woken, once. A panic ends the future that it comes from.
    pub(crate) fn poll(&mut self, poller: &Waker) {
        for task_waker in self.take_woken(poller) {
            let Some(Some(slot)) = self.slots.get_mut(task_waker.index) else {
                continue;
            };
            if !Arc::ptr_eq(&slot.task_waker, &task_waker) {
                // Another one has its slot now.
                continue;
            }
            // From here on it can be woken again.
            task_waker.is_queued.store(false, SeqCst);
            let mut context = Context::from_waker(&slot.waker);
            let polled = catch_unwind(AssertUnwindSafe(|| slot.work.as_mut().poll(&mut context)));
            match polled {
                Ok(Poll::Pending) => continue,
                Ok(Poll::Ready(())) => {}
                Err(panic) => forget_quietly(panic),
            }
            self.end(task_waker.index);
        }
    }

    fn take_woken(&self, poller: &Waker) -> Vec<Arc<TaskWaker>> {
        let mut list = lock(&self.woken.0);
        let known = list.poller.as_ref();
        let old = if known.is_some_and(|known| known.will_wake(poller)) {
            None
        } else {
            list.poller.replace(poller.clone())
        };
        let queue = std::mem::take(&mut list.queue);
        drop(list);
        drop(old);
        queue
    }

    fn end(&mut self, index: usize) {
        let ended = self.slots[index].take();
        self.free.push(index);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(ended))) {
            forget_quietly(panic);
        }
    }
}

impl Drop for TaskSet<'_> {
    fn drop(&mut self) {
        for index in 0..self.slots.len() {
            self.end(index);
        }
        let mut list = lock(&self.woken.0);
        list.over = true;
        // The wakers refer to the list, and the list to them.
        let left = (list.poller.take(), std::mem::take(&mut list.queue));
        drop(list);
        drop(left);
    }
}
