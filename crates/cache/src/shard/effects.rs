//! What a change leaves to be done after the lock is released: events to be told, garbage to be
//! dropped, a request to other shards; and what it has counted.

use std::collections::VecDeque;
use std::mem::needs_drop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tidewheel_store::{IntoEntries, Removed, TypedStore};

use crate::planted::{Fault, is_planted};
use crate::quiet::forget_quietly;
use crate::removal::{Removal, RemovalCause};
use crate::shard::negative::{Forgotten, NegativeMemory};
use crate::shard::rules::Rules;
use crate::stats::{Count, Counters, LATENESS_WINDOWS};

/// A change's request to other shards.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShardRequest {
    #[default]
    Nothing,
    /// Weight that the entry stored last lacks.
    Room(u64),
    /// The debt since the capacity shrank.
    RepayDebt,
}

/// What changes of a shard have left to be done.
pub(crate) struct Effects<K, V> {
    /// The request of the entry that was stored last.
    pub(crate) wanted: ShardRequest,
    pub(crate) outbox: Outbox<K, V>,
    pub(crate) garbage: Garbage<K, V>,
    pub(crate) counts: ShardCounts,
}

/// What is counted under the lock of a shard.
#[derive(Default)]
pub(crate) struct ShardCounts {
    counts: [u64; Count::KINDS],
    /// Entries that have expired, by how late: in the tick, and by powers of two.
    lateness: [u64; LATENESS_WINDOWS],
}

impl ShardCounts {
    #[inline]
    pub(crate) fn add(&mut self, count: Count, by: u64) {
        self.counts[count as usize] += by;
    }

    /// Adds all to sums.
    pub(crate) fn add_to(
        &self,
        counts: &mut [u64; Count::KINDS],
        lateness: &mut [u64; LATENESS_WINDOWS],
    ) {
        let pairs = self.counts.iter().zip(counts);
        for (own, sum) in pairs.chain(self.lateness.iter().zip(lateness)) {
            *sum += own;
        }
    }

    /// An entry has expired so many ticks after its deadline.
    #[inline]
    fn late(&mut self, ticks: u64) {
        let window = (u64::BITS - ticks.leading_zeros()) as usize;
        self.lateness[window.min(LATENESS_WINDOWS - 1)] += 1;
    }
}

impl<K, V> Effects<K, V> {
    pub(crate) fn new() -> Self {
        Self {
            wanted: ShardRequest::Nothing,
            outbox: Outbox::new(),
            garbage: Garbage::new(),
            counts: ShardCounts::default(),
        }
    }

    /// Counts and files an entry that has left the store.
    pub(crate) fn removed<S>(
        &mut self,
        rules: &Rules<K, V, S>,
        removed: Removed<K, V>,
        cause: RemovalCause,
        now: u64,
    ) {
        self.count(rules, &removed, cause, now);
        self.file(rules, removed, cause, now);
    }

    /// Files an entry that was refused: it has not been in the store.
    pub(crate) fn refused<S>(&mut self, rules: &Rules<K, V, S>, refused: Removed<K, V>, now: u64) {
        self.counts.add(Count::Rejected, 1);
        rules.tags.release(refused.label);
        self.file(rules, refused, RemovalCause::Evicted, now);
    }

    /// As [`removed`](Self::removed), of an entry that counts nowhere: it is for the
    /// listener, or to be dropped outside the lock.
    #[inline]
    pub(crate) fn file<S>(
        &mut self,
        rules: &Rules<K, V, S>,
        entry: Removed<K, V>,
        cause: RemovalCause,
        now: u64,
    ) {
        let Removed {
            key,
            value,
            deadline,
            ..
        } = entry;
        if !rules.events.has_listener() {
            self.garbage.push(key, value);
            return;
        }
        if rules.events.is_full_and_lossy(cause) {
            self.counts.add(Count::EventDropped, 1);
            self.garbage.push(key, value);
            return;
        }
        let lateness = match (cause, deadline) {
            (RemovalCause::Expired, Some(deadline)) => {
                Some(Duration::from_millis(now.saturating_sub(deadline)))
            }
            _ => None,
        };
        self.outbox.push(Event::One(Removal {
            key,
            value,
            cause,
            lateness,
        }));
        rules.events.add(1);
    }

