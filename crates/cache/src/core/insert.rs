//! Stores an entry: one hold of its shard, or more if a closure is computing the key's value.

use std::hash::{BuildHasher, Hash};
use std::mem::needs_drop;
use std::sync::Arc;
use std::time::Duration;

use tidewheel_store::Attributes;
use tidewheel_time::Moment;

use crate::cell::ShardCell;
use crate::core::change::Hold;
use crate::core::inner::Inner;
use crate::lifetime::{Lifetime, TtlChoice};
use crate::shard::Shard;
use crate::shard::flight::Flight;
use crate::shard::hash::Hashed;
use crate::shard::write::Prepared;

/// An entry that is stored once a latch opens.
struct DeferredInsert<K, V> {
    latch: Arc<Flight<V>>,
    key: K,
    value: V,
}

/// A key and a value, if this is the last who has the key: the table of flights has just let it go.
/// Else the key is for the caller to drop without the lock, and the value stays.
pub(crate) fn own<K, V>(key: Arc<K>, value: &mut Option<V>) -> Result<(K, V), Arc<K>> {
    let key = Arc::try_unwrap(key)?;
    match value.take() {
        Some(value) => Ok((key, value)),
        None => Err(Arc::new(key)),
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Inner<K, V, S> {
    /// The time to live of an entry of which nothing but its end is to be kept; `None` if there is
    /// more.
    #[inline(always)]
    pub(crate) fn plain_ttl(&self, lifetime: &Lifetime) -> Option<Option<Duration>> {
        if !self.stores_plainly || !lifetime.is_plain() {
            return None;
        }
        match lifetime.ttl {
            TtlChoice::Configured => Some(self.rules.config.time_to_live),
            TtlChoice::For(ttl) => Some(Some(ttl)),
            TtlChoice::Never => Some(None),
            _ => None,
        }
    }

    /// Stores an entry of which nothing but its end is to be kept. Where no entry has an end, the
    /// clock is not read.
    #[inline(always)]
    pub(crate) fn insert_plainly(&self, hash: Hashed, key: K, value: V, ttl: Option<Duration>) {
        let cell = self.cell(hash);
        // The clock is read under the lock if it is not a user's: meanwhile the memory comes that
        // was asked for.
        let early = match Self::needs_time(cell, ttl) {
            true => self.time.given_now(),
            false => Some(Moment(0)),
        };
        let mut hold = self.begin(cell);
        hold.change(|shard| shard.store.expect(hash.place()));
        let now = early.unwrap_or_else(|| self.time.now());
        self.insert_held(&mut hold, hash, key, value, ttl, now);
    }

    /// As [`insert_plainly`](Self::insert_plainly), at a time that `clock` tells.
    pub(crate) fn insert_plainly_at(
        &self,
        hash: Hashed,
        key: K,
        value: V,
        ttl: Option<Duration>,
        clock: impl FnOnce() -> Moment,
    ) {
        let cell = self.cell(hash);
        let now = match Self::needs_time(cell, ttl) {
            true => clock(),
            false => Moment(0),
        };
        self.insert_held(&mut self.begin(cell), hash, key, value, ttl, now);
    }

    /// Returns whether the new entry, or any entry of the shard, has an end.
    #[inline(always)]
    fn needs_time(cell: &ShardCell<K, V>, ttl: Option<Duration>) -> bool {
        ttl.is_some() || cell.has_deadlines()
    }

    /// Stores an entry of which nothing but its end is to be kept, in a shard that is held.
    #[inline(always)]
    fn insert_held(
        &self,
        hold: &mut Hold<'_, K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        ttl: Option<Duration>,
        now: Moment,
    ) {
        let deadline = ttl.map(|ttl| now.end(ttl));
        let tick = now.tick();
        let rest =
            hold.change(|shard| shard.overwrite(&self.rules, hash, &key, value, deadline, tick));
        match rest {
            Ok(()) => hold.end_soon(),
            Err((value, true)) => self.insert_new(hold, hash, key, value, deadline, now),
            Err((value, false)) => self.insert_closely(hold, hash, key, value, deadline, now),
        }
    }

    /// As [`insert_held`](Self::insert_held), of a key that has no entry, with nothing in the way.
    #[inline(never)]
    fn insert_new(
        &self,
        hold: &mut Hold<'_, K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        deadline: Option<u64>,
        now: Moment,
    ) {
        let prepared = self.prepared_plainly(deadline, now);
        let ((), after) = hold.change_fully(|shard| {
            let slot = shard.add(&self.rules, hash, key, value, &prepared);
            shard.is_stored(&self.rules, slot, &prepared);
        });
        hold.end();
        self.finish(hold.cell(), after);
    }

    /// As [`insert_held`](Self::insert_held), whatever is in the way.
    #[inline(never)]
    fn insert_closely(
        &self,
        hold: &mut Hold<'_, K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        deadline: Option<u64>,
        now: Moment,
    ) {
        let prepared = self.prepared_plainly(deadline, now);
        self.insert_prepared(hold, hash, key, value, &prepared);
    }

    #[inline(always)]
    fn prepared_plainly(&self, deadline: Option<u64>, now: Moment) -> Prepared<'_> {
        let attributes = Attributes {
            deadline,
            ..Attributes::default()
        };
        Prepared {
            attributes,
            tags: self.rules.tags.hold_none(),
            now,
            fits: true,
        }
    }

    /// Stores a prepared entry.
    pub(crate) fn insert(&self, hash: Hashed, key: K, value: V, prepared: &Prepared<'_>) {
        self.insert_prepared(&mut self.begin(self.cell(hash)), hash, key, value, prepared);
    }

    /// Stores a prepared entry in a shard that is held.
    #[inline(always)]
    fn insert_prepared(
        &self,
        hold: &mut Hold<'_, K, V, S>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) {
        let (late, after) =
            hold.change_fully(|shard| self.put_any(shard, hash, key, value, prepared));
        hold.end();
        self.finish(hold.cell(), after);
        if let Some(late) = late {
            self.insert_late(hash, late, prepared);
        }
    }

    /// As [`put_over`](Self::put_over), whether or not something is in progress.
    #[inline(always)]
    fn put_any(
        &self,
        shard: &mut Shard<K, V>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> Option<DeferredInsert<K, V>> {
        // What nobody drops comes here seldom.
        if needs_drop::<(K, V)>() && shard.is_quiet() {
            shard.put_in_place(&self.rules, hash, key, value, prepared);
            return None;
        }
        self.put_over(shard, hash, key, value, prepared)
    }

    /// As [`put`](Self::put), where something is in progress. Gives back what is to be stored once
    /// a latch opens.
    #[cold]
    #[inline(never)]
    fn put_over(
        &self,
        shard: &mut Shard<K, V>,
        hash: Hashed,
        key: K,
        value: V,
        prepared: &Prepared<'_>,
    ) -> Option<DeferredInsert<K, V>> {
        if let Some(latch) = shard.writing(hash, |stored| *stored == key) {
            return Some(DeferredInsert { latch, key, value });
        }
        shard.put(&self.rules, hash, key, value, prepared);
        None
    }

    /// Waits until the key's latch is open, and stores the entry then.
    #[cold]
    #[inline(never)]
    fn insert_late(&self, hash: Hashed, late: DeferredInsert<K, V>, prepared: &Prepared<'_>) {
        let mut waiting = Some(late);
        while let Some(DeferredInsert { latch, key, value }) = waiting {
            latch.wait_open();
            waiting = self.change(self.cell(hash), |shard, _| {
                self.put_over(shard, hash, key, value, prepared)
            });
        }
    }
}
