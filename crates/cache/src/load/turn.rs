//! A change of one key by an async closure, which never keeps the key's other writers waiting.
//!
//! Async closures of one key take turns. The one whose turn it is leads the key's flight, as a
//! loader does. So nobody loads or refreshes the key meanwhile, and readers see the old value. A
//! plain writer supersedes the flight: what the closure returns is not stored then, and the closure
//! runs again with what is there now. The same happens if the entry that it saw has expired, or
//! left for another reason.

use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::panic::resume_unwind;
use std::slice::from_ref;
use std::sync::Arc;

use tidewheel_store::Slot;
use tidewheel_time::Moment;

use super::claim::Wait;
use super::latch::{Compute, Computed};
use super::lead::Lead;
use crate::core::inner::Inner;
use crate::lifetime::Lifetime;
use crate::quiet::Quiet;
use crate::removal::RemovalCause;
use crate::shard::Shard;
use crate::shard::flight::{Flight, Phase, REENTRY, WaitEnd};
use crate::shard::rules::Hashed;
use crate::shard::write::Prepared;

/// A closure's decision was not carried out: the key was changed while it ran.
struct Superseded;

/// A key and the lead of its flight.
struct KeyTurn<'a, K: Hash + Eq, V, S: BuildHasher> {
    lead: Lead<'a, K, V, S>,
    hash: Hashed,
    key: &'a K,
    /// True if the closure has seen a value.
    there: bool,
    /// A copy of that value, for callers that ask for it.
    seen: Quiet<'a, Option<V>>,
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Inner<K, V, S> {
    /// Lets an async closure decide what becomes of a key, unless it fails. The answer has the old
    /// value if the caller `asks_for_old`; else a value that replaced one counts as inserted, and
    /// one that was removed as absent.
    pub(crate) async fn compute_async<F, R, E>(
        &self,
        key: K,
        asks_for_old: bool,
        mut change: F,
    ) -> Result<Computed<V>, E>
    where
        F: FnMut(Option<V>) -> R,
        R: Future<Output = Result<Compute<V>, E>>,
    {
        let hash = self.hash(&key);
        let key = Quiet::new(Arc::new(key), &self.counters);
        loop {
            let lead = self.next_turn(hash, &key).await;
            let old = Quiet::new(self.value_now(hash, &**key), &self.counters);
            let seen = asks_for_old.then(|| Option::clone(&old)).flatten();
            let turn = KeyTurn {
                lead,
                hash,
                key: &key,
                there: old.is_some(),
                seen: Quiet::new(seen, &self.counters),
            };
            let flights = from_ref(&turn.lead.flight);
            let wanted = self.call_inside(flights, || change(old.into_inner())).await;
            let done = self.lead(|| match wanted {
                Ok(Ok(wanted)) => Ok(self.end_turn(turn, wanted)),
                Ok(Err(error)) => {
                    drop(turn);
                    Err(error)
                }
                Err(panic) => {
                    drop(turn);
                    resume_unwind(panic)
                }
            });
            if let Ok(computed) = done? {
                return Ok(computed);
            }
        }
    }

    /// Waits until it is this caller's turn to change a key.
    async fn next_turn<'a>(&'a self, hash: Hashed, key: &Arc<K>) -> Lead<'a, K, V, S> {
        loop {
            let flight = match self.take_turn(hash, key) {
                Ok(lead) => return lead,
                Err(flight) => flight,
            };
            let (end, flight) = Wait::new(self, hash, flight).await;
            if end == WaitEnd::Lead {
                let lead = Lead::of(self, hash, flight);
                lead.flight.lead_by_closure();
                if lead.stands(&self.read(self.cell(hash))) {
                    return lead;
                }
            }
        }
    }

    /// Takes the lead of a key's flight if no one has it; else joins its waiters.
    ///
    /// # Panics
    ///
    /// If it would wait for itself.
    fn take_turn(&self, hash: Hashed, key: &Arc<K>) -> Result<Lead<'_, K, V, S>, Arc<Flight<V>>> {
        let (flight, leads) = self.hold(self.cell(hash), |shard| {
            let flights = &mut shard.flights;
            let Some(flight) = flights.find(hash.0, |stored| *stored == **key) else {
                let flight = flights.start(hash.0, Arc::clone(key), Phase::Running);
                flight.lead_by_closure();
                return (flight, true);
            };
            let leads = flight.take_turn();
            if !leads && !flight.is_own() {
                flight.join();
            }
            (Arc::clone(flight), leads)
        });
        if leads {
            return Ok(Lead::of(self, hash, flight));
        }
        assert!(!flight.is_own(), "{REENTRY}");
        Err(flight)
    }

    /// The live value of a key.
    fn value_now(&self, hash: Hashed, key: &K) -> Option<V> {
        let (shard, now) = self.read_now(self.cell(hash));
        let slot = shard.find_live(hash, key, now)?;
        Some(shard.store.value(slot).clone())
    }

    /// Does what a closure wants.
    fn end_turn(
        &self,
        turn: KeyTurn<'_, K, V, S>,
        wanted: Compute<V>,
    ) -> Result<Computed<V>, Superseded> {
        let (value, is_stored) = match wanted {
            Compute::Keep => {
                let value = self.value_now(turn.hash, turn.key);
                return Ok(value.map_or(Computed::Absent, Computed::Kept));
            }
            Compute::Remove => {
                self.remove_in_turn(&turn)?;
                let seen = turn.seen.into_inner();
                return Ok(seen.map_or(Computed::Absent, Computed::Removed));
            }
            Compute::Put(loaded) => {
                let lifetime = Some(loaded.lifetime);
                self.store_in_turn(&turn, loaded.value, lifetime)?
            }
            Compute::Update(value) => {
                let lifetime = (!turn.there).then(Lifetime::configured);
                self.store_in_turn(&turn, value, lifetime)?
            }
        };
        Ok(match is_stored {
            true => Computed::stored(value, turn.seen.into_inner()),
            false => Computed::NotStored(value),
        })
    }

    fn remove_in_turn(&self, turn: &KeyTurn<'_, K, V, S>) -> Result<(), Superseded> {
        let KeyTurn { hash, key, .. } = *turn;
        self.change(self.cell(hash), |shard, now| {
            let slot = turn.unchanged(shard, now)?;
            shard.forget_negative(hash, |stored| stored == key);
            if let Some(slot) = slot {
                let cause = RemovalCause::Removed;
                shard.remove_slot(hash.place(), slot, cause, now);
            }
            Ok(())
        })
    }

    /// Stores a value unless the key was changed; returns it, and whether it was stored. Without a
    /// lifetime it lives as long as the one that the closure has seen.
    fn store_in_turn(
        &self,
        turn: &KeyTurn<'_, K, V, S>,
        value: V,
        lifetime: Option<Lifetime>,
    ) -> Result<(V, bool), Superseded> {
        let KeyTurn { hash, key, .. } = *turn;
        let prepared = self.prepare_over(hash, key, &value, lifetime.as_ref());
        let result = Quiet::new(value.clone(), &self.counters);
        // The table's key is not to be had: the flight is handed on.
        let mut entry = Some((key.clone(), value));
        let stored = self.change(self.cell(hash), |shard, now| {
            let slot = turn.unchanged(shard, now)?;
            let prepared = match slot.filter(|_| lifetime.is_none()) {
                Some(slot) => self.as_before(shard, slot, &prepared, now),
                None => Prepared { now, ..prepared },
            };
            shard.forget_negative(hash, |stored| stored == key);
            let (key, value) = entry.take().expect("stored once");
            Ok(shard.put(hash, key, value, &prepared))
        });
        self.counters.discard_pairs(entry.into_iter());
        let is_stored = stored?;
        Ok((result.into_inner(), is_stored))
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> KeyTurn<'_, K, V, S> {
    /// The place of the entry that the closure has seen, if it has seen one.
    fn unchanged(&self, shard: &Shard<K, V, S>, now: Moment) -> Result<Option<Slot>, Superseded> {
        let slot = shard.find_live(self.hash, self.key, now);
        if self.lead.stands(shard) && slot.is_some() == self.there {
            Ok(slot)
        } else {
            Err(Superseded)
        }
    }
}
