//! A shard, and who calls it: each call changes the model too, and is compared with it.

use std::sync::Arc;
use std::time::Duration;

use tidewheel_store::{Attributes, Soft, TypedStore};
use tidewheel_time::{Moment, TICK_NANOS};

use super::calls::{Call, KEYS, KeyHash, New, Setup};
use super::flying::{Lead, Wait};
use super::truth::{Answer, Entry, Negative as Remembered, Truth};
use crate::lifetime::Lifetime;
use crate::removal::{Removal, RemovalCause};
use crate::shard::Shard;
use crate::shard::config::Config;
use crate::shard::effects::{ShardRequest, emptied};
use crate::shard::flight::{Flight, Negative};
use crate::shard::negative::new_memory;
use crate::shard::rules::{Account, EventRoom, Hashed, Listens, OnFull, Rules};
use crate::shard::sight::{Sight, StandIn};
use crate::shard::tags::Tags;
use crate::shard::write::Prepared;
use crate::stats::Counters;

pub(super) const BACKOFF: u64 = 5;

pub(super) struct World<'r> {
    pub(super) rules: &'r Rules<u32, u64, KeyHash>,
    pub(super) shard: Shard<u32, u64, KeyHash>,
    pub(super) truth: Truth,
    pub(super) leads: Vec<Lead<'r>>,
    pub(super) waits: Vec<Wait>,
    latches: Vec<(u32, Arc<Flight<u64>>)>,
    counters: Counters,
    next_value: u64,
}

pub(super) fn run(setup: &Setup, calls: &[Call]) {
    let listens = if setup.listens {
        Listens::Threads
    } else {
        Listens::Nobody
    };
    let mut config = Config::new(TypedStore::new);
    config.grace = setup.grace;
    config.error_backoff = BACKOFF;
    config.new_memory = setup.negative_ttl.map(|_| new_memory as fn() -> _);
    config.negative_ttl = setup.negative_ttl.map(Duration::from_millis);
    let rules = Arc::new(Rules {
        hasher: KeyHash {
            collides: setup.collides,
        },
        config,
        account: Account::new(setup.capacity, 1),
        tags: Tags::new(),
        events: EventRoom::new(listens, usize::MAX, OnFull::Wait),
        new_emptied: emptied,
    });
    let mut world = World {
        shard: Shard::new(Arc::clone(&rules), TypedStore::new()),
        rules: &rules,
        truth: Truth {
            capacity: setup.capacity,
            grace: setup.grace,
            ..Truth::default()
        },
        leads: Vec::new(),
        waits: Vec::new(),
        latches: Vec::new(),
        counters: Counters::new(),
        next_value: 0,
    };
    world.shard.store.defer_frees();
    for call in calls {
        world.call(*call);
    }
}

impl<'r> World<'r> {
    pub(super) fn now(&self) -> Moment {
        Moment(self.truth.tick * TICK_NANOS)
    }

    fn call(&mut self, call: Call) {
        self.shard.changes += 1;
        self.shard.store.begin_change();
        self.act(call);
        self.settle();
        self.shard.store.end_change();
        self.compare();
    }

