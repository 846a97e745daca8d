//! The alarm of one thread or task that sleeps until a deadline: it ends the sleep, and loses no
//! wake-up.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;

use crate::sync::{
    AtomicBool, AtomicU64, Mutex,
    Ordering::{Relaxed, SeqCst},
    lock,
};

/// The tick stored while the sleeper is awake: no deadline is earlier.
const AWAKE: u64 = 0;

/// Until when a thread or a task sleeps, and who may end that.
///
/// The sleeper goes round and round:
///
/// 1. [`take_request`](Self::take_request), then look at everything that others may ask for;
/// 2. do what is due, and find the tick until which nothing is;
/// 3. [`fall_asleep`](Self::fall_asleep) until that tick. If it says no, something has come up: go
///    to 1;
/// 4. sleep, until the tick or until the waker is called;
/// 5. [`woke`](Self::woke).
///
/// Others [publish](crate::Soonest) an earlier deadline and then call [`lowered`](Self::lowered),
/// or change something else that the sleeper looks at and then [`ask`](Self::ask) for its
/// attention.
///
/// # Why no wake-up is lost
///
/// The sleeper stores the tick that it sleeps until, and *then* reads the deadline and the request.
/// Others store the deadline or the request, and *then* read that tick. All these accesses are
/// sequentially consistent. So they have one order, in which one side's read comes after the other
/// side's store: either the sleeper sees what has come up and stays awake, or the other one sees
/// the sleep and ends it.
///
/// The first to end a sleep swaps the tick for "awake", so one sleep costs at most one call of the
/// waker, however many threads want to end it.
#[derive(Debug)]
pub struct Alarm {
    sleeps_until: AtomicU64,
    /// Something else than a deadline wants the sleeper's attention.
    request: AtomicBool,
    /// No sleep begins any more.
    stopped: AtomicBool,
    sleeper: Mutex<Option<Waker>>,
}

impl Default for Alarm {
    fn default() -> Self {
        Self::new()
    }
}

impl Alarm {
    /// An alarm that wakes nobody yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            sleeps_until: AtomicU64::new(AWAKE),
            request: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            sleeper: Mutex::new(None),
        }
    }

    /// Whom to wake from now on. To be said before a sleep is announced.
    pub fn set_sleeper(&self, waker: &Waker) {
        let mut sleeper = lock(&self.sleeper);
        if sleeper.as_ref().is_some_and(|old| old.will_wake(waker)) {
            return;
        }
        let old = sleeper.replace(waker.clone());
        drop(sleeper);
        // Not under the lock: a waker is the runtime's code.
        drop(old);
    }

    /// The sleeper is no more. Does nothing if it has a successor.
    pub fn unset_sleeper(&self, waker: &Waker) {
        let own = lock(&self.sleeper).take_if(|sleeper| sleeper.will_wake(waker));
        if own.is_some() {
            self.woke();
        }
    }

    /// A deadline became earlier, and that has been published. Ends the sleep if it is longer, and
    /// tells whether it did.
    #[inline]
    pub fn lowered(&self, deadline: u64) -> bool {
        deadline < self.sleeps_until.load(SeqCst) && self.wake()
    }

    /// Something has changed that the sleeper should look at soon: ends its sleep, or prevents the
    /// next one.
    pub fn ask(&self) {
        self.request.store(true, SeqCst);
        if self.sleeps_until.load(SeqCst) != AWAKE {
            self.wake();
        }
    }

    /// Returns whether a thread has asked for attention.
    #[inline]
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.request.load(Relaxed)
    }

    /// Returns whether a thread has asked for attention since the last call. What was changed
    /// before is seen by those who look after this call.
    #[inline]
    pub fn take_request(&self) -> bool {
        self.is_requested() && self.request.swap(false, SeqCst)
    }

    /// Ends the sleep for good: none begins any more.
    pub fn stop(&self) {
        self.stopped.store(true, SeqCst);
        self.ask();
    }

    /// Returns whether the sleeper is to end.
    #[inline]
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(SeqCst)
    }

    /// Announces a sleep until tick `until`. `next` reads the published deadline. `false` when
    /// something has come up: do not sleep.
    pub fn fall_asleep(&self, until: u64, next: impl FnOnce() -> u64) -> bool {
        self.sleeps_until.store(until.max(AWAKE + 1), SeqCst);
        let stays = next() < until || self.request.load(SeqCst) || self.is_stopped();
        if stays {
            self.woke();
        }
        !stays
    }

    /// Returns whether the sleeper sleeps, and nothing has ended that.
    #[inline]
    #[must_use]
    pub fn sleeps(&self) -> bool {
        self.sleeps_until.load(SeqCst) != AWAKE
    }

    /// Returns whether the sleeper sleeps, and wakes by itself at tick `by` at the latest.
    #[inline]
    #[must_use]
    pub fn sleeps_until(&self, by: u64) -> bool {
        let until = self.sleeps_until.load(SeqCst);
        until != AWAKE && until <= by
    }

    /// The sleep is over.
    #[inline]
    pub fn woke(&self) {
        self.sleeps_until.store(AWAKE, Relaxed);
    }

    #[cold]
    fn wake(&self) -> bool {
        let first = self.sleeps_until.swap(AWAKE, SeqCst) != AWAKE;
        if first {
            let waker = lock(&self.sleeper).clone();
            // Not under the lock: a waker is the runtime's code, and may poll the sleeper at once.
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        first
    }
}

