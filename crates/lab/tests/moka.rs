//! A program that used moka, and now uses this cache: each call beside its counterpart, and equal
//! answers asserted.
//!
//! [`Port`] is what the program asks of a cache. Both caches implement it, and the same scripts of
//! calls run against both. Moka has no clock of one's own, so its scripts sleep; ours run in an
//! instant under a [`ManualClock`]. A script that the machine held up so long that moka's answers
//! could be others is run again.
//!
//! Where the two differ, a comment at the counterpart says so.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tidewheel::{Clock, Compute, Driver, Loaded, ManualClock, SystemClock};

/// The scripts count time in steps. What they ask lies a whole step away from every deadline.
const STEP: Duration = Duration::from_millis(150);

/// A script that was held up for longer than this is run again.
const HELD_UP: Duration = Duration::from_millis(100);

/// A cached value. The last two fields are for rules that depend on the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Item {
    price: u32,
    weight: u32,
    rule: Rule,
}

fn item(price: u32) -> Item {
    Item {
        price,
        weight: 1,
        rule: Rule::Endless,
    }
}

fn ruled(price: u32, rule: Rule) -> Item {
    Item {
        rule,
        ..item(price)
    }
}

/// The life of an item, in steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Endless,
    /// From each time that it is stored.
    Stored(u32),
    /// From each time that it is stored or read.
    Used(u32),
    /// From the first time that it is stored.
    Created(u32),
}

impl Rule {
    fn created(self) -> Option<Duration> {
        match self {
            Self::Endless => None,
            Self::Stored(steps) | Self::Used(steps) | Self::Created(steps) => Some(STEP * steps),
        }
    }

    fn updated(self, left: Option<Duration>) -> Option<Duration> {
        if matches!(self, Self::Created(_)) {
            return left;
        }
        self.created()
    }

    fn read(self, left: Option<Duration>) -> Option<Duration> {
        if matches!(self, Self::Used(_)) {
            return self.created();
        }
        left
    }
}

/// The reason why an entry has left, as far as both caches tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Expired,
    Explicit,
    Replaced,
    Size,
}

/// The events that a listener got, by key: across keys their order is nobody's promise.
type Events = Arc<Mutex<BTreeMap<String, Vec<(u32, Cause)>>>>;

fn tell(events: &Events, key: &str, item: Item, cause: Cause) {
    let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
    let of_key = events.entry(key.to_owned()).or_default();
    of_key.push((item.price, cause));
}

/// The settings that a script wants of its cache.
#[derive(Debug, Clone, Copy, Default)]
struct Plan {
    capacity: Option<u64>,
    ttl: Option<u32>,
    idle: Option<u32>,
    by_rule: bool,
    by_weight: bool,
}

/// The action that a closure wants done with a key.
enum Then {
    Put(Item),
    Remove,
    Nothing,
}

/// The calls that the program makes of its cache.
trait Port: Sized + Sync {
    fn build(plan: Plan) -> Self;

    fn get(&self, key: &str) -> Option<Item>;
    fn contains(&self, key: &str) -> bool;
    fn insert(&self, key: &str, item: Item);
    /// The price of what was there.
    fn remove(&self, key: &str) -> Option<Item>;
    fn all(&self) -> BTreeMap<String, u32>;

    fn get_with(&self, key: &str, load: impl FnOnce() -> Item) -> Item;
    fn try_get_with(
        &self,
        key: &str,
        load: impl FnOnce() -> Result<Item, String>,
    ) -> Result<Item, Arc<String>>;
    fn optionally_get_with(&self, key: &str, load: impl FnOnce() -> Option<Item>) -> Option<Item>;

    /// The item that is there afterwards, and whether it is this one.
    fn or_insert(&self, key: &str, item: Item) -> (Item, bool);
    fn upsert(&self, key: &str, change: impl FnOnce(Option<Item>) -> Item) -> Item;
    /// The item that is there afterwards.
    fn compute(&self, key: &str, change: impl FnOnce(Option<Item>) -> Then) -> Option<Item>;

