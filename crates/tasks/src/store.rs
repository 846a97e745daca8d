//! `TaskStore` is the interface of an engine that keeps tasks.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::shape::claim::{Claim, Verdict};
use crate::shape::counts::Counts;
use crate::shape::dead::DeadLetter;
use crate::shape::error::StoreError;
use crate::shape::look::{Look, State};
use crate::shape::many::{Many, unless_duplicate};
use crate::shape::queue::{QueueChange, QueueRules, check_queue};
use crate::shape::rate::Rate;
use crate::shape::task::{Due, Task};
use crate::shape::timestamp::Timestamp;
use crate::shape::waits::{Waits, check_children};

/// A worker's question for claims.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ask {
    /// The worker's name, for people who look into the engine.
    pub worker: String,
    /// Tasks that are due within this are claimed.
    pub lookahead: Duration,
    /// The length of the claims' leases. An engine that has its own length says so in the claims.
    pub lease: Duration,
    /// The greatest number of claims.
    pub most: usize,
    /// The queues whose tasks are claimed; none for all.
    pub queues: Vec<String>,
}

impl Ask {
    /// Asks for claims that last `lease`, of tasks that are due within `lookahead`.
    pub fn new(
        worker: impl Into<String>,
        lookahead: Duration,
        lease: Duration,
        most: usize,
    ) -> Self {
        Self {
            worker: worker.into(),
            lookahead,
            lease,
            most,
            queues: Vec::new(),
        }
    }

    /// Asks for tasks of these queues only; of none for tasks of all.
    #[must_use]
    pub fn queues(mut self, queues: impl IntoIterator<Item: Into<String>>) -> Self {
        self.queues = queues.into_iter().map(Into::into).collect();
        self
    }

    /// Checks that there can be such queues.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.queues.iter().try_for_each(|queue| check_queue(queue))
    }

    /// True if tasks of a queue are asked for.
    #[must_use]
    pub fn admits(&self, queue: &str) -> bool {
        self.queues.is_empty() || self.queues.iter().any(|asked| asked == queue)
    }
}

/// A run failed: the error, and the retry if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The time of the next run; `None` if the task is a dead letter.
    pub retry: Option<Due>,
    /// The error of the run.
    pub error: String,
    /// False if the claim's attempt does not count: it did not run.
    pub counts: bool,
}

impl Failure {
    /// The task runs again.
    pub fn retry(at: Due, error: impl Into<String>) -> Self {
        let (retry, error, counts) = (Some(at), error.into(), true);
        Self {
            retry,
            error,
            counts,
        }
    }

    /// The task is a dead letter. A periodic task goes on with its next run.
    pub fn dead(error: impl Into<String>) -> Self {
        let (retry, error, counts) = (None, error.into(), true);
        Self {
            retry,
            error,
            counts,
        }
    }

    /// The task did not run, and is tried again: with the same attempt.
    #[must_use]
    pub fn put_off(at: Due) -> Self {
        Self {
            counts: false,
            ..Self::retry(at, "it waits")
        }
    }

    /// The task did not run, and never will: it is a dead letter.
    pub(crate) fn never(error: impl Into<String>) -> Self {
        Self {
            counts: false,
            ..Self::dead(error)
        }
    }

    /// The number of the next attempt.
    pub(crate) fn next_attempt(&self, attempt: u32) -> u32 {
        attempt.saturating_add(u32::from(self.counts))
    }

    /// The number of attempts, of which the last has the given number.
    pub(crate) fn attempts(&self, attempt: u32) -> u32 {
        attempt.saturating_sub(u32::from(!self.counts))
    }
}

