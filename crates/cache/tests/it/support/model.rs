//! The model of a cache, by the documentation of its operations: a map that is walked whole.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};

use tidewheel::{Cache, Condition, Lifetime, ManualClock, RemovalCause, Ttl, Version};

use super::load::Negative;
use super::op::{At, KEYS, Life, New, Op, Tags};
use super::refresh::{Origin, StatedEnd};
use super::setup::{ByValue, Heard, Setup};
use super::value::{Hashing, Key, Ledger, Probe, Value};

/// The latest deadline that the store can keep, in ticks.
const DEADLINE_MAX: u64 = (1 << 40) - 2;

const TICK: u64 = 1_000_000;

/// A cache, and what should be in it.
pub(crate) struct Model {
    pub(super) setup: Setup,
    pub(super) cache: Cache<Key, Value, Hashing>,
    pub(super) clock: ManualClock,
    pub(super) heard: Heard,
    pub(super) ledger: Ledger,
    /// The latest entry of each key that may still be stored, dead ones included.
    pub(super) entries: BTreeMap<u16, Entry>,
    /// Departures that were caused, and are yet to be announced: in order for each key.
    pub(super) leaving: BTreeMap<u16, VecDeque<Leaving>>,
    /// Every version of each key that was told.
    pub(super) versions: BTreeMap<u16, Vec<Version>>,
    /// The capacity of the cache.
    pub(super) capacity: Option<u64>,
    /// The cache's weight after the step before.
    pub(super) weight_before: u64,
    /// The results that are remembered of keys, and until which tick.
    pub(super) negatives: BTreeMap<u16, (Negative, u64)>,
    pub(super) origin: Origin,
    /// Refreshes that nobody has begun, by their numbers; and the queue, with those that were
    /// superseded.
    pub(super) flights: BTreeMap<u16, u64>,
    pub(super) queue: VecDeque<(u16, u64)>,
    pub(super) next_flight: u64,
    pub(super) counts: Counts,
    nanos: u64,
    wall: u64,
    frozen: Option<u64>,
    behind: u64,
    next_id: u64,
    pub(super) steps: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(crate) id: u64,
    pub(crate) weight: u32,
    /// The tick at which it ends however often it is read; a range until jitter is known.
    pub(crate) hard: Option<(u64, u64)>,
    /// The tick at which it ends unless it is read.
    pub(crate) idle: Option<u64>,
    /// The end of its configured time to live, beyond which no `Expiry` moves it; a range until
    /// jitter is known.
    pub(crate) cap: Option<(u64, u64)>,
    /// Ticks that it is kept after its end.
    pub(crate) grace: u64,
    /// The tick from which on it is stale, or its next value is wanted; a range until jitter is
    /// known.
    pub(crate) soft: Option<(u64, u64)>,
    /// The time for which it is fresh, if the caller stated one.
    pub(crate) fresh: Option<Duration>,
    /// True if a load has failed since: it is stale, and the next one is tried at `soft`.
    pub(crate) failed: bool,
    pub(crate) stated: StatedEnd,
    pub(crate) tags: Tags,
    /// True if one of its tags was invalidated since.
    pub(crate) invalidated: bool,
    pub(crate) pinned: bool,
    /// Its version, if that was told.
    pub(crate) version: Option<Version>,
}

#[derive(Debug, Clone)]
pub(super) struct Leaving {
    pub(crate) id: u64,
    pub(crate) causes: Vec<RemovalCause>,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(crate) inserts: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) stale: u64,
    pub(crate) stale_on_error: u64,
    pub(crate) loads: u64,
    pub(crate) load_errors: u64,
    pub(crate) rejected: u64,
    /// Events heard, and of them those with these causes.
    pub(crate) heard: u64,
    pub(crate) expired: u64,
    pub(crate) evicted: u64,
    /// Entries that left, however that was learnt.
    pub(crate) left: u64,
}

/// The effects that a step may have besides its own change.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// True if room may have been made.
    pub(crate) makes_room: bool,
    /// The entry that was stored just now.
    pub(crate) stored: Option<u64>,
    /// True if an entry was heavier than the whole capacity: that is told as an eviction.
    pub(crate) refused: bool,
    /// True if the driver has run with all the budget that it wanted.
    pub(crate) driven: bool,
    /// The number of entries that the driver reported as removed.
    pub(crate) expired: Option<u64>,
}

