//! The shared part of a cache: shards, and how one is read and written.

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use equivalent::Equivalent;
use tidewheel_store::{Found, Progress, Removed, Slot, TypedStore};
use tidewheel_time::mix;

use crate::core::capacity::Account;
use crate::core::config::Config;
use crate::core::delivery::{Delivered, Delivery};
use crate::core::midst::Leading;
use crate::core::removal::{Event, Garbage, RemovalCause};
use crate::core::shard::{Shard, ShardCell};
use crate::core::tags::Tags;
use crate::drive::driver::Requests;
use crate::handle::cache::Prepared;
use crate::load::refresh::Refreshes;
use crate::stats::{Count, Counters};
use crate::sync::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst, ReadGuard, WriteGuard};
use crate::time::Time;

/// Timer records that one hold of a shard's lock may touch.
pub(crate) const RECORDS_PER_HOLD: u32 = 16;

/// Removals that make a shard worth tidying.
const UNTIDY: u32 = 512;

/// Units of tidying in one hold of a shard's lock.
const TIDY_PER_HOLD: u32 = 16;

#[derive(Debug)]
pub(crate) struct Inner<K, V, S> {
    pub(crate) shards: Box<[ShardCell<K, V>]>,
    /// Bits of a hash below those that choose the shard.
    shift: u32,
    hasher: S,
    pub(crate) time: Time,
    pub(crate) config: Config<K, V>,
    pub(crate) account: Account,
    pub(crate) counters: Counters,
    pub(crate) delivery: Delivery<K, V>,
    pub(crate) requests: Requests,
    pub(crate) tags: Tags,
    #[cfg(feature = "metrics")]
    pub(crate) published: crate::handle::metrics::Published,
    pub(crate) refreshes: Refreshes<V>,
    pub(crate) closed: AtomicBool,
}

/// A shard that is held for writing; what it has made necessary is done at its end.
struct Hold<'a, K, V, S> {
    inner: &'a Inner<K, V, S>,
    cell: &'a ShardCell<K, V>,
    shard: Option<WriteGuard<'a, Shard<K, V>>>,
}

impl<K, V, S> Drop for Hold<'_, K, V, S> {
    #[inline]
    fn drop(&mut self) {
        if let Some(shard) = self.shard.take() {
            self.inner.release(self.cell, shard);
        }
    }
}

/// A hash as the cache uses it, and what follows from it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hashed(pub(crate) u64);

impl Hashed {
    /// Where the entry lies within its shard.
    #[inline]
    pub(crate) fn place(self) -> u32 {
        self.0 as u32
    }
}

impl<K, V, S> Inner<K, V, S> {
    #[allow(clippy::too_many_arguments, reason = "called once, by the builder")]
    pub(crate) fn new(
        shards: usize,
        hasher: S,
        time: Time,
        config: Config<K, V>,
        account: Account,
        delivery: Delivery<K, V>,
        requests: Requests,
    ) -> Self {
        let lent = account.first_loan();
        Self {
            shards: (0..shards).map(|_| ShardCell::new(lent)).collect(),
            shift: 64 - shards.ilog2(),
            hasher,
            time,
            refreshes: Refreshes::new(config.refresh_queue),
            config,
            account,
            counters: Counters::new(),
            delivery,
            requests,
            tags: Tags::new(),
            #[cfg(feature = "metrics")]
            published: crate::handle::metrics::Published::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Tells this cache from others while it is in use.
    #[inline]
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// The number of a key's shard.
    #[inline]
    pub(crate) fn number(&self, hash: Hashed) -> usize {
        // With one shard the shift is by all 64 bits.
        hash.0.checked_shr(self.shift).unwrap_or(0) as usize
    }

    #[inline]
    pub(crate) fn cell(&self, hash: Hashed) -> &ShardCell<K, V> {
        &self.shards[self.number(hash)]
    }

    /// Locks a shard for reading.
    #[inline]
    pub(crate) fn read<'a>(&self, cell: &'a ShardCell<K, V>) -> ReadGuard<'a, Shard<K, V>> {
        cell.lock.read(self.id())
    }

