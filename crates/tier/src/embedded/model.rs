//! The engine's scripts as plain functions of the time.

use std::collections::HashMap;

use crate::core::age::{Age, Left};
use crate::core::envelope::Envelope;
use crate::core::names::Wire;
use crate::core::server::ServerId;
use crate::engine::{Lease, Look, Looked, TagAnswer};

/// Keys that a command has changed.
pub(crate) type Changed = Vec<Vec<u8>>;

/// Keys that are set between two sweeps, at least.
const SWEEP: usize = 1024;

/// The contents of an engine: keys with a value and the millisecond at which they end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    keys: HashMap<Vec<u8>, (Vec<u8>, u64)>,
    /// The number of keys that may still be set before the dead are looked for.
    before_sweep: usize,
}

impl Model {
    pub(crate) fn look(&mut self, now: u64, look: &Look) -> (Looked, Changed) {
        let value = self.get(now, &look.key.value);
        let fresh = value.as_ref().is_some_and(|(bytes, pttl)| {
            Envelope::open(bytes).is_some_and(|envelope| {
                look.invalid != Some(envelope.id) && Left::of(&envelope, *pttl).age == Age::Fresh
            })
        });
        let lease = match look.lease {
            Some((id, ms)) if !fresh => self.lease(now, &look.key.lease, id, ms),
            _ => Lease::Unasked,
        };
        let looked = Looked {
            value,
            lease,
            server: Some(here()),
        };
        (looked, Vec::new())
    }

    fn lease(&mut self, now: u64, key: &[u8], id: u128, ms: u32) -> Lease {
        if let Some((_, left)) = self.get(now, key) {
            return Lease::Held(left);
        }
        self.set(now, key.to_vec(), id.to_be_bytes().to_vec(), ms.into());
        Lease::Won
    }

    pub(crate) fn fill(
        &mut self,
        now: u64,
        key: &Wire,
        lease: u128,
        envelope: Vec<u8>,
        ttl_ms: u64,
    ) -> (bool, Changed) {
        let held = self.get(now, &key.lease);
        if held.is_none_or(|(id, _)| id != lease.to_be_bytes()) {
            return (false, Vec::new());
        }
        let ((), changed) = self.put(now, key, envelope, ttl_ms);
        (true, changed)
    }

    pub(crate) fn put(
        &mut self,
        now: u64,
        key: &Wire,
        envelope: Vec<u8>,
        ttl_ms: u64,
    ) -> ((), Changed) {
        self.keys.remove(&key.lease);
        self.set(now, key.value.clone(), envelope, ttl_ms);
        ((), vec![key.value.clone()])
    }

    pub(crate) fn remove(&mut self, _: u64, key: &Wire) -> ((), Changed) {
        self.keys.remove(&key.lease);
        let was = self.keys.remove(&key.value);
        ((), was.map(|_| key.value.clone()).into_iter().collect())
    }

    pub(crate) fn release(&mut self, now: u64, key: &Wire, lease: u128) -> ((), Changed) {
        let held = self.get(now, &key.lease);
        if held.is_some_and(|(id, _)| id == lease.to_be_bytes()) {
            self.keys.remove(&key.lease);
        }
        ((), Vec::new())
    }

    pub(crate) fn tag(
        &mut self,
        now: u64,
        tag: Vec<u8>,
        version: u64,
        ttl_ms: u64,
    ) -> (TagAnswer, Changed) {
        if let Some((bytes, left)) = self.get(now, &tag) {
            return (tag_answer(&bytes, ttl_ms.saturating_sub(left)), Vec::new());
        }
        self.set(now, tag.clone(), version_bytes(b'c', version), ttl_ms);
        let answer = TagAnswer {
            version,
            invalidated_ms: None,
            server: Some(here()),
        };
        (answer, vec![tag])
    }

    pub(crate) fn invalidate_tag(
        &mut self,
        now: u64,
        tag: Vec<u8>,
        version: u64,
        ttl_ms: u64,
    ) -> ((), Changed) {
        self.set(now, tag.clone(), version_bytes(b'i', version), ttl_ms);
        ((), vec![tag])
    }

    pub(crate) fn flush(&mut self) {
        self.keys.clear();
    }

    fn get(&mut self, now: u64, key: &[u8]) -> Option<(Vec<u8>, u64)> {
        let (bytes, end) = self.keys.get(key)?;
        (now < *end).then(|| (bytes.clone(), end - now))
    }

    fn set(&mut self, now: u64, key: Vec<u8>, bytes: Vec<u8>, ttl_ms: u64) {
        if self.before_sweep == 0 {
            self.sweep(now);
        }
        self.before_sweep -= 1;
        self.keys.insert(key, (bytes, now.saturating_add(ttl_ms)));
    }

    /// Removes what is dead. The next sweep comes when as many were set as are left: each pays for
    /// one look.
    fn sweep(&mut self, now: u64) {
        self.keys.retain(|_, (_, end)| now < *end);
        self.before_sweep = SWEEP.max(self.keys.len());
        self.keys.shrink_to(2 * self.before_sweep);
    }
}

/// The server, where there is one only.
pub(crate) fn here() -> ServerId {
    ServerId::of(b"here")
}

/// The bytes of a tag's key: whether the version was made or given by an invalidation, and the
/// version.
pub(crate) fn version_bytes(kind: u8, version: u64) -> Vec<u8> {
    [&[kind][..], &version.to_be_bytes()].concat()
}

/// The answer of a tag's key, at the age that its time to live tells. A version that it does not
/// tell counts as invalidated just now.
pub(crate) fn tag_answer(bytes: &[u8], age_ms: u64) -> TagAnswer {
    let version = bytes.get(1..).and_then(|bytes| bytes.try_into().ok());
    let is_made = bytes.first() == Some(&b'c');
    match version {
        Some(version) => TagAnswer {
            version: u64::from_be_bytes(version),
            invalidated_ms: (!is_made).then_some(age_ms),
            server: Some(here()),
        },
        None => TagAnswer {
            version: 0,
            invalidated_ms: Some(0),
            server: Some(here()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As long as more keys came than the last sweep had seen, there was no other sweep.
    #[test]
    fn what_is_dead_leaves_though_every_key_is_new() {
        let mut model = Model::default();
        for now in 0..50_000_u64 {
            model.set(now, now.to_be_bytes().to_vec(), Vec::new(), 200);
            assert!(model.keys.len() <= 200 + SWEEP, "{now}");
        }
    }
}