impl Entry {
    /// Between which ticks it ends.
    pub(crate) fn end(&self) -> Option<(u64, u64)> {
        let idle = self.idle.unwrap_or(u64::MAX).min(self.latest());
        match self.hard {
            Some((low, high)) => Some((low.min(idle), high.min(idle))),
            None => self.idle.map(|_| (idle, idle)),
        }
    }

    /// Returns whether it is there for readers; `None` while only jitter knows.
    pub(crate) fn is_live(&self, now: u64) -> Option<bool> {
        match self.end() {
            _ if self.invalidated => Some(false),
            None => Some(true),
            Some((low, _)) if now < low => Some(true),
            Some((_, high)) if now >= high => Some(false),
            Some(_) => None,
        }
    }

    /// By when it is gone.
    pub(crate) fn gone_at(&self) -> Option<u64> {
        self.end().map(|(_, high)| high + self.grace)
    }

    /// The latest end that can be kept.
    pub(crate) fn latest(&self) -> u64 {
        DEADLINE_MAX - self.grace
    }

    /// The entry with another value, which lives as long, and is used at a time whose idle time
    /// ends at `idle`.
    pub(crate) fn next(&self, id: u64, weight: u32, idle: Option<u64>) -> Self {
        Self {
            idle: self.idle.max(self.idle.and(idle)),
            id,
            weight,
            version: None,
            ..self.clone()
        }
    }

    /// Takes over what the cache says about its end, which is within the range.
    pub(crate) fn learn(&mut self, end: u64) {
        let idle = self.idle.unwrap_or(u64::MAX).min(self.latest());
        if let Some((low, high)) = &mut self.hard
            && low != high
        {
            if end < idle {
                (*low, *high) = (end, end);
            } else {
                *low = idle.max(*low);
                *high = idle.max(*high);
            }
        }
    }
}

impl Model {
    pub(crate) fn new(setup: &Setup) -> Self {
        let ledger = Ledger::default();
        let origin = Origin::new(&ledger);
        let (cache, clock, heard) = setup.build(&origin);
        Self {
            setup: *setup,
            cache,
            clock,
            heard,
            ledger,
            origin,
            flights: BTreeMap::new(),
            queue: VecDeque::new(),
            next_flight: 0,
            entries: BTreeMap::new(),
            leaving: BTreeMap::new(),
            versions: BTreeMap::new(),
            negatives: BTreeMap::new(),
            capacity: setup.capacity(),
            weight_before: 0,
            counts: Counts::default(),
            nanos: 0,
            wall: 0,
            frozen: None,
            behind: 0,
            next_id: 0,
            steps: 0,
        }
    }

    /// Engine time in nanoseconds.
    pub(super) fn now(&self) -> u64 {
        self.frozen
            .unwrap_or_else(|| self.nanos.saturating_sub(self.behind))
    }

    pub(super) fn tick(&self) -> u64 {
        self.now() / TICK
    }