    /// Runs `change` on a shard under its lock, then does what the change has made necessary: publishes
    /// the next deadline, drops what was removed, wakes who must know. Though `change` panics.
    #[inline]
    pub(crate) fn hold<R>(
        &self,
        cell: &ShardCell<K, V>,
        change: impl FnOnce(&mut Shard<K, V>) -> R,
    ) -> R {
        let mut hold = Hold {
            inner: self,
            cell,
            shard: Some(cell.lock.write(self.id())),
        };
        let shard = hold.shard.as_mut().expect("held to the end");
        shard.changes = shard.changes.wrapping_add(1);
        change(shard)
    }

    /// Ends a hold of a shard.
    fn release(&self, cell: &ShardCell<K, V>, mut shard: WriteGuard<'_, Shard<K, V>>) {
        let mut earlier = None;
        if shard.republish {
            shard.republish = false;
            let next = shard.next_deadline();
            if next < shard.published {
                earlier = Some(next);
            }
            shard.published = next;
            cell.next_deadline.publish(next);
        }
        let untidy = shard.removals >= UNTIDY && !cell.untidy.load(Relaxed);
        if untidy {
            cell.untidy.store(true, Relaxed);
        }
        let garbage = shard.garbage.take();
        let freed = shard.store.take_freed();
        let events = !shard.outbox.is_empty();
        drop(shard);
        for store in garbage.iter().flat_map(Garbage::stores) {
            self.release_tags(store);
        }
        // Others are woken before user code is run, which may take its time.
        if let Some(next) = earlier {
            self.requests.lowered(next);
        }
        if untidy {
            self.requests.tidy_wanted();
        }
        if events {
            self.requests.events_wanted(&self.delivery.wanted);
        }
        if let Some(garbage) = garbage {
            garbage.discard(&self.counters);
        }
        // Seldom there: asked here, it is not asked field by field.
        if let Some(freed) = freed {
            drop(freed);
        }
    }

    /// Delivers queued events to the listener, if that is this thread's to do. With `wait` it waits for its
    /// turn, where it may.
    pub(crate) fn deliver(&self, mut wait: bool) {
        loop {
            let (mut at, mut found) = (0, false);
            let delivered = self.delivery.deliver(self.id(), wait, &self.counters, || {
                loop {
                    if let Some(events) = self.next_events(&mut at) {
                        found = true;
                        return events;
                    }
                    // A listener may have closed the cache: shards that were passed have events again,
                    // the last ones. Otherwise a listener that causes events would be called for ever.
                    if !found || !self.closed.load(SeqCst) {
                        return VecDeque::new();
                    }
                    (at, found) = (0, false);
                }
            });
            if delivered != Delivered::Again {
                return;
            }
            // Somebody's events may be in shards that were passed. They are the driver's; a closed cache has
            // none any more.
            if !self.closed.load(SeqCst) {
                self.requests.events_missed(&self.delivery.wanted);
                return;
            }
            wait = false;
        }
    }

    /// Some events of the first shard from `at` on that has any.
    fn next_events(&self, at: &mut usize) -> Option<VecDeque<Event<K, V>>> {
        while let Some(cell) = self.shards.get(*at) {
            let mut shard = cell.lock.write(self.id());
            if shard.outbox.is_empty() {
                *at += 1;
                continue;
            }
            let events = shard.outbox.take(EVENTS_PER_HOLD);
            drop(shard);
            for event in &events {
                if let Event::All(store, _) = event {
                    self.release_tags(store);
                }
            }
            return Some(events);
        }
        None
    }

    /// The end of an entry as readers see it; the store keeps it for the grace period longer.
    #[inline]
    pub(crate) fn end_of(&self, store: &TypedStore<K, V>, slot: Slot) -> Option<u64> {
        self.end_at(store.deadline(slot))
    }

    /// The end of an entry that the store keeps until `deadline`.
    #[inline]
    pub(crate) fn end_at(&self, deadline: Option<u64>) -> Option<u64> {
        deadline.map(|deadline| deadline - self.config.grace.min(deadline))
    }