/// A callback by which a store announces that something may have become claimable unexpectedly. It
/// is called from any thread, and never waits.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// An engine that keeps tasks. `NatsStore`, `PostgresStore`, `FileStore` and
/// [`MemoryStore`](crate::MemoryStore) are such; the tests of this crate have a suite that each of
/// them passes.
///
/// All times are those of the engine's clock. Every call is one step: it has happened, or not.
/// After an error it may have. A call for several claims may be a step for each.
///
/// A call with an id that [`schedule`](Self::schedule) would refuse is refused. A claim that the
/// store has not given out, or whose id or fence was changed, is as one whose fence is not the
/// latest.
pub trait TaskStore: Send + Sync + 'static {
    /// Keeps a task. A pending task of the same id is replaced. If that id's task is claimed, this
    /// is another task; the claimed one may still run. Returns when the task is due.
    ///
    /// # Errors
    ///
    /// [`StoreError::Duplicate`] if it is [to be unique](Task::unique_for), and is not. On NATS an
    /// id may stay unique for some milliseconds longer.
    fn schedule(&self, task: Task) -> impl Future<Output = Result<Timestamp, StoreError>> + Send;

    /// Keeps up to 10,000 tasks, much faster than one after another. Returns when each is due, in
    /// their order; `None` for one that is [to be unique](Task::unique_for), and is not: the others
    /// are kept. Of several with one id it is the last that counts, and each has its due time; of
    /// several that are to be unique it is the first, and the others are duplicates.
    ///
    /// An engine may take them in several steps: after an error it may have some of them, and the
    /// same call may be made again. Then what it has and is to be unique is a duplicate.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] also if of the tasks of one id some are to be unique and some not,
    /// and if some wait for one another [in a circle](Task::waits_for).
    fn schedule_many(
        &self,
        tasks: Vec<Task>,
    ) -> impl Future<Output = Result<Vec<Option<Timestamp>>, StoreError>> + Send {
        async move {
            let (ids, tasks) = Many::of(tasks)?.into_parts();
            let mut dues = HashMap::with_capacity(tasks.len());
            for task in tasks {
                let id = task.id.clone();
                if let Some(due) = unless_duplicate(self.schedule(task).await)? {
                    dues.insert(id, due);
                }
            }
            Ok(Many::dues(&ids, &dues))
        }
    }

    /// Keeps a parent and its children: the parent, when it is due, [waits](Task::waits_for) until
    /// all children have ended. If it says what it waits or [needs](Task::needs) itself, that
    /// counts. They are kept as by [`schedule_many`](Self::schedule_many); after an error the same
    /// call may be made again. A duplicate is left out, and the others are kept: a parent waits for
    /// what has its child's id.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] also for more than 100 children, and for a periodic one.
    fn batch(
        &self,
        parent: Task,
        children: Vec<Task>,
    ) -> impl Future<Output = Result<Vec<Option<Timestamp>>, StoreError>> + Send {
        async move {
            check_children(children.len())?;
            if children.iter().any(|child| child.terms.rhythm.is_some()) {
                return Err(StoreError::refused("a periodic task does not end"));
            }
            let ids = children.iter().map(|child| child.id.clone());
            let parent = match parent.terms.waits {
                None => parent.waits_for(ids.collect::<Vec<_>>()),
                Some(_) => parent,
            };
            let mut tasks = children;
            tasks.push(parent);
            self.schedule_many(tasks).await
        }
    }

    /// Keeps a periodic task, unless there is one of its id with the same rhythm: that goes on as
    /// it is. Any other task of the id is replaced. Tells whether it was kept. For the start of a
    /// program. If two programs start at the same time, both may keep theirs: the later one counts.
    fn ensure(&self, task: Task) -> impl Future<Output = Result<bool, StoreError>> + Send {
        async move {
            task.check()?;
            let there = self.look(&task.id).await?;
            if there.is_some_and(|there| there.is_ahead() && there.terms.is_as_often(&task.terms)) {
                return Ok(false);
            }
            self.schedule(task).await?;
            Ok(true)
        }
    }

    /// Looks at one id: where the task is, how far it has come, what it has left. `None` if there
    /// is nothing. On NATS that is six calls, and more while it moves.
    fn look(&self, id: &str) -> impl Future<Output = Result<Option<Look>, StoreError>> + Send {
        let _ = id;
        std::future::ready(Err(StoreError::refused("it cannot be looked into")))
    }

    /// Looks at those that a task waits for, in their order, until one is in its way: one that is
    /// pending or claimed, or dead if it needs all. Returns that; `None` if there is none, and it
    /// is the task's turn. On Postgres that costs by the number of those that are in the way, and
    /// elsewhere a look for each that is passed over, on NATS eight of them side by side.
    fn look_ahead(
        &self,
        waits: &Waits,
    ) -> impl Future<Output = Result<Option<Look>, StoreError>> + Send {
        async move {
            for id in &waits.ids {
                let look = self.look(id).await?;
                if let Some(look) = look.filter(|look| look.is_in_the_way_of(waits)) {
                    return Ok(Some(look));
                }
            }
            Ok(None)
        }
    }

    /// Lists what is in a state, of one queue or of all: so many at most, in the order of their
    /// ids, those after the given one. The last id of a page is the `after` of the next, and an
    /// empty page is the end: one whose payloads, progress and results have 4 MB together ends
    /// there.
    ///
    /// In memory and in a file that costs by the number of tasks, and nothing else goes on
    /// meanwhile. On Postgres it costs by what is passed over, which is of other queues or states.
    /// On NATS it does so too, and the order is that in which the messages were kept.
    ///
    /// A task that is damaged, or that somebody else wrote, is listed on Postgres, with an
    /// [error](Look::error) that says so; on NATS it is left out. A dead letter is listed on both.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] on NATS, if what `after` names is not in that state any more: begin
    /// anew.
    fn list(
        &self,
        state: State,
        queue: Option<&str>,
        after: Option<&str>,
        most: usize,
    ) -> impl Future<Output = Result<Vec<Look>, StoreError>> + Send {
        let _ = (state, queue, after, most);
        std::future::ready(Err(StoreError::refused("it cannot be looked into")))
    }

    /// Counts what each queue has, by state; a queue that has nothing is left out. It costs by the
    /// number of tasks on Postgres, and of results and letters in memory and in a file. On NATS
    /// what was handed over counts as claimed until a worker has seen that it is cancelled.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] on NATS, if there are more than 100,000 of a state: it has to read
    /// them all.
    fn counts(&self) -> impl Future<Output = Result<BTreeMap<String, Counts>, StoreError>> + Send {
        std::future::ready(Err(StoreError::refused("it cannot be looked into")))
    }

    /// Ends a task, pending or claimed. `false` if there was none. If it returned `true` before the
    /// task was claimed, the task does not run. If a worker had claimed it, the worker drops it
    /// when it learns of it, or, if it is `strict`, before the handler begins; the end of a run
    /// that has begun is refused.
    fn cancel(&self, id: &str) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Gives a task another time. `false` if there is none. If a worker has claimed it, that is as
    /// if the task had been cancelled and scheduled again.
    fn reschedule(
        &self,
        id: &str,
        due: Due,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// The number of times that the engine may have forgotten who has which claim, since it came
    /// back after it was away. The call never waits. A worker asks before it runs a claim that was
    /// given out at another number: see [`Claim::interruptions`](crate::Claim::interruptions).
    fn interruptions(&self) -> u64 {
        0
    }

    /// Takes tasks that are due soon, of the queues that are asked for, those of higher priority
    /// first. Of one priority, those of several queues come in the order of their times, as far as
    /// the engine knows it: NATS takes turns among the queues.
    ///
    /// A question costs by the number of queues that it is about. On NATS each queue that there
    /// ever was has three consumers, and those of a store's process are pulled from side by side:
    /// tens of queues are fine there. The server makes 1,000 consumers by default, so 333 queues,
    /// and [`schedule`](Self::schedule) refuses a task of one more.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] for a queue's name that no queue can have.
    fn claim(&self, ask: Ask) -> impl Future<Output = Result<Vec<Claim>, StoreError>> + Send;

    /// Lets claims last `lease` from now on. One verdict for each claim.
    fn extend(
        &self,
        claims: &[Arc<Claim>],
        lease: Duration,
    ) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send;

    /// Notes that a claim's run begins. If nothing is heard of that run any more, it counts as an
    /// attempt when the task is claimed again. Workers call it for a claim that is
    /// [doubtful](Claim::doubtful), and run it if that is accepted; so the runs of a task cost
    /// nothing more until one of its claims was not answered.
    ///
    /// A store that counts no such runs extends the lease.
    fn note_start(
        &self,
        claim: &Arc<Claim>,
    ) -> impl Future<Output = Result<Verdict, StoreError>> + Send {
        async move {
            let claims = std::slice::from_ref(claim);
            let verdicts = self.extend(claims, claim.lease).await?;
            Ok(verdicts.first().copied().unwrap_or(Verdict::Busy))
        }
    }

    /// Ends tasks that have run. A periodic one is pending again, in the same step. One verdict for
    /// each claim.
    ///
    /// An engine may take them one by one, and not all of them. Then those that it did not take, or
    /// did not answer for, are [`Busy`](Verdict::Busy), and the verdicts of the others stand. After
    /// an error none is known: each may have ended.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] for a result of more than 100,000 bytes: then none has ended.
    fn done(
        &self,
        claims: &[Arc<Claim>],
    ) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send;

    /// A run failed: it runs again, or is a dead letter.
    fn fail(
        &self,
        claim: &Claim,
        failure: Failure,
    ) -> impl Future<Output = Result<Verdict, StoreError>> + Send;

    /// Gives back claims that were not run, so that others may claim them at once. One verdict for
    /// each claim, as of [`done`](Self::done).
    fn release(
        &self,
        claims: &[Arc<Claim>],
    ) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send;

    /// Frees the slot of a limited queue that a claim has, if it has one: its task does not run
    /// yet. It stays claimed, and is to be given back when it may run: then it gets another slot.
    fn free_slot(&self, claim: &Claim) -> impl Future<Output = Result<(), StoreError>> + Send {
        let _ = claim;
        std::future::ready(Ok(()))
    }

    /// The engine's time.
    fn now(&self) -> impl Future<Output = Result<Timestamp, StoreError>> + Send;

    /// Dead letters, so many at most, with their whole payloads. [`list`](Self::list) has pages of
    /// them.
    fn dead_letters(
        &self,
        most: usize,
    ) -> impl Future<Output = Result<Vec<DeadLetter>, StoreError>> + Send;

    /// Makes a dead letter a task again, with its first attempt ahead. `false` if there is none, or
    /// if a task of its id is pending or claimed: then the letter stays.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] if the letter is not as the store has written it, which its error
    /// says, too. It stays until it is removed.
    fn requeue(&self, id: &str, due: Due) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Removes a dead letter. `false` if there is none.
    fn remove_dead(&self, id: &str) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Keeps the progress of a run, instead of what it said before: 100,000 bytes at most. Progress
    /// goes with the attempt: with its end, or when the task is scheduled anew or moved. A file
    /// keeps it in memory only, and NATS for a day.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] if it is too long, or the store keeps none.
    fn progress(
        &self,
        claim: &Claim,
        progress: Vec<u8>,
    ) -> impl Future<Output = Result<Verdict, StoreError>> + Send {
        let _ = (claim, progress);
        std::future::ready(Err(StoreError::refused("it keeps no progress")))
    }

    /// Changes a queue's rules, and keeps them until the next change. A store that keeps none
    /// refuses: all of this crate keep them.
    ///
    /// [`pause`](Self::pause), [`resume`](Self::resume) and [`limit`](Self::limit) are calls of it.
    fn change_queue(
        &self,
        queue: &str,
        change: QueueChange,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        let _ = (queue, change);
        std::future::ready(Err(StoreError::refused("it keeps no rules of queues")))
    }

    /// The queues that have rules other than the default, and their rules.
    fn queue_rules(
        &self,
    ) -> impl Future<Output = Result<BTreeMap<String, QueueRules>, StoreError>> + Send {
        std::future::ready(Ok(BTreeMap::new()))
    }

    /// Pauses a queue: nothing is claimed from it until it is resumed, and what runs goes on. Its
    /// tasks stay, and new ones are taken. A worker that holds claims of it that have not begun
    /// gives them back when it learns of it: it looks each `poll`, half a second by default. Until
    /// then they may begin.
    ///
    /// On NATS other processes hand out what they have fetched for half a second at most.
    fn pause(&self, queue: &str) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.change_queue(queue, QueueChange::Pause)
    }

    /// Resumes a queue that was paused. What has become due meanwhile is late.
    fn resume(&self, queue: &str) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.change_queue(queue, QueueChange::Resume)
    }

    /// The queues that are paused, in the order of their names.
    fn paused(&self) -> impl Future<Output = Result<Vec<String>, StoreError>> + Send {
        async move {
            let rules = self.queue_rules().await?.into_iter();
            let paused = rules.filter(|(_, rules)| rules.paused);
            Ok(paused.map(|(queue, _)| queue).collect())
        }
    }

    /// Limits a queue: of its tasks, so many may begin in each period, whoever runs them; `None`
    /// ends the limit. The limit holds at the claim: each has a *slot*, the first time from its due
    /// time on whose period has room, and that is the [due time](crate::Claim::due) of the claim.
    /// What has no slot within the lookahead stays pending.
    ///
    /// The precision:
    ///
    /// - Periods are counted from 1970 by the engine's clock. So in any stretch as long as a period
    ///   there are twice as many at most.
    /// - A run begins at its slot or later. A worker that is late may begin it in the next period.
    /// - A claim that goes back or is put off frees its slot; that of a worker that died counts.
    ///   One that was cancelled or replaced before it began frees it when its worker learns of it.
    /// - Slots that were given before the limit was set, or was given another period, do not count,
    ///   and a store of one process forgets them when it is opened anew.
    /// - On Postgres and NATS other processes learn of a limit within half a second. On Postgres
    ///   they claim nothing of the queue until then; on NATS they claim as before.
    ///
    /// Slots go by priority within one claim, and before those of later claims. Each limited queue
    /// costs a question for claims two more calls on Postgres, or three, and two on NATS.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] if a number of the [`Rate`] is out of range.
    fn limit(
        &self,
        queue: &str,
        rate: Option<Rate>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        self.change_queue(queue, QueueChange::Limit(rate))
    }

    /// A worker claims nothing more, at least for now: a store gives back what it has fetched for
    /// later claims, which others can have.
    fn leave(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Registers who is called when something may have become claimable. A store that cannot tell
    /// calls nobody: workers ask again and again anyway.
    fn on_arrival(&self, wake: Wake) {
        let _ = wake;
    }
}