    /// Counts an entry that has left the store, and its use of its tags no longer.
    pub(crate) fn count<S>(
        &mut self,
        rules: &Rules<K, V, S>,
        removed: &Removed<K, V>,
        cause: RemovalCause,
        now: u64,
    ) {
        rules.tags.release(removed.label);
        let kind = match cause {
            RemovalCause::Expired => {
                if let Some(deadline) = removed.deadline {
                    self.counts.late(now.saturating_sub(deadline));
                }
                Count::Expiration
            }
            RemovalCause::Evicted => Count::Eviction,
            RemovalCause::Replaced => return,
            _ => Count::Removal,
        };
        self.counts.add(kind, 1);
    }
}

/// Events in the order in which things happened.
///
/// Those that no listener was told of are dropped one by one, so that a panic harms nothing else.
pub(crate) struct Events<K, V>(VecDeque<Event<K, V>>);

pub(crate) enum Event<K, V> {
    One(Removal<K, V>),
    /// A whole shard, taken out in one step. Its entries leave one by one.
    All(Emptied<K, V>, RemovalCause),
}

impl<K, V> Events<K, V> {
    pub(crate) const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Takes the next removal.
    pub(crate) fn next(&mut self) -> Option<Removal<K, V>> {
        loop {
            if let Event::All(entries, cause) = self.0.front_mut()? {
                if let Some((key, value)) = entries.next() {
                    return Some(Removal {
                        key,
                        value,
                        cause: *cause,
                        lateness: None,
                    });
                }
            }
            if let Event::One(removal) = self.0.pop_front()? {
                return Some(removal);
            }
        }
    }

    /// Shards that were taken out whole.
    pub(crate) fn shards(&self) -> impl Iterator<Item = &Emptied<K, V>> {
        self.0.iter().filter_map(|event| match event {
            Event::One(_) => None,
            Event::All(entries, _) => Some(entries),
        })
    }
}

impl<K, V> Drop for Events<K, V> {
    fn drop(&mut self) {
        while let Some(Removal { key, value, .. }) = self.next() {
            discard_pair(key, value);
        }
    }
}

/// Events of one shard, pushed under its lock.
pub(crate) struct Outbox<K, V> {
    events: Events<K, V>,
    /// True if this hold has pushed an event. One that pushed none reports none: a driver that
    /// works while the listener is awaited would otherwise wake itself without end.
    pub(crate) news: bool,
}

impl<K, V> Outbox<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            events: Events::new(),
            news: false,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, event: Event<K, V>) {
        let Events(events) = &mut self.events;
        match is_planted(Fault::EventOrder) {
            true => events.push_front(event),
            false => events.push_back(event),
        }
        self.news = true;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.0.is_empty()
    }

    /// Shards that have left whole, and whose tags are released when they are announced.
    pub(crate) fn shards(&self) -> impl Iterator<Item = &Emptied<K, V>> {
        self.events.shards()
    }

    /// Takes up to `limit` events.
    pub(crate) fn take(&mut self, limit: usize) -> Events<K, V> {
        let Events(events) = &mut self.events;
        if events.len() <= limit {
            Events(std::mem::take(events))
        } else {
            Events(events.drain(..limit).collect())
        }
    }
}

/// Drops a key and a value of a cache that is gone with its counters.
fn discard_pair<K, V>(key: K, value: V) {
    for dropped in [
        catch_unwind(AssertUnwindSafe(|| drop(key))),
        catch_unwind(AssertUnwindSafe(|| drop(value))),
    ] {
        if let Err(panic) = dropped {
            forget_quietly(panic);
        }
    }
}

/// Timer records that one hold of a shard's lock may touch. At most this many entries leave in one
/// hold.
pub(crate) const RECORDS_PER_HOLD: u32 = 16;

/// The keys and values to drop once the shard's lock is released. Most holds leave nothing: that
/// takes three tests.
pub(crate) struct Garbage<K, V> {
    one: Option<(K, V)>,
    /// The pairs after `one`.
    pairs: Vec<(K, V)>,
    /// Keys of loads that were superseded.
    pub(crate) keys: Vec<Arc<K>>,
    rare: Option<Box<Rare<K, V>>>,
}

/// Garbage that few holds leave.
pub(crate) struct Rare<K, V> {
    pub(crate) stores: Vec<Emptied<K, V>>,
    /// Forgotten errors and absences.
    negatives: Vec<Forgotten<K>>,
    /// All that a shard remembered.
    pub(crate) memories: Vec<NegativeMemory<K>>,
}