    /// As [`is_live`](Self::is_live), of an entry that was looked up for reading.
    #[inline]
    pub(crate) fn is_there(&self, store: &TypedStore<K, V>, entry: &Found<'_, K, V>) -> bool {
        !self.is_over(entry.deadline())
            && (!entry.has_attributes() || self.tags.is_current(store.tag_of(entry.slot())))
    }

    /// Whether an entry is there for readers: its time is not over and no tag of it was invalidated.
    #[inline]
    pub(crate) fn is_live(&self, store: &TypedStore<K, V>, slot: Slot) -> bool {
        self.is_live_till(store, slot, store.deadline(slot))
    }

    /// As [`is_live`](Self::is_live), of an entry that the store keeps until `deadline`.
    #[inline]
    pub(crate) fn is_live_till(
        &self,
        store: &TypedStore<K, V>,
        slot: Slot,
        deadline: Option<u64>,
    ) -> bool {
        !self.is_over(deadline)
            && (!store.has_attributes(slot) || self.tags.is_current(store.tag_of(slot)))
    }

    /// Whether an entry that the store keeps until `deadline` is over for readers.
    #[inline]
    fn is_over(&self, deadline: Option<u64>) -> bool {
        self.end_at(deadline)
            .is_some_and(|end| self.time.reached(end))
    }

    /// Why an entry is not there for readers; `None` when it is. Nothing tells whether its time was over
    /// before a tag of it was invalidated: then it counts as invalidated.
    pub(crate) fn dead_by(&self, store: &TypedStore<K, V>, slot: Slot) -> Option<RemovalCause> {
        if self.is_live(store, slot) {
            None
        } else if self.tags.is_current(store.tag_of(slot)) {
            Some(RemovalCause::Expired)
        } else {
            Some(RemovalCause::Invalidated)
        }
    }

    /// The tags of a whole shard's entries are used so much less.
    fn release_tags(&self, store: &TypedStore<K, V>) {
        for word in store.tags() {
            self.tags.release(word);
        }
    }

    /// Files an entry that has left the store.
    pub(crate) fn left(
        &self,
        shard: &mut Shard<K, V>,
        removed: Removed<K, V>,
        cause: RemovalCause,
        now: u64,
    ) {
        self.count_removal(&removed, cause, now);
        self.file(shard, removed, cause, now);
    }

    /// The cause of an entry that leaves for this one: if a tag of it was invalidated, it was not there for
    /// readers any more, and left for that.
    #[inline]
    pub(crate) fn cause_of(&self, tag: u64, cause: RemovalCause) -> RemovalCause {
        if self.tags.is_current(tag) {
            cause
        } else {
            RemovalCause::Invalidated
        }
    }

    /// Files an entry that was refused: it has not been in the store.
    pub(crate) fn refused(&self, shard: &mut Shard<K, V>, refused: Removed<K, V>, now: u64) {
        self.counters.add(Count::Rejected, 1);
        self.tags.release(refused.tag);
        self.file(shard, refused, RemovalCause::Evicted, now);
    }

    #[inline]
    fn file(&self, shard: &mut Shard<K, V>, entry: Removed<K, V>, cause: RemovalCause, now: u64) {
        self.delivery.left(
            &mut shard.outbox,
            &mut shard.garbage,
            entry,
            cause,
            now,
            &self.counters,
        );
    }

    /// Counts an entry that has left the store, and its use of its tags no longer.
    pub(crate) fn count_removal(&self, removed: &Removed<K, V>, cause: RemovalCause, now: u64) {
        self.tags.release(removed.tag);
        let count = match cause {
            RemovalCause::Expired => {
                if let Some(deadline) = removed.deadline {
                    let late = now.saturating_sub(deadline);
                    self.counters.lateness().record(late, 1);
                }
                Some(Count::Expiration)
            }
            RemovalCause::Evicted => Some(Count::Eviction),
            RemovalCause::Replaced => None,
            _ => Some(Count::Removal),
        };
        if let Some(count) = count {
            self.counters.add(count, 1);
        }
    }

    /// Gives back to the account what the shard does not need any more.
    pub(crate) fn settle(&self, shard: &mut Shard<K, V>) {
        let surplus = self.account.surplus(shard.lent, shard.store.weight());
        if surplus > 0 {
            shard.lent -= surplus;
            self.account.give_back(surplus);
        }
    }

