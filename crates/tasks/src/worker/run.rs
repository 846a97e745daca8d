//! A run is one call of a task's handler.

use std::fmt;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::Duration;

use super::ack::Ack;
use super::control::Control;
use super::ends::Slot;
use crate::shape::claim::{Claim, Fence};
use crate::shape::error::StoreError;
use crate::shape::look::check_note;
use crate::shape::timestamp::Timestamp;

/// The function that is called with a run, and says how it ended, at once or later.
pub(super) type Handler = Box<dyn Fn(Run) + Send + Sync>;

/// One run of a task. Clones are the same run.
#[derive(Clone)]
pub struct Run {
    claim: Arc<Claim>,
    late: Duration,
    pub(super) slot: Slot,
    control: Arc<Control>,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.claim.id)
            .field("due", &self.claim.due)
            .field("fence", &self.claim.fence)
            .field("attempt", &self.claim.attempt)
            .field("late", &self.late)
            .finish_non_exhaustive()
    }
}

impl Run {
    pub(super) fn new(
        claim: Arc<Claim>,
        late: Duration,
        (slot, control): (Slot, Arc<Control>),
    ) -> Self {
        Self {
            claim,
            late,
            slot,
            control,
        }
    }

    /// Takes over the end of this run: it goes on until the [`Ack`] is settled or dropped, and what
    /// the handler returns does not matter any more. For work that goes on after the handler, on a
    /// runtime or on another thread. So many runs may be unfinished as a worker may
    /// [hold](crate::WorkerBuilder::held).
    ///
    /// ```
    /// use std::sync::{Arc, mpsc};
    /// use std::thread;
    /// use std::time::Duration;
    /// use tidewheel_tasks::{MemoryStore, Task, TaskStore, Worker, wait};
    ///
    /// let store = Arc::new(MemoryStore::new());
    /// let (sent, mails) = mpsc::channel();
    /// let worker = Worker::builder(Arc::clone(&store)).start(move |run| {
    ///     let (run, sent, ack) = (run.clone(), sent.clone(), run.ack());
    ///     thread::spawn(move || {
    ///         let _ = sent.send(run.id().to_owned());
    ///         // If this thread panicked before, the task would be retried.
    ///         ack.done();
    ///     });
    /// })?;
    /// wait(store.schedule(Task::new("mail-7", "to: you")))?;
    /// assert_eq!(mails.recv().as_deref(), Ok("mail-7"));
    /// assert_eq!(worker.stop(Duration::from_secs(5)).left, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// When it was called before, or the handler has returned: then the run has an end already.
    #[must_use = "a task whose acknowledgement is dropped has failed"]
    pub fn ack(&self) -> Ack {
        let ending = self.slot.take();
        Ack::of(ending.expect("a run is acknowledged once, and before its handler has returned"))
    }

    /// The task's name.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.claim.id
    }

    /// The payload that was scheduled with it.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.claim.payload
    }

    /// The due time, by the engine's clock.
    #[must_use]
    pub fn due(&self) -> Timestamp {
        self.claim.due
    }

    /// The due time of its first attempt. Together with the name it is the same in all attempts of
    /// this run, and differs from that of a periodic task's other runs: a receiver can tell by both
    /// that it has had this run before.
    #[must_use]
    pub fn began(&self) -> Timestamp {
        self.claim.began
    }

    /// The number of its claim: to be passed on to whatever the handler changes.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.claim.fence
    }

    /// The number of this attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.claim.attempt
    }

    /// The lateness: the time from the due time to the call of the handler, as far as the worker
    /// knows the engine's clock. Of a task that had to wait for others: from when something was
    /// last seen in its way.
    #[must_use]
    pub fn late(&self) -> Duration {
        self.late
    }

    /// True if the task is not this worker's any more: it was cancelled, moved or replaced, or the
    /// worker was thought dead and another one has it. The end of this run will be refused, so the
    /// handler may stop. The worker learns of it when it extends the lease: when a quarter of it is
    /// over, after 2 s of 8 s by default, and on NATS after 3 s.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.control.is_cancelled()
    }

    /// Waits until the task is not this worker's any more: to be raced with what an async handler
    /// does. It is pending for ever if that never happens.
    pub fn until_cancelled(&self) -> impl Future<Output = ()> + Send + use<> {
        let control = Arc::clone(&self.control);
        poll_fn(move |context| control.poll_cancelled(context.waker()))
    }

    /// Says how far the run has come, for those who [look](crate::TaskStore::look): bytes that the
    /// program knows. The engine is told soon, of the latest only, ten times a second at most.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] if they are more than 100,000.
    pub fn progress(&self, progress: impl Into<Vec<u8>>) -> Result<(), StoreError> {
        let progress = progress.into();
        check_note(&progress)?;
        self.control.set_progress(progress);
        Ok(())
    }

    /// Sets the result of the run, which counts if it succeeds and its task
    /// [keeps results](crate::Task::keep_result). Of several it is the last.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] if it has more than 100,000 bytes.
    pub fn keep(&self, result: impl Into<Vec<u8>>) -> Result<(), StoreError> {
        let result = result.into();
        check_note(&result)?;
        self.control.set_result(result);
        Ok(())
    }
}
