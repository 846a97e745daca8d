//! Stores whose every call is one step of a table: in memory, or with a journal in a file.

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use crate::shape::claim::{Claim, Verdict};
use crate::shape::counts::Counts;
use crate::shape::dead::DeadLetter;
use crate::shape::error::StoreError;
use crate::shape::look::{Look, State, check_note, check_results};
use crate::shape::many::Many;
use crate::shape::queue::{QueueChange, QueueRules};
use crate::shape::task::{Due, Task, check_id};
use crate::shape::timestamp::Timestamp;
use crate::store::{Ask, Failure, TaskStore, Wake};
use crate::table::Table;
use crate::wakes::Wakes;

/// Such a store. Its calls block the thread until they are done.
pub(crate) trait Steps: Send + Sync + 'static {
    /// Runs one step of the table, at the engine's time.
    fn step<T>(&self, act: impl FnOnce(&mut Table, Timestamp) -> T) -> Result<T, StoreError>;

    /// The engine's time.
    fn time(&self) -> Result<Timestamp, StoreError>;

    fn wakes(&self) -> &Wakes;

    /// A step about an id, if it is one.
    fn step_of<T>(
        &self,
        id: &str,
        act: impl FnOnce(&mut Table, Timestamp) -> T,
    ) -> Result<T, StoreError> {
        check_id(id).and_then(|()| self.step(act))
    }
}

impl<S: Steps> TaskStore for S {
    fn schedule(&self, task: Task) -> impl Future<Output = Result<Timestamp, StoreError>> + Send {
        let kept = task
            .check()
            .and_then(|()| self.step(|table, now| table.schedule(task, now)))
            .and_then(|kept| kept);
        self.wakes().tell();
        ready(kept)
    }

    fn schedule_many(
        &self,
        tasks: Vec<Task>,
    ) -> impl Future<Output = Result<Vec<Option<Timestamp>>, StoreError>> + Send {
        let kept = Many::of(tasks).and_then(|many| {
            self.step(|table, now| many.schedule(|task| table.schedule(task, now)))
        });
        self.wakes().tell();
        ready(kept.and_then(|kept| kept))
    }

    fn ensure(&self, task: Task) -> impl Future<Output = Result<bool, StoreError>> + Send {
        let kept = task
            .check()
            .and_then(|()| self.step(|table, now| table.ensure(task, now)))
            .and_then(|kept| kept);
        self.wakes().tell();
        ready(kept)
    }

    fn look(&self, id: &str) -> impl Future<Output = Result<Option<Look>, StoreError>> + Send {
        ready(self.step_of(id, |table, now| table.look(id, now)))
    }

    fn list(
        &self,
        state: State,
        queue: Option<&str>,
        after: Option<&str>,
        most: usize,
    ) -> impl Future<Output = Result<Vec<Look>, StoreError>> + Send {
        ready(self.step(|table, now| table.list((state, queue), after, most, now)))
    }

    fn counts(&self) -> impl Future<Output = Result<BTreeMap<String, Counts>, StoreError>> + Send {
        ready(self.step(|table, now| table.counts(now)))
    }

    fn cancel(&self, id: &str) -> impl Future<Output = Result<bool, StoreError>> + Send {
        ready(self.step_of(id, |table, _| table.cancel(id)))
    }

    fn reschedule(
        &self,
        id: &str,
        due: Due,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        let moved = self.step_of(id, |table, now| table.reschedule(id, due, now));
        self.wakes().tell();
        ready(moved)
    }

    fn claim(&self, ask: Ask) -> impl Future<Output = Result<Vec<Claim>, StoreError>> + Send {
        let checked = ask.check();
        ready(checked.and_then(|()| self.step(|table, now| table.claim(&ask, now))))
    }

    fn extend(
        &self,
        claims: &[Arc<Claim>],
        lease: Duration,
    ) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send {
        ready(self.step(|table, now| {
            let extended = claims.iter().map(|claim| table.extend(claim, lease, now));
            extended.collect()
        }))
    }

    fn note_start(
        &self,
        claim: &Arc<Claim>,
    ) -> impl Future<Output = Result<Verdict, StoreError>> + Send {
        ready(self.step(|table, _| table.note_start(claim)))
    }

    fn done(
        &self,
        claims: &[Arc<Claim>],
    ) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send {
        let done =
            |table: &mut Table, now| claims.iter().map(|claim| table.done(claim, now)).collect();
        ready(check_results(claims).and_then(|()| self.step(done)))
    }

    fn fail(
        &self,
        claim: &Claim,
        failure: Failure,
    ) -> impl Future<Output = Result<Verdict, StoreError>> + Send {
        ready(self.step(|table, now| table.fail(claim, failure, now)))
    }

    fn release(
        &self,
        claims: &[Arc<Claim>],
    ) -> impl Future<Output = Result<Vec<Verdict>, StoreError>> + Send {
        let back = |table: &mut Table, _| claims.iter().map(|claim| table.release(claim)).collect();
        let released = self.step(back);
        self.wakes().tell();
        ready(released)
    }

    fn free_slot(&self, claim: &Claim) -> impl Future<Output = Result<(), StoreError>> + Send {
        ready(self.step(|table, _| table.give_slot_back(claim)))
    }

    fn now(&self) -> impl Future<Output = Result<Timestamp, StoreError>> + Send {
        ready(self.time())
    }

    fn dead_letters(
        &self,
        most: usize,
    ) -> impl Future<Output = Result<Vec<DeadLetter>, StoreError>> + Send {
        ready(self.step(|table, _| table.letters(most)))
    }

    fn requeue(&self, id: &str, due: Due) -> impl Future<Output = Result<bool, StoreError>> + Send {
        let again = self.step_of(id, |table, now| table.requeue(id, due, now));
        self.wakes().tell();
        ready(again)
    }

    fn remove_dead(&self, id: &str) -> impl Future<Output = Result<bool, StoreError>> + Send {
        ready(self.step_of(id, |table, _| table.remove_dead(id)))
    }

    fn progress(
        &self,
        claim: &Claim,
        progress: Vec<u8>,
    ) -> impl Future<Output = Result<Verdict, StoreError>> + Send {
        let kept = check_note(&progress)
            .and_then(|()| self.step(|table, _| table.progress(claim, progress)));
        ready(kept)
    }

    fn change_queue(
        &self,
        queue: &str,
        change: QueueChange,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        let changed = change
            .check(queue)
            .and_then(|()| self.step(|table, _| table.change_queue(queue, change)));
        self.wakes().tell();
        ready(changed)
    }

    fn queue_rules(
        &self,
    ) -> impl Future<Output = Result<BTreeMap<String, QueueRules>, StoreError>> + Send {
        ready(self.step(|table, _| table.queue_rules()))
    }

    fn on_arrival(&self, wake: Wake) {
        self.wakes().add(wake);
    }
}