/// As a waker, for clocks that are moved by hand: an alarm asks for its sleeper's attention.
impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.ask();
    }
}

/// A waker that unparks a thread.
#[must_use]
pub fn waker_of(thread: Thread) -> Waker {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    Waker::from(Arc::new(Unpark(thread)))
}

#[cfg(all(test, not(all(shuttle, feature = "shuttle"))))]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::soonest::{NEVER, Soonest};

    #[derive(Default)]
    struct CountingWaker(AtomicUsize);

    impl Wake for CountingWaker {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    fn counted() -> (Alarm, Arc<CountingWaker>) {
        let (alarm, count) = (Alarm::new(), Arc::new(CountingWaker::default()));
        alarm.set_sleeper(&Waker::from(Arc::clone(&count)));
        (alarm, count)
    }

    #[test]
    fn only_an_earlier_deadline_ends_a_sleep_and_only_once() {
        let (alarm, count) = counted();
        assert!(!alarm.lowered(100), "nobody sleeps");
        assert!(!alarm.fall_asleep(200, || 100), "a deadline came up before");
        assert!(!alarm.sleeps());
        assert!(alarm.fall_asleep(100, || 100));
        assert!(!alarm.lowered(100) && !alarm.lowered(150));
        assert!(alarm.lowered(99));
        assert!(!alarm.lowered(98), "one call for one sleep");
        assert_eq!(count.0.load(SeqCst), 1);
    }

    #[test]
    fn a_request_prevents_or_ends_a_sleep() {
        let (alarm, count) = counted();
        alarm.ask();
        assert!(!alarm.fall_asleep(NEVER, || NEVER));
        assert!(alarm.take_request() && !alarm.take_request());
        assert!(alarm.fall_asleep(NEVER, || NEVER));
        alarm.ask();
        assert_eq!((count.0.load(SeqCst), alarm.sleeps()), (1, false));
    }

    #[test]
    fn who_has_missed_the_request_to_stop_does_not_sleep_either() {
        let (alarm, _) = counted();
        alarm.stop();
        alarm.take_request();
        assert!(!alarm.fall_asleep(NEVER, || NEVER));
        assert!(alarm.is_stopped());
    }

    #[test]
    fn a_sleep_that_begins_while_deadlines_are_read_again_is_ended() {
        let (alarm, count) = counted();
        let soonest = Soonest::new();
        soonest.forget();
        assert!(
            alarm.fall_asleep(NEVER, || soonest.get()),
            "nothing is known"
        );
        soonest.lower(70);
        assert!(alarm.lowered(soonest.get()));
        assert_eq!(count.0.load(SeqCst), 1);
    }

    #[test]
    fn a_sleeper_that_goes_takes_no_successor_along() {
        let (alarm, count) = counted();
        let old = Waker::from(Arc::new(CountingWaker::default()));
        assert!(alarm.fall_asleep(10, || NEVER));
        alarm.unset_sleeper(&old);
        assert!(alarm.sleeps());
        alarm.unset_sleeper(&Waker::from(Arc::clone(&count)));
        assert!(!alarm.sleeps());
        alarm.ask();
        assert_eq!(count.0.load(SeqCst), 0);
    }
}

/// A lost wake-up would be a deadlock, which shuttle reports:
/// `RUSTFLAGS="--cfg shuttle" cargo test -p tidewheel-time --features shuttle --lib --release`.
#[cfg(all(test, shuttle, feature = "shuttle"))]
mod schedules {
    use shuttle::thread;

    use super::*;
    use crate::soonest::{NEVER, Soonest};

    const RUNS: usize = 20_000;
    /// Ordering constraints that a PCT run looks for.
    const DEPTH: usize = 3;

    struct Unpark(thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    #[derive(Default)]
    struct Shared {
        alarm: Alarm,
        soonest: Soonest,
        wish: AtomicBool,
    }

    /// Goes round until a deadline of 5 and a wish have been seen.
    fn sleeper(shared: &Shared) {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        shared.alarm.set_sleeper(&waker);
        loop {
            shared.alarm.take_request();
            let wished = shared.wish.load(SeqCst);
            let next = shared.soonest.get();
            if wished && next <= 5 {
                return;
            }
            let until = if next <= 5 { NEVER } else { next };
            let unseen = || {
                if next <= 5 {
                    NEVER
                } else {
                    shared.soonest.get()
                }
            };
            if shared.alarm.fall_asleep(until, unseen) {
                thread::park();
            }
            shared.alarm.woke();
        }
    }

    fn nobody_sleeps_for_ever() {
        let shared = Arc::new(Shared::default());
        shared.soonest.publish(10);
        let others: [fn(&Shared); 3] = [
            |shared| {
                if shared.soonest.lower(5) {
                    shared.alarm.lowered(5);
                }
            },
            |shared| {
                if shared.soonest.lower(7) {
                    shared.alarm.lowered(7);
                }
            },
            |shared| {
                shared.wish.store(true, SeqCst);
                shared.alarm.ask();
            },
        ];
        let others = others.map(|other| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || other(&shared))
        });
        sleeper(&shared);
        for other in others {
            other.join().expect("no panic");
        }
    }

    #[test]
    fn no_wake_up_is_lost() {
        shuttle::check_random(nobody_sleeps_for_ever, RUNS);
        shuttle::check_pct(nobody_sleeps_for_ever, RUNS, DEPTH);
    }
}
