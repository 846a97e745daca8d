//! Versions: compare-and-set, insert-if-absent, and removals that depend on what is there.
//!
//! Versions are kept lazily: an entry has one from the first time that somebody asks, and then
//! another one after every change of its value. They come from a counter of 64 bits for each shard,
//! so neither an entry that is removed and stored again nor another one in its place ever has a
//! version that was given out before.

use std::fmt;
use std::hash::{BuildHasher, Hash};

use equivalent::Equivalent;
use tidewheel_time::Moment;

use super::cache::Cache;
use crate::lifetime::Lifetime;
use crate::removal::RemovalCause;
use crate::shard::Shard;
use crate::shard::rules::Hashed;
use crate::shard::write::Prepared;

/// Tells one value of a key from those before and after it. Means nothing for another key or cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version(u64);

/// Why [`Cache::compare_and_set`] stored nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompareError {
    /// The key is not there, or no longer.
    Missing,
    /// The value was changed; this is its version now.
    Changed(Version),
    /// The new value is heavier than the whole capacity. The old one is still there.
    TooHeavy,
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "the key is not in the cache: insert it instead",
            Self::Changed(_) => "the value was changed meanwhile: read it again",
            Self::TooHeavy => "the value is heavier than the cache's capacity",
        })
    }
}

impl std::error::Error for CompareError {}

