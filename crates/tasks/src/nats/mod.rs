//! Tasks in a stream of NATS JetStream: message schedules hand them over, consumers lease them, and
//! records fence them.
//!
//! A task is a *schedule* until `lookahead` before it is due. Then JetStream makes a message of it,
//! which a consumer delivers to one worker, and again to another one unless it is acknowledged or
//! extended within the lease.
//!
//! JetStream takes an acknowledgement from anybody who had the message, also from a zombie. So the
//! end of a run is not the acknowledgement: it is a *record*, kept only if the record before it is
//! the one that the claim knows. A second delivery begins with such a record too, and so does
//! another task of the same id: a schedule comes with a record, in one atomic batch. What cancels
//! or moves a task comes with one too, kept only if the record is still the one that was there when
//! the task was found. All of these are messages of one stream, so that their sequences are fences.
//!
//! A node that alone has the stream writes down a moment later what it has delivered. After a
//! restart it may deliver that again. So each claim has the number of connections that the client
//! had made when it was delivered. If there has been another one since, the worker asks before it
//! runs the claim.
//!
//! A leader of NATS answers an extension before the other nodes have it, and may die then. So a
//! claim is *sure* by the lease before the latest only. A worker that is not sure asks before it
//! runs the claim, and does not run it without an answer: somebody else may have run it under a
//! higher fence.

mod change;
mod claims;
mod consumer;
mod dead;
mod ends;
mod generation;
mod limits;
mod lines;
mod lists;
mod looks;
mod many;
mod order;
mod pump;
mod queues;
mod receipt;
mod record;
mod standing;
mod start;
mod starts;
mod subjects;
mod text;
mod unique;
mod wire;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tidewheel_time::monotonic_nanos;
use tokio::runtime::Handle;

use self::claims::Claimed;
use self::lines::Lines;
use self::order::check_terms;
use self::queues::Rules;
pub use self::start::NatsBuilder;
use self::subjects::Subjects;
use self::text::parsed;
use self::wire::Wire;
use crate::engine_clock::{Answer, EngineClock};
use crate::shape::claim::{Claim, Verdict};
use crate::shape::counts::Counts;
use crate::shape::dead::DeadLetter;
use crate::shape::error::StoreError;
use crate::shape::look::{Look, State, check_note, check_results};
use crate::shape::many::Many;
use crate::shape::queue::{QueueChange, QueueRules};
use crate::shape::sum::set_aside;
use crate::shape::task::{Due, Task};
use crate::shape::timestamp::Timestamp;
use crate::shape::waits::Waits;
use crate::store::{Ask, Failure, TaskStore, Wake};
use crate::wakes::Wakes;

/// An answer of the engine's clock is used for so long.
const CLOCK_AGE: Duration = Duration::from_secs(5);

/// The time limit of a whole call.
const LIMIT: Duration = Duration::from_secs(5);

/// Tasks in a stream of NATS JetStream, of version 2.12 or later. Clones share one connection,
/// which is made anew when it breaks or has been silent for some seconds. A call takes five seconds
/// at most.
///
/// A message that another program has put under the stream's subjects, and whose subject names no
/// id, has that subject as its id: it can be listed, looked at, cancelled, or removed as a dead
/// letter. So a task whose id is such a subject, as `tw.shop.x.a.b` is in the space `shop`, is
/// refused.
///
/// ```no_run
/// use std::time::Duration;
/// use tidewheel_tasks::{NatsStore, Task, TaskStore};
///
/// # async fn start() -> Result<(), tidewheel_tasks::StoreError> {
/// let store = NatsStore::builder("shop").replicas(3).connect("nats://n1,nats://n2,nats://n3").await?;
/// store.schedule(Task::new("mail-7", "").after(Duration::from_secs(60))).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct NatsStore {
    runtime: Handle,
    inner: Arc<Inner>,
}

