//! At the start, the jobs of a journal are pending again, under their keys or their ids, or are
//! dead letters.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::time::{Duration, SystemTime};

use super::handle::DurableHandle;
use super::job::Job;
use super::journal::{Change, Journal, Place, Record, Repeat};
use super::name::Name;
use crate::ground::error::Error;
use crate::jobs::dead::DeadLetter;

/// The jobs of a journal, sorted out.
pub(super) struct Restored<K, V> {
    pub(super) pending: Vec<(Record<K, V>, Place)>,
    pub(super) dead: Vec<DeadLetter<K, V>>,
}

impl<K: Hash + Eq, V> Restored<K, V> {
    /// Sorts the records. The newest job of each key is pending under it. Older ones, whose handler
    /// was still running when their key got another job, are pending under their ids.
    pub(super) fn of(records: Vec<Record<K, V>>) -> Self {
        let keyed = |record: &&Record<K, V>| record.status.place == Place::Keyed;
        let mut newest: HashMap<&K, u64> = HashMap::with_capacity(records.len());
        for record in records.iter().filter(keyed) {
            let newest = newest.entry(&record.key).or_insert(record.id);
            *newest = (*newest).max(record.id);
        }
        let place = |record: &Record<K, V>| match record.status.place {
            Place::Keyed if newest.get(&record.key) != Some(&record.id) => Place::Unkeyed,
            place => place,
        };
        let places: Vec<Place> = records.iter().map(place).collect();
        let (mut pending, mut dead) = (Vec::new(), Vec::new());
        for (record, place) in records.into_iter().zip(places) {
            match place {
                Place::Dead => dead.push(letter(record)),
                Place::Keyed | Place::Unkeyed => pending.push((record, place)),
            }
        }
        Self { pending, dead }
    }
}

fn letter<K, V>(record: Record<K, V>) -> DeadLetter<K, V> {
    DeadLetter {
        id: record.id,
        key: record.key,
        value: record.value,
        attempts: record.status.attempt,
        error: record.status.error.unwrap_or_default(),
        died: record.status.due,
    }
}

impl<K, V, J, S> DurableHandle<K, V, J, S>
where
    K: Hash + Eq + Clone,
    V: Clone,
    J: Journal<K, V>,
    S: BuildHasher,
{
    /// Sets all pending jobs, before the first handler runs: a handler may set the same keys.
    pub(super) fn restore(&self, pending: Vec<(Record<K, V>, Place)>) -> Result<(), Error> {
        // The wall clock first. Time that passes between the two readings makes a job late, never
        // early.
        let wall = self.handle.inner().clock.wall();
        for (record, place) in pending {
            let Record {
                id,
                key,
                value,
                status,
            } = record;
            let (due, repeat) = (status.due, status.repeat);
            let job = Job::restored(id, value, status);
            let name = match place {
                Place::Keyed => Name::keyed(key),
                Place::Unkeyed | Place::Dead => Name::unkeyed(key, id),
            };
            match repeat {
                Some(repeat) => self.restore_periodic(name, job, due, repeat, wall)?,
                None => self.file(name, job, due, None, wall)?,
            }
        }
        Ok(())
    }

    /// A periodic job whose time has come meanwhile runs at once, and goes on in its rhythm.
    fn restore_periodic(
        &self,
        name: Name<K>,
        template: Job<V>,
        due: SystemTime,
        repeat: Repeat,
        wall: SystemTime,
    ) -> Result<(), Error> {
        if due > wall {
            return self.file(name, template, due, Some(repeat), wall);
        }
        let caught_up = repeat.catch_up(due, wall);
        for run in 0..caught_up.runs {
            let missed = if run == 0 { caught_up.missed } else { 0 };
            let copy = template.clone();
            let stripe = self.shared.journal.hold(&name.key);
            let job = copy.single(stripe.next_id(), missed);
            let status = job.status(due, true);
            let set = Change::Set {
                id: job.id,
                key: &name.key,
                value: &job.value,
                status: &status,
            };
            let next = template.status(caught_up.next, false);
            let update = Change::Update {
                id: template.id,
                status: &next,
            };
            // With the last of its runs: after a crash before that, all of them begin again.
            let is_last = run + 1 == caught_up.runs;
            let changes: &[_] = if is_last { &[set, update] } else { &[set] };
            stripe.append(changes).map_err(Error::Journal)?;
            drop(stripe);
            let unkeyed = Name::unkeyed(name.key.clone(), job.id);
            self.file(unkeyed, job, due, None, wall)?;
        }
        self.file(name, template, caught_up.next, Some(repeat), wall)
    }

    /// Sets a job in memory.
    fn file(
        &self,
        name: Name<K>,
        job: Job<V>,
        due: SystemTime,
        repeat: Option<Repeat>,
        wall: SystemTime,
    ) -> Result<(), Error> {
        let delay = due.duration_since(wall).unwrap_or(Duration::ZERO);
        let now = self.handle.inner().now();
        let deadline = now.deadline(delay);
        let put = match repeat {
            None => {
                let job = if due <= wall {
                    job.begun_perhaps()
                } else {
                    job
                };
                self.handle.put(name, job, deadline, now)
            }
            Some(Repeat { period, catch_up }) => {
                let (job, rhythm) = (job.in_phase(due, deadline), (period, catch_up));
                self.handle.put_periodic(name, job, deadline, rhythm, now)
            }
        };
        put.map(drop).map_err(|_| Error::Stopped)
    }
}