    /// The first tick at which `ttl` is over.
    pub(super) fn deadline(&self, ttl: Duration) -> u64 {
        if ttl.is_zero() {
            return self.tick();
        }
        let nanos = u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX);
        self.now().saturating_add(nanos).div_ceil(TICK)
    }

    /// Returns the time until a lifetime is over. Without an idle time, none ends later than can be
    /// kept.
    fn until(&self, end: u64, latest: u64) -> Duration {
        let end = match self.setup.idle() {
            Some(_) => end,
            None => end.min(latest),
        };
        Duration::from_nanos(end.saturating_mul(TICK).saturating_sub(self.now()))
    }

    /// Returns whether a key is there for readers, by its end and tags alone: an evicted entry is
    /// not in `entries`.
    pub(super) fn is_live(&self, key: u16) -> bool {
        let now = self.tick();
        self.entries.get(&key).is_some_and(|entry| {
            entry
                .is_live(now)
                .expect("every end is looked up when it may have come")
        })
    }

    /// Executes one operation and compares.
    pub(crate) fn step(&mut self, op: &Op) {
        self.steps += 1;
        let effects = self.execute(op);
        let told = self.setup.prompt || self.steps.is_multiple_of(5);
        self.compare(&effects, told);
    }

    fn execute(&mut self, op: &Op) -> Effects {
        let mut effects = Effects::default();
        match *op {
            Op::Insert(key, new) => self.insert(key, new, &mut effects),
            Op::Load(ref load) => self.load(load, &mut effects),
            Op::Store(ref load) => {
                let planned = self.plan_load(load);
                self.store(load.key, planned, &mut effects);
            }
            Op::Change(ref change) => self.change(change, &mut effects),
            Op::Refresh => self.refresh(&mut effects),
            Op::InvalidateTag(tag) => self.invalidate_tag(tag),
            Op::Pin(key, pinned) => {
                // What is unpinned pays for a capacity that has shrunk.
                effects.makes_room = !pinned;
                self.pin(key, pinned);
            }
            Op::SetMaxCapacity(capacity) => self.set_capacity(capacity, &mut effects),
            Op::Version(_)
            | Op::GetWithVersion(_)
            | Op::InsertIfAbsent(..)
            | Op::CompareAndSet { .. }
            | Op::RemoveVersion(..)
            | Op::RemoveIf(_) => self.execute_versioned(op, &mut effects),
            Op::Get(key) => {
                let found = if key % 3 == 0 {
                    self.cache.get_many([&Probe(key)]).pop().flatten()
                } else {
                    self.cache.get(&Probe(key))
                };
                let found = found.map(|value| value.id);
                let expected = self.used(key);
                assert_eq!(found, expected, "get of {key}");
            }
            Op::Touch(key) => {
                let found = self.cache.touch(&Probe(key));
                assert_eq!(found, self.used(key).is_some(), "touch of {key}");
            }
            Op::Remove(key) => {
                let found = self.cache.remove(&Probe(key)).map(|value| value.id);
                let expected = self.leaves(key, RemovalCause::Removed);
                assert_eq!(found, expected, "remove of {key}");
            }
            Op::Invalidate(key) => {
                let found = self.cache.invalidate(&Probe(key));
                let expected = self.leaves(key, RemovalCause::Removed);
                assert_eq!(found, expected.is_some(), "invalidate of {key}");
            }
            Op::InvalidateAll => {
                self.cache.invalidate_all();
                self.all_leave(RemovalCause::Cleared);
            }
            Op::Expire(key, ttl, condition) => {
                let changed = self.cache.expire(&Probe(key), ttl, condition);
                let expected = self.expire(key, ttl, condition, StatedEnd::For(ttl));
                assert_eq!(changed, expected, "expire of {key}");
            }
            Op::ExpireAt(key, at, condition) => {
                let (at, left) = self.at(at);
                let changed = self.cache.expire_at(&Probe(key), at, condition);
                let expected = self.expire(key, left, condition, StatedEnd::Point);
                assert_eq!(changed, expected, "expire_at of {key}");
            }
            Op::Persist(key) => {
                let changed = self.cache.persist(&Probe(key));
                let live = self.is_live(key);
                let entry = self.entries.get_mut(&key).filter(|_| live);
                let expected = entry.is_some_and(|entry| {
                    let had = entry.end().is_some();
                    (entry.hard, entry.idle) = (None, None);
                    if had {
                        entry.cap = None;
                        entry.stated = StatedEnd::Never;
                    }
                    had
                });
                assert_eq!(changed, expected, "persist of {key}");
                if expected {
                    self.forget(key);
                    self.rebase(key, None);
                }
            }
            Op::Update(key) => self.update(key, &mut effects),
            Op::InvalidateIf(residue) => {
                let count = self.cache.invalidate_if(|key, _| key.number % 5 == residue);
                let mut expected = 0;
                for key in (residue..KEYS).step_by(5) {
                    if self.is_live(key) {
                        self.leaves(key, RemovalCause::Invalidated);
                        expected += 1;
                    }
                }
                assert_eq!(count, expected, "invalidate_if");
            }
            Op::Pass(nanos) => self.pass(nanos),
            Op::Advance { behind, budget } => {
                let now = self
                    .cache
                    .now()
                    .saturating_sub(Duration::from_nanos(behind));
                self.advance(now, budget, &mut effects);
            }
            Op::Drive(nanos) => {
                self.pass(nanos);
                for _ in 0..10_000 {
                    if effects.driven {
                        break;
                    }
                    self.advance(self.cache.now(), u32::MAX, &mut effects);
                }
                assert!(effects.driven, "the driver never gets done");
            }
            Op::Freeze => {
                self.cache.freeze();
                self.frozen = Some(self.now());
            }
            Op::Resume => {
                self.cache.resume();
                if let Some(frozen) = self.frozen.take() {
                    self.behind = self.nanos - frozen;
                }
            }
            Op::SetWall(nanos) => {
                self.clock.set_wall(Duration::from_nanos(nanos));
                self.wall = nanos;
            }
        }
        effects
    }

    pub(super) fn pass(&mut self, nanos: u64) {
        self.clock.advance(Duration::from_nanos(nanos));
        self.nanos += nanos;
        self.wall += nanos;
    }

    fn advance(&mut self, now: Duration, budget: u32, effects: &mut Effects) {
        let progress = self.cache.advance(now, budget);
        *effects.expired.get_or_insert(0) += progress.expired;
        if now == self.cache.now() && !progress.backlog {
            effects.driven = true;
        }
        if budget == u32::MAX && self.setup.is_told() {
            // Only a full queue of events stops such a pass, and it has been emptied now.
            assert!(
                !progress.backlog
                    || matches!(self.setup.listener, super::setup::Listening::Wait(_)),
                "the whole budget was not enough"
            );
        }
    }

    fn at(&self, at: At) -> (SystemTime, Duration) {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_nanos(self.wall);
        match at {
            At::Before(by) => (wall - by, Duration::ZERO),
            At::After(by) => (wall + by, by),
        }
    }

    /// A lookup that counts as a use. Returns the value's id.
    pub(super) fn used(&mut self, key: u16) -> Option<u64> {
        if !self.is_live(key) {
            self.counts.misses += 1;
            return None;
        }
        self.counts.hits += 1;
        let idle = self.setup.idle().map(|idle| self.deadline(idle));
        let entry = &self.entries[&key];
        let mut changed = None;
        if self.setup.has_expiry() && entry.stated == StatedEnd::Nothing {
            let id = entry.id;
            let next = |end: Option<u64>| {
                let left = end.map(|end| self.until(end, entry.latest()));
                let next = ByValue::read(id, left);
                (next != left).then(|| next.map(|ttl| self.deadline(ttl)))
            };
            let (low, high) = entry.hard.unzip();
            if let (Some(low), Some(high)) = (next(low), next(high)) {
                changed = Some(match (low.zip(high), entry.cap) {
                    (Some((low, high)), Some(cap)) => Some((low.min(cap.0), high.min(cap.1))),
                    (next, cap) => next.or(cap),
                });
            }
        }
        let entry = self.entries.get_mut(&key).expect("alive");
        if let Some(hard) = changed {
            entry.hard = hard;
            entry.idle = idle;
        } else if let (Some(old), Some(idle)) = (entry.idle, idle) {
            entry.idle = Some(old.max(idle));
        }
        let id = entry.id;
        self.served(key);
        Some(id)
    }

    /// A new value, its lifetime, and the entry that it should become.
    pub(super) fn plan(&mut self, key: u16, new: New) -> (Value, Lifetime, Entry) {
        let New { weight, life, tags } = new;
        self.next_id += 1;
        let id = self.next_id;
        let (lifetime, hard) = self.lifetime(life, id, self.left(key));
        let lifetime = tags.names().into_iter().fold(lifetime, Lifetime::tag);
        let value = Value::new(id, weight, &self.ledger);
        let mut entry = self.entry(id, weight, hard, tags);
        entry.stated = StatedEnd::of(life);
        entry.cap = self.cap(life);
        (value, lifetime, entry)
    }

    /// The time that a key's live entry has left, as it is reported of an entry that is replaced.
    pub(super) fn left(&self, key: u16) -> Option<Option<Duration>> {
        let entry = self.entries.get(&key).filter(|_| self.is_live(key))?;
        Some(entry.end().map(|(end, _)| self.until(end, entry.latest())))
    }

    /// A lifetime, and between which ticks it ends. `left` is what is left of the entry that is
    /// replaced.
    pub(super) fn lifetime(
        &self,
        life: Life,
        id: u64,
        left: Option<Option<Duration>>,
    ) -> (Lifetime, Option<(u64, u64)>) {
        match life {
            Life::Configured => {
                let own = match (self.setup.has_expiry(), left) {
                    (true, None) => ByValue::create(id),
                    (true, Some(left)) => ByValue::update(id, left),
                    (false, _) => None,
                };
                let ttl = own.into_iter().chain(self.setup.ttl()).min();
                (life.plain(), ttl.map(|ttl| self.shaped(ttl)))
            }
            Life::For(ttl) => (life.plain(), Some(self.shaped(ttl))),
            Life::Until(at) => {
                let (at, left) = self.at(at);
                let end = self.deadline(left);
                (Lifetime::until(at), Some((end, end)))
            }
            Life::Forever => (life.plain(), None),
        }
    }

    /// The end of the configured time to live of an entry that is stored now, if an `Expiry` may
    /// move its end.
    pub(super) fn cap(&self, life: Life) -> Option<(u64, u64)> {
        let ttl = self.setup.ttl().filter(|_| self.setup.has_expiry())?;
        (life == Life::Configured).then(|| self.shaped(ttl))
    }

    /// An entry that is stored now.
    pub(super) fn entry(
        &self,
        id: u64,
        weight: u32,
        hard: Option<(u64, u64)>,
        tags: Tags,
    ) -> Entry {
        Entry {
            id,
            weight: match self.setup.room {
                super::setup::Room::Weight => weight,
                _ => 1,
            },
            hard,
            idle: self.setup.idle().map(|idle| self.deadline(idle)),
            cap: None,
            grace: self.setup.grace(),
            soft: self.soft(None, hard),
            fresh: None,
            failed: false,
            stated: StatedEnd::Nothing,
            tags,
            invalidated: false,
            pinned: false,
            version: None,
        }
    }

    /// Returns whether an entry of this weight is not heavier than the whole capacity. One of usual
    /// weight is always taken, and evicted at once if there is no room at all.
    pub(super) fn fits(&self, weight: u32) -> bool {
        let is_room = |capacity| u64::from(weight) <= capacity;
        weight <= 1 || self.capacity.is_none_or(is_room)
    }

    pub(super) fn insert(&mut self, key: u16, new: New, effects: &mut Effects) {
        let planned = self.plan(key, new);
        self.store(key, planned, effects);
    }

    fn store(
        &mut self,
        key: u16,
        (value, lifetime, entry): (Value, Lifetime, Entry),
        effects: &mut Effects,
    ) {
        let own = Key::new(key, &self.ledger);
        if key % 3 == 0 {
            self.cache.insert_many_with([(own, value)], &lifetime);
        } else {
            self.cache.insert_with(own, value, lifetime);
        }
        if self.fits(entry.weight) {
            self.takes_place(key, entry, effects);
            return;
        }
        self.refused(key, &entry, effects);
    }

    /// An entry is heavier than the whole capacity; the old one goes all the same.
    pub(super) fn refused(&mut self, key: u16, entry: &Entry, effects: &mut Effects) {
        self.leaves(key, RemovalCause::Replaced);
        effects.makes_room = true;
        effects.refused = true;
        self.counts.rejected += 1;
        self.expect(key, entry.id, vec![RemovalCause::Evicted]);
    }

    /// An entry is stored, in place of the old one if there is one; a pin passes from value to
    /// value.
    pub(super) fn takes_place(&mut self, key: u16, mut entry: Entry, effects: &mut Effects) {
        entry.pinned = self.is_live(key) && self.entries[&key].pinned;
        self.leaves(key, RemovalCause::Replaced);
        effects.makes_room = true;
        effects.stored = Some(entry.id);
        self.counts.inserts += 1;
        self.entries.insert(key, entry);
    }

    /// Another value of the same weight; what is left of the lifetime stays.
    fn update(&mut self, key: u16, effects: &mut Effects) {
        self.next_id += 1;
        let id = self.next_id;
        let ledger = self.ledger.clone();
        let updated = self
            .cache
            .update(&Probe(key), |old| Value::new(id, old.weight, &ledger));
        let live = self.is_live(key);
        assert_eq!(
            updated.map(|value| value.id),
            live.then_some(id),
            "update of {key}"
        );
        if !live {
            return;
        }
        let old = &self.entries[&key];
        let idle = self.setup.idle().map(|idle| self.deadline(idle));
        let entry = old.next(id, old.weight, idle);
        self.takes_place(key, entry, effects);
    }

    pub(super) fn shaped(&self, ttl: Duration) -> (u64, u64) {
        let (short, long) = self.setup.shaped(ttl);
        (self.deadline(short), self.deadline(long))
    }

    /// A key's entry leaves by hand. Returns the value's id if it was alive.
    pub(super) fn leaves(&mut self, key: u16, cause: RemovalCause) -> Option<u64> {
        self.forget(key);
        let live = self.is_live(key);
        let entry = self.entries.remove(&key)?;
        let mut causes = vec![if live { cause } else { RemovalCause::Expired }];
        if cause == RemovalCause::Replaced || !live {
            // The new value may have evicted it to make room, and a dead entry may have been
            // removed already.
            causes.extend([RemovalCause::Evicted, RemovalCause::Expired]);
        }
        if entry.invalidated {
            causes.push(RemovalCause::Invalidated);
        }
        self.expect(key, entry.id, causes);
        live.then_some(entry.id)
    }

    /// Every entry leaves.
    pub(super) fn all_leave(&mut self, cause: RemovalCause) {
        self.negatives.clear();
        self.flights.clear();
        let now = self.tick();
        for (key, entry) in std::mem::take(&mut self.entries) {
            let mut causes = vec![cause];
            if entry.is_live(now) != Some(true) {
                causes.extend([RemovalCause::Evicted, RemovalCause::Expired]);
            }
            if entry.invalidated {
                causes.push(RemovalCause::Invalidated);
            }
            self.expect(key, entry.id, causes);
        }
    }

    pub(super) fn expect(&mut self, key: u16, id: u64, causes: Vec<RemovalCause>) {
        self.counts.left += 1;
        if self.setup.listener != super::setup::Listening::Nobody {
            let queue = self.leaving.entry(key).or_default();
            queue.push_back(Leaving { id, causes });
        }
    }

    pub(super) fn expire(
        &mut self,
        key: u16,
        ttl: Duration,
        condition: Condition,
        stated: StatedEnd,
    ) -> bool {
        if !self.is_live(key) {
            return false;
        }
        let end = self.deadline(ttl);
        let now = self.tick();
        let old = self.entries[&key].end().map(|(end, _)| end);
        let allowed = match condition {
            Condition::Always => true,
            Condition::IfNone => old.is_none(),
            Condition::IfSome => old.is_some(),
            Condition::IfLater => old.is_some_and(|old| end > old),
            Condition::IfEarlier => old.is_none_or(|old| end < old),
        };
        if allowed && end <= now {
            self.leaves(key, RemovalCause::Expired);
        } else if allowed {
            let entry = self.entries.get_mut(&key).expect("alive");
            entry.hard = Some((end, end));
            (entry.idle, entry.cap) = (None, None);
            entry.stated = stated;
            self.forget(key);
            self.rebase(key, Some((end, end)));
        }
        allowed
    }

    /// Returns the cache's answer about a key: nothing, or its value and its end.
    pub(super) fn ask(&self, key: u16) -> Option<(u64, Option<u64>)> {
        let probe = Probe(key);
        let value = self.cache.peek(&probe);
        let end = match self.cache.ttl(&probe) {
            Ttl::Missing => {
                assert!(value.is_none(), "{key} has a value and no time to live");
                return None;
            }
            Ttl::Forever => None,
            Ttl::Left(left) => {
                let end = self.now() + left.as_nanos() as u64;
                assert_eq!(end % TICK, 0, "ends lie on ticks");
                Some(end / TICK)
            }
        };
        let value = value.unwrap_or_else(|| panic!("{key} has a time to live and no value"));
        assert!(self.cache.contains_key(&probe), "{key} is there");
        Some((value.id, end))
    }
}
