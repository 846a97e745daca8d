//! Invalidations wait here that an absent engine has not taken.
//!
//! They alone are tried again: to invalidate twice does no harm. A write that is tried again later
//! might replace a newer one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most that wait, and their bytes. More, and the whole namespace is to be invalidated instead.
pub(super) const LIMIT: usize = 10_000;
pub(super) const BYTES: usize = 4 << 20;

/// An invalidation to repeat when the engine is back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invalidation {
    Key(Vec<u8>),
    /// The empty tag is the whole namespace.
    Tag(String),
}

impl Invalidation {
    pub(super) fn of_everything() -> Self {
        Self::Tag(String::new())
    }

    pub(super) fn length(&self) -> usize {
        match self {
            Self::Key(key) => key.len(),
            Self::Tag(tag) => tag.len(),
        }
    }
}

/// Invalidations that wait.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    any: AtomicBool,
    is_tried: AtomicBool,
    waiting: Mutex<Waiting>,
}

/// Each has the number of the last failure.
#[derive(Debug, Default)]
struct Waiting {
    numbers: BTreeMap<Invalidation, u64>,
    bytes: usize,
    last: u64,
}

impl Waiting {
    fn insert(&mut self, invalidation: Invalidation) {
        self.last += 1;
        let length = invalidation.length();
        if self.numbers.insert(invalidation, self.last).is_none() {
            self.bytes += length;
        }
    }

    /// Replaces all by one invalidation of everything.
    fn collapse(&mut self) {
        self.numbers.clear();
        self.bytes = 0;
        self.insert(Invalidation::of_everything());
    }
}

/// The right to try them again.
#[derive(Debug)]
pub(crate) struct Turn<'a>(&'a Pending);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.is_tried.store(false, SeqCst);
    }
}

impl Pending {
    /// True if any wait: one load.
    pub(crate) fn any(&self) -> bool {
        self.any.load(SeqCst)
    }

    pub(crate) fn add(&self, invalidation: Invalidation) {
        let mut waiting = self.lock();
        let everything = Invalidation::of_everything();
        let is_too_much =
            waiting.numbers.len() >= LIMIT || waiting.bytes + invalidation.length() > BYTES;
        let is_new = !waiting.numbers.contains_key(&invalidation);
        if invalidation == everything
            || waiting.numbers.contains_key(&everything)
            || (is_new && is_too_much)
        {
            waiting.collapse();
        } else {
            waiting.insert(invalidation);
        }
        self.any.store(true, SeqCst);
    }

    /// The right to try them again, unless somebody has it.
    pub(crate) fn turn(&self) -> Option<Turn<'_>> {
        let was_tried = self.is_tried.swap(true, SeqCst);
        (!was_tried).then(|| Turn(self))
    }

    /// Returns some that wait, with their numbers. They stay until [`done`](Self::done).
    pub(crate) fn some(&self, most: usize) -> Vec<(Invalidation, u64)> {
        let waiting = self.lock();
        let all = waiting.numbers.iter().take(most);
        all.map(|(what, number)| (what.clone(), *number)).collect()
    }

    /// Returns those that wait of a key and of tags, with their numbers; and that of everything.
    pub(crate) fn of(&self, key: &[u8], tags: &[String]) -> Vec<(Invalidation, u64)> {
        let key = Invalidation::Key(key.to_vec());
        let tags = tags.iter().cloned().map(Invalidation::Tag);
        let concerned = [key, Invalidation::of_everything()].into_iter().chain(tags);
        let waiting = self.lock();
        concerned
            .filter_map(|what| {
                let number = *waiting.numbers.get(&what)?;
                Some((what, number))
            })
            .collect()
    }

    /// Removes one, unless it has failed again since it had this number.
    pub(crate) fn done(&self, invalidation: &Invalidation, number: u64) {
        let mut waiting = self.lock();
        if waiting.numbers.get(invalidation) == Some(&number) {
            waiting.numbers.remove(invalidation);
            waiting.bytes -= invalidation.length();
        }
        self.any.store(!waiting.numbers.is_empty(), SeqCst);
    }

    /// The number of the last failure.
    pub(crate) fn last(&self) -> u64 {
        self.lock().last
    }

    /// Removes all that have waited since the failure with this number or before: everything was
    /// invalidated.
    pub(crate) fn all_done(&self, number: u64) {
        let mut waiting = self.lock();
        waiting.numbers.retain(|_, failed| *failed > number);
        waiting.bytes = waiting.numbers.keys().map(Invalidation::length).sum();
        self.any.store(!waiting.numbers.is_empty(), SeqCst);
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().numbers.len()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Invalidation {
        Invalidation::Key(number.to_be_bytes().to_vec())
    }

    #[test]
    fn too_many_become_one_of_everything_which_takes_in_those_that_follow() {
        let pending = Pending::default();
        (0..=LIMIT).for_each(|number| pending.add(key(number)));
        let all = Invalidation::of_everything();
        let first = pending.some(9);
        assert_eq!((first.len(), &first[0].0), (1, &all));
        pending.add(key(7));
        assert_eq!(pending.len(), 1);
        pending.done(&all, first[0].1);
        assert!(pending.any(), "it has failed again since");
        pending.done(&all, pending.some(1)[0].1);
        assert!(!pending.any());
    }

    #[test]
    fn what_fails_again_while_it_is_tried_goes_on_waiting() {
        let pending = Pending::default();
        pending.add(key(1));
        let tried = pending.some(1);
        pending.add(key(1));
        pending.done(&key(1), tried[0].1);
        assert_eq!(pending.len(), 1);
    }

    #[test]
    fn when_everything_is_invalidated_what_has_failed_before_is_done() {
        let pending = Pending::default();
        (1..=3).for_each(|number| pending.add(key(number)));
        let last = pending.last();
        pending.add(key(2));
        pending.all_done(last);
        let left: Vec<_> = pending.some(9).into_iter().map(|(what, _)| what).collect();
        assert_eq!(left, [key(2)], "it has failed again since");
        pending.all_done(pending.last());
        assert!(!pending.any());
    }

    #[test]
    fn long_keys_are_bounded_too() {
        let pending = Pending::default();
        (0..9).for_each(|byte| pending.add(Invalidation::Key(vec![byte; BYTES / 4])));
        assert_eq!(pending.len(), 1);
    }

    #[test]
    fn one_at_a_time_tries() {
        let pending = Pending::default();
        let turn = pending.turn();
        assert!(turn.is_some() && pending.turn().is_none());
        drop(turn);
        assert!(pending.turn().is_some());
    }
}