/// A store that several share.
impl<S: TaskStore> TaskStore for Arc<S> {
    fn interruptions(&self) -> u64 {
        (**self).interruptions()
    }

    fn schedule(&self, task: Task) -> impl Future<Output = Result<Timestamp, StoreError>> + Send {
        (**self).schedule(task)
    }

    fn schedule_many(
        &self,
        tasks: Vec<Task>,
    ) -> impl Future<Output = Result<Vec<Option<Timestamp>>, StoreError>> + Send {
        (**self).schedule_many(tasks)
    }

    fn ensure(&self, task: Task) -> impl Future<Output = Result<bool, StoreError>> + Send {
        (**self).ensure(task)
    }

    fn look(&self, id: &str) -> impl Future<Output = Result<Option<Look>, StoreError>> + Send {
        (**self).look(id)
    }

    fn look_ahead(
        &self,
        waits: &Waits,
    ) -> impl Future<Output = Result<Option<Look>, StoreError>> + Send {
        (**self).look_ahead(waits)
    }

    fn list(
        &self,
        state: State,
        queue: Option<&str>,
        after: Option<&str>,
        most: usize,
    ) -> impl Future<Output = Result<Vec<Look>, StoreError>> + Send {
        (**self).list(state, queue, after, most)
    }

    fn counts(&self) -> impl Future<Output = Result<BTreeMap<String, Counts>, StoreError>> + Send {
        (**self).counts()
    }

