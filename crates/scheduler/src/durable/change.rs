//! Pending jobs are moved and removed: in memory, then in the journal, then on disk.

use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use equivalent::Equivalent;

use super::handle::{DurableHandle, Written};
use super::job::Job;
use super::journal::{Change, Journal, Repeat};
use super::name::{Keyed, Name};
use super::ordered::Stripe;
use crate::api::iter::look_at_some;
use crate::ground::error::Error;
use crate::ground::panics::give_all;

/// Jobs that are drained before the disk is waited for.
const DRAINED_AT_ONCE: usize = 1024;

impl<K, V, J, S> DurableHandle<K, V, J, S>
where
    K: Hash + Eq + Clone,
    V: Clone,
    J: Journal<K, V>,
    S: BuildHasher,
{
    /// Moves a pending job: see [`Handle::move_to`](crate::Handle::move_to). A periodic one goes on
    /// from there.
    ///
    /// # Errors
    ///
    /// [`Error::Journal`], and then the job is moved, but a crash may bring the old time back.
    /// [`Error::Stopped`] for a periodic job: then it is moved for the next start.
    pub fn move_to<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        key: &Q,
        delay: Duration,
    ) -> Result<bool, Error> {
        let stripe = self.shared.journal.hold(key);
        let due = self.due(delay);
        // Under the stripe nobody else sets, moves or removes this key: it is the same job, or
        // none.
        let found = self.handle.peek(&Keyed(key), |job| {
            (job.id, job.status(due, false), job.repeat())
        });
        let Some((id, status, repeat)) = found else {
            return Ok(false);
        };
        if let Some(repeat) = repeat {
            return self.move_periodic(stripe, key, delay, repeat);
        }
        if !self.handle.move_to(&Keyed(key), delay) {
            return Ok(false);
        }
        let status = &status;
        let written = stripe.append(&[Change::Update { id, status }]);
        drop(stripe);
        self.wait(written)?;
        Ok(true)
    }

    /// A periodic job that is moved gets a new id. So a run of it that has fired before, and begins
    /// afterwards, does not file it for a time that is out of date.
    fn move_periodic<Q: Hash + Equivalent<K> + ?Sized>(
        &self,
        stripe: Stripe<'_, J>,
        key: &Q,
        delay: Duration,
        repeat: Repeat,
    ) -> Result<bool, Error> {
        let inner = self.handle.inner();
        let (due, now) = (self.due(delay), inner.now());
        let Some((name, old)) = self.handle.take(&Keyed(key), false) else {
            return Ok(false);
        };
        let (id, ended) = (stripe.next_id(), old.id);
        let deadline = now.deadline(delay);
        let job = Job::new(id, old.value).repeating(repeat);
        let job = job.in_phase(due, deadline);
        let status = job.status(due, false);
        let set = Change::Set {
            id,
            key: &name.key,
            value: &job.value,
            status: &status,
        };
        let written = stripe.append(&[set, Change::End { id: ended }]);
        let rhythm = (repeat.period, repeat.catch_up);
        let put = self.handle.put_periodic(name, job, deadline, rhythm, now);
        drop(stripe);
        put.map_err(|_| Error::Stopped)?;
        self.wait(written)?;
        Ok(true)
    }

    /// Takes a pending job out: see [`Handle::remove`](crate::Handle::remove). One that waits for
    /// its next attempt is pending too.
    ///
    /// # Errors
    ///
    /// [`Error::Journal`], and then the job is removed, but a crash may bring it back.
    pub fn remove<Q: Hash + Equivalent<K> + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error> {
        let stripe = self.shared.journal.hold(key);
        // The key as well: it is dropped when the stripe is let go.
        let Some((_name, old)) = self.handle.take(&Keyed(key), true) else {
            return Ok(None);
        };
        let written = stripe.append(&[Change::End { id: old.id }]);
        drop(stripe);
        self.wait(written)?;
        Ok(Some(old.value))
    }

    /// Takes every pending job out and gives it to `take`, in no order, with no lock held and after
    /// its end is on disk. `take` may call the scheduler, and what it sets is not drained. Jobs
    /// that others set or move meanwhile may or may not be among them. Returns how many there were.
    /// Takes memory for all their keys.
    ///
    /// # Errors
    ///
    /// [`Error::Journal`], and then a crash may bring back jobs that were taken out.
    ///
    /// # Panics
    ///
    /// When `take` does, after it got the other jobs that were taken out too; up to 1,024 are at
    /// once. Later ones stay.
    pub fn drain(&self, mut take: impl FnMut(K, V)) -> Result<usize, Error> {
        let mut count = 0;
        for names in self.names().chunks(DRAINED_AT_ONCE) {
            let mut written = None;
            let mut drained = Vec::with_capacity(names.len());
            for (name, id) in names {
                if let Some((name, job, ended)) = self.take_out(name, *id) {
                    written = Some(ended);
                    drained.push((name, job));
                }
            }
            let on_disk = written.map_or(Ok(()), |written| self.wait(written));
            count += drained.len();
            give_all(drained, |(name, job)| take(name.key, job.value));
            on_disk?;
        }
        Ok(count)
    }

    /// The names and ids of all pending jobs.
    fn names(&self) -> Vec<(Name<K>, u64)> {
        let (mut names, mut at) = (Vec::new(), (0, 0));
        let inner = self.handle.inner();
        while at.0 < inner.shards.count() {
            at = look_at_some(inner, at, |name, job, _| {
                names.push((name.clone(), job.id));
            });
        }
        names
    }

    /// Takes a job out of memory and journal if it is still the one of that id.
    fn take_out(&self, name: &Name<K>, id: u64) -> Option<(Name<K>, Job<V>, Written)> {
        let stripe = self.shared.journal.hold(&name.key);
        if self.handle.peek(name, |job| job.id) != Some(id) {
            return None;
        }
        let (name, job) = self.handle.take(name, true)?;
        let written = stripe.append(&[Change::End { id }]);
        drop(stripe);
        Some((name, job, written))
    }
}
