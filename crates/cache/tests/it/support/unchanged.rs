//! The model of values that have not changed.

use tidewheel::{Lifetime, Loaded};

use super::load::{Load, Run};
use super::model::{Effects, Entry, Model};
use super::op::Tags;
use super::refresh::StatedEnd;
use super::value::Value;

impl Model {
    /// A loader is given the old value if the cache still keeps it.
    pub(super) fn given_old(&self, key: u16, old: Option<u64>) {
        let now = self.tick();
        let entry = self.entries.get(&key);
        let kept = entry.and_then(|entry| entry.is_kept(now));
        let known = self.is_live(key) || self.setup.is_told() && self.setup.prompt;
        match old {
            Some(id) => {
                assert_eq!(
                    entry.map(|entry| entry.id),
                    Some(id),
                    "the old value of {key}"
                );
                assert_ne!(kept, Some(false), "{entry:?} is given too late, at {now}");
            }
            None => assert!(kept != Some(true) || !known, "{entry:?} is kept, at {now}"),
        }
    }

    /// A loader says that the old value has not changed.
    pub(super) fn unchanged(&self, load: &Load, old: Value, run: &mut Run) -> Loaded<Value> {
        let key = load.key;
        let left = self.left(key);
        let (lifetime, hard) = self.lifetime(load.new.life, old.id, left);
        let mut lifetime = load
            .new
            .tags
            .names()
            .into_iter()
            .fold(lifetime, Lifetime::tag);
        let mut entry = self.entry(old.id, old.weight, hard, load.new.tags);
        entry.stated = StatedEnd::of(load.new.life);
        entry.cap = self.cap(load.new.life);
        if let Some(fresh) = load.fresh {
            lifetime = lifetime.fresh_for(fresh);
            entry.is_fresh_for(self.soft(load.fresh, entry.hard), load.fresh);
        }
        if let Some(stale) = load.stale {
            lifetime = lifetime.stale_for(stale);
            entry.grace = stale.as_millis() as u64;
        }
        (run.entry, run.unchanged) = (Some(entry), true);
        Loaded::unchanged(old, lifetime)
    }

    /// The value of an entry has not changed: it has another lifetime, and nobody hears of it.
    pub(super) fn lives_on(&mut self, key: u16, mut entry: Entry, effects: &mut Effects) {
        let now = self.tick();
        effects.makes_room = true;
        let Some(old) = self.entries.get(&key).filter(|old| old.id == entry.id) else {
            // Evicted meanwhile.
            return self.takes_place(key, entry, effects);
        };
        let own_tags = entry.tags != Tags::NONE;
        if !own_tags {
            entry.tags = old.tags;
        }
        entry.invalidated = old.invalidated && !own_tags;
        // Of an end that may be now or a tick later, the cache's choice is learnt. What is kept
        // past its end stays anyway.
        let is_open = entry.is_live(now).is_none() && entry.grace == 0;
        let is_over =
            entry.gone_at().is_some_and(|gone| gone <= now) || is_open && self.ask(key).is_none();
        if is_over || old.invalidated {
            // What is over at once, or was invalidated meanwhile, leaves, and the value too if it
            // is not stored anew.
            let invalidated = entry.invalidated;
            self.takes_place(key, entry, effects);
            let entry = self.entries.get_mut(&key).expect("stored");
            entry.invalidated = invalidated;
            return;
        }
        (entry.pinned, entry.version) = (old.pinned, old.version);
        self.forget(key);
        self.entries.insert(key, entry);
    }
}
