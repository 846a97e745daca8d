//! What a scheduler's threads share: shards, alarm, queue, handler; the passes of the timing thread.

use std::cell::Cell;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::thread::{self, ThreadId};
use std::time::Duration;

use tidewheel_time::{Alarm, Moment, NEVER, Readings, waker_of};

use crate::builder::BackPressure;
use crate::handle::{Handle, Run};
use crate::lateness::Recorder;
use crate::panics::survive;
use crate::queue::Queue;
use crate::shards::Shards;
use crate::tasks::Due;

/// Timer records touched in one hold of a shard's lock.
const RECORDS_PER_HOLD: u32 = 128;

/// Units of tidying in one hold of a shard's lock.
const TIDY_PER_HOLD: u32 = 64;

/// How long after tasks have left memory is tidied: what is about to go need not be moved.
const CALM_TICKS: u64 = 100;

/// How long timing pauses after a panic of user code that only it could see, such as a clock's.
const AFTER_PANIC: Duration = Duration::from_millis(1);

pub(crate) type Handler<K, V, S> = dyn Fn(&Handle<K, V, S>, Run<K, V>) + Send + Sync;

/// What was counted outside of the shards.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) completed: AtomicU64,
    pub(crate) panicked: AtomicU64,
    pub(crate) dropped: AtomicU64,
    pub(crate) lateness: Recorder,
}

pub(crate) struct Inner<K, V, S> {
    pub(crate) shards: Shards<K, V, S>,
    pub(crate) alarm: Arc<Alarm>,
    pub(crate) timing_thread: OnceLock<ThreadId>,
    pub(crate) queue: Queue<K, V>,
    pub(crate) back_pressure: BackPressure,
    pub(crate) clock: Readings,
    pub(crate) counters: Counters,
    pub(crate) handler: Box<Handler<K, V, S>>,
    /// Whether calls of `advance` run the tasks, and no threads.
    pub(crate) manual: bool,
}

impl<K, V, S> fmt::Debug for Inner<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("alarm", &self.alarm)
            .field("back_pressure", &self.back_pressure)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

thread_local! {
    /// Whether this thread runs handlers: it must not wait for room that only it can make.
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// What one look at the shards has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pass {
    pub(crate) fired: u64,
    pub(crate) moved: u64,
    /// More is due.
    pub(crate) backlog: bool,
    /// More is due, but the queue is full.
    pub(crate) starved: bool,
}