/// The state that calls share.
struct Inner {
    wire: Wire,
    subjects: Subjects,
    /// A task is handed over so long before it is due.
    lookahead: Duration,
    /// The consumers wait so long for an acknowledgement.
    lease: Duration,
    clock: Mutex<EngineClock>,
    lines: Lines,
    rules: Rules,
    wakes: Arc<Wakes>,
    claimed: Mutex<Claimed>,
}

impl fmt::Debug for NatsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsStore")
            .field("stream", &self.inner.wire.stream)
            .finish_non_exhaustive()
    }
}

impl NatsStore {
    /// Runs a call on the client's runtime, wherever its result is waited for.
    async fn run<T, F>(&self, call: impl FnOnce(Arc<Inner>) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let call = call(Arc::clone(&self.inner));
        let called = self.runtime.spawn(async move {
            let limited = tokio::time::timeout(LIMIT, call).await;
            limited.unwrap_or(Err(StoreError::TimedOut))
        });
        called.await.map_err(StoreError::engine)?
    }
}

impl Inner {
    /// Checks what this engine cannot keep of a task.
    fn check_new(&self, task: &Task) -> Result<(), StoreError> {
        if self.subjects.is_strange(&task.id) {
            return Err(StoreError::refused("its id is a subject of the stream"));
        }
        check_terms(task)
    }

    /// The engine's time: what the stream's leader says.
    async fn now(&self) -> Result<Timestamp, StoreError> {
        let sent = Duration::from_nanos(monotonic_nanos());
        let what = format!("STREAM.INFO.{}", self.wire.stream);
        let answer = self.wire.call(&what, Value::Null).await?;
        let engine = answer["ts"].as_str().and_then(parsed);
        let engine = engine.ok_or_else(|| StoreError::engine("an answer without a time"))?;
        let received = Duration::from_nanos(monotonic_nanos());
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        clock.learn(Answer {
            sent,
            received,
            engine,
            wall: engine,
        });
        Ok(engine)
    }

    /// A time that the engine's clock has reached, without asking it if it was asked lately.
    async fn about_now(&self) -> Result<Timestamp, StoreError> {
        match self.known_now() {
            Some(now) => Ok(now),
            None => self.now().await,
        }
    }

    fn known_now(&self) -> Option<Timestamp> {
        let now = Duration::from_nanos(monotonic_nanos());
        let clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        clock.now_if_young(now, CLOCK_AGE)
    }
}

impl TaskStore for NatsStore {
    fn interruptions(&self) -> u64 {
        self.inner.wire.interruptions()
    }

    async fn schedule(&self, task: Task) -> Result<Timestamp, StoreError> {
        task.check()?;
        self.inner.check_new(&task)?;
        self.run(|inner| async move { inner.schedule(task).await })
            .await
    }

    async fn schedule_many(&self, tasks: Vec<Task>) -> Result<Vec<Option<Timestamp>>, StoreError> {
        let mut each = tasks.iter();
        each.try_for_each(|task| self.inner.check_new(task))?;
        let many = Many::of(tasks)?;
        self.run(|inner| async move { inner.schedule_many(many).await })
            .await
    }

    async fn cancel(&self, id: &str) -> Result<bool, StoreError> {
        self.inner.subjects.check(id)?;
        let id = id.to_owned();
        self.run(|inner| async move { inner.cancel(&id).await })
            .await
    }

    async fn reschedule(&self, id: &str, due: Due) -> Result<bool, StoreError> {
        self.inner.subjects.check(id)?;
        let id = id.to_owned();
        self.run(|inner| async move { inner.reschedule(&id, due).await })
            .await
    }

    async fn claim(&self, ask: Ask) -> Result<Vec<Claim>, StoreError> {
        ask.check()?;
        let asked = ask.clone();
        self.run(|inner| async move { inner.claim(&asked).await })
            .await?;
        Ok(set_aside(self, self.inner.take_ready(&ask)).await)
    }

