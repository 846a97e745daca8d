//! The handle's calls about dead letters: look, re-queue, remove.

use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use super::handle::DurableHandle;
use super::job::Job;
use super::journal::{Change, Journal};
use super::name::Name;
use crate::ground::error::Error;
use crate::jobs::dead::DeadLetter;

/// Letters that are copied in one hold of their lock.
const LETTERS_PER_HOLD: usize = 64;

impl<K, V, J, S> DurableHandle<K, V, J, S>
where
    K: Hash + Eq + Clone + Send + 'static,
    V: Clone + Send + 'static,
    J: Journal<K, V> + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// Copies of all dead letters, oldest job first: jobs whose last attempt failed. They stay, in
    /// the journal too, until they are [re-queued](Self::requeue) or [removed](Self::remove_dead).
    ///
    /// [`DurableBuilder::dead_letters`](crate::DurableBuilder::dead_letters) bounds how many there
    /// are.
    #[must_use]
    pub fn dead_letters(&self) -> Vec<DeadLetter<K, V>> {
        let mut letters: Vec<DeadLetter<K, V>> = Vec::new();
        loop {
            let from = letters
                .last()
                .map_or(0, |letter| letter.id.saturating_add(1));
            let some = self.shared.dead.some(from, LETTERS_PER_HOLD);
            if some.is_empty() {
                return letters;
            }
            letters.extend(some);
        }
    }

    /// Lets a dead letter run again after a delay, with all its attempts ahead of it. It is pending
    /// under its key, or under its id if the key has a job. `false` if there is no such letter.
    ///
    /// # Errors
    ///
    /// [`Error::Stopped`], and then it stays a dead letter; [`Error::Journal`].
    pub fn requeue(&self, id: u64, delay: Duration) -> Result<bool, Error> {
        let Some(key) = self.shared.dead.key(id) else {
            return Ok(false);
        };
        self.wait_for_room();
        let stripe = self.shared.journal.hold(&key);
        let Some(letter) = self.shared.dead.take(id) else {
            return Ok(false);
        };
        let (due, now) = (self.due(delay), self.handle.inner().now());
        let name = self.name_for(Name::keyed(letter.key), id);
        let job = Job::new(id, letter.value);
        let status = job.status(due, name.is_unkeyed());
        if let Err((name, job)) = self.handle.put(name, job, now.deadline(delay), now) {
            self.shared.dead.put_back(DeadLetter {
                key: name.key,
                value: job.value,
                ..letter
            });
            return Err(Error::Stopped);
        }
        let status = &status;
        let written = stripe.append(&[Change::Update { id, status }]);
        drop(stripe);
        self.wait(written)?;
        Ok(true)
    }

    /// Removes a dead letter, and returns its value.
    ///
    /// # Errors
    ///
    /// [`Error::Journal`], and then a crash may bring it back.
    pub fn remove_dead(&self, id: u64) -> Result<Option<V>, Error> {
        let Some(key) = self.shared.dead.key(id) else {
            return Ok(None);
        };
        let stripe = self.shared.journal.hold(&key);
        let Some(letter) = self.shared.dead.take(id) else {
            return Ok(None);
        };
        let written = stripe.append(&[Change::End { id }]);
        drop(stripe);
        self.wait(written)?;
        Ok(Some(letter.value))
    }
}