/// When memory is tidied next, and which shard is looked at first.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    tidy_at: Option<u64>,
    first: usize,
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// Under [`BackPressure::Wait`], waits while the queue is full.
    pub(crate) fn make_room(&self) {
        let waits = self.back_pressure == BackPressure::Wait && !self.manual;
        if waits && !IS_WORKER.get() {
            self.queue.wait_for_room();
        }
    }

    /// Takes out what is due, a hold of each shard in turn, and hands it to `sink`; `left` bounds the timer
    /// records. `room` tells how many more tasks may be taken.
    pub(crate) fn pass(
        &self,
        rounds: &mut Rounds,
        now: u64,
        left: &mut u32,
        room: impl Fn() -> usize,
        mut sink: impl FnMut(&mut Vec<Due<K, V>>),
    ) -> Pass {
        let count = self.shards.count();
        let mut batch = Vec::new();
        let mut pass = Pass::default();
        loop {
            let mut backlog = false;
            for step in 0..count {
                let at = (rounds.first + step) % count;
                if !self.shards.wants(at, now) {
                    continue;
                }
                let room = room();
                if room == 0 || *left == 0 {
                    // Begin here next time: no shard starves.
                    rounds.first = at;
                    pass.starved = room == 0;
                    pass.backlog = true;
                    return pass;
                }
                let budget = RECORDS_PER_HOLD
                    .min(*left)
                    .min(u32::try_from(room).unwrap_or(u32::MAX));
                let progress = self.shards.advance(at, now, budget, &mut batch);
                // A bound that was found later counts as one unit, so that every call ends.
                *left -= budget.min((progress.fired + progress.moved).max(1));
                pass.fired += u64::from(progress.fired);
                pass.moved += u64::from(progress.moved);
                backlog |= progress.backlog;
                sink(&mut batch);
            }
            if !backlog {
                return pass;
            }
        }
    }

    /// Tidies a little of every shard; tells whether more is worth doing.
    fn tidy(&self) -> bool {
        let mut more = false;
        for at in 0..self.shards.count() {
            let mut held = self.shards.hold(at);
            more |= held.state.tasks.maintain(TIDY_PER_HOLD);
            held.publish();
        }
        more
    }

    /// Runs one task on this thread and counts how it went. Whatever the handler does, it comes back.
    pub(crate) fn run(self: &Arc<Self>, due: Due<K, V>) {
        let was_worker = IS_WORKER.replace(true);
        let outcome = survive(|| {
            let late = self.now().since(due.deadline);
            self.counters.lateness.record(late);
            let run = Run {
                key: due.key,
                value: due.value,
                late,
                missed: due.missed,
            };
            (self.handler)(&Handle::of(Arc::clone(self)), run);
        });
        IS_WORKER.set(was_worker);
        let count = match outcome {
            Some(()) => &self.counters.completed,
            None => &self.counters.panicked,
        };
        count.fetch_add(1, Relaxed);
    }

    /// The timing thread. User code that runs on it (copies, drops, hashes, the clock) may panic: timing goes on.
    pub(crate) fn keep_time(&self) {
        let thread = thread::current();
        self.timing_thread.get_or_init(|| thread.id());
        self.alarm.set_sleeper(&waker_of(thread));
        let sleeper = Waker::from(Arc::clone(&self.alarm));
        let mut rounds = Rounds::default();
        while !self.alarm.is_stopped() {
            if survive(|| self.turn(&mut rounds, &sleeper)).is_none() {
                self.counters.panicked.fetch_add(1, Relaxed);
                thread::park_timeout(AFTER_PANIC);
            }
        }
    }

    /// A turn of the timing thread: what is due, then a step of tidying or a sleep.
    fn turn(&self, rounds: &mut Rounds, sleeper: &Waker) {
        self.alarm.take_request();
        let now = self.now().tick();
        let pass = self.queue_due(rounds, now);
        if pass.starved {
            // A worker wakes it; what became due meanwhile is found then.
            if self.alarm.fall_asleep(NEVER, || NEVER) {
                thread::park();
            }
            self.alarm.woke();
            return;
        }
        if pass.fired > 0 {
            rounds.tidy_at.get_or_insert(now + CALM_TICKS);
        }
        if let Some(at) = rounds.tidy_at.take_if(|at| *at <= now) {
            // Not before the next firing, if a key's hash panics in it.
            if self.tidy() {
                rounds.tidy_at = Some(at);
                return;
            }
        }
        let until = self.shards.next().min(rounds.tidy_at.unwrap_or(NEVER));
        if until > now {
            self.sleep(until, sleeper);
        }
    }

    /// Moves what is due to the queue, as far as there is room; or drops it.
    fn queue_due(&self, rounds: &mut Rounds, now: u64) -> Pass {
        let room = || match self.back_pressure {
            BackPressure::Drop => usize::MAX,
            BackPressure::Wait | BackPressure::RunLate => self.queue.room(),
        };
        let mut left = u32::MAX;
        self.pass(rounds, now, &mut left, room, |batch| {
            self.queue.push(batch);
            // One by one: a drop that panics takes no other with it.
            for due in batch.drain(..) {
                self.counters.dropped.fetch_add(1, Relaxed);
                survive(|| drop(due));
            }
        })
    }

    /// Sleeps until a tick, or until it is woken.
    fn sleep(&self, until: u64, sleeper: &Waker) {
        if !self.alarm.fall_asleep(until, || self.shards.next()) {
            return;
        }
        // First known to the clock, then a look at it: a move by hand is seen, or it wakes.
        self.clock.wake_when_moved(sleeper);
        let now = self.now();
        if until == NEVER {
            thread::park();
        } else if now.tick() < until {
            thread::park_timeout(now.until(until));
        }
        self.alarm.woke();
    }

    /// Whether this is the timing thread.
    pub(crate) fn is_timing_thread(&self) -> bool {
        self.timing_thread.get() == Some(&thread::current().id())
    }

    /// A worker.
    pub(crate) fn work(self: &Arc<Self>) {
        while let Some(taken) = self.queue.take() {
            if taken.wake_timing {
                self.alarm.ask();
            }
            self.run(taken.job);
            self.queue.done();
        }
    }
}
