//! The tasks of a journal at the start: some are pending again, others were cut off while their handler ran.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use super::journal::Record;
use super::run::Journaled;
use crate::api::handle::Handle;
use crate::core::tasks::Due;
use crate::ground::error::Error;

/// The tasks of a journal, sorted out.
pub(super) struct Restored<K, V> {
    pending: Vec<Record<K, V>>,
    /// Tasks whose handler was still running when their key got another task, oldest first.
    cut_off: Vec<Record<K, V>>,
}

impl<K: Hash + Eq, V> Restored<K, V> {
    /// Of each key the newest task is pending.
    pub(super) fn of(records: Vec<Record<K, V>>) -> Self {
        let mut newest: HashMap<&K, u64> = HashMap::with_capacity(records.len());
        for record in &records {
            let newest = newest.entry(&record.key).or_insert(record.id);
            *newest = (*newest).max(record.id);
        }
        let is_newest = |record: &Record<K, V>| newest.get(&record.key) == Some(&record.id);
        let are_newest: Vec<bool> = records.iter().map(is_newest).collect();
        let (mut pending, mut cut_off) = (Vec::new(), Vec::new());
        for (record, is_newest) in records.into_iter().zip(are_newest) {
            let place = if is_newest {
                &mut pending
            } else {
                &mut cut_off
            };
            place.push(record);
        }
        cut_off.sort_unstable_by_key(|record| record.id);
        Self { pending, cut_off }
    }

    /// Sets all pending tasks, before the first handler runs: a handler may set the same keys. Returns the tasks that
    /// were cut off, to be [run](run_all) afterwards.
    pub(super) fn fill<S: BuildHasher>(
        self,
        handle: &Handle<K, Journaled<V>, S>,
    ) -> Result<Vec<Record<K, V>>, Error> {
        let inner = handle.inner();
        // The wall clock first. Time that passes between the two readings makes a task late, never early.
        let wall = inner.clock.wall();
        let now = inner.now();
        for record in self.pending {
            let delay = record.due.duration_since(wall).unwrap_or(Duration::ZERO);
            let kept = Journaled {
                id: record.id,
                value: record.value,
            };
            let put = handle.put(record.key, kept, now.deadline(delay), now);
            put.map_err(|_| Error::Stopped)?;
        }
        Ok(self.cut_off)
    }
}

/// Runs the handlers of tasks that were cut off, on this thread.
pub(super) fn run_all<K, V, S>(handle: &Handle<K, Journaled<V>, S>, cut_off: Vec<Record<K, V>>)
where
    K: Hash + Eq,
    S: BuildHasher,
{
    let inner = handle.inner();
    for Record { id, key, value, .. } in cut_off {
        inner.run(Due {
            key,
            value: Journaled { id, value },
            deadline: inner.now().tick(),
            missed: 0,
        });
    }
}
