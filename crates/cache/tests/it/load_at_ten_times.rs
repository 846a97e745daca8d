//! A load at ten times the rate that is expected: memory and lateness stay bounded.
//!
//! Expected are 20,000 stores a second, each with a time to live of its own of up to a second; the
//! load is 200,000. In virtual time for two seconds; by name (`--ignored`) also on the system's
//! clock, with threads, for three.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tidewheel::{Cache, Driver, ManualClock, Stats};

use crate::loading::MS;

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
            .build()
            .expect("valid");
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

#[cfg(feature = "system")]
#[test]
#[ignore = "takes three seconds of real time, and wants two free processors"]
fn ten_times_the_expected_load_on_the_system_clock() {
    use std::thread;
    use tidewheel::Clock;

    const SECONDS: u64 = 3;
    const WRITERS: u64 = 2;
    let alive = Arc::<AtomicU64>::default();
    let pace = tidewheel::SystemClock::new();
    let cache: Cache<u64, Value> = Cache::builder()
        .max_capacity(CAPACITY)
        .time_to_live(Duration::from_secs(1))
        .build()
        .expect("valid");
    let start = pace.now();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (cache, alive, pace) = (&cache, &alive, &pace);
            scope.spawn(move || {
                let total = SECONDS * LOAD_PER_SECOND / WRITERS;
                let mut done = 0;
                while done < total {
                    // As many operations as are due by now.
                    let passed = (pace.now() - start).as_micros() as u64;
                    let asked = (passed * LOAD_PER_SECOND / WRITERS / 1_000_000).min(total);
                    if asked <= done {
                        thread::park_timeout(MS);
                    }
                    for number in done..asked {
                        let key = number * WRITERS + writer;
                        cache.insert_with_ttl(key, Value::new(alive), ttl(key));
                    }
                    done = asked.max(done);
                    assert!(cache.len() as u64 <= CAPACITY);
                }
            });
        }
    });
    // The last ones live for a second; after that nothing is held, though nobody calls.
    let end = pace.now() + Duration::from_secs(5);
    while alive.load(SeqCst) > 0 && pace.now() < end {
        thread::park_timeout(10 * MS);
    }
    let stats = cache.stats();
    println!("{stats:#?}");
    assert_eq!((alive.load(SeqCst), stats.entries), (0, 0));
    assert_eq!(stats.inserts, SECONDS * LOAD_PER_SECOND);
    // A scheduler may keep the driver from a processor for a while; not for a quarter of a second.
    assert_eq!(later_than(&stats, 8), 0, "{:?}", stats.lateness);
}
