//! One thread of a driver: what it drives has turns, and between them the thread sleeps.

use std::sync::OnceLock;
use std::thread;

use tidewheel_time::waker_of;

use crate::core::driven::Driven;
use crate::drive::group::Group;
use crate::drive::timers::ThreadTimers;
use crate::sync::{Mutex, lock};

/// A thread as others see it: any thread may give it something to drive.
pub(crate) struct DrivingThread {
    inbox: Mutex<Inbox>,
    thread: OnceLock<thread::Thread>,
}

struct Inbox {
    joined: Vec<Box<dyn Driven>>,
    /// True if nothing more will join.
    over: bool,
    /// True if the inbox changed since the thread looked.
    news: bool,
}

impl DrivingThread {
    pub(crate) fn new() -> Self {
        Self {
            inbox: Mutex::new(Inbox {
                joined: Vec::new(),
                over: false,
                news: false,
            }),
            thread: OnceLock::new(),
        }
    }

    /// Lets the thread drive something to its end.
    pub(crate) fn join(&self, work: Box<dyn Driven>) {
        self.tell(|inbox| inbox.joined.push(work));
    }

    /// The thread ends once all that it drives has.
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

    /// The thread. `errand` is what it does beside, whenever it wakes.
    pub(crate) fn run(&self, errand: &dyn Fn()) {
        let own = thread::current();
        let waker = waker_of(own.clone());
        // Whoever comes before this is seen by the first look.
        let _ = self.thread.set(own);
        let mut group = Group::new(ThreadTimers::new());
        loop {
            let over = self.look(&mut group);
            errand();
            group.poll(&waker);
            if over && group.len() == 0 {
                return;
            }
            let next = group.fire();
            // A look just before the sleep: user code may have used up the call that was to prevent
            // it.
            if group.is_woken() || lock(&self.inbox).news {
                continue;
            }
            match next {
                Some(left) => thread::park_timeout(left),
                None => thread::park(),
            }
        }
    }

    /// Takes what has come; whether that was all.
    fn look(&self, group: &mut Group<ThreadTimers>) -> bool {
        let mut inbox = lock(&self.inbox);
        inbox.news = false;
        let joined = std::mem::take(&mut inbox.joined);
        let over = inbox.over;
        drop(inbox);
        joined.into_iter().for_each(|work| group.push(work));
        over
    }
}
