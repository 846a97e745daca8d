//! The iterator copies the pending tasks, one after another.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use crate::api::handle::Handle;
use crate::drive::inner::Inner;

/// Tasks that are copied in one hold of a shard's lock, about.
const TASKS_PER_HOLD: usize = 64;

/// The iterator of [`Handle::iter`]: key, value, and the time until the task runs.
pub struct Iter<K, V, S> {
    handle: Handle<K, V, S>,
    /// The shard that comes next, and where in it.
    at: (usize, u32),
    copied: Vec<(K, V, Duration)>,
}

impl<K, V, S> fmt::Debug for Iter<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Handle<K, V, S> {
    /// Copies of the pending tasks, in no order: key, value, and how long until it runs.
    ///
    /// A task that is pending all the time is met exactly once. One that is set, removed or run
    /// meanwhile may or may not be met. The tasks are copied some at a time, under their shard's
    /// lock: let `Clone` be cheap, and call no scheduler in it.
    pub fn iter(&self) -> Iter<K, V, S> {
        Iter {
            handle: self.clone(),
            at: (0, 0),
            copied: Vec::new(),
        }
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Iter<K, V, S> {
    /// Copies the next tasks, if there are any.
    fn copy(&mut self) {
        let inner = self.handle.inner();
        while self.copied.is_empty() && self.at.0 < inner.shards.count() {
            let copied = &mut self.copied;
            self.at = look_at_some(inner, self.at, |key, value, left| {
                copied.push((key.clone(), value.clone(), left));
            });
        }
    }
}

/// Looks at some tasks of one shard (key, value, how long until it runs), under its lock. Returns
/// where the next ones are.
pub(crate) fn look_at_some<K: Hash + Eq, V, S: BuildHasher>(
    inner: &Inner<K, V, S>,
    (shard, cursor): (usize, u32),
    mut look: impl FnMut(&K, &V, Duration),
) -> (usize, u32) {
    let now = inner.now();
    let held = inner.shards.hold(shard);
    let tasks = &held.state.tasks;
    let next = tasks.scan(cursor, TASKS_PER_HOLD, |key, value, deadline| {
        look(key, value, now.until(deadline));
    });
    next.map_or((shard + 1, 0), |cursor| (shard, cursor))
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Iterator for Iter<K, V, S> {
    type Item = (K, V, Duration);

    fn next(&mut self) -> Option<Self::Item> {
        if self.copied.is_empty() {
            self.copy();
        }
        self.copied.pop()
    }
}
