//! A load at ten times the rate that is expected: memory and lateness stay bounded.
//!
//! Expected are 20,000 stores a second, each with a time to live of its own of up to a second; the
//! load is 200,000. In virtual time for two seconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tidewheel::{Cache, Driver, ManualClock, Stats};

use crate::loading::{MS, Valid};

const EXPECTED_PER_SECOND: u64 = 20_000;
const LOAD_PER_SECOND: u64 = 10 * EXPECTED_PER_SECOND;
/// Room for half of what is alive at a time under the load: evictions and expirations both happen.
const CAPACITY: u64 = 50_000;

/// The weight of an entry: its value's bytes.
const VALUE_BYTES: usize = 32;

/// A value that counts itself: what is stored, waits for the listener, or waits to be dropped.
struct Value {
    alive: Arc<AtomicU64>,
    bytes: [u8; VALUE_BYTES],
}

impl Value {
    fn new(alive: &Arc<AtomicU64>) -> Self {
        alive.fetch_add(1, SeqCst);
        Self {
            alive: Arc::clone(alive),
            bytes: [7; VALUE_BYTES],
        }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, SeqCst);
    }
}

/// Times to live from 1 ms to a second, in an order without a pattern.
fn ttl(number: u64) -> Duration {
    let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    Duration::from_millis(1 + scattered % 1000)
}

/// Entries that were removed later than `2^power` ms.
fn later_than(stats: &Stats, power: usize) -> u64 {
    stats.lateness[power + 1..].iter().sum()
}

#[test]
fn ten_times_the_expected_load_keeps_memory_and_lateness_bounded() {
    // A driver that is called once in a millisecond, with a bound on what it may do then: as much
    // as the driver's own thread does between two looks around. A store costs it a record or two,
    // but not evenly: half a second's stores lie in one slot of the wheel before they are split.
    const PER_TICK: u64 = LOAD_PER_SECOND / 1000;
    const BUDGET: u32 = 4096;
    let clock = ManualClock::new();
    let alive = Arc::<AtomicU64>::default();
    for capacity in [CAPACITY, 10 * CAPACITY] {
        let cache: Cache<u64, Value> = Cache::builder()
            .max_capacity(capacity * VALUE_BYTES as u64)
            .weigher(|_, value: &Value| value.bytes.len() as u32)
            .time_to_live(Duration::from_secs(1))
            .clock(clock.clone())
            .driver(Driver::Manual)
            .shards(8)
            .valid();
        let mut number = 0;
        let mut most = 0;
        for _ in 0..2000 {
            for _ in 0..PER_TICK {
                cache.insert_with_ttl(number, Value::new(&alive), ttl(number));
                number += 1;
                if number.is_multiple_of(3) {
                    // Hits as well, some on the dead.
                    cache.view(&(number / 2), |value| value.bytes[0]);
                }
            }
            clock.advance(MS);
            cache.advance(cache.now(), BUDGET);
            let held = alive.load(SeqCst);
            assert_eq!(held, cache.len() as u64, "what is held is what is stored");
            assert!(held <= capacity && cache.weight() <= capacity * VALUE_BYTES as u64);
            assert!(cache.stats().backlog <= 8 * MS, "{:?}", cache.stats());
            most = most.max(held);
        }
        let stats = cache.stats();
        assert_eq!(stats.inserts, 2 * LOAD_PER_SECOND);
        assert_eq!(
            stats.expirations + stats.evictions + stats.entries,
            stats.inserts
        );
        assert_eq!(stats.rejected, 0);
        // Half a second's stores are alive at a time: that is the bound where capacity is not.
        assert!(most <= (LOAD_PER_SECOND * 51 / 100).min(capacity), "{most}");
        assert_eq!(stats.evictions > 0, capacity == CAPACITY);
        // While a crowded slot is split the budget is spent on that too, in all shards at once.
        assert_eq!(later_than(&stats, 3), 0, "{:?}", stats.lateness);
        cache.validate();
        drop(cache);
        assert_eq!(alive.load(SeqCst), 0);
    }
}
