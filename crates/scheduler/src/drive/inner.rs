//! The threads of a scheduler share its shards, alarm, queue and handler; here they take due tasks
//! out and run them.

use std::cell::Cell;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire},
};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};

use tidewheel_time::{Alarm, Moment, Readings};

use crate::core::run::Run;
use crate::core::tasks::Due;
use crate::drive::queue::BackPressure;
use crate::drive::queue::Queue;
use crate::drive::shards::Shards;
#[cfg(feature = "metrics")]
use crate::ground::lateness::Lateness;
use crate::ground::lateness::Recorder;
use crate::ground::panics::survive;
#[cfg(feature = "metrics")]
use crate::ground::sync::Mutex;

/// Timer records touched in one hold of a shard's lock.
const RECORDS_PER_HOLD: u32 = 128;

/// The user's handler. It gets its [`Handle`](crate::Handle) from the builder, which makes one of
/// these.
pub(crate) type Handler<K, V, S> = dyn Fn(&Arc<Inner<K, V, S>>, Run<K, V>) + Send + Sync;

/// The counters that are not kept in the shards.
///
/// **Invariant: each fired task is in one count.** It was dropped, returned by a stop, or begun,
/// and one that was begun is running, or has completed, panicked or been recalled. All of these
/// only grow. They are read against the way that a task takes: the ends first, then what was begun,
/// then what the shards have fired. So a reading has every fired task once, also one that is on its
/// way from a shard to the queue: it is fired and not begun, and waits.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    begun: AtomicU64,
    completed: AtomicU64,
    panicked: AtomicU64,
    recalled: AtomicU64,
    dropped: AtomicU64,
    /// Fired tasks that a stop has returned.
    returned: AtomicU64,
    /// Futures that panicked or were dropped. Their handlers have completed.
    failed: AtomicU64,
    /// Panics of user code on the timing thread.
    pub(crate) on_timing: AtomicU64,
    pub(crate) lateness: Recorder,
}

/// A reading of the counters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) begun: u64,
    pub(crate) completed: u64,
    pub(crate) panicked: u64,
    pub(crate) recalled: u64,
    pub(crate) dropped: u64,
    returned: u64,
}

impl Counters {
    pub(crate) fn drop_one(&self) {
        self.dropped.fetch_add(1, AcqRel);
    }

    pub(crate) fn return_some(&self, count: usize) {
        self.returned.fetch_add(count as u64, AcqRel);
    }

    pub(crate) fn fail_one(&self) {
        self.failed.fetch_add(1, AcqRel);
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Acquire)
    }

    /// Read before the shards' counts.
    pub(crate) fn read(&self) -> Counted {
        let [completed, panicked, recalled, dropped, returned] = [
            &self.completed,
            &self.panicked,
            &self.recalled,
            &self.dropped,
            &self.returned,
        ]
        .map(|count| count.load(Acquire));
        Counted {
            completed,
            panicked,
            recalled,
            dropped,
            returned,
            begun: self.begun.load(Acquire),
        }
    }
}

impl Counted {
    pub(crate) fn running(&self) -> u64 {
        self.begun - self.completed - self.panicked - self.recalled
    }

    /// The number of the fired tasks that wait for a worker.
    pub(crate) fn queued(&self, fired: u64) -> u64 {
        fired - self.begun - self.dropped - self.returned
    }
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
    /// True if calls of `advance` run the tasks, and no threads.
    pub(crate) manual: bool,
    /// The scheduler's name; the counters and the lateness that the `metrics` facade was given
    /// last.
    #[cfg(feature = "metrics")]
    pub(crate) published: (String, Mutex<(Vec<u64>, Lateness)>),
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
    /// True if this thread runs handlers: it must not wait for room that only it can make.
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// The result of one pass over the shards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pass {
    pub(crate) fired: u64,
    pub(crate) moved: u64,
    /// More is due.
    pub(crate) backlog: bool,
    /// More is due, but the queue is full.
    pub(crate) starved: bool,
}

/// The shard with which the next pass begins.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    first: usize,
}

impl<K, V, S> Inner<K, V, S> {
    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// True on the timing thread.
    pub(crate) fn is_timing_thread(&self) -> bool {
        self.timing_thread.get() == Some(&thread::current().id())
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// Waits while the queue is full, under [`BackPressure::Wait`].
    pub(crate) fn wait_for_room(&self) {
        let waits = self.back_pressure == BackPressure::Wait && !self.manual;
        if waits && !IS_WORKER.get() {
            self.queue.wait_for_room();
        }
    }

    /// Takes the due tasks out of the shards and hands them to `sink`. It locks one shard after
    /// another, each time for [`RECORDS_PER_HOLD`] timer records at most, and goes round until
    /// nothing is due. It ends early when the `budget` of timer records is used up, or when `room`
    /// says that no more tasks fit. `budget` is lowered by the records touched.
    pub(crate) fn pass(
        &self,
        rounds: &mut Rounds,
        now: u64,
        budget: &mut u32,
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
                if !self.shards.is_due(at, now) {
                    continue;
                }
                let room = room();
                if room == 0 || *budget == 0 {
                    // Begin here next time: no shard starves.
                    rounds.first = at;
                    pass.starved = room == 0;
                    pass.backlog = true;
                    return pass;
                }
                let part = RECORDS_PER_HOLD
                    .min(*budget)
                    .min(u32::try_from(room).unwrap_or(u32::MAX));
                let progress = self.shards.advance(at, now, part, &mut batch);
                // A bound that was found later counts as one unit, so that every call ends.
                *budget -= part.min((progress.fired + progress.moved).max(1));
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

    /// Runs one task on this thread and counts how it went. It returns even if the handler panics.
    pub(crate) fn run(self: &Arc<Self>, due: Due<K, V>) {
        self.counters.begun.fetch_add(1, AcqRel);
        if due.recall.is_recalled() {
            self.counters.recalled.fetch_add(1, AcqRel);
            survive(|| drop(due));
            return;
        }
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
            (self.handler)(self, run);
        });
        IS_WORKER.set(was_worker);
        let count = match outcome {
            Some(()) => &self.counters.completed,
            None => &self.counters.panicked,
        };
        count.fetch_add(1, AcqRel);
    }
}
