//! The bytes that a member costs, and the worst single operation while a hash grows and expires.
//!
//! `cargo bench -p tidewheel-collections --bench members [-- FIELDS]` (1,000,000 unless told)
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::alloc::System;
use std::time::Instant;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tidewheel_collections::{Change, Hash, Limits, NewDeadline, Set};
use tidewheel_store::{INLINE_MAX, KeyHasher, NewValue, Store};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn allocated() -> usize {
    let stats = INSTRUMENTED_SYSTEM.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// The server's settings for hashes, and for sets.
const HASH: Limits = Limits {
    entries: 512,
    value: 64,
    integers: 0,
};
const SET: Limits = Limits {
    entries: 128,
    value: 64,
    integers: 512,
};

fn change(hasher: &KeyHasher, limits: Limits) -> Change<'_> {
    Change {
        now: 0,
        limits,
        hasher,
    }
}

/// Sixteen bytes that no other number gives.
fn member(i: u64) -> [u8; 16] {
    let mut bytes = *b"m:00000000000000";
    let mut rest = i;
    for byte in bytes[2..].iter_mut().rev() {
        *byte = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    bytes
}

/// Keeps a collection as the server does: short bytes beside the key, anything else as an object.
fn keep<O>(store: &mut Store<O>, i: u64, bytes: Option<&[u8]>, object: O) {
    let key = member(i);
    let value = match bytes {
        Some(bytes) if bytes.len() <= INLINE_MAX => NewValue::Inline(bytes),
        _ => NewValue::Object(object),
    };
    store.insert(store.hasher().hash(&key), &key, 0, value, None, 0);
}

fn hash_of(members: u64, deadlines: bool, hasher: &KeyHasher) -> Hash {
    let mut hash = Hash::new();
    for i in 0..members {
        let deadline = if deadlines {
            NewDeadline::At(1 << 40 | i)
        } else {
            NewDeadline::None
        };
        hash.insert(&member(i), &member(i), deadline, &change(hasher, HASH));
    }
    hash
}

fn set_of(members: u64, hasher: &KeyHasher) -> Set {
    let mut set = Set::new();
    for i in 0..members {
        set.insert(&member(i), NewDeadline::None, &change(hasher, SET));
    }
    set
}

/// Prints what a member costs in collections of `members`, beside its own bytes and a part of its
/// key's cost.
fn bytes_a_member(members: u64) {
    let hasher = KeyHasher::new(1);
    let keys = 1_000_000 / members;
    let per_member = |before: usize| (allocated() - before) as f64 / (keys * members) as f64;

    for (name, deadlines) in [("hash", false), ("hash with deadlines", true)] {
        let before = allocated();
        let mut store = Store::new(hasher.clone());
        let mut accounted = 0;
        for i in 0..keys {
            let hash = hash_of(members, deadlines, &hasher);
            accounted += hash.bytes();
            match hash {
                Hash::Packed(packed) => {
                    let bytes = packed.get().bytes().to_vec();
                    keep(&mut store, i, Some(&bytes), Hash::Packed(packed));
                }
                large @ Hash::Large(_) => keep(&mut store, i, None, large),
            }
        }
        print_bytes(
            name,
            members,
            per_member(before),
            32.0,
            accounted / (keys * members) as usize,
        );
    }
    let before = allocated();
    let mut store = Store::new(hasher.clone());
    let mut accounted = 0;
    for i in 0..keys {
        let set = set_of(members, &hasher);
        accounted += set.bytes();
        match set {
            Set::Packed(packed) => {
                let bytes = packed.get().bytes().to_vec();
                keep(&mut store, i, Some(&bytes), Set::Packed(packed));
            }
            large @ Set::Large(_) => keep(&mut store, i, None, large),
        }
    }
    print_bytes(
        "set",
        members,
        per_member(before),
        16.0,
        accounted / (keys * members) as usize,
    );
}

fn print_bytes(name: &str, members: u64, held: f64, own: f64, accounted: usize) {
    println!(
        "{name:<20} {members:>8} members: {held:>6.1} B a member held, {:>5.1} over its own · bytes() says {accounted}",
        held - own
    );
}

/// Runs of the same operations. Of each operation the shortest time counts: in the others the
/// machine did something else.
const RUNS: usize = 3;

/// The time of each operation of a kind.
#[derive(Default)]
struct Times {
    best_ns: Vec<u32>,
    /// Operations of this run so far.
    done: usize,
}

impl Times {
    fn time<R>(&mut self, operation: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = operation();
        let ns = u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX);
        match self.best_ns.get_mut(self.done) {
            Some(best) => *best = ns.min(*best),
            None => self.best_ns.push(ns),
        }
        self.done += 1;
        result
    }

    fn print(&self, name: &str) {
        let times = || self.best_ns.iter().map(|ns| u64::from(*ns));
        println!(
            "{name:<28} mean {:>6} ns · over 0.5 ms: {:>4} · worst {:>8.1} µs",
            times().sum::<u64>() / times().count().max(1) as u64,
            times().filter(|ns| *ns > 500_000).count(),
            times().max().unwrap_or(0) as f64 / 1e3,
        );
    }
}

