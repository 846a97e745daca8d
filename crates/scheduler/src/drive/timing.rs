//! The timing thread moves due tasks to the queue, tidies memory, and sleeps until the next
//! deadline.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;
use std::thread;
use std::time::Duration;

use tidewheel_time::{NEVER, waker_of};

use crate::drive::inner::{Inner, Pass, Rounds};
use crate::drive::queue::BackPressure;
use crate::ground::panics::survive;

/// Units of tidying in one hold of a shard's lock.
const TIDY_PER_HOLD: u32 = 64;

/// Memory is tidied so long after tasks have left: a record that is about to go need not be moved.
const CALM_TICKS: u64 = 100;

/// The pause of timing after a panic of user code that only it could see, such as a clock's.
const AFTER_PANIC: Duration = Duration::from_millis(1);

/// The timing thread's state between turns.
struct Timing<'a, K, V, S> {
    inner: &'a Inner<K, V, S>,
    rounds: Rounds,
    /// The time at which memory is tidied next.
    tidy_at: Option<u64>,
    /// Wakes this thread when the clock is moved by hand.
    sleeper: Waker,
}

/// Runs the timing thread until its alarm is stopped. User code that runs on it (copies, drops,
/// hashes, the clock) may panic: timing goes on.
pub(crate) fn keep_time<K: Hash + Eq, V, S: BuildHasher>(inner: &Inner<K, V, S>) {
    let thread = thread::current();
    inner.timing_thread.get_or_init(|| thread.id());
    inner.alarm.set_sleeper(&waker_of(thread));
    let mut timing = Timing {
        inner,
        rounds: Rounds::default(),
        tidy_at: None,
        sleeper: Waker::from(Arc::clone(&inner.alarm)),
    };
    while !inner.alarm.is_stopped() {
        if survive(|| timing.turn()).is_none() {
            inner.counters.on_timing.fetch_add(1, Relaxed);
            thread::park_timeout(AFTER_PANIC);
        }
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Timing<'_, K, V, S> {
    /// A turn: first what is due, then a step of tidying or a sleep.
    fn turn(&mut self) {
        self.inner.alarm.take_request();
        let now = self.inner.now().tick();
        let pass = self.queue_due(now);
        if pass.starved {
            self.sleep_until_workers_ask();
            return;
        }
        if pass.fired > 0 {
            self.tidy_at.get_or_insert(now + CALM_TICKS);
        }
        if let Some(at) = self.tidy_at.take_if(|at| *at <= now) {
            // Not before the next firing, if a key's hash panics in it.
            if self.tidy() {
                self.tidy_at = Some(at);
                return;
            }
        }
        let next = self.inner.shards.next();
        let until = next.min(self.tidy_at.unwrap_or(NEVER));
        if until > now {
            self.sleep(until);
        }
    }

    /// Moves what is due to the queue until the queue is full; or drops what does not fit.
    fn queue_due(&mut self, now: u64) -> Pass {
        let Inner {
            queue, counters, ..
        } = self.inner;
        let room = || match self.inner.back_pressure {
            BackPressure::Drop => usize::MAX,
            BackPressure::Wait | BackPressure::RunLate => queue.room(),
        };
        let mut budget = u32::MAX;
        let rounds = &mut self.rounds;
        self.inner.pass(rounds, now, &mut budget, room, |batch| {
            queue.push(batch);
            // One by one: a drop that panics takes no other with it.
            for due in batch.drain(..) {
                counters.drop_one();
                survive(|| drop(due));
            }
        })
    }

    /// Tidies a little of every shard; tells whether more is worth doing.
    fn tidy(&self) -> bool {
        let shards = &self.inner.shards;
        let mut more = false;
        for at in 0..shards.count() {
            let mut held = shards.hold(at);
            more |= held.state.tasks.maintain(TIDY_PER_HOLD);
            held.publish();
        }
        more
    }

    /// Sleeps while the queue is full: a worker wakes it, and then it finds what became due
    /// meanwhile.
    fn sleep_until_workers_ask(&self) {
        if self.inner.alarm.fall_asleep(NEVER, || NEVER) {
            thread::park();
        }
        self.inner.alarm.woke();
    }

    /// Sleeps until a tick, or until it is woken.
    fn sleep(&self, until: u64) {
        let Inner {
            alarm,
            shards,
            clock,
            ..
        } = self.inner;
        if !alarm.fall_asleep(until, || shards.next()) {
            return;
        }
        // Register with the clock first, and read it then. If the clock is moved by hand before the
        // reading, the reading shows it. If it is moved afterwards, it wakes this thread.
        clock.wake_when_moved(&self.sleeper);
        let now = self.inner.now();
        if until == NEVER {
            thread::park();
        } else if now.tick() < until {
            thread::park_timeout(now.until(until));
        }
        alarm.woke();
    }
}