    fn invalidate_if(&self, predicate: impl Fn(&str, Item) -> bool + Send + Sync + 'static);
    fn invalidate_all(&self);

    /// Entries and weight, when everything that is due is done.
    fn size(&self) -> (u64, u64);
    /// The events so far, when everything that is due is done.
    fn events(&self) -> BTreeMap<String, Vec<(u32, Cause)>>;

    /// Time passes.
    fn wait(&self, steps: u32);
    /// True if the script was held up so long that its answers mean nothing.
    fn was_held_up(&self) -> bool;
}

struct Moka {
    cache: moka::sync::Cache<String, Item>,
    events: Events,
    /// Shows the time since it was made.
    real: SystemClock,
    /// Steps that were slept.
    steps: AtomicU32,
}

/// Moka's rule gets instants too.
struct MokaRules;

impl moka::Expiry<String, Item> for MokaRules {
    fn expire_after_create(&self, _: &String, item: &Item, _: Instant) -> Option<Duration> {
        item.rule.created()
    }

    fn expire_after_update(
        &self,
        _: &String,
        item: &Item,
        _: Instant,
        left: Option<Duration>,
    ) -> Option<Duration> {
        item.rule.updated(left)
    }

    fn expire_after_read(
        &self,
        _: &String,
        item: &Item,
        _: Instant,
        left: Option<Duration>,
        _: Instant,
    ) -> Option<Duration> {
        item.rule.read(left)
    }
}

impl Port for Moka {
    fn build(plan: Plan) -> Self {
        let events = Events::default();
        let told = Arc::clone(&events);
        let mut builder = moka::sync::Cache::builder()
            .support_invalidation_closures()
            .eviction_listener(move |key: Arc<String>, item: Item, cause| {
                use moka::notification::RemovalCause::{Expired, Explicit, Replaced, Size};
                let cause = match cause {
                    Expired => Cause::Expired,
                    Explicit => Cause::Explicit,
                    Replaced => Cause::Replaced,
                    Size => Cause::Size,
                };
                tell(&told, &key, item, cause);
            });
        if let Some(capacity) = plan.capacity {
            builder = builder.max_capacity(capacity);
        }
        if let Some(steps) = plan.ttl {
            builder = builder.time_to_live(STEP * steps);
        }
        if let Some(steps) = plan.idle {
            builder = builder.time_to_idle(STEP * steps);
        }
        if plan.by_rule {
            builder = builder.expire_after(MokaRules);
        }
        if plan.by_weight {
            builder = builder.weigher(|_, item: &Item| item.weight);
        }
        Self {
            cache: builder.build(),
            events,
            real: SystemClock::new(),
            steps: AtomicU32::new(0),
        }
    }

    fn get(&self, key: &str) -> Option<Item> {
        self.cache.get(key)
    }

    fn contains(&self, key: &str) -> bool {
        self.cache.contains_key(key)
    }

    fn insert(&self, key: &str, item: Item) {
        self.cache.insert(key.to_owned(), item);
    }

    fn remove(&self, key: &str) -> Option<Item> {
        self.cache.remove(key)
    }

    fn all(&self) -> BTreeMap<String, u32> {
        let all = self.cache.iter();
        all.map(|(key, item)| (key.to_string(), item.price))
            .collect()
    }

    fn get_with(&self, key: &str, load: impl FnOnce() -> Item) -> Item {
        self.cache.get_with(key.to_owned(), load)
    }

    fn try_get_with(
        &self,
        key: &str,
        load: impl FnOnce() -> Result<Item, String>,
    ) -> Result<Item, Arc<String>> {
        self.cache.try_get_with(key.to_owned(), load)
    }

    fn optionally_get_with(&self, key: &str, load: impl FnOnce() -> Option<Item>) -> Option<Item> {
        self.cache.optionally_get_with(key.to_owned(), load)
    }

    fn or_insert(&self, key: &str, item: Item) -> (Item, bool) {
        let entry = self.cache.entry_by_ref(key).or_insert(item);
        let is_fresh = entry.is_fresh();
        (entry.into_value(), is_fresh)
    }

    fn upsert(&self, key: &str, change: impl FnOnce(Option<Item>) -> Item) -> Item {
        let entry = self
            .cache
            .entry_by_ref(key)
            .and_upsert_with(|old| change(old.map(moka::Entry::into_value)));
        entry.into_value()
    }

    fn compute(&self, key: &str, change: impl FnOnce(Option<Item>) -> Then) -> Option<Item> {
        use moka::ops::compute::{CompResult, Op};
        let result = self.cache.entry_by_ref(key).and_compute_with(|old| {
            match change(old.map(moka::Entry::into_value)) {
                Then::Put(item) => Op::Put(item),
                Then::Remove => Op::Remove,
                Then::Nothing => Op::Nop,
            }
        });
        match result {
            CompResult::Inserted(entry)
            | CompResult::ReplacedWith(entry)
            | CompResult::Unchanged(entry) => Some(entry.into_value()),
            // Moka hands out what was removed.
            CompResult::Removed(_) | CompResult::StillNone(_) => None,
        }
    }