    fn act(&mut self, call: Call) {
        let now = self.now();
        let tick = self.truth.tick;
        match call {
            Call::Pass(ticks) => self.truth.tick += ticks,
            Call::Insert(key, new) => self.insert(key, new),
            Call::Get(key) => self.get(key),
            Call::RemoveInvalidated(key) => {
                let tag = self.truth.entries.get(&key).and_then(|entry| entry.tag);
                if !self.truth.is_current(tag) {
                    self.truth.removes(key, RemovalCause::Invalidated);
                }
                let is = |stored: &u32| *stored == key;
                self.shard.remove_invalidated(self.hash(key), &is, now);
            }
            Call::Remove(key) => {
                let hash = self.hash(key);
                let latch = self.shard.writing(hash, |stored| *stored == key);
                assert_eq!(latch.is_none(), self.truth.writes(key), "waits for a latch");
                if latch.is_none() {
                    let was_live = self.truth.live(key).is_some();
                    self.truth.removes(key, RemovalCause::Removed);
                    let removed = self.shard.remove(hash, &key, RemovalCause::Removed, now);
                    assert_eq!(removed, was_live, "there was a value");
                }
            }
            Call::Move(key, ttl) => {
                let slot = self.shard.find_live(self.hash(key), &key, now);
                assert_eq!(
                    slot.is_some(),
                    self.truth.live(key).is_some(),
                    "{key} is live"
                );
                if let (Some(slot), Some(entry)) = (slot, self.truth.entries.get_mut(&key)) {
                    entry.end = ttl.map(|ttl| tick + ttl);
                    let deadline = entry.end.map(|end| end + self.truth.grace);
                    self.shard.set_deadline(slot, deadline, tick);
                }
            }
            Call::Claim { key, absent } => self.claim(key, absent),
            Call::Land(at, says) => self.land(at, says),
            Call::Poll(at) => self.poll(at),
            Call::StopWaiting(at) => self.stop_waiting(at),
            Call::Latch(key) => {
                let keys = &mut self.shard.effects.garbage.keys;
                let hash = self.rules.hash(&key);
                let latch = self
                    .shard
                    .flights
                    .writing(hash.0, |stored| *stored == key, keys);
                assert_eq!(
                    latch.is_some(),
                    self.truth.latches.contains(&key),
                    "one latch"
                );
                if latch.is_none() {
                    self.truth.table.remove(&key);
                    let flight = self.shard.flights.latch(hash.0, Arc::new(key));
                    self.truth.latches.insert(key);
                    self.latches.push((key, flight));
                }
            }
            Call::Open => {
                if let Some((key, flight)) = self.latches.pop() {
                    let ended = self.shard.flights.remove(self.hash(key).0, &flight);
                    assert!(ended.is_some(), "a latch stays");
                    flight.end(None);
                    self.truth.latches.remove(&key);
                }
            }
            Call::Expire(budget) => {
                self.shard.expire(tick, budget);
            }
            Call::ExpireAll => {
                while self.shard.expire(tick, 8).backlog {}
                self.settle();
                let next = self.truth.first_to_leave();
                assert!(next.is_none_or(|next| next > tick), "what is due stays");
            }
            Call::Invalidate(tag) => {
                self.rules.tags.invalidate(name(tag));
                self.truth.invalidated[tag] += 1;
            }
            Call::Sweep => {
                let mut before = Some(u32::MAX);
                while let Some(from) = before {
                    self.shard.sweep(from, 3, now);
                    before = self.shard.store.scan_labels(from, 3, |_, _| {});
                }
                self.settle();
                let entries = self.truth.entries.values();
                let invalid = entries.filter(|entry| !self.truth.is_current(entry.tag));
                assert_eq!(invalid.count(), 0, "a sweep has forgotten some");
            }
            Call::Clear => {
                if !self.rules.events.has_listener() {
                    self.truth.entries.clear();
                }
                self.truth.table.clear();
                self.truth.negatives.clear();
                self.shard.clear(RemovalCause::Cleared);
            }
            Call::SetCapacity(capacity) => {
                if self.truth.capacity.is_some() {
                    self.truth.capacity = Some(capacity);
                    self.rules.account.set_capacity(capacity);
                    self.collect();
                }
            }
        }
    }

    pub(super) fn hash(&self, key: u32) -> Hashed {
        self.rules.hash(&key)
    }

    /// Prepares an entry as callers do.
    pub(super) fn prepared(&mut self, new: New) -> (u64, Prepared<'r>, Entry) {
        let now = self.now();
        let lifetime = match new.tag {
            Some(tag) => Lifetime::configured().tag(name(tag)),
            None => Lifetime::configured(),
        };
        let tags = self.rules.tags.hold(&lifetime.tags);
        let end = new.ttl.map(|ttl| self.truth.tick + ttl);
        let soft = new.fresh_for.map(|fresh| self.truth.tick + fresh);
        self.next_value += 1;
        let entry = Entry {
            value: self.next_value,
            end,
            soft,
            again: None,
            weight: new.weight,
            tag: new.tag.map(|tag| (tag, self.truth.invalidated[tag])),
        };
        let attributes = Attributes {
            deadline: self.truth.kept_until(&entry),
            weight: new.weight,
            soft: soft.map_or(Soft::NEVER, Soft::at),
            label: tags.label(),
            ..Attributes::default()
        };
        let weight = u64::from(new.weight);
        let fits = self.truth.capacity.is_none_or(|most| weight <= most);
        let prepared = Prepared {
            attributes,
            tags,
            now,
            fits,
        };
        (self.next_value, prepared, entry)
    }

    fn insert(&mut self, key: u32, new: New) {
        let hash = self.hash(key);
        let (value, prepared, entry) = self.prepared(new);
        let writes = self.truth.writes(key);
        if writes {
            self.truth.stores(key, entry);
        }
        if prepared.attributes.is_plain() && new.tag.is_none() {
            let deadline = prepared.attributes.deadline;
            let done = self
                .shard
                .overwrite(hash, &key, value, deadline, self.truth.tick);
            if done.is_ok() {
                assert!(writes, "waits for a latch");
                self.truth.due.clear();
                return;
            }
        }
        let latched = self.shard.put_unless_latched(hash, key, value, &prepared);
        assert_eq!(latched.is_none(), writes, "waits for a latch");
    }

