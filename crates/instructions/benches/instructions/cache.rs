//! The cache, with a clock and a driver moved by hand.

use std::hint::black_box;
use std::time::Duration;

use foldhash::fast::FixedState;
use gungraun::{library_benchmark, library_benchmark_group};
use tidewheel::{Cache, Condition, Driver, ManualClock};

use crate::input::{LONGEST_TTL, OPERATIONS, order, scatter, ttls_ms};

/// Not the default, which depends on the machine's processors.
const SHARDS: usize = 16;

/// Timer records that the driver may touch at a time.
const BUDGET: u32 = 1000;

/// A cache and what is to be asked of it.
struct Asked {
    cache: Cache<u64, u64, FixedState>,
    clock: ManualClock,
    keys: Vec<u64>,
    ttls: Vec<Duration>,
}

/// A cache with room for `capacity` entries, and keys that it does not hold.
fn empty(capacity: usize) -> Asked {
    let clock = ManualClock::new();
    let cache = Cache::builder()
        .max_capacity(capacity as u64)
        .no_default_ttl()
        .hasher(FixedState::with_seed(1))
        .shards(SHARDS)
        .clock(clock.clone())
        .driver(Driver::Manual)
        .build()
        .expect("the options are valid");
    Asked {
        cache,
        clock,
        keys: order().into_iter().map(scatter).collect(),
        ttls: ttls_ms().into_iter().map(Duration::from_millis).collect(),
    }
}

/// The same with the keys within.
fn full() -> Asked {
    let mut asked = empty(2 * OPERATIONS);
    insert(&asked);
    asked.keys.sort_unstable();
    asked
}

fn full_and_strangers() -> Asked {
    let mut asked = full();
    stranger_keys(&mut asked);
    asked
}

fn with_room() -> Asked {
    empty(2 * OPERATIONS)
}

/// As many entries as it may hold, and keys that it does not hold.
fn without_room() -> Asked {
    let mut asked = empty(OPERATIONS);
    insert(&asked);
    stranger_keys(&mut asked);
    asked
}

fn stranger_keys(asked: &mut Asked) {
    for key in &mut asked.keys {
        *key = scatter(*key ^ 1);
    }
}

/// As [`full`], and each key's new time to live ends after the old one.
fn to_prolong() -> Asked {
    let mut asked = full();
    for ttl in &mut asked.ttls {
        *ttl += Duration::from_secs(60);
    }
    asked
}

#[inline(always)]
fn insert(asked: &Asked) {
    for (&key, &ttl) in asked.keys.iter().zip(&asked.ttls) {
        asked.cache.insert_with_ttl(key, key, ttl);
    }
}

#[library_benchmark]
#[bench::get_hit(setup = full)]
#[bench::get_miss(setup = full_and_strangers)]
fn gets(asked: Asked) -> Asked {
    for key in &asked.keys {
        black_box(asked.cache.get(key));
    }
    asked
}

#[library_benchmark]
#[bench::load_by_ref_hit(setup = full)]
fn loads(asked: Asked) -> Asked {
    for key in &asked.keys {
        black_box(
            asked
                .cache
                .fetch_by_ref(key)
                .load(|| unreachable!("it is there"))
                .value,
        );
    }
    asked
}

#[library_benchmark]
#[bench::insert_new(setup = with_room)]
#[bench::insert_evicting(setup = without_room)]
fn inserts(asked: Asked) -> Asked {
    insert(&asked);
    asked
}

#[library_benchmark]
#[bench::expire_later(setup = to_prolong)]
fn expires(asked: Asked) -> Asked {
    for (key, &ttl) in asked.keys.iter().zip(&asked.ttls) {
        black_box(asked.cache.expire(key, ttl, Condition::Always));
    }
    asked
}

// The driver wakes for each deadline.
#[library_benchmark]
#[bench::expiry(setup = full)]
fn passes(asked: Asked) -> Asked {
    while let Some(left) = asked.cache.next_deadline() {
        asked.clock.advance(left);
        asked.cache.advance(asked.cache.now(), BUDGET);
    }
    asked
}

// All are due before the driver looks.
#[library_benchmark]
#[bench::expiry_at_once(setup = full)]
fn floods(asked: Asked) -> Asked {
    asked.clock.advance(LONGEST_TTL);
    while asked.cache.advance(asked.cache.now(), BUDGET).backlog {}
    asked
}

library_benchmark_group!(
    name = caches,
    benchmarks = [gets, loads, inserts, expires, passes, floods]
);
