//! The model of versions: compare-and-set, and changes that depend on what is there.

use tidewheel::{CompareError, RemovalCause, Version};

use super::model::{Effects, Model};
use super::op::{New, Op};
use super::value::{Key, Probe};

impl Model {
    /// Executes an operation that has to do with versions.
    pub(super) fn execute_versioned(&mut self, op: &Op, effects: &mut Effects) {
        match *op {
            Op::Version(key) => _ = self.version(key),
            Op::GetWithVersion(key) => self.get_with_version(key),
            Op::InsertIfAbsent(key, new) => self.insert_if_absent(key, new, effects),
            Op::CompareAndSet {
                key,
                new,
                keeps,
                past,
            } => self.compare_and_set(key, new, (keeps, past), effects),
            Op::RemoveVersion(key, past) => self.remove_version(key, past),
            Op::RemoveIf(key) => self.remove_if(key),
            _ => unreachable!("{op:?} has nothing to do with versions"),
        }
    }

    /// Asks for the version of what is there.
    fn version(&mut self, key: u16) -> Option<Version> {
        let version = self.cache.version(&Probe(key));
        assert_eq!(version.is_some(), self.is_live(key), "version of {key}");
        if let Some(version) = version {
            self.is_told_version(key, version);
        }
        version
    }

    /// Checks a version that the cache has told for what is there: the same until the value
    /// changes, then one that no value of the key had before.
    fn is_told_version(&mut self, key: u16, version: Version) {
        let entry = self.entries.get_mut(&key).expect("versions are of entries");
        let told = self.versions.entry(key).or_default();
        match entry.version {
            Some(known) => assert_eq!(version, known, "{key} was not changed"),
            None => {
                assert!(!told.contains(&version), "{key} had this version before");
                told.push(version);
                entry.version = Some(version);
            }
        }
    }

    /// A version to ask with: the one of what is there, or one from before.
    fn some_version(&mut self, key: u16, past: bool) -> Option<Version> {
        let there = self.version(key);
        if !past {
            return there;
        }
        let told = self.versions.get(&key)?;
        told.iter()
            .rev()
            .find(|told| Some(**told) != there)
            .copied()
    }

    fn get_with_version(&mut self, key: u16) {
        let found = self.cache.get_with_version(&Probe(key));
        let expected = self.used(key);
        let (value, version) = found.unzip();
        assert_eq!(value.map(|value| value.id), expected, "get of {key}");
        if let Some(version) = version {
            self.is_told_version(key, version);
        }
    }

    fn insert_if_absent(&mut self, key: u16, new: New, effects: &mut Effects) {
        let live = self.is_live(key);
        let (value, lifetime, entry) = self.plan(key, new);
        let own = Key::new(key, &self.ledger);
        let stored = self.cache.insert_if_absent_with(own, value, lifetime);
        let fits = self.fits(entry.weight);
        assert_eq!(stored, !live && fits, "insert_if_absent of {key}");
        if stored {
            self.takes_place(key, entry, effects);
        }
    }

    fn compare_and_set(
        &mut self,
        key: u16,
        new: New,
        (keeps, past): (bool, bool),
        effects: &mut Effects,
    ) {
        let Some(expected) = self.some_version(key, past) else {
            return;
        };
        let (value, lifetime, mut entry) = self.plan(key, new);
        let own = Key::new(key, &self.ledger);
        let cache = &self.cache;
        let result = match keeps {
            false => cache.compare_and_set_with(own, expected, value, lifetime),
            true => cache.compare_and_set(own, expected, value),
        };
        if !self.is_live(key) {
            assert_eq!(result, Err(CompareError::Missing), "{key}");
        } else if past {
            let there = self.entries[&key].version.expect("asked for");
            assert_eq!(result, Err(CompareError::Changed(there)), "{key}");
        } else if !self.fits(entry.weight) {
            assert_eq!(result, Err(CompareError::TooHeavy), "{key}");
        } else {
            let version = result.expect("the version is the one that is there");
            if keeps {
                entry = self.entries[&key].next(entry.id, entry.weight, entry.idle);
            }
            self.takes_place(key, entry, effects);
            self.is_told_version(key, version);
        }
    }

    fn remove_version(&mut self, key: u16, past: bool) {
        let Some(version) = self.some_version(key, past) else {
            return;
        };
        let removed = self.cache.remove_version(&Probe(key), version);
        let expected = !past && self.is_live(key);
        assert_eq!(removed, expected, "remove_version of {key}");
        if expected {
            self.leaves(key, RemovalCause::Removed);
        }
    }

    fn remove_if(&mut self, key: u16) {
        let removed = self
            .cache
            .remove_if(&Probe(key), |value| value.id.is_multiple_of(2));
        let expected = self.is_live(key) && self.entries[&key].id.is_multiple_of(2);
        assert_eq!(removed, expected, "remove_if of {key}");
        if expected {
            self.leaves(key, RemovalCause::Removed);
        }
    }
}