    fn get(&mut self, key: u32) {
        let (hash, now) = (self.hash(key), self.now());
        let expected = self.truth.answer(key, true);
        let seen = self.shard.find(hash, &key).map(|slot| {
            let sight = self.shard.sight(slot, None, now);
            (*self.shard.store.value(slot), sight)
        });
        if let Some((value, Sight::Live { is_stale })) = seen {
            assert_eq!(expected, Answer::Value { value, is_stale }, "get of {key}");
            return;
        }
        let answer = self.shard.stand_in::<&str, _>(hash, &key, true, now);
        let answer = match answer {
            None => Answer::Nothing,
            Some(StandIn::Old(slot, _)) => Answer::Old(*self.shard.store.value(slot)),
            Some(StandIn::Remembered(Negative::Absent)) => Answer::Negative(Remembered::Absent),
            Some(StandIn::Remembered(Negative::Error(_))) => Answer::Negative(Remembered::Failed),
        };
        assert_eq!(answer, expected, "get of {key}, seen {seen:?}");
    }

    /// Takes back what the shard owes, as the cache does once the capacity has shrunk.
    fn collect(&mut self) {
        while self.rules.account.debt() > 0 {
            let debt = self.rules.account.debt();
            let unused = self.shard.lent.saturating_sub(self.shard.store.weight());
            let got = self
                .shard
                .reclaim(debt.min(unused + 1), debt, self.truth.tick);
            self.rules.account.give_back(got);
            assert!(got > 0, "nothing is pinned");
        }
    }

    /// Does what a call has left to be done once the lock is released.
    fn settle(&mut self) {
        match std::mem::take(&mut self.shard.effects.wanted) {
            ShardRequest::Nothing => {}
            ShardRequest::RepayDebt => self.collect(),
            ShardRequest::Room(_) => {
                let lent = self.shard.lent;
                self.shard.evict_down_to(lent, self.truth.tick);
            }
        }
        if self.shard.republish {
            self.shard.republish = false;
            self.shard.published = self.shard.next_deadline();
        }
        if let Some(garbage) = self.shard.effects.garbage.take() {
            for store in garbage.stores() {
                store.each_label(&mut |label| self.rules.tags.release(label));
            }
            garbage.discard(&self.counters);
        }
        drop(self.shard.store.take_freed());
        let mut events = self.shard.effects.outbox.take(usize::MAX);
        for entries in events.shards() {
            entries.each_label(&mut |label| self.rules.tags.release(label));
        }
        while let Some(removal) = events.next() {
            let Removal { key, value, .. } = removal;
            if removal.cause == RemovalCause::Cleared {
                let entry = self.truth.entries.remove(&key);
                assert_eq!(
                    entry.map(|entry| entry.value),
                    Some(value),
                    "{key} is cleared"
                );
            } else {
                self.truth.has_left(&removal);
            }
            self.rules.events.told();
        }
        if !self.rules.events.has_listener() {
            self.find_gone();
        }
        assert_eq!(self.truth.due, [], "what should have left");
    }

    /// Without a listener: what is not there any more has left.
    fn find_gone(&mut self) {
        self.truth.due.clear();
        let keys: Vec<u32> = self.truth.entries.keys().copied().collect();
        for key in keys {
            if self.shard.find(self.hash(key), &key).is_none() {
                self.truth.is_gone(key);
            }
        }
    }

    fn compare(&self) {
        let (shard, truth) = (&self.shard, &self.truth);
        let mut labels = Vec::new();
        shard.validate(&mut labels);
        self.rules.tags.validate(labels.into_iter());
        assert_eq!(shard.store.len(), truth.entries.len(), "entries");
        assert_eq!(shard.store.weight(), truth.weight(), "weight");
        for (key, entry) in &truth.entries {
            let slot = shard.find(self.hash(*key), key);
            let stored = slot.map(|slot| *shard.store.value(slot));
            assert_eq!(stored, Some(entry.value), "the value of {key}");
        }
        if let Some(capacity) = truth.capacity {
            let account = &self.rules.account;
            assert_eq!(
                shard.lent + account.free(),
                capacity + account.debt(),
                "what is lent"
            );
            assert!(truth.weight() <= capacity, "too much is stored");
        }
        let next = truth.next_deadline().unwrap_or(u64::MAX);
        assert!(
            shard.published <= next,
            "the driver would come late: {next}"
        );
        for key in 0..KEYS as u32 {
            let flight = shard
                .flights
                .find(self.hash(key).0, |stored| *stored == key);
            let is_known = truth.table.contains_key(&key) || truth.latches.contains(&key);
            assert_eq!(flight.is_some(), is_known, "the flight of {key}");
        }
    }
}

fn name(tag: usize) -> &'static str {
    ["a", "b"][tag]
}
