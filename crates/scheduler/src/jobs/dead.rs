//! Dead letters: jobs that are not tried any more, kept until somebody looks.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::ground::reentry::ReentryGuard;
use crate::ground::sync::{Mutex, lock};

/// A job that is not tried any more.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter<K, V> {
    /// Its name in the journal, by which it is re-queued and removed.
    pub id: u64,
    /// Its key.
    pub key: K,
    /// Its value.
    pub value: V,
    /// The number of attempts.
    pub attempts: u32,
    /// The error of the last attempt: 1,000 bytes at most.
    pub error: String,
    /// The time of the last attempt.
    pub died: SystemTime,
}

/// The message of the panic when the rule about re-entry is broken.
const FROM_WITHIN: &str = "a durable scheduler was called from within the Clone of a dead letter";

/// All dead letters of one scheduler, oldest job first.
#[derive(Debug)]
pub(crate) struct DeadLetters<K, V> {
    letters: Mutex<BTreeMap<u64, DeadLetter<K, V>>>,
    max: usize,
}

impl<K, V> DeadLetters<K, V> {
    /// Starts with the letters that a journal had, however many they are.
    pub(crate) fn new(max: usize, letters: Vec<DeadLetter<K, V>>) -> Self {
        let letters = letters.into_iter().map(|letter| (letter.id, letter));
        Self {
            letters: Mutex::new(letters.collect()),
            max,
        }
    }

    fn with<R>(&self, act: impl FnOnce(&mut BTreeMap<u64, DeadLetter<K, V>>) -> R) -> R {
        let _inside = ReentryGuard::enter(self, FROM_WITHIN);
        act(&mut lock(&self.letters))
    }

    pub(crate) fn len(&self) -> usize {
        self.with(|letters| letters.len())
    }

    /// Keeps a letter. When there are too many it comes back.
    pub(crate) fn keep(&self, letter: DeadLetter<K, V>) -> Result<(), DeadLetter<K, V>> {
        self.with(|letters| {
            if letters.len() >= self.max {
                return Err(letter);
            }
            letters.insert(letter.id, letter);
            Ok(())
        })
    }

    /// Keeps a letter that was here before.
    pub(crate) fn put_back(&self, letter: DeadLetter<K, V>) {
        self.with(|letters| letters.insert(letter.id, letter));
    }

    pub(crate) fn take(&self, id: u64) -> Option<DeadLetter<K, V>> {
        self.with(|letters| letters.remove(&id))
    }

    /// A copy of a letter's key.
    pub(crate) fn key(&self, id: u64) -> Option<K>
    where
        K: Clone,
    {
        self.with(|letters| letters.get(&id).map(|letter| letter.key.clone()))
    }

    /// Copies of at most so many letters, from an id on.
    pub(crate) fn some(&self, from: u64, count: usize) -> Vec<DeadLetter<K, V>>
    where
        K: Clone,
        V: Clone,
    {
        let copy = |(_, letter): (&u64, &DeadLetter<K, V>)| letter.clone();
        self.with(|letters| letters.range(from..).take(count).map(copy).collect())
    }
}
