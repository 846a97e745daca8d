//! Tidewheel's cache in virtual time: its clock is moved to each of its own deadlines, as its
//! driver would wake.

use std::time::Duration;

use anyhow::Result;
use tidewheel::{Cache, Clock, Driver, Lifetime, ManualClock};

use super::strategy::Strategy;
use crate::hit_ratios::bounds::{Event, Hasher, Object, RequestKind};
use crate::studies::expiry::strategies::NEVER;

/// Timer records that one call may touch: no call here is short of it, so that no backlog is left.
const BUDGET: u32 = u32::MAX;

/// The real cache.
#[derive(Debug)]
pub(super) struct Ours {
    cache: Cache<u64, Object, Hasher>,
    clock: ManualClock,
}

impl Ours {
    /// Makes a cache with room for so many objects; without a limit an entry weighs its bytes.
    pub(super) fn new(capacity: Option<usize>) -> Result<Self> {
        let clock = ManualClock::new();
        let builder = match capacity {
            Some(objects) => Cache::builder().max_capacity(objects as u64),
            None => Cache::builder()
                .unbounded()
                .weigher(|_, object: &Object| object.bytes),
        };
        let cache = builder
            .no_default_ttl()
            .clock(clock.clone())
            .driver(Driver::Manual)
            .hasher(Hasher::default())
            // One, so that the figures do not depend on how many processors there are.
            .shards(1)
            .build()?;
        Ok(Self { cache, clock })
    }

    fn move_to(&self, at: Duration) {
        self.clock.advance(at.saturating_sub(self.clock.now()));
    }

    /// The time at which the cache wants to be called again.
    fn wake_at(&self) -> Option<Duration> {
        self.clock.now().checked_add(self.cache.next_deadline()?)
    }

    /// A read; whether it finds the object.
    pub(super) fn get(&self, key: u64) -> bool {
        self.cache.view(&key, |_| ()).is_some()
    }

    pub(super) fn store(&self, key: u64, object: Object, now_ms: u64) {
        let ttl_ms = object.deadline_ms.saturating_sub(now_ms);
        let lifetime = match object.deadline_ms {
            NEVER => Lifetime::forever(),
            _ => Lifetime::ttl(Duration::from_millis(ttl_ms)),
        };
        self.cache.insert_with(key, object, lifetime);
    }

    pub(super) fn remove(&self, key: u64) {
        self.cache.invalidate(&key);
    }
}

impl Strategy for Ours {
    fn run_to(&mut self, now_ms: u64) {
        let now = Duration::from_millis(now_ms);
        while let Some(at) = self.wake_at().filter(|at| *at <= now) {
            self.move_to(at);
            self.cache.advance(self.cache.now(), BUDGET);
        }
        self.move_to(now);
    }

    fn apply(&mut self, event: &Event) {
        match event.what {
            RequestKind::Hit(_) | RequestKind::Miss => drop(self.get(event.key)),
            RequestKind::Store(object) => self.store(event.key, object, event.at_ms),
        }
    }

    fn held_bytes(&self) -> u64 {
        self.cache.weight()
    }
}
