//! A run is begun and settled here. Then the job is over, is tried again, or is a dead letter.

use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::handle::DurableHandle;
use super::job::{Job, JobRun};
use super::journal::{Change, Journal, Place, Status};
use super::name::{Keyed, Name};
use super::ordered::Stripe;
use super::run::DurableRun;
use crate::drive::queue::End;
use crate::ground::panics::survive;
use crate::jobs::ack::{Settle, Slot};
use crate::jobs::dead::DeadLetter;
use crate::jobs::outcome::{IntoOutcome, Outcome, bounded};

/// The error of an attempt that had no end when the process ended.
const CUT_OFF: &str = "the process ended during the run";

/// A run that has not ended: the job itself. The handler has a copy of it.
struct Unsettled<K, V, J, S> {
    handle: DurableHandle<K, V, J, S>,
    name: Name<K>,
    job: Job<V>,
}

impl<K, V, J, S> Settle for Unsettled<K, V, J, S>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Clone + Send + 'static,
    J: Journal<K, V> + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    fn defer(&self) {
        self.handle.handle.inner().queue.defer();
    }

    fn settle(self: Box<Self>, outcome: Outcome) {
        let Self { handle, name, job } = *self;
        handle.settle(name, job, outcome);
    }

    fn settle_elsewhere(self: Box<Self>, outcome: Outcome) {
        let inner = Arc::clone(self.handle.handle.inner());
        let of_end = Arc::clone(&inner);
        let end: End = Box::new(move || {
            // Hash and drops are the user's code.
            survive(|| self.settle(outcome));
            of_end.queue.ended();
        });
        if inner.manual {
            end();
        } else if let Err(end) = inner.queue.end(end) {
            // The workers have ended, or will without looking again.
            end();
        }
    }
}

