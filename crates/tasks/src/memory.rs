//! A store in memory, with the time of any clock: for tests, and for tasks that need not survive.

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidewheel_time::{Clock, SystemClock};

use crate::shape::claim::{Claim, Verdict};
use crate::shape::counts::Counts;
use crate::shape::dead::DeadLetter;
use crate::shape::error::StoreError;
use crate::shape::look::{Look, State, check_note};
use crate::shape::many;
use crate::shape::queue::{QueueChange, QueueRules};
use crate::shape::task::{Due, Task, check_id};
use crate::shape::timestamp::Timestamp;
use crate::store::{Ask, Failure, TaskStore, Wake};
use crate::table::Table;

/// Tasks in memory. The wall time of its clock is the engine's time. Several workers can share one
/// by an [`Arc`].
///
/// With [`set_down`](Self::set_down) it is an engine that cannot be reached.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Box<dyn Clock>,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    table: Table,
    down: bool,
    wakes: Vec<Wake>,
}

impl std::fmt::Debug for Inside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inside")
            .field("tasks", &self.table.len())
            .field("down", &self.down)
            .finish_non_exhaustive()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// Makes a store by the operating system's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(SystemClock::new())
    }

    /// Makes a store by another clock, such as a [`ManualClock`](crate::ManualClock).
    #[must_use]
    pub fn with_clock(clock: impl Clock) -> Self {
        Self {
            clock: Box::new(clock),
            inside: Mutex::default(),
        }
    }

    /// Makes every call fail from now on, and change nothing.
    pub fn set_down(&self, down: bool) {
        self.lock().down = down;
    }

    /// Tasks that are pending or claimed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().table.len()
    }

    /// True if the store has no tasks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one step of the table, unless the engine is down.
    fn step<T>(&self, act: impl FnOnce(&mut Table, Timestamp) -> T) -> Answered<T> {
        let mut inside = self.lock();
        if inside.down {
            return ready(Err(StoreError::engine("it is down")));
        }
        let now = Timestamp::from(self.clock.wall());
        let value = act(&mut inside.table, now);
        // There is no disk here that wants to know.
        inside.table.take_touched();
        ready(Ok(value))
    }

    /// A step about an id, if it is one.
    fn step_of<T>(&self, id: &str, act: impl FnOnce(&mut Table, Timestamp) -> T) -> Answered<T> {
        match check_id(id) {
            Ok(()) => self.step(act),
            Err(refused) => ready(Err(refused)),
        }
    }

    fn wake(&self) {
        let wakes = self.lock().wakes.clone();
        wakes.iter().for_each(|wake| wake());
    }
}

/// An answer that the memory gives at once.
type Answered<T> = std::future::Ready<Result<T, StoreError>>;

impl TaskStore for MemoryStore {
    fn schedule(&self, task: Task) -> impl Future<Output = Result<Timestamp, StoreError>> + Send {
        if let Err(refused) = task.check() {
            return ready(Err(refused));
        }
        let answer = self.step(|table, now| table.schedule(task, now));
        self.wake();
        ready(answer.into_inner().and_then(|kept| kept))
    }

    fn schedule_many(
        &self,
        tasks: Vec<Task>,
    ) -> impl Future<Output = Result<Vec<Option<Timestamp>>, StoreError>> + Send {
        if let Err(refused) = many::check(&tasks) {
            return ready(Err(refused));
        }
        let answer = self.step(|table, now| {
            let kept = tasks.into_iter().map(|task| table.schedule(task, now));
            kept.map(many::unless_duplicate).collect()
        });
        self.wake();
        ready(answer.into_inner().and_then(|kept: Result<_, _>| kept))
    }

    fn ensure(&self, task: Task) -> impl Future<Output = Result<bool, StoreError>> + Send {
        if let Err(refused) = task.check() {
            return ready(Err(refused));
        }
        let answer = self.step(|table, now| table.ensure(task, now));
        self.wake();
        ready(answer.into_inner().and_then(|kept| kept))
    }

