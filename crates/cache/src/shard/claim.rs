//! A key is claimed for a load: the caller leads the load, joins another's, or has an answer.

use std::sync::Arc;

use tidewheel_time::Moment;

use super::Shard;
use super::flight::{Flight, Phase, REENTRY, SUSPENDED};
use super::hash::Hashed;
use super::rules::Rules;
use super::tags::LentTags;
use crate::planted::{Fault, is_planted};

/// A caller without an answer.
pub(crate) struct Claimant<'a, K> {
    pub(crate) hash: Hashed,
    pub(crate) key: &'a Arc<K>,
    /// True if an absence is an answer.
    pub(crate) absent: bool,
    /// True if the caller blocks its thread while it waits.
    pub(crate) blocks: bool,
}

/// The result of a claim.
pub(crate) enum Claim<'r, V> {
    /// Look again: there is an answer now.
    Again,
    /// With the tags of a live entry.
    Lead(Arc<Flight<V>>, Option<LentTags<'r>>),
    /// Wait; the flight counts on it.
    Join(Arc<Flight<V>>),
}

impl<K: Eq, V> Shard<K, V> {
    /// Claims a key for a caller whose loader may fail with `E`.
    ///
    /// # Errors
    ///
    /// Why it would wait for itself, or keep its thread from going on with the load that it waits
    /// for.
    pub(crate) fn claim<'r, E, S>(
        &mut self,
        rules: &'r Rules<K, V, S>,
        by: &Claimant<'_, K>,
        now: Moment,
    ) -> Result<Claim<'r, V>, &'static str>
    where
        E: Send + Sync + 'static,
    {
        let (hash, key) = (by.hash, &**by.key);
        let slot = self.find_live(rules, hash, key, now);
        let flight = self.flights.find(hash.0, |stored| stored == key).cloned();
        let flight = flight.filter(|_| !is_planted(Fault::TwoLeads));
        let is_answered = match slot {
            Some(slot) => flight.is_some() || !self.is_due(slot, now),
            None => {
                let answer = self.stand_in::<E, _, _>(rules, hash, key, by.absent, now);
                answer.is_some()
            }
        };
        if is_answered {
            return Ok(Claim::Again);
        }
        match flight {
            None => {
                let label = slot.map_or(0, |slot| self.store.label_of(slot));
                let tags = rules.tags.lend_any(label);
                let key = Arc::clone(by.key);
                let flight = self.flights.start(hash.0, key, Phase::Running);
                Ok(Claim::Lead(flight, tags))
            }
            // It has a flight, so it has no live entry: see above.
            Some(flight) if flight.take() => Ok(Claim::Lead(flight, None)),
            Some(flight) if flight.is_own() => Err(REENTRY),
            Some(flight) if by.blocks && flight.is_suspended_here() => Err(SUSPENDED),
            Some(flight) => {
                flight.join();
                Ok(Claim::Join(flight))
            }
        }
    }
}