impl<K, V, J, S> DurableHandle<K, V, J, S>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Clone + Send + 'static,
    J: Journal<K, V> + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// Runs a handler, and settles the run unless the handler has passed it on.
    pub(super) fn run<R: IntoOutcome>(
        &self,
        run: JobRun<K, V>,
        deadline: u64,
        handler: impl FnOnce(&Self, DurableRun<K, V>) -> R,
    ) {
        let JobRun { late, missed, .. } = run;
        let (name, job) = match run.value.repeat() {
            Some(_) => self.split(run.key, run.value, deadline, missed),
            None => (run.key, run.value),
        };
        let token = self.shared.journal.next_token();
        let (id, attempt, missed) = (job.id, job.attempt(), job.missed());
        let copies = catch_unwind(AssertUnwindSafe(|| {
            if job.may_have_begun() {
                self.note_start(&name, &job);
            }
            (name.key.clone(), job.value.clone())
        }));
        let slot = Slot::of(Box::new(Unsettled {
            handle: self.clone(),
            name,
            job,
        }));
        let ended = copies.and_then(|(key, value)| {
            let run = DurableRun {
                id,
                key,
                value,
                late,
                attempt,
                missed,
                token,
                slot: slot.clone(),
            };
            catch_unwind(AssertUnwindSafe(|| handler(self, run).into_outcome()))
        });
        let (outcome, panic) = match ended {
            Ok(outcome) => (outcome, None),
            Err(panic) => (Outcome::panicked(&*panic), Some(panic)),
        };
        if let Some(run) = slot.take() {
            run.settle(outcome);
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Writes beforehand what is true if this run kills the process: the attempt has failed. That
    /// takes a wait for the disk, so it is done only where there is a suspicion: for the first run
    /// of a job that was due before the process started, as those are that were running when it
    /// ended the last time.
    fn note_start(&self, name: &Name<K>, job: &Job<V>) {
        let (id, attempt, now) = (job.id, job.attempt(), self.due(Duration::ZERO));
        let mut status = job.status(now, name.is_unkeyed());
        status.error = Some(CUT_OFF.to_owned());
        if self.shared.retry.is_last(attempt) {
            status.place = Place::Dead;
        } else {
            status.attempt = attempt.saturating_add(1);
        }
        let stripe = self.shared.journal.hold(&name.key);
        let status = &status;
        let written = stripe.append(&[Change::Update { id, status }]);
        drop(stripe);
        // If the journal has failed, the next caller that waits for it gets the error.
        let _ = self.wait(written);
    }

    /// Makes a job of its own of a run of a periodic job, and files the periodic one for its next
    /// run: in one write.
    fn split(
        &self,
        name: Name<K>,
        template: Job<V>,
        deadline: u64,
        missed: u64,
    ) -> (Name<K>, Job<V>) {
        let stripe = self.shared.journal.hold(&name.key);
        let template_id = template.id;
        // If it was replaced, moved or removed since it fired, its time is not this run's business.
        let filed = self.handle.peek(&Keyed(&name.key), |job| job.id) == Some(template_id);
        let next = filed
            .then(|| template.status(self.next_due(&name, &template, deadline, missed), false));
        let run = template.single(stripe.next_id(), missed);
        let status = run.status(self.wall_of(deadline), true);
        let set = Change::Set {
            id: run.id,
            key: &name.key,
            value: &run.value,
            status: &status,
        };
        // If the journal has failed, the next caller that waits for it gets the error.
        let _ = match &next {
            Some(status) => stripe.append(&[
                set,
                Change::Update {
                    id: template_id,
                    status,
                },
            ]),
            None => stripe.append(&[set]),
        };
        drop(stripe);
        (Name::unkeyed(name.key, run.id), run)
    }

    pub(super) fn settle(&self, name: Name<K>, job: Job<V>, outcome: Outcome) {
        let stripe = self.shared.journal.hold(&name.key);
        match outcome {
            Outcome::Done => {
                // The job's own entry was written under the same stripe, so this comes after it. If
                // the journal has failed, the next caller that waits for it gets the error, and the
                // job runs again after a restart.
                let _ = stripe.append(&[Change::End { id: job.id }]);
                drop(stripe);
                self.shared.journal.tidy();
            }
            Outcome::Failed { error, after } => {
                self.shared.failed.fetch_add(1, Relaxed);
                let (attempt, retry) = (job.attempt(), self.shared.retry);
                if retry.is_last(attempt) {
                    self.bury(stripe, name, job, bounded(error));
                } else {
                    let wait = after.unwrap_or_else(|| retry.delay(attempt, job.id));
                    self.retry(stripe, name, job, bounded(error), wait);
                }
            }
            Outcome::Dead { error } => {
                self.shared.failed.fetch_add(1, Relaxed);
                self.bury(stripe, name, job, bounded(error));
            }
        }
    }

    /// Files another attempt for later.
    fn retry(
        &self,
        stripe: Stripe<'_, J>,
        name: Name<K>,
        job: Job<V>,
        error: String,
        wait: Duration,
    ) {
        let attempt = job.attempt().saturating_add(1);
        let (id, job) = (job.id, job.failed(attempt, error));
        let (due, now) = (self.due(wait), self.handle.inner().now());
        let name = self.name_for(name, id);
        let status = job.status(due, name.is_unkeyed());
        // A scheduler that was stopped refuses it. Then it is in the journal alone, for the next
        // start.
        let put = self.handle.put(name, job, now.deadline(wait), now);
        self.shared.retried.fetch_add(1, Relaxed);
        let status = &status;
        let _ = stripe.append(&[Change::Update { id, status }]);
        drop(stripe);
        // What was refused is dropped here, where the user's code may call the scheduler.
        drop(put);
    }

    /// The name under which a job becomes pending again: its key, unless that has a newer job.
    pub(super) fn name_for(&self, name: Name<K>, id: u64) -> Name<K> {
        let is_free = || self.handle.get(&Keyed(&name.key)).is_none();
        if !name.is_unkeyed() && is_free() {
            name
        } else {
            Name::unkeyed(name.key, id)
        }
    }

    /// No more attempts. If there are too many dead letters, there is one more attempt all the
    /// same, as late as may be.
    fn bury(&self, stripe: Stripe<'_, J>, name: Name<K>, job: Job<V>, error: String) {
        let (id, attempt) = (job.id, job.attempt());
        let died = self.due(Duration::ZERO);
        let status = Status {
            attempt,
            error: Some(error.clone()),
            place: Place::Dead,
            ..Status::at(died)
        };
        let was_unkeyed = name.is_unkeyed();
        let kept = self.shared.dead.keep(DeadLetter {
            id,
            key: name.key,
            value: job.value,
            attempts: attempt,
            error,
            died,
        });
        let Err(letter) = kept else {
            let status = &status;
            let _ = stripe.append(&[Change::Update { id, status }]);
            return;
        };
        let name = if was_unkeyed {
            Name::unkeyed(letter.key, id)
        } else {
            Name::keyed(letter.key)
        };
        let job = Job::new(id, letter.value).failed(attempt, String::new());
        self.retry(stripe, name, job, letter.error, self.shared.retry.longest());
    }
}