    fn list(
        &self,
        state: State,
        queue: Option<&str>,
        after: Option<&str>,
        most: usize,
    ) -> impl Future<Output = Result<Vec<Look>, StoreError>> + Send {
        self.step(|table, now| table.list((state, queue), after, most, now))
    }

    fn counts(&self) -> impl Future<Output = Result<BTreeMap<String, Counts>, StoreError>> + Send {
        self.step(|table, now| table.counts(now))
    }

    fn cancel(&self, id: &str) -> impl Future<Output = Result<bool, StoreError>> + Send {
        self.step_of(id, |table, _| table.cancel(id))
    }

    fn reschedule(
        &self,
        id: &str,
        due: Due,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        let answer = self.step_of(id, |table, now| table.reschedule(id, due, now));
        self.wake();
        answer
    }

    fn claim(&self, ask: Ask) -> impl Future<Output = Result<Vec<Claim>, StoreError>> + Send {
        self.step(|table, now| table.claim(&ask, now))
    }

    fn extend(
        &self,
        claims: &[Arc<Claim>],
        lease: Duration,
    ) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send {
        self.step(|table, now| {
            let extended = claims.iter().map(|claim| table.extend(claim, lease, now));
            extended.collect()
        })
    }

    fn done(
        &self,
        claims: &[Arc<Claim>],
    ) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send {
        self.step(|table, now| claims.iter().map(|claim| table.done(claim, now)).collect())
    }

    fn fail(
        &self,
        claim: &Claim,
        failure: Failure,
    ) -> impl Future<Output = Result<Verdict, StoreError>> + Send {
        self.step(|table, now| table.fail(claim, failure, now))
    }

    fn note_start(
        &self,
        claim: &Arc<Claim>,
    ) -> impl Future<Output = Result<Verdict, StoreError>> + Send {
        self.step(|table, _| table.note_start(claim))
    }

    fn release(
        &self,
        claims: &[Arc<Claim>],
    ) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send {
        let answer =
            self.step(|table, _| claims.iter().map(|claim| table.release(claim)).collect());
        self.wake();
        answer
    }

    fn now(&self) -> impl Future<Output = Result<Timestamp, StoreError>> + Send {
        self.step(|_, now| Timestamp(now.0))
    }

    fn dead_letters(
        &self,
        most: usize,
    ) -> impl Future<Output = Result<Vec<DeadLetter>, StoreError>> + Send {
        self.step(|table, _| table.letters(most))
    }

    fn requeue(&self, id: &str, due: Due) -> impl Future<Output = Result<bool, StoreError>> + Send {
        let answer = self.step_of(id, |table, now| table.requeue(id, due, now));
        self.wake();
        answer
    }

    fn remove_dead(&self, id: &str) -> impl Future<Output = Result<bool, StoreError>> + Send {
        self.step_of(id, |table, _| table.remove_dead(id))
    }

    fn progress(
        &self,
        claim: &Claim,
        progress: Vec<u8>,
    ) -> impl Future<Output = Result<Verdict, StoreError>> + Send {
        if let Err(refused) = check_note(&progress) {
            return ready(Err(refused));
        }
        self.step(|table, _| table.progress(claim, progress))
    }

    fn look(&self, id: &str) -> impl Future<Output = Result<Option<Look>, StoreError>> + Send {
        self.step_of(id, |table, now| table.look(id, now))
    }

    fn change_queue(
        &self,
        queue: &str,
        change: QueueChange,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        if let Err(refused) = change.check(queue) {
            return ready(Err(refused));
        }
        let changed = self.step(|table, _| table.change_queue(queue, change));
        self.wake();
        changed
    }

    fn queue_rules(
        &self,
    ) -> impl Future<Output = Result<BTreeMap<String, QueueRules>, StoreError>> + Send {
        self.step(|table, _| table.queue_rules())
    }

    fn on_arrival(&self, wake: Wake) {
        self.lock().wakes.push(wake);
    }
}