    fn invalidate_if(&self, predicate: impl Fn(&str, Item) -> bool + Send + Sync + 'static) {
        let registered = self
            .cache
            .invalidate_entries_if(move |key, item| predicate(key, *item));
        assert!(registered.is_ok(), "{registered:?}");
    }

    fn invalidate_all(&self) {
        self.cache.invalidate_all();
    }

    fn size(&self) -> (u64, u64) {
        self.cache.run_pending_tasks();
        (self.cache.entry_count(), self.cache.weighted_size())
    }

    fn events(&self) -> BTreeMap<String, Vec<(u32, Cause)>> {
        self.cache.run_pending_tasks();
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.clone()
    }

    fn wait(&self, steps: u32) {
        let steps = self.steps.fetch_add(steps, Relaxed) + steps;
        thread::sleep((STEP * steps).saturating_sub(self.real.now()));
    }

    fn was_held_up(&self) -> bool {
        self.real.now() > STEP * self.steps.load(Relaxed) + HELD_UP
    }
}

struct Tidewheel {
    cache: tidewheel::Cache<String, Item>,
    events: Events,
    clock: ManualClock,
}

/// A rule gets what is left as a duration.
struct Rules;

impl tidewheel::Expiry<String, Item> for Rules {
    fn expire_after_create(&self, _: &String, item: &Item) -> Option<Duration> {
        item.rule.created()
    }

    fn expire_after_update(
        &self,
        _: &String,
        item: &Item,
        left: Option<Duration>,
    ) -> Option<Duration> {
        item.rule.updated(left)
    }

    fn expire_after_read(
        &self,
        _: &String,
        item: &Item,
        left: Option<Duration>,
    ) -> Option<Duration> {
        item.rule.read(left)
    }
}

impl Port for Tidewheel {
    fn build(plan: Plan) -> Self {
        let (events, clock) = (Events::default(), ManualClock::new());
        let told = Arc::clone(&events);
        // Both questions need an answer: how much, and how long.
        let mut builder = tidewheel::Cache::builder()
            .clock(clock.clone())
            .driver(Driver::Manual)
            .eviction_listener(move |removal: tidewheel::Removal<String, Item>| {
                use tidewheel::RemovalCause::{
                    Cleared, Evicted, Expired, Invalidated, Removed, Replaced,
                };
                let cause = match removal.cause {
                    Expired => Cause::Expired,
                    Replaced => Cause::Replaced,
                    Evicted => Cause::Size,
                    Removed | Invalidated | Cleared => Cause::Explicit,
                    // Moka tells nothing when the cache ends.
                    _ => return,
                };
                tell(&told, &removal.key, removal.value, cause);
            });
        builder = match plan.capacity {
            Some(capacity) => builder.max_capacity(capacity),
            None => builder.unbounded(),
        };
        if let Some(steps) = plan.ttl {
            builder = builder.time_to_live(STEP * steps);
        }
        if plan.by_rule {
            builder = builder.expire_after(Rules);
        }
        if plan.ttl.is_none() && !plan.by_rule {
            builder = builder.no_default_ttl();
        }
        if let Some(steps) = plan.idle {
            builder = builder.time_to_idle(STEP * steps);
        }
        if plan.by_weight {
            builder = builder.weigher(|_, item: &Item| item.weight);
        }
        let cache = builder.build().expect("the plans are sound");
        Self {
            cache,
            events,
            clock,
        }
    }

    fn get(&self, key: &str) -> Option<Item> {
        self.cache.get(key)
    }

    fn contains(&self, key: &str) -> bool {
        self.cache.contains_key(key)
    }

    fn insert(&self, key: &str, item: Item) {
        self.cache.insert(key.to_owned(), item);
    }

    fn remove(&self, key: &str) -> Option<Item> {
        self.cache.remove(key)
    }

    fn all(&self) -> BTreeMap<String, u32> {
        let all = self.cache.iter();
        all.map(|(key, item)| (key, item.price)).collect()
    }

    fn get_with(&self, key: &str, load: impl FnOnce() -> Item) -> Item {
        self.cache.get_or_load(key.to_owned(), load)
    }