impl<K, V> Garbage<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            one: None,
            pairs: Vec::new(),
            keys: Vec::new(),
            rare: None,
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // What nobody drops is never kept.
        let has_pairs = needs_drop::<(K, V)>() && self.one.is_some();
        !has_pairs && self.keys.is_empty() && self.rare.is_none()
    }

    /// Everything, if there is anything.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Self> {
        if self.is_empty() {
            return None;
        }
        Some(std::mem::replace(self, Self::new()))
    }

    /// The entries of a shard that was just emptied, to be dropped by the caller.
    pub(crate) fn take_store(&mut self) -> Option<Emptied<K, V>> {
        self.rare.as_mut()?.stores.pop()
    }

    /// Entries that were taken out with their stores.
    pub(crate) fn stores(&self) -> &[Emptied<K, V>] {
        self.rare.as_ref().map_or(&[], |rare| &rare.stores)
    }

    #[cold]
    pub(crate) fn rare(&mut self) -> &mut Rare<K, V> {
        self.rare.get_or_insert_with(|| {
            Box::new(Rare {
                stores: Vec::new(),
                negatives: Vec::new(),
                memories: Vec::new(),
            })
        })
    }

    /// An error or absence was forgotten.
    #[inline]
    pub(crate) fn forgotten(&mut self, negative: Option<Forgotten<K>>) {
        if let Some(negative) = negative {
            self.rare().negatives.push(negative);
        }
    }

    /// Drops everything, outside all locks; the panics of what is dropped are counted and go no
    /// further.
    pub(crate) fn discard(self, counters: &Counters) {
        let Self {
            one,
            pairs,
            keys,
            rare,
        } = self;
        if let Some((key, value)) = one {
            counters.discard_pair(key, value);
        }
        if !pairs.is_empty() {
            counters.discard_pairs(pairs.into_iter());
        }
        for key in keys {
            counters.discard(key);
        }
        if let Some(rare) = rare {
            rare.discard(counters);
        }
    }

    /// The first pair needs no allocation; those after it need one for all that a hold of the
    /// driver brings. What nobody drops is not kept.
    #[inline]
    pub(crate) fn push(&mut self, key: K, value: V) {
        if !needs_drop::<(K, V)>() {
            return;
        }
        if self.one.is_none() {
            self.one = Some((key, value));
            return;
        }
        if self.pairs.len() == self.pairs.capacity() {
            self.make_room();
        }
        self.pairs.push((key, value));
    }

    #[cold]
    fn make_room(&mut self) {
        self.pairs.reserve(RECORDS_PER_HOLD as usize);
    }
}

impl<K, V> Rare<K, V> {
    #[cold]
    fn discard(self, counters: &Counters) {
        for entries in self.stores {
            entries.discard(counters);
        }
        let negatives = self.negatives.into_iter();
        counters.discard_pairs(negatives.map(|Removed { key, value, .. }| (key, value)));
        for memory in self.memories {
            memory.discard(counters);
        }
    }
}

/// All entries of a shard that was emptied in one step. They are behind a table of functions, so
/// that callers that may drop them do not contain the code for it.
pub(crate) type Emptied<K, V> = Box<dyn Entries<K, V>>;

/// Makes them of the store that was taken out.
pub(crate) type NewEmptied<K, V> = fn(TypedStore<K, V>) -> Emptied<K, V>;

/// Entries that are taken one by one.
pub(crate) trait Entries<K, V>: Send + Sync {
    /// Visits the labels of all, before the first is taken.
    fn each_label(&self, visit: &mut dyn FnMut(u64));

    fn next(&mut self) -> Option<(K, V)>;

    /// Drops all, though some may panic.
    fn discard(self: Box<Self>, counters: &Counters);
}

struct EmptiedStore<K, V> {
    store: TypedStore<K, V>,
    /// The entries that are left, once the first was taken.
    left: Option<IntoEntries<K, V>>,
}

/// The entries of a store.
pub(crate) fn emptied<K, V>(store: TypedStore<K, V>) -> Emptied<K, V>
where
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    Box::new(EmptiedStore { store, left: None })
}

impl<K: Send + Sync, V: Send + Sync> Entries<K, V> for EmptiedStore<K, V> {
    fn each_label(&self, visit: &mut dyn FnMut(u64)) {
        self.store.labels().for_each(visit);
    }

    fn next(&mut self) -> Option<(K, V)> {
        let store = &mut self.store;
        let left = self
            .left
            .get_or_insert_with(|| std::mem::take(store).into_entries());
        left.next().map(|(key, value, _)| (key, value))
    }

    fn discard(mut self: Box<Self>, counters: &Counters) {
        if needs_drop::<(K, V)>() {
            counters.discard_pairs(std::iter::from_fn(|| self.next()));
        }
    }
}
