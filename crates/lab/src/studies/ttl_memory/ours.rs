//! Tidewheel's cache in virtual time: its clock is moved to each of its own deadlines, as its driver would wake.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use tidewheel::{Cache, Clock, Driver, Lifetime, ManualClock, RemovalCause};

use super::course::{Event, Object, What};
use super::request::FOREVER;
use super::strategy::{Ledger, Strategy};
use crate::hit_ratios::replay::Hasher;

/// Timer records that one call may touch: no call here is short of it, so that no backlog is left.
const BUDGET: u32 = u32::MAX;

/// The real cache without a limit; an entry weighs its bytes.
#[derive(Debug)]
pub(super) struct Ours {
    cache: Cache<u64, Object, Hasher>,
    clock: ManualClock,
    /// When the cache wants to be called again.
    wake_at: Duration,
    /// What expired, as the cache's listener hears of it.
    ledger: Arc<Mutex<Ledger>>,
    /// Entries and timer records that the driver touched.
    looked: u64,
}

impl Ours {
    pub(super) fn new() -> Result<Self> {
        let clock = ManualClock::new();
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let (hears, hands) = (Arc::clone(&ledger), clock.clone());
        let cache = Cache::builder()
            .unbounded()
            .no_default_ttl()
            .weigher(|_, object: &Object| object.bytes)
            .clock(clock.clone())
            .driver(Driver::Manual)
            .hasher(Hasher::default())
            // One, so that the figures do not depend on how many processors there are.
            .shards(1)
            .eviction_listener(move |removal: tidewheel::Removal<u64, Object>| {
                if removal.cause == RemovalCause::Expired {
                    hears
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .freed(removal.value.deadline_ms, millis(hands.now()));
                }
            })
            .build()?;
        Ok(Self {
            cache,
            clock,
            wake_at: Duration::MAX,
            ledger,
            looked: 0,
        })
    }

    fn move_to(&mut self, at: Duration) {
        self.clock.advance(at.saturating_sub(self.clock.now()));
    }

    fn drive(&mut self) {
        let progress = self.cache.advance(self.cache.now(), BUDGET);
        self.looked += progress.expired + progress.moved;
        self.plan(progress.next);
    }

    fn plan(&mut self, next: Option<Duration>) {
        let at = next.and_then(|next| self.clock.now().checked_add(next));
        self.wake_at = at.unwrap_or(Duration::MAX);
    }
}

impl Strategy for Ours {
    fn run_to(&mut self, now_ms: u64) {
        let now = Duration::from_millis(now_ms);
        while self.wake_at <= now {
            self.move_to(self.wake_at);
            self.drive();
        }
        self.move_to(now);
    }

    fn apply(&mut self, event: &Event) {
        match event.what {
            What::Hit(_) | What::Miss => {
                self.cache.contains_key(&event.key);
            }
            What::Store(object) => {
                let ttl_ms = object.deadline_ms.saturating_sub(event.at_ms);
                let lifetime = match object.deadline_ms {
                    FOREVER => Lifetime::forever(),
                    _ => Lifetime::ttl(Duration::from_millis(ttl_ms)),
                };
                self.cache.insert_with(event.key, object, lifetime);
                self.plan(self.cache.next_deadline());
            }
            What::Delete => {
                self.cache.invalidate(&event.key);
            }
        }
    }

    fn held_bytes(&self) -> u64 {
        self.cache.weight()
    }

    fn ledger(self: Box<Self>) -> Ledger {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.looked = self.looked;
        std::mem::take(&mut ledger)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
