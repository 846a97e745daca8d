//! The cache of naive_scan with the strategy exchanged: one lock over a map, its entries and the
//! strategy.
//!
//! A thread calls the strategy when it asks for it. How long one call holds the write lock is the
//! strategy's nature: a scan walks over everything, sampling makes one call of its own length, and
//! all others hand out 256 entries at most before the lock is given back. `get` looks at the
//! deadline, so that what is dead is not visible until it is found.

use std::io;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use super::keyed::{Keyed, Removed};
use super::ticker::Ticker;
use crate::caches::subject::{Key, Subject, Value};
use crate::clock;
use crate::locks::{read, write};
use crate::studies::expiry::strategies::{Left, NEVER, Strategy};

/// Entries that one hold of the lock removes.
const HOLD: u32 = 256;
/// Between two holds while more is due: a lock that is taken again at once lets no waiting reader
/// in, and a thread that yields instead goes behind every busy reader.
const BREATH_NS: u64 = 20_000;
const NS_PER_MS: u64 = 1_000_000;

/// A cache whose dead are found by a strategy.
pub(crate) struct StrategyCache<K, V> {
    inner: Arc<RwLock<Inner<K, V>>>,
    ticker: Ticker,
}

struct Inner<K, V> {
    entries: Keyed<K, V>,
    /// The time of the thread's next call; [`NEVER`] when it waits to be told.
    planned_ms: u64,
}

impl<K: Key, V: Value> StrategyCache<K, V> {
    pub(crate) fn new(strategy: Strategy) -> io::Result<Self> {
        let inner = Arc::new(RwLock::new(Inner {
            entries: Keyed::new(strategy.build(now_ms(), 1, clock::mono_ns)),
            planned_ms: NEVER,
        }));
        let theirs = Arc::clone(&inner);
        let ticker = Ticker::on_demand(move || {
            // Made before the lock is taken and dropped when it is free: an allocator may join all
            // freed blocks when it is asked for a large one.
            let mut due = Vec::with_capacity(HOLD as usize);
            let mut removed = Vec::with_capacity(HOLD as usize);
            let mut inner = write(&theirs);
            let backlog = inner.hold(now_ms(), &mut due, &mut removed);
            let next_ns = inner.planned_ms.saturating_mul(NS_PER_MS);
            drop(inner);
            if backlog {
                return clock::mono_ns() + BREATH_NS;
            }
            next_ns
        })?;
        Ok(Self { inner, ticker })
    }
}

/// The clock of all deadlines here.
fn now_ms() -> u64 {
    clock::mono_ns() / NS_PER_MS
}

impl<K: Key, V: Value> Inner<K, V> {
    /// The time at which the thread must be called instead, if that is earlier than it planned.
    fn earlier(&mut self, deadline_ms: u64) -> Option<u64> {
        // What is due after the next call anyway need not ask the strategy.
        if deadline_ms >= self.planned_ms {
            return None;
        }
        let wake_ms = self.entries.wake().filter(|&at| at < self.planned_ms)?;
        self.planned_ms = wake_ms;
        Some(wake_ms)
    }

    /// Takes the lock once: removes what the strategy finds and plans the next call. Returns
    /// whether more is left.
    fn hold(&mut self, now_ms: u64, due: &mut Vec<u32>, removed: &mut Vec<Removed<K, V>>) -> bool {
        let backlog = self.entries.advance(now_ms, HOLD, due, removed) == Left::Backlog;
        self.planned_ms = match backlog {
            true => now_ms,
            false => self.entries.wake().unwrap_or(NEVER),
        };
        backlog
    }
}

impl<K: Key, V: Value> Subject<K, V> for StrategyCache<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        let inner = read(&self.inner);
        let entry = inner.entries.get(key)?;
        (now_ms() < entry.deadline_ms).then(|| entry.value.clone())
    }

    fn insert(&self, key: K, value: V, ttl: Option<Duration>) {
        let mut inner = write(&self.inner);
        // Read under the lock: a wait for it must not make one time to live look like many.
        let now_ms = now_ms();
        let deadline_ms = ttl.map_or(NEVER, |ttl| {
            let ttl_ms = ttl.as_nanos().div_ceil(u128::from(NS_PER_MS));
            // From the end of the millisecond that has begun: nothing may die early.
            let begun_ms = now_ms + 1;
            begun_ms.saturating_add(u64::try_from(ttl_ms).unwrap_or(NEVER))
        });
        let replaced = inner.entries.insert(key, value, deadline_ms, now_ms);
        let earlier = inner.earlier(deadline_ms);
        drop(inner);
        drop(replaced);
        if let Some(at_ms) = earlier {
            self.ticker.call_by(at_ms.saturating_mul(NS_PER_MS));
        }
    }

    fn rest(&self, resting: bool) {
        self.ticker.rest(resting);
    }

    fn held(&self) -> Option<usize> {
        Some(read(&self.inner).entries.len())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use clap::ValueEnum;

    use super::*;

    const PATIENCE_NS: u64 = 30_000_000_000;

    fn ms(ms: u64) -> Option<Duration> {
        Some(Duration::from_millis(ms))
    }

    /// Waits until a cache holds so many entries in so many places.
    fn comes_to(cache: &StrategyCache<u64, u64>, entries: usize) -> bool {
        let counts = || {
            let inner = read(&cache.inner);
            (inner.entries.len(), inner.entries.places())
        };
        let end_ns = clock::mono_ns() + PATIENCE_NS;
        while counts() != (entries, entries) && clock::mono_ns() < end_ns {
            clock::sleep_until(clock::mono_ns() + NS_PER_MS);
        }
        counts() == (entries, entries)
    }

    fn live(strategy: Strategy) {
        let cache = StrategyCache::new(strategy).expect("a thread");
        // The dead are invisible before they are removed.
        cache.rest(true);
        cache.insert(9_000, 0, ms(1));
        clock::sleep_until(clock::mono_ns() + 5 * NS_PER_MS);
        assert_eq!((cache.get(&9_000), cache.held()), (None, Some(1)));
        cache.rest(false);
        // What is inserted before the planned call is met in time.
        cache.insert(3_000, 0, ms(3_600_000));
        for key in 0..2_000 {
            cache.insert(key, key, ms(1 + key % 50));
        }
        for key in 2_000..2_010 {
            cache.insert(key, key, None);
            cache.insert(key + 10, key, ms(3_600_000));
        }
        // A key that is written again keeps its new value and deadline.
        for (key, ttl) in [(0, ms(3_600_000)), (1, None)] {
            cache.insert(key, 7, ttl);
        }
        assert!(comes_to(&cache, 23), "{strategy}: {:?}", cache.held());
        let found = [0, 1, 5, 2_005, 2_015].map(|key| cache.get(&key));
        assert_eq!(found, [Some(7), Some(7), None, Some(2_005), Some(2_005)]);
        for key in [0, 1] {
            cache.insert(key, 8, ms(5));
        }
        assert!(comes_to(&cache, 21), "{strategy}: {:?}", cache.held());
    }

    /// All at the same time: they wait more than they work.
    #[test]
    fn entries_go_by_themselves_and_those_that_stay_are_found() {
        thread::scope(|scope| {
            for &strategy in Strategy::value_variants() {
                scope.spawn(move || live(strategy));
            }
        });
    }
}