    fn try_get_with(
        &self,
        key: &str,
        load: impl FnOnce() -> Result<Item, String>,
    ) -> Result<Item, Arc<String>> {
        self.cache.try_get_or_load(key.to_owned(), load)
    }

    fn optionally_get_with(&self, key: &str, load: impl FnOnce() -> Option<Item>) -> Option<Item> {
        self.cache.optionally_get_or_load(key.to_owned(), load)
    }

    fn or_insert(&self, key: &str, item: Item) -> (Item, bool) {
        // `is_fresh` is what a closure has seen.
        let mut is_fresh = false;
        let there = self.cache.entry_by_ref(key).or_insert_with(|| {
            is_fresh = true;
            item
        });
        (there, is_fresh)
    }

    fn upsert(&self, key: &str, change: impl FnOnce(Option<Item>) -> Item) -> Item {
        // A `Put` is stored as by `insert`; an `Update` would keep what is left of the old time to
        // live.
        let there = self.cache.entry_by_ref(key).compute(|old| {
            let item = change(old.copied());
            Compute::Put(Loaded::from(item))
        });
        there.expect("it has just been stored")
    }

    fn compute(&self, key: &str, change: impl FnOnce(Option<Item>) -> Then) -> Option<Item> {
        let entry = self.cache.entry_by_ref(key);
        entry.compute(|old| match change(old.copied()) {
            Then::Put(item) => Compute::Put(item.into()),
            Then::Remove => Compute::Remove,
            Then::Nothing => Compute::Keep,
        })
    }

    fn invalidate_if(&self, predicate: impl Fn(&str, Item) -> bool + Send + Sync + 'static) {
        // Done when it returns; the predicate may borrow, and the number is known.
        self.cache.invalidate_if(|key, item| predicate(key, *item));
    }

    fn invalidate_all(&self) {
        self.cache.invalidate_all();
    }

    fn size(&self) -> (u64, u64) {
        self.cache.run_due();
        (self.cache.len() as u64, self.cache.weight())
    }

    fn events(&self) -> BTreeMap<String, Vec<(u32, Cause)>> {
        self.cache.run_due();
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.clone()
    }

    fn wait(&self, steps: u32) {
        self.clock.advance(STEP * steps);
    }

