//! The claims of a worker: where each is, and until when it may be believed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::shape::claim::Claim;

/// Where a claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// In the wheel.
    Waits,
    /// With its handler.
    Runs,
    /// On its way back to the engine.
    Ended,
}

/// A claim that the worker holds.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) claim: Arc<Claim>,
    pub(super) stage: Stage,
    /// The end of its lease, by the worker's monotonic clock. Counted from when the lease was asked for: so it is no later than
    /// the engine's end.
    pub(super) until: Duration,
    /// Until when nobody else can have it, whatever the engine has lost.
    pub(super) sure: Duration,
}

/// All claims of a worker, by the number under which the wheel has them.
#[derive(Debug, Default)]
pub(super) struct Claims {
    claims: HashMap<u64, Held>,
    latest: u64,
}

impl Claims {
    pub(super) fn len(&self) -> usize {
        self.claims.len()
    }

    pub(super) fn running(&self) -> usize {
        let runs = self
            .claims
            .values()
            .filter(|held| held.stage == Stage::Runs);
        runs.count()
    }

    /// Takes a claim in; returns its number.
    pub(super) fn add(&mut self, claim: Claim, sent: Duration) -> u64 {
        self.latest += 1;
        let until = sent.saturating_add(claim.remaining);
        let sure = sent.saturating_add(claim.sure);
        let (claim, stage) = (Arc::new(claim), Stage::Waits);
        self.claims.insert(
            self.latest,
            Held {
                claim,
                stage,
                until,
                sure,
            },
        );
        self.latest
    }

    pub(super) fn get(&self, key: u64) -> Option<&Held> {
        self.claims.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: u64) -> Option<&mut Held> {
        self.claims.get_mut(&key)
    }

    pub(super) fn remove(&mut self, key: u64) -> Option<Held> {
        self.claims.remove(&key)
    }

    /// Claims of whose lease a quarter is over, so many at most: those that have not ended. A claim whose lease is over, and that
    /// does not run, is not extended: another worker may be about to claim it.
    pub(super) fn ending(&self, now: Duration, most: usize) -> Vec<(u64, Arc<Claim>)> {
        let is_ending = |held: &Held| {
            let lease = held.claim.lease;
            let extends = match held.stage {
                Stage::Waits => held.until > now,
                Stage::Runs => true,
                Stage::Ended => false,
            };
            extends && held.until < now + (lease - lease / 4)
        };
        let ending = self.claims.iter().filter(|(_, held)| is_ending(held));
        let ending = ending.map(|(key, held)| (*key, Arc::clone(&held.claim)));
        ending.take(most).collect()
    }
}