    fn cancel(&self, id: &str) -> impl Future<Output = Result<bool, StoreError>> + Send {
        (**self).cancel(id)
    }

    fn reschedule(
        &self,
        id: &str,
        due: Due,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        (**self).reschedule(id, due)
    }

    fn claim(&self, ask: Ask) -> impl Future<Output = Result<Vec<Claim>, StoreError>> + Send {
        (**self).claim(ask)
    }

    fn extend(
        &self,
        claims: &[Arc<Claim>],
        lease: Duration,
    ) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send {
        (**self).extend(claims, lease)
    }

    fn note_start(
        &self,
        claim: &Arc<Claim>,
    ) -> impl Future<Output = Result<Verdict, StoreError>> + Send {
        (**self).note_start(claim)
    }

    fn done(
        &self,
        claims: &[Arc<Claim>],
    ) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send {
        (**self).done(claims)
    }

    fn fail(
        &self,
        claim: &Claim,
        failure: Failure,
    ) -> impl Future<Output = Result<Verdict, StoreError>> + Send {
        (**self).fail(claim, failure)
    }

    fn release(
        &self,
        claims: &[Arc<Claim>],
    ) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send {
        (**self).release(claims)
    }

    fn free_slot(&self, claim: &Claim) -> impl Future<Output = Result<(), StoreError>> + Send {
        (**self).free_slot(claim)
    }

