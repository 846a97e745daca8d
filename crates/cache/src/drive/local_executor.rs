//! A local executor: one thread that polls futures, one for each cache that it works for. Between
//! polls it sleeps.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use tidewheel_time::waker_of;

use crate::drive::task_set::{BoxFuture, TaskSet};
use crate::drive::timers::{ThreadSleep, Timers};
use crate::events::reentrancy;
use crate::sync::{Mutex, lock};

/// The queue and timers of one thread. Any thread may spawn a future on it.
pub(crate) struct LocalExecutor {
    timers: Arc<Timers>,
    inbox: Mutex<Inbox>,
    thread: OnceLock<thread::Thread>,
}

struct Inbox {
    spawned: Vec<BoxFuture<'static>>,
    /// True if nothing more will be spawned.
    over: bool,
    /// True if the inbox changed since the thread looked.
    news: bool,
}

impl LocalExecutor {
    pub(crate) fn new() -> Self {
        Self {
            timers: Arc::new(Timers::new()),
            inbox: Mutex::new(Inbox {
                spawned: Vec::new(),
                over: false,
                news: false,
            }),
            thread: OnceLock::new(),
        }
    }

    /// Adds a future, for the thread to poll to its end.
    pub(crate) fn spawn(&self, task: BoxFuture<'static>) {
        self.tell(|inbox| inbox.spawned.push(task));
    }

    /// The thread ends once all its futures have.
    pub(crate) fn end(&self) {
        self.tell(|inbox| inbox.over = true);
    }

    /// Makes the thread look at everything again.
    pub(crate) fn ask(&self) {
        self.tell(|_| ());
    }

    fn tell(&self, change: impl FnOnce(&mut Inbox)) {
        let mut inbox = lock(&self.inbox);
        change(&mut inbox);
        inbox.news = true;
        drop(inbox);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Returns the function by which futures of this thread sleep.
    pub(crate) fn sleeper(&self) -> impl Fn(Duration) -> ThreadSleep + Send + Sync + 'static {
        let timers = Arc::clone(&self.timers);
        move |duration| timers.sleep(duration)
    }

    /// The thread. `errand` is what it does beside, whenever it wakes.
    pub(crate) fn run(&self, errand: &dyn Fn()) {
        reentrancy::work_for_caches();
        let own = thread::current();
        let waker = waker_of(own.clone());
        // Whoever comes before this is seen by the first look.
        let _ = self.thread.set(own);
        let mut tasks = TaskSet::new();
        loop {
            let over = self.look(&mut tasks);
            errand();
            tasks.poll(&waker);
            if over && tasks.len() == 0 {
                return;
            }
            let next = self.timers.fire();
            // A look just before the sleep: user code may have used up the call that was to prevent
            // it.
            if tasks.is_woken() || lock(&self.inbox).news {
                continue;
            }
            match next {
                Some(left) => thread::park_timeout(left),
                None => thread::park(),
            }
        }
    }

    /// Takes what has come; whether that was all.
    fn look(&self, tasks: &mut TaskSet<'static>) -> bool {
        let mut inbox = lock(&self.inbox);
        inbox.news = false;
        let spawned = std::mem::take(&mut inbox.spawned);
        let over = inbox.over;
        drop(inbox);
        spawned.into_iter().for_each(|task| tasks.push(task));
        over
    }
}