    async fn extend(&self, claims: &[Arc<Claim>], _: Duration) -> Result<Vec<Verdict>, StoreError> {
        let claims = claims.to_vec();
        self.run(|inner| async move { inner.extend(&claims).await })
            .await
    }

    async fn note_start(&self, claim: &Arc<Claim>) -> Result<Verdict, StoreError> {
        let claim = Arc::clone(claim);
        self.run(|inner| async move { inner.note_start(&claim).await })
            .await
    }

    async fn done(&self, claims: &[Arc<Claim>]) -> Result<Vec<Verdict>, StoreError> {
        check_results(claims)?;
        let claims = claims.to_vec();
        self.run(|inner| async move { inner.done(claims).await })
            .await
    }

    async fn fail(&self, claim: &Claim, failure: Failure) -> Result<Verdict, StoreError> {
        let claim = claim.clone();
        self.run(|inner| async move { inner.fail(&claim, failure).await })
            .await
    }

    async fn release(&self, claims: &[Arc<Claim>]) -> Result<Vec<Verdict>, StoreError> {
        let claims = claims.to_vec();
        self.run(|inner| async move { inner.release(claims).await })
            .await
    }

    async fn free_slot(&self, claim: &Claim) -> Result<(), StoreError> {
        let claim = claim.clone();
        self.run(|inner| async move {
            inner.free_slot(&claim).await;
            Ok(())
        })
        .await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.run(|inner| async move { inner.now().await }).await
    }

    async fn dead_letters(&self, most: usize) -> Result<Vec<DeadLetter>, StoreError> {
        self.run(|inner| async move { inner.dead_letters(most).await })
            .await
    }

    async fn requeue(&self, id: &str, due: Due) -> Result<bool, StoreError> {
        self.inner.subjects.check(id)?;
        let id = id.to_owned();
        self.run(|inner| async move { inner.requeue(&id, due).await })
            .await
    }

    async fn remove_dead(&self, id: &str) -> Result<bool, StoreError> {
        self.inner.subjects.check(id)?;
        let id = id.to_owned();
        self.run(|inner| async move { inner.remove_dead(&id).await })
            .await
    }

    async fn progress(&self, claim: &Claim, progress: Vec<u8>) -> Result<Verdict, StoreError> {
        check_note(&progress)?;
        let claim = claim.clone();
        self.run(|inner| async move { inner.progress(&claim, progress).await })
            .await
    }

    async fn look(&self, id: &str) -> Result<Option<Look>, StoreError> {
        self.inner.subjects.check(id)?;
        let id = id.to_owned();
        self.run(|inner| async move { inner.look(&id).await }).await
    }

    async fn look_ahead(&self, waits: &Waits) -> Result<Option<Look>, StoreError> {
        waits.check()?;
        let waits = waits.clone();
        self.run(|inner| async move { inner.look_ahead(&waits).await })
            .await
    }

    async fn list(
        &self,
        state: State,
        queue: Option<&str>,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<Look>, StoreError> {
        let [queue, after] = [queue, after].map(|text| text.map(ToOwned::to_owned));
        self.run(|inner| async move { inner.list(state, queue, after, most).await })
            .await
    }

    async fn counts(&self) -> Result<BTreeMap<String, Counts>, StoreError> {
        self.run(|inner| async move { inner.counts().await }).await
    }

    async fn change_queue(&self, queue: &str, change: QueueChange) -> Result<(), StoreError> {
        change.check(queue)?;
        let queue = queue.to_owned();
        self.run(|inner| async move { inner.change_queue(&queue, change).await })
            .await
    }

    async fn queue_rules(&self) -> Result<BTreeMap<String, QueueRules>, StoreError> {
        self.run(|inner| async move { inner.queue_rules().await })
            .await
    }

    async fn leave(&self) -> Result<(), StoreError> {
        self.run(|inner| async move { inner.leave().await }).await
    }

    fn on_arrival(&self, wake: Wake) {
        self.inner.wakes.add(wake);
    }
}
