//! The model of closures that decide what becomes of a key, while time passes or others change the
//! cache.

use std::future::ready;

use tidewheel::{Compute, Computed, Loaded, RemovalCause};

use super::load::{Failed, Load};
use super::model::{Effects, Entry, Model};
use super::once;
use super::op::New;
use super::value::{Key, Probe, Value};

/// A closure, and what happens while it runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    /// The key, and the value that is stored.
    pub(crate) next: Load,
    pub(crate) wants: Wants,
    pub(crate) aside: Aside,
    /// True if it is a future, which runs again if the key was changed.
    pub(crate) is_async: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Wants {
    Keep,
    Fail,
    Remove,
    /// Another value, which lives as long as the old one would have.
    Update,
    /// A value with a life of its own, if the old one is still there.
    Replace,
    Put,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Aside {
    Nothing,
    Pass(u64),
    Drive(u64),
    InvalidateAll,
    InvalidateTag(u8),
    /// Another key's, for which this one may have to make room.
    Insert(u16),
}

/// The last run of the closure.
#[derive(Default)]
struct Run {
    /// What it has seen.
    old: Option<Entry>,
    /// True if that was invalidated since.
    invalidated: bool,
    /// What the value that it returned should become.
    next: Option<Entry>,
}

impl Model {
    /// Calls a closure, and compares what it has made of its key.
    pub(super) fn change(&mut self, change: &Change, effects: &mut Effects) {
        let (key, cache) = (change.next.key, self.cache.clone());
        let own = Key::new(key, &self.ledger);
        let mut run = Run::default();
        let mut asides = Some(change.aside);
        let mut call = |old: Option<&Value>| {
            run = Run::default();
            self.closure(change, old, &mut asides, &mut run, effects)
        };
        let done = match (change.wants, change.is_async) {
            (Wants::Replace, _) => {
                let update = |old: &Value| match call(Some(old)) {
                    Ok(Compute::Put(loaded)) => loaded,
                    _ => unreachable!("it is to be replaced"),
                };
                Ok(Ok(cache.update_with(&Probe(key), update)))
            }
            (_, false) => cache.entry(own).try_compute(call).map(Err),
            (_, true) => {
                let change = cache.entry(own);
                let change = change.try_compute_async(|old| ready(call(old.as_ref())));
                once(change).map(Err)
            }
        };
        let told = |told: Computed<Value>| match told {
            Computed::Absent => ("absent", None, None),
            Computed::Kept(value) => ("kept", Some(value.id), None),
            Computed::Inserted(value) => ("inserted", Some(value.id), None),
            Computed::Replaced { old, new } => ("replaced", Some(new.id), Some(old.id)),
            Computed::Removed(old) => ("removed", None, Some(old.id)),
            Computed::NotStored(value) => ("not stored", Some(value.id), None),
            other => unreachable!("{other:?}"),
        };
        let expected = self.changed(change, &run, effects);
        match done {
            Err(Failed) => assert_eq!(change.wants, Wants::Fail),
            Ok(Ok(value)) => {
                let stored = matches!(expected.0, "replaced" | "inserted");
                let expected = expected.1.filter(|_| stored);
                assert_eq!(value.map(|value| value.id), expected, "{change:?}");
            }
            Ok(Err(computed)) => assert_eq!(told(computed), expected, "{change:?}"),
        }
    }

    fn closure(
        &mut self,
        change: &Change,
        old: Option<&Value>,
        asides: &mut Option<Aside>,
        run: &mut Run,
        effects: &mut Effects,
    ) -> Result<Compute<Value>, Failed> {
        let load = &change.next;
        run.old = self
            .entries
            .get(&load.key)
            .filter(|_| self.is_live(load.key))
            .cloned();
        assert_eq!(old.map(|old| old.id), run.old.as_ref().map(|old| old.id));
        self.aside(asides.take().unwrap_or(Aside::Nothing), run, effects);
        let loaded = match change.wants {
            Wants::Keep => return Ok(Compute::Keep),
            Wants::Fail => return Err(Failed),
            Wants::Remove => return Ok(Compute::Remove),
            Wants::Put | Wants::Replace => {
                let (value, lifetime, entry) = self.plan_load(load);
                run.next = Some(entry);
                return Ok(Compute::Put(Loaded::new(value, lifetime)));
            }
            Wants::Update => self.plan(load.key, New::of(load.new.weight)),
        };
        let (value, _, mut entry) = loaded;
        if run.old.is_some() && self.is_live(load.key) {
            entry = self.entries[&load.key].next(entry.id, entry.weight, entry.idle);
        }
        run.next = Some(entry);
        Ok(Compute::Update(value))
    }

    fn aside(&mut self, aside: Aside, run: &mut Run, effects: &mut Effects) {
        match aside {
            Aside::Nothing => return,
            Aside::Pass(nanos) => self.pass(nanos),
            Aside::Drive(nanos) => {
                self.pass(nanos);
                self.cache.advance(self.cache.now(), u32::MAX);
            }
            Aside::InvalidateAll => {
                self.cache.invalidate_all();
                self.all_leave(RemovalCause::Cleared);
                run.invalidated = true;
            }
            Aside::InvalidateTag(tag) => {
                self.invalidate_tag(tag);
                let old = run.old.as_ref();
                run.invalidated = old.is_some_and(|old| old.tags.are_hit_by(tag));
            }
            Aside::Insert(key) => self.insert(key, New::of(2), effects),
        }
        self.see(effects, false);
    }

    /// Does what a closure wants; returns what the caller is told of it.
    fn changed(
        &mut self,
        change: &Change,
        run: &Run,
        effects: &mut Effects,
    ) -> (&'static str, Option<u64>, Option<u64>) {
        let key = change.next.key;
        self.flights.remove(&key);
        let id = |entry: &Entry| entry.id;
        let live = self.entries.get(&key).filter(|_| self.is_live(key)).map(id);
        let seen = run.old.as_ref().map(id);
        match change.wants {
            Wants::Keep => {
                let kept = if change.is_async { live } else { seen };
                return kept.map_or(("absent", None, None), |kept| ("kept", Some(kept), None));
            }
            // A future leaves what is over to the driver.
            Wants::Remove if change.is_async && live.is_none() => self.forget(key),
            Wants::Remove => {
                let removed = self.leaves(key, RemovalCause::Removed);
                return removed.map_or(("absent", None, None), |old| ("removed", None, Some(old)));
            }
            _ => {}
        }
        let Some(entry) = run.next.clone() else {
            return ("absent", None, None);
        };
        let stores = match change.wants {
            Wants::Put => seen.is_none() || !run.invalidated,
            _ => seen.is_none() || live.is_some(),
        };
        let new = Some(entry.id);
        if !stores {
            return ("not stored", new, None);
        }
        if !self.fits(entry.weight) {
            self.refused(key, &entry, effects);
            return ("not stored", new, None);
        }
        self.takes_place(key, entry, effects);
        match live {
            Some(_) => ("replaced", new, seen),
            None => ("inserted", new, None),
        }
    }
}