fn worst_operation(fields: u64) {
    let hasher = KeyHasher::new(1);
    let [mut writes, mut removals, mut passes] = [(); 3].map(|()| Times::default());
    for run in 1..=RUNS {
        for times in [&mut writes, &mut removals, &mut passes] {
            times.done = 0;
        }
        let mut hash = Hash::new();
        for i in 0..fields {
            let deadline = NewDeadline::At(1 + i % 1_000);
            let change = change(&hasher, HASH);
            writes.time(|| hash.insert(&member(i), &member(i), deadline, &change));
        }
        let held = hash.bytes();
        for i in 0..fields / 2 {
            removals.time(|| hash.remove(&member(i * 2)));
        }
        for now in 1..=1_000 {
            while passes.time(|| hash.expire(now, 32, |_| {})).backlog {}
        }
        assert!(hash.get().is_empty(), "all deadlines have passed");
        while hash.maintain(64) {}
        if run == RUNS {
            writes.print("HSET of a new field");
            removals.print("HDEL of every other field");
            passes.print("expiry of 32 records");
            println!("{held} bytes held when full, {} when empty", hash.bytes());
        }
    }
}

/// Prints the mean time of `operation`, of `rounds` of them.
fn mean(name: &str, rounds: u64, mut operation: impl FnMut(u64)) {
    let start = Instant::now();
    (0..rounds).for_each(&mut operation);
    let ns = start.elapsed().as_nanos() as f64 / rounds as f64;
    println!("{name:<48} {ns:>7.1} ns");
}

fn packed_operations() {
    let hasher = KeyHasher::new(1);
    let change = change(&hasher, HASH);
    for members in [10, 128, 512] {
        let mut hash = hash_of(members, false, &hasher);
        mean(&format!("HGET, one of {members}, packed"), 1_000_000, |i| {
            std::hint::black_box(hash.get().value(&member(i * 7 % members)));
        });
        mean(
            &format!("HGET of another field, {members}, packed"),
            1_000_000,
            |i| {
                std::hint::black_box(hash.get().value(&member(members + i)));
            },
        );
        mean(&format!("HSET, one of {members}, packed"), 1_000_000, |i| {
            let field = member(i * 7 % members);
            hash.insert(&field, &field, NewDeadline::None, &change);
        });
    }
    let packed = match hash_of(100, true, &hasher) {
        Hash::Packed(packed) => packed,
        Hash::Large(_) => unreachable!("100 fields are packed"),
    };
    let mut scratch = packed.clone();
    mean("a copy of 100 fields with deadlines", 100_000, |_| {
        scratch.clone_from(&packed);
    });
    mean("the same, and one of them expires", 100_000, |_| {
        scratch.clone_from(&packed);
        scratch.expire(1 << 40, 32, |_| {});
    });
    mean("the same, and all of them expire", 100_000, |_| {
        scratch.clone_from(&packed);
        scratch.expire(1 << 41, 100, |_| {});
    });
}

fn main() {
    let told = std::env::args().nth(1).and_then(|told| told.parse().ok());
    for members in [10, 100, 1_000, 1_000_000] {
        bytes_a_member(members);
    }
    packed_operations();
    worst_operation(told.unwrap_or(1_000_000));
}