    /// Takes every entry out of a shard, in one step.
    pub(crate) fn clear_shard(&self, shard: &mut Shard<K, V>, cause: RemovalCause) {
        let store = std::mem::take(&mut shard.store);
        shard.store.defer_frees();
        shard.store.continue_versions(&store);
        self.counters.add(Count::Removal, store.len() as u64);
        shard.published = u64::MAX;
        shard.republish = true;
        shard.flights.clear(&mut shard.garbage.keys);
        if let Some(negatives) = shard.negatives.clear() {
            shard.garbage.rare().negative_stores.push(negatives);
        }
        self.delivery.all_left(
            &mut shard.outbox,
            &mut shard.garbage,
            store,
            cause,
            &self.counters,
        );
        self.settle(shard);
    }

    /// When the earliest shard wants to be looked after, in ticks.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.shards
            .iter()
            .map(|cell| cell.next_deadline.get())
            .min()
            .filter(|next| *next != u64::MAX)
    }
}

/// Events that one hold of a shard's lock hands over.
const EVENTS_PER_HOLD: usize = 256;

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    #[inline]
    pub(crate) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> Hashed {
        Hashed(mix(self.hasher.hash_one(key)))
    }

    /// As [`hold`](Self::hold); then finds the room that an entry lacks which `change` has stored, and
    /// delivers events when they fill the queue, unless somebody may be waiting for this thread. Not for
    /// the driver, which must not be kept waiting by a listener, nor call one while it drives.
    pub(crate) fn write<R>(
        &self,
        cell: &ShardCell<K, V>,
        change: impl FnOnce(&mut Shard<K, V>) -> R,
    ) -> R {
        let (result, wanted, events) = self.hold(cell, |shard| {
            let result = change(shard);
            let wanted = std::mem::take(&mut shard.wanted);
            (result, wanted, !shard.outbox.is_empty())
        });
        if wanted > 0 {
            self.find_room(cell, wanted);
        }
        if (events || wanted > 0) && self.delivery.must_help() {
            self.deliver(true);
        }
        result
    }

    /// Leads loads and holds latches within `act`; afterwards, though that has panicked, this thread delivers
    /// what it could not wait for meanwhile.
    pub(crate) fn lead<R>(&self, act: impl FnOnce() -> R) -> R {
        let leading = Leading::enter(self.id());
        let result = catch_unwind(AssertUnwindSafe(act));
        drop(leading);
        self.relieve();
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Delivers what this thread has caused and did not wait for.
    #[inline]
    pub(crate) fn relieve(&self) {
        if self.delivery.is_behind(|| self.closed.load(SeqCst)) {
            self.deliver(true);
        }
    }

    /// The place of a stored key.
    #[inline]
    pub(crate) fn place_of(&self, key: &K) -> u32 {
        self.hash(key).place()
    }

    /// Finds a key, dead or alive.
    #[inline]
    pub(crate) fn find<Q: Equivalent<K> + ?Sized>(
        shard: &Shard<K, V>,
        hash: Hashed,
        key: &Q,
    ) -> Option<Slot> {
        shard
            .store
            .find(hash.place(), move |stored| key.equivalent(stored))
    }

    /// As [`write`](Self::write), for a change of one key: waits for a closure that is computing its
    /// value, and supersedes a load of it.
    pub(crate) fn write_key<Q: Equivalent<K> + ?Sized, R>(
        &self,
        hash: Hashed,
        key: &Q,
        change: impl FnOnce(&mut Shard<K, V>) -> R,
    ) -> R {
        let cell = self.cell(hash);
        let mut change = Some(change);
        loop {
            let done = self.write(cell, |shard| {
                if let Some(latch) = shard.writing(hash, |stored| key.equivalent(stored)) {
                    return Err(latch);
                }
                let change = change.take().expect("runs once");
                Ok(change(shard))
            });
            match done {
                Ok(result) => return result,
                Err(latch) => latch.wait_open(),
            }
        }
    }

    /// As [`write_key`](Self::write_key), for a change that may turn out to be none: only where `find` finds
    /// what to change, it waits for a closure and supersedes a load.
    pub(crate) fn change_key<Q: Equivalent<K> + ?Sized, T, R>(
        &self,
        hash: Hashed,
        key: &Q,
        find: impl Fn(&Shard<K, V>) -> Option<T>,
        change: impl FnOnce(&mut Shard<K, V>, T) -> R,
    ) -> Option<R> {
        let cell = self.cell(hash);
        let mut change = Some(change);
        loop {
            let done = self.write(cell, |shard| {
                let Some(found) = find(shard) else {
                    return Ok(None);
                };
                if let Some(latch) = shard.writing(hash, |stored| key.equivalent(stored)) {
                    return Err(latch);
                }
                let change = change.take().expect("runs once");
                Ok(Some(change(shard, found)))
            });
            match done {
                Ok(result) => return result,
                Err(latch) => latch.wait_open(),
            }
        }
    }

    /// Stores an entry under the shard's lock.
    pub(crate) fn store(
        &self,
        shard: &mut Shard<K, V>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) {
        let attributes = prepared.attributes;
        let tick = prepared.now.tick();
        if !self.tags.is_current(attributes.tag) {
            self.stored_too_late(shard, hash, key, value, prepared);
            return;
        }
        if shard.store.weight() >= shard.lent {
            shard.store.touch(hash.place(), attributes.deadline);
        }
        let slot = if let Some(slot) = Self::find(shard, hash, &key) {
            let deadline = shard.store.deadline(slot);
            let cause = self
                .dead_by(&shard.store, slot)
                .unwrap_or(RemovalCause::Replaced);
            if cause != RemovalCause::Replaced {
                // A pin is one entry's: this is another one, in the same place.
                shard.store.set_pinned(slot, false);
            }
            let tag = shard.store.tag_of(slot);
            let weight = shard.store.weight_of(slot);
            let old = shard.store.replace(slot, value, attributes, tick);
            prepared.tags.pass_on();
            if attributes.weight < weight {
                self.settle(shard);
            }
            let removed = Removed {
                key,
                value: old,
                deadline,
                weight,
                tag,
            };
            self.left(shard, removed, cause, tick);
            slot
        } else {
            let place_of = |key: &K| self.place_of(key);
            let lent = shard.lent;
            let store = &mut shard.store;
            let place = hash.place();
            let slot = store.insert(place, key, value, attributes, tick, lent, &place_of);
            prepared.tags.pass_on();
            slot
        };
        // Not before: a user's `Eq` may have panicked.
        self.counters.add(Count::Insert, 1);
        shard.scheduled(attributes.deadline);
        if shard.store.weight() > shard.lent {
            self.make_room(shard, slot, tick);
        }
    }

    /// An entry one of whose tags was invalidated while it was on its way: counts as stored before that.
    #[cold]
    fn stored_too_late(
        &self,
        shard: &mut Shard<K, V>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) {
        let now = prepared.now.tick();
        if let Some((old, dead_by)) = self.take(shard, hash, &key) {
            let cause = dead_by.unwrap_or(RemovalCause::Replaced);
            self.left(shard, old, cause, now);
        }
        let removed = Removed {
            key,
            value,
            deadline: prepared.attributes.deadline,
            weight: prepared.attributes.weight,
            tag: prepared.tags.pass_on(),
        };
        self.counters.add(Count::Insert, 1);
        self.left(shard, removed, RemovalCause::Invalidated, now);
    }

    /// Removes due entries under the shard's lock, touching at most `budget` timer records.
    pub(crate) fn expire_some(&self, shard: &mut Shard<K, V>, now: u64, budget: u32) -> Progress {
        let place_of = |key: &K| self.place_of(key);
        let Shard {
            store,
            outbox,
            garbage,
            negatives,
            ..
        } = shard;
        let forgotten = negatives.expire(now, budget, &place_of, garbage);
        let budget = budget.saturating_sub(forgotten.moved).max(1);
        let (mut expired, mut removed) = (0, 0);
        // Most of a batch are about as late.
        let mut lateness = self.counters.lateness().runs();
        let mut progress = store.expire(now, budget, &place_of, |entry| {
            removed += 1;
            let cause = self.cause_of(entry.tag, RemovalCause::Expired);
            if cause == RemovalCause::Expired {
                expired += 1;
                lateness.record(now.saturating_sub(entry.deadline.unwrap_or(now)));
            }
            self.tags.release(entry.tag);
            self.delivery
                .left(outbox, garbage, entry, cause, now, &self.counters);
        });
        if removed > 0 {
            self.counters.add(Count::Expiration, expired);
            self.counters.add(Count::Removal, removed - expired);
            shard.removals = shard.removals.saturating_add(removed as u32);
        }
        shard.republish = true;
        // What was invalidated has not expired: its record was merely dropped.
        progress.fired = expired as u32;
        progress.moved += forgotten.moved + (removed - expired) as u32;
        progress.backlog |= forgotten.backlog;
        progress
    }

    /// Removes due entries of one shard in one short hold of its lock that touches at most `records` timer
    /// records; what is left of them, the wheel uses to work ahead.
    pub(crate) fn expire_hold(
        &self,
        at: usize,
        now: u64,
        records: u32,
        budget: &mut u32,
    ) -> Progress {
        if *budget == 0 || self.delivery.must_wait() {
            return Progress {
                backlog: true,
                ..Progress::default()
            };
        }
        let hold = records.min(*budget);
        let progress = self.hold(&self.shards[at], |shard| {
            let progress = self.expire_some(shard, now, hold);
            self.settle(shard);
            progress
        });
        *budget -= (progress.fired + progress.moved).clamp(1, *budget);
        progress
    }

    /// Tidies one shard, in short holds of its lock; returns whether more is worth doing.
    pub(crate) fn tidy_shard(&self, at: usize, budget: &mut u32) -> bool {
        let cell = &self.shards[at];
        cell.untidy.store(false, Relaxed);
        while *budget > 0 {
            let hold = TIDY_PER_HOLD.min(*budget);
            *budget -= hold;
            let more = self.hold(cell, |shard| {
                shard.removals = 0;
                let place_of = |key: &K| self.place_of(key);
                shard.store.maintain(hold, &place_of)
            });
            if !more {
                return false;
            }
        }
        cell.untidy.store(true, Relaxed);
        true
    }

    /// Removes a key's entry under the shard's lock; with it, why it was not there for readers.
    pub(crate) fn take<Q: Equivalent<K> + ?Sized>(
        &self,
        shard: &mut Shard<K, V>,
        hash: Hashed,
        key: &Q,
    ) -> Option<(Removed<K, V>, Option<RemovalCause>)> {
        let slot = Self::find(shard, hash, key)?;
        Some(self.take_slot(shard, hash.place(), slot))
    }

    /// As [`take`](Self::take), for an entry that was found.
    pub(crate) fn take_slot(
        &self,
        shard: &mut Shard<K, V>,
        place: u32,
        slot: Slot,
    ) -> (Removed<K, V>, Option<RemovalCause>) {
        let dead_by = self.dead_by(&shard.store, slot);
        let removed = shard.store.remove(slot, place);
        shard.removals += 1;
        self.settle(shard);
        (removed, dead_by)
    }

    /// Removes what readers do not see any more of a shard that is about to be emptied, in short holds: it
    /// has left before the rest, for a cause of its own.
    pub(crate) fn remove_dead(&self, cell: &ShardCell<K, V>) {
        let now = self.time.now().tick();
        while cell.next_deadline.get() <= now {
            let progress = self.hold(cell, |shard| self.expire_some(shard, now, RECORDS_PER_HOLD));
            if !progress.backlog {
                break;
            }
        }
        self.sweep_shard(cell);
    }

    /// Empties the cache for good: what comes later is dropped.
    pub(crate) fn close_shards(&self) {
        for cell in &self.shards {
            self.remove_dead(cell);
            self.write(cell, |shard| {
                shard.closed = true;
                self.clear_shard(shard, RemovalCause::Closed);
            });
        }
    }

    /// How long until a tick.
    pub(crate) fn until(&self, tick: u64) -> Duration {
        self.time.now().until(tick)
    }
}