    fn was_held_up(&self) -> bool {
        false
    }
}

/// A script writes down what it was answered.
type Answers = Vec<String>;

/// Writes down expressions with what came of them.
macro_rules! ask {
    ($answers:ident, $($question:expr),+ $(,)?) => {
        $($answers.push(format!("{:?}", $question));)+
    };
}

fn price(item: Option<Item>) -> Option<u32> {
    item.map(|item| item.price)
}

/// A time to live is counted from storing; reads do not matter, and storing anew begins it anew.
fn time_to_live<P: Port>(answers: &mut Answers) -> P {
    let cache = P::build(Plan {
        capacity: Some(100),
        ttl: Some(3),
        ..Plan::default()
    });
    cache.insert("tea", item(1));
    cache.insert("cake", item(2));
    cache.wait(2);
    ask!(answers, price(cache.get("tea")), price(cache.get("cake")));
    cache.insert("cake", item(3));
    cache.wait(2);
    ask!(answers, price(cache.get("tea")), price(cache.get("cake")));
    ask!(answers, cache.contains("tea"), cache.all());
    cache.wait(2);
    ask!(
        answers,
        price(cache.get("cake")),
        cache.size(),
        cache.events()
    );
    cache
}

/// An idle time is counted from the last use. To ask whether a key is there is no use.
fn time_to_idle<P: Port>(answers: &mut Answers) -> P {
    let cache = P::build(Plan {
        capacity: Some(100),
        idle: Some(3),
        ttl: Some(7),
        ..Plan::default()
    });
    cache.insert("read", item(1));
    cache.insert("asked", item(2));
    for _ in 0..2 {
        cache.wait(2);
        ask!(answers, price(cache.get("read")), cache.contains("asked"));
    }
    cache.wait(2);
    // Six steps after it was stored, by two reads.
    ask!(answers, price(cache.get("read")));
    cache.wait(2);
    // The time to live ends what reads kept alive.
    ask!(answers, price(cache.get("read")), cache.events());
    cache
}

/// A rule that depends on the entry, and on what is done with it.
fn expiry<P: Port>(answers: &mut Answers) -> P {
    let cache = P::build(Plan {
        capacity: Some(100),
        by_rule: true,
        ..Plan::default()
    });
    cache.insert("endless", item(1));
    cache.insert("stored", ruled(2, Rule::Stored(3)));
    cache.insert("used", ruled(3, Rule::Used(3)));
    cache.insert("created", ruled(4, Rule::Created(3)));
    let loaded = cache.get_with("loaded", || ruled(5, Rule::Stored(1)));
    ask!(answers, loaded.price);
    cache.wait(2);
    for key in ["endless", "used", "created", "loaded"] {
        ask!(answers, price(cache.get(key)));
    }
    cache.insert("stored", ruled(12, Rule::Stored(3)));
    cache.insert("created", ruled(14, Rule::Created(3)));
    cache.wait(2);
    ask!(answers, cache.all());
    cache.wait(2);
    ask!(answers, cache.all());
    // Ours had their events when they were due. Moka finds entries with an end of their own by a
    // wheel of about a second, when somebody calls.
    cache.wait(15);
    ask!(answers, cache.events());
    cache
}

/// Of several ends the earliest counts, whichever it is.
fn earliest_end<P: Port>(answers: &mut Answers) -> P {
    let cache = P::build(Plan {
        capacity: Some(100),
        ttl: Some(5),
        idle: Some(3),
        by_rule: true,
        ..Plan::default()
    });
    cache.insert("by rule", ruled(1, Rule::Stored(1)));
    cache.insert("by idle time", ruled(2, Rule::Stored(9)));
    cache.insert("by time to live", item(3));
    cache.insert("changed", item(4));
    cache.wait(2);
    ask!(answers, price(cache.get("by time to live")));
    // A write is a use.
    cache.upsert("changed", |_| item(5));
    ask!(answers, cache.all());
    cache.wait(2);
    ask!(answers, price(cache.get("by time to live")), cache.all());
    cache.wait(2);
    ask!(answers, cache.all());
    cache
}

/// One load for a key, whoever asks; an error is told to all and not kept, an absence neither.
fn loads<P: Port>(answers: &mut Answers) -> P {
    let cache = P::build(Plan {
        capacity: Some(100),
        ..Plan::default()
    });
    let (runs, together) = (AtomicU32::new(0), Barrier::new(8));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                together.wait();
                let load = || {
                    runs.fetch_add(1, Relaxed);
                    thread::sleep(Duration::from_millis(5));
                    item(7)
                };
                assert_eq!(cache.get_with("tea", load).price, 7);
            });
        }
    });
    ask!(answers, runs.load(Relaxed));

    let fails = || {
        runs.fetch_add(1, Relaxed);
        Err("sold out".to_owned())
    };
    for _ in 0..2 {
        ask!(answers, cache.try_get_with("cake", fails));
    }
    ask!(answers, runs.load(Relaxed));
    ask!(answers, cache.try_get_with("cake", || Ok(item(9))));
    ask!(answers, cache.try_get_with("cake", fails));

    for _ in 0..2 {
        let absent = cache.optionally_get_with("scone", || {
            runs.fetch_add(1, Relaxed);
            None
        });
        ask!(answers, absent);
    }
    ask!(
        answers,
        cache.optionally_get_with("scone", || Some(item(3)))
    );
    ask!(answers, runs.load(Relaxed), cache.all());
    cache
}

/// A key's value is read and changed in one step.
fn entries<P: Port>(answers: &mut Answers) -> P {
    let cache = P::build(Plan {
        capacity: Some(100),
        ttl: Some(3),
        ..Plan::default()
    });
    ask!(answers, cache.or_insert("tea", item(1)));
    ask!(answers, cache.or_insert("tea", item(2)));
    let more = |old: Option<Item>| item(price(old).unwrap_or(10) + 1);
    ask!(
        answers,
        cache.upsert("tea", more),
        cache.upsert("cake", more)
    );
    cache.wait(2);
    // Stored anew: its time begins anew.
    ask!(answers, cache.upsert("tea", more));
    cache.wait(2);
    ask!(answers, cache.all());

    ask!(answers, cache.compute("tea", |_| Then::Nothing));
    ask!(answers, cache.compute("none", |_| Then::Nothing));
    ask!(answers, cache.compute("new", |_| Then::Put(item(5))));
    ask!(answers, cache.compute("new", |old| Then::Put(more(old))));
    ask!(answers, cache.compute("tea", |_| Then::Remove));
    ask!(answers, cache.compute("none", |_| Then::Remove));

    // Four threads of a hundred steps each: none is lost.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    cache.upsert("count", |old| item(price(old).unwrap_or(0) + 1));
                }
            });
        }
    });
    ask!(answers, cache.all());
    cache
}

