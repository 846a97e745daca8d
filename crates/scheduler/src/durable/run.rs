//! A run is one call of a durable job's handler.

use std::time::Duration;

use crate::jobs::ack::{Ack, Slot};

/// One run of a durable job, as the handler gets it.
#[derive(Debug)]
#[non_exhaustive]
pub struct DurableRun<K, V> {
    /// The job's name in the journal: the same in all its attempts, and no other job's. So it can
    /// tell a receiver that it has had this job before.
    pub id: u64,
    /// The job's key.
    pub key: K,
    /// Its value.
    pub value: V,
    /// The time from its deadline to the call of the handler; in a run after a crash, since the
    /// start.
    pub late: Duration,
    /// The number of this attempt, from 1: one more than the runs of this job that failed. A run
    /// that the end of its process cut off is not counted if it was the first since the job became
    /// due, and counted if the job had been due when that process started. So a job that kills its
    /// process becomes a dead letter, one run later than others.
    pub attempt: u32,
    /// Runs of a periodic job that are left out after this one, by its [`CatchUp`](crate::CatchUp).
    pub missed: u64,
    /// The fencing token: greater than that of every run that began before it, across crashes too.
    /// A service to which handlers write can refuse a token below the greatest that it has seen. So
    /// it refuses the run of a process that was thought dead.
    pub token: u64,
    pub(super) slot: Slot,
}

impl<K, V> DurableRun<K, V> {
    /// Takes over the end of this run: it goes on until the [`Ack`] is settled or dropped, and what
    /// the handler returns does not matter any more. For work that goes on after the handler, on a
    /// runtime or on another thread.
    ///
    /// ```
    /// use std::thread;
    /// use std::time::Duration;
    /// use tidewheel_scheduler::{Durable, MemoryJournal, Scheduler};
    ///
    /// let journal = MemoryJournal::new();
    /// let jobs = Durable::start(Scheduler::<u32, &str>::builder(), journal, |_, run| {
    ///     let ack = run.ack();
    ///     thread::spawn(move || {
    ///         println!("{} is sent", run.value);
    ///         // If this thread panicked before, the job would be retried.
    ///         ack.done();
    ///     });
    /// })?;
    /// jobs.set(1, "mail", Duration::ZERO)?;
    /// # while jobs.stats().fired == 0 { std::thread::yield_now(); }
    /// assert_eq!(jobs.stop(Duration::from_secs(5)).running, 0);
    /// # Ok::<(), tidewheel_scheduler::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// When it was called before, or the handler has returned: then the run has an end already.
    #[must_use = "a job whose acknowledgement is dropped has failed"]
    pub fn ack(&self) -> Ack {
        let ack = self.slot.ack();
        ack.expect("a run is acknowledged once, and by what its handler took before it returned")
    }
}