    fn now(&self) -> impl Future<Output = Result<Timestamp, StoreError>> + Send {
        (**self).now()
    }

    fn dead_letters(
        &self,
        most: usize,
    ) -> impl Future<Output = Result<Vec<DeadLetter>, StoreError>> + Send {
        (**self).dead_letters(most)
    }

    fn requeue(&self, id: &str, due: Due) -> impl Future<Output = Result<bool, StoreError>> + Send {
        (**self).requeue(id, due)
    }

    fn remove_dead(&self, id: &str) -> impl Future<Output = Result<bool, StoreError>> + Send {
        (**self).remove_dead(id)
    }

    fn progress(
        &self,
        claim: &Claim,
        progress: Vec<u8>,
    ) -> impl Future<Output = Result<Verdict, StoreError>> + Send {
        (**self).progress(claim, progress)
    }

    fn change_queue(
        &self,
        queue: &str,
        change: QueueChange,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        (**self).change_queue(queue, change)
    }

    fn queue_rules(
        &self,
    ) -> impl Future<Output = Result<BTreeMap<String, QueueRules>, StoreError>> + Send {
        (**self).queue_rules()
    }

    fn leave(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        (**self).leave()
    }

    fn on_arrival(&self, wake: Wake) {
        (**self).on_arrival(wake);
    }
}