/// Many entries at once, by a predicate, and all.
fn invalidation<P: Port>(answers: &mut Answers) -> P {
    let cache = P::build(Plan {
        capacity: Some(100),
        ..Plan::default()
    });
    for number in 0..10 {
        cache.insert(&format!("item {number}"), item(number));
    }
    cache.invalidate_if(|key, item| item.price % 2 == 1 || key == "item 0");
    ask!(
        answers,
        price(cache.get("item 3")),
        cache.size(),
        cache.all()
    );
    // What comes later is not concerned.
    cache.insert("item 3", item(3));
    ask!(answers, price(cache.get("item 3")), cache.size());
    cache.invalidate_all();
    ask!(
        answers,
        price(cache.get("item 2")),
        cache.all(),
        cache.size()
    );
    ask!(answers, cache.events());
    cache
}

/// The listener is told of every entry that leaves, and why.
fn causes<P: Port>(answers: &mut Answers) -> P {
    let cache = P::build(Plan {
        capacity: Some(10),
        ttl: Some(3),
        by_weight: true,
        ..Plan::default()
    });
    cache.insert("replaced", item(1));
    cache.insert("replaced", item(2));
    cache.insert("removed", item(3));
    ask!(
        answers,
        price(cache.remove("removed")),
        price(cache.remove("removed"))
    );
    cache.insert("invalid", item(4));
    cache.invalidate_if(|key, _| key == "invalid");
    ask!(answers, cache.size());
    cache.insert("expired", item(5));
    let heavy = Item {
        weight: 11,
        ..item(6)
    };
    cache.insert("heavy", heavy);
    ask!(answers, cache.size(), price(cache.get("heavy")));
    cache.wait(4);
    ask!(answers, cache.size(), cache.events());
    cache
}

/// An entry counts by its weight, and a new weight takes the place of the old one.
fn weights<P: Port>(answers: &mut Answers) -> P {
    let cache = P::build(Plan {
        capacity: Some(100),
        by_weight: true,
        ..Plan::default()
    });
    let weighing = |weight| Item { weight, ..item(1) };
    cache.insert("tea", weighing(30));
    cache.insert("cake", weighing(40));
    ask!(answers, cache.size());
    cache.insert("cake", weighing(10));
    ask!(answers, cache.size());
    cache.upsert("tea", |_| weighing(5));
    ask!(answers, cache.size());
    cache.remove("tea");
    ask!(answers, cache.size());
    // Which entries stay is the policy's choice, and these two choose differently; the capacity
    // holds for both.
    for number in 0..1000 {
        cache.insert(&format!("item {number}"), weighing(7));
    }
    let (count, weight) = cache.size();
    ask!(answers, weight <= 100, count >= 10);
    cache
}

/// Runs a script until it was not held up.
fn answers_of<P: Port>(script: impl Fn(&mut Answers) -> P) -> Answers {
    for _ in 0..20 {
        let mut answers = Answers::new();
        let cache = script(&mut answers);
        if !cache.was_held_up() {
            return answers;
        }
    }
    panic!("this machine is too busy to tell");
}

/// A script against both caches, and what both answered.
fn compare(
    name: &str,
    of_moka: impl Fn(&mut Answers) -> Moka,
    of_ours: impl Fn(&mut Answers) -> Tidewheel,
) {
    let (theirs, ours) = (answers_of(of_moka), answers_of(of_ours));
    assert!(!ours.is_empty());
    assert_eq!(ours, theirs, "{name}: ours, and moka's");
    println!(
        "{name}: {} answers are equal: {}",
        ours.len(),
        ours.join(", ")
    );
}

macro_rules! compare_all {
    ($($script:ident),+ $(,)?) => {
        // Beside each other, since moka's scripts sleep.
        thread::scope(|scope| {
            $(scope.spawn(|| compare(stringify!($script), $script::<Moka>, $script::<Tidewheel>));)+
        });
    };
}

#[test]
fn the_same_calls_have_the_same_answers() {
    compare_all!(
        time_to_live,
        time_to_idle,
        expiry,
        earliest_end,
        loads,
        entries,
        invalidation,
        causes,
        weights,
    );
}