/// # Versions and conditions
impl<K: Hash + Eq, V, S: BuildHasher> Cache<K, V, S> {
    /// The version of a key's value. Does not count as a use. The first question costs the writer's
    /// lock and, for the entries of a page together, 8 bytes each.
    pub fn version<Q>(&self, key: &Q) -> Option<Version>
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        if let Some(version) = self.look(key, |shard, slot| shard.store.version(slot))? {
            return Some(Version(version));
        }
        // Asked for the first time: it takes the writer's lock to keep it.
        let inner = &*self.inner;
        let hash = inner.hash(key);
        inner.change(inner.cell(hash), |shard, now| {
            let slot = shard.find_live(hash, key, now)?;
            Some(Version(shard.store.assign_version(slot)))
        })
    }

    /// The value of a key with its version, for [`compare_and_set`](Self::compare_and_set). Counts
    /// as a use of the entry.
    pub fn get_with_version<Q>(&self, key: &Q) -> Option<(V, Version)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        V: Clone,
    {
        // Nearly always one round: two if the entry has no version yet, more only if it is removed
        // and stored again in between.
        loop {
            let versioned = self
                .look(key, |shard, slot| shard.store.version(slot).is_some())
                .unwrap_or(true);
            if !versioned {
                self.version(key)?;
            }
            let found = self.read_with(key, |shard, entry| {
                let version = shard.store.version(entry.slot())?;
                Some((entry.value().clone(), Version(version)))
            })?;
            if found.is_some() {
                return found;
            }
        }
    }

    /// Replaces a value if it is still the one with this version; returns the new version. What is
    /// left of the entry's time to live stays, and so do its tags. An [idle
    /// time](crate::Builder::time_to_idle) begins again.
    ///
    /// # Errors
    ///
    /// When the key is missing, the value was changed, or the new one is too heavy: then nothing is
    /// stored.
    #[doc(alias = "replace")]
    pub fn compare_and_set(
        &self,
        key: K,
        expected: Version,
        value: V,
    ) -> Result<Version, CompareError> {
        self.swap(key, expected, value, None)
    }

    /// As [`compare_and_set`](Self::compare_and_set), with a new lifetime.
    ///
    /// # Errors
    ///
    /// As [`compare_and_set`](Self::compare_and_set).
    pub fn compare_and_set_with(
        &self,
        key: K,
        expected: Version,
        value: V,
        lifetime: Lifetime,
    ) -> Result<Version, CompareError> {
        self.swap(key, expected, value, Some(&lifetime))
    }

    fn swap(
        &self,
        key: K,
        expected: Version,
        value: V,
        lifetime: Option<&Lifetime>,
    ) -> Result<Version, CompareError> {
        let inner = &*self.inner;
        let hash = inner.hash(&key);
        // Room is made only for what has a chance to be stored.
        let hopeless = match self.version(&key) {
            None => Some(CompareError::Missing),
            Some(version) => (version != expected).then_some(CompareError::Changed(version)),
        };
        if let Some(error) = hopeless {
            inner.counters.discard_pair(key, value);
            return Err(error);
        }
        let mut prepared = inner.prepare_over(hash, &key, &value, lifetime);
        if !prepared.fits {
            inner.counters.discard_pair(key, value);
            return Err(CompareError::TooHeavy);
        }
        self.change(key, value, &mut prepared, |shard, prepared, key, now| {
            let slot = shard.find_live(hash, key, now);
            let slot = slot.ok_or(CompareError::Missing)?;
            let version = Version(shard.store.assign_version(slot));
            if version != expected {
                return Err(CompareError::Changed(version));
            }
            if lifetime.is_none() {
                *prepared = inner.as_before(shard, slot, prepared, now);
            }
            Ok(())
        })
    }

    /// Stores a value with the configured lifetime unless the key is there; tells whether it did. A
    /// value heavier than the whole capacity is dropped, and so is any once the cache is closed:
    /// `false` too.
    #[doc(alias = "putIfAbsent")]
    pub fn insert_if_absent(&self, key: K, value: V) -> bool {
        self.insert_if_absent_with(key, value, Lifetime::configured())
    }

    /// As [`insert_if_absent`](Self::insert_if_absent), with a lifetime of its own.
    pub fn insert_if_absent_with(&self, key: K, value: V, lifetime: Lifetime) -> bool {
        let inner = &*self.inner;
        if self.contains_key(&key) {
            inner.counters.discard_pair(key, value);
            return false;
        }
        let hash = inner.hash(&key);
        let prepared = inner.prepare(hash, &key, &value, &lifetime);
        if !prepared.fits {
            inner.counters.discard_pair(key, value);
            return false;
        }
        self.insert_prepared_if_absent(hash, key, value, prepared)
    }

    /// Stores an entry that fits unless the key is there or the cache closed; tells whether it did.
    pub(crate) fn insert_prepared_if_absent(
        &self,
        hash: Hashed,
        key: K,
        value: V,
        mut prepared: Prepared<'_>,
    ) -> bool {
        let stored = self.change(key, value, &mut prepared, |shard, _, key, now| {
            let refused = shard.closed || shard.find_live(hash, key, now).is_some();
            if refused { Err(()) } else { Ok(()) }
        });
        stored.is_ok()
    }

    /// Removes a key if a predicate holds for its value, and tells whether it did. The predicate
    /// runs under the shard's reader lock. If the value changes before the removal, the predicate
    /// is asked again.
    ///
    /// # Panics
    ///
    /// If the predicate calls this cache.
    #[doc(alias = "invalidate_entry_if")]
    pub fn remove_if<Q>(&self, key: &Q, mut remove: impl FnMut(&V) -> bool) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        loop {
            if self.version(key).is_none() {
                return false;
            }
            let judged = self.look(key, |shard, slot| {
                let version = shard.store.version(slot)?;
                Some((Version(version), remove(shard.store.value(slot))))
            });
            match judged {
                None => return false,
                Some(Some((_, false))) => return false,
                Some(Some((version, true))) if self.remove_version(key, version) => return true,
                Some(_) => {}
            }
        }
    }

    /// Removes a key if its value has this version; tells whether it did.
    pub fn remove_version<Q>(&self, key: &Q, version: Version) -> bool
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        let inner = &*self.inner;
        let hash = inner.hash(key);
        // Most failures are seen without the writer's lock.
        if self.version(key) != Some(version) {
            return false;
        }
        let unchanged = |shard: &Shard<K, V, S>, now| {
            let slot = shard.find_live(hash, key, now)?;
            (shard.store.version(slot) == Some(version.0)).then_some(slot)
        };
        let removed = inner.change_key(hash, key, unchanged, |shard, slot, now| {
            let cause = RemovalCause::Removed;
            shard.remove_slot(hash.place(), slot, cause, now)
        });
        removed.is_some()
    }

    /// Stores a prepared entry unless `decide`, under the shard's lock, refuses it; returns its
    /// version. What is refused is dropped outside the lock.
    fn change<'p, E>(
        &self,
        key: K,
        value: V,
        prepared: &mut Prepared<'p>,
        mut decide: impl FnMut(&mut Shard<K, V, S>, &mut Prepared<'p>, &K, Moment) -> Result<(), E>,
    ) -> Result<Version, E> {
        let inner = &*self.inner;
        let hash = inner.hash(&key);
        let mut entry = Some((key, value));
        let (refused, result) = inner.change_unlatched(inner.cell(hash), |shard, now| {
            let (key, value) = entry
                .take()
                .expect("handed back where a latch is in the way");
            if let Some(latch) = shard.flights.latch_of(hash.0, |stored| *stored == key) {
                entry = Some((key, value));
                return Err(latch);
            }
            prepared.now = now;
            if let Err(error) = decide(shard, prepared, &key, now) {
                return Ok((Some((key, value)), Err(error)));
            }
            // Only now that it is certain: a load of the key is superseded.
            shard.writing(hash, |stored| *stored == key);
            let before = shard.store.latest_version();
            shard.put(hash, key, value, prepared);
            let after = shard.store.latest_version();
            // Unless the value has gone at once, its version is the one given out last.
            let version = if after == before {
                shard.store.spend_version()
            } else {
                after
            };
            Ok((None, Ok(version)))
        });
        inner.counters.discard_pairs(refused.into_iter());
        result.map(Version)
    }
}
