//! Sorted sets and lists: bytes a member, time an operation, and the worst single operation while they grow.
//!
//! `cargo bench -p tidewheel-collections --bench ordered [-- MEMBERS]` (1,000,000 unless told)
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::alloc::System;
use std::hint::black_box;
use std::ops::Bound;
use std::time::Instant;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tidewheel_collections::{Change, Limits, List, ListLimits, NewDeadline, ZSet};
use tidewheel_store::{INLINE_MAX, KeyHasher, NewValue, Store};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn allocated() -> usize {
    let stats = INSTRUMENTED_SYSTEM.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// The server's settings for sorted sets.
const ZSET: Limits = Limits {
    entries: 128,
    value: 64,
    integers: 0,
};

fn change(hasher: &KeyHasher) -> Change<'_> {
    Change {
        now: 0,
        limits: ZSET,
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

/// Which scores the members get.
#[derive(Clone, Copy)]
enum Scores {
    /// 0, 1, 2 …
    Rising,
    /// Integers below a million, in no order.
    Integers,
    /// Fractions, in no order.
    Fractions,
    /// All the same.
    One,
}

impl Scores {
    fn of(self, i: u64) -> f64 {
        let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match self {
            Self::Rising => i as f64,
            Self::Integers => (mixed >> 44) as f64,
            Self::Fractions => (mixed >> 11) as f64 / (1u64 << 53) as f64,
            Self::One => 1.0,
        }
    }
}

const SCORES: [(&str, Scores); 4] = [
    ("rising", Scores::Rising),
    ("integers", Scores::Integers),
    ("fractions", Scores::Fractions),
    ("one score", Scores::One),
];

fn zset_of(members: u64, scores: Scores, hasher: &KeyHasher) -> ZSet {
    let mut set = ZSet::new();
    for i in 0..members {
        set.insert(&member(i), scores.of(i), NewDeadline::None, &change(hasher));
    }
    set
}

/// Keeps a collection as the server does: short bytes beside the key, anything else as an object.
fn keep<O>(store: &mut Store<O>, i: u64, bytes: Option<&[u8]>, object: impl FnOnce() -> O) {
    let key = member(i);
    let value = match bytes {
        Some(bytes) if bytes.len() <= INLINE_MAX => NewValue::Inline(bytes),
        _ => NewValue::Object(object()),
    };
    store.insert(store.hasher().hash(&key), &key, 0, value, None, 0);
}

/// Prints what a member costs in collections of `members`: its own 16 bytes and a part of its key's cost included.
fn bytes_a_member(members: u64) {
    let hasher = KeyHasher::new(1);
    let keys = 1_000_000 / members;
    let print = |name: &str, before: usize| {
        let held = (allocated() - before) as f64 / (keys * members) as f64;
        println!("{name:<16} {members:>8} members: {held:>6.1} B a member");
    };
    for (name, scores) in SCORES {
        let before = allocated();
        let mut store = Store::new(hasher.clone());
        for i in 0..keys {
            match zset_of(members, scores, &hasher) {
                ZSet::Packed(packed) => {
                    let bytes = packed.into_bytes().into_boxed_slice().into_vec();
                    keep(&mut store, i, Some(&bytes.clone()), || bytes);
                }
                large @ ZSet::Large(_) => {
                    held_zsets(large);
                }
            }
        }
        print(&format!("zset, {name}"), before);
        FORGOTTEN.with(|held| held.borrow_mut().clear());
    }
    let before = allocated();
    let mut store = Store::new(hasher.clone());
    for i in 0..keys {
        let mut list = List::new();
        for i in 0..members {
            list.push_back(&member(i), &ListLimits::default());
        }
        let bytes = match list.get() {
            tidewheel_collections::ListRef::Packed(packed) => Some(packed.bytes().to_vec()),
            tidewheel_collections::ListRef::Large(_) => None,
        };
        list.tighten();
        keep(&mut store, i, bytes.as_deref(), || list);
    }
    print("list", before);
}

thread_local! {
    static FORGOTTEN: std::cell::RefCell<Vec<ZSet>> = const { std::cell::RefCell::new(Vec::new()) };
}

fn held_zsets(set: ZSet) {
    FORGOTTEN.with(|held| held.borrow_mut().push(set));
}

#[derive(Default)]
struct Times {
    worst_ns: u64,
    total_ns: u64,
    count: u64,
    over_half_ms: u64,
}

impl Times {
    fn time<R>(&mut self, operation: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = operation();
        let ns = start.elapsed().as_nanos() as u64;
        self.worst_ns = self.worst_ns.max(ns);
        self.total_ns += ns;
        self.count += 1;
        self.over_half_ms += u64::from(ns > 500_000);
        result
    }

    fn print(&self, name: &str) {
        println!(
            "{name:<32} mean {:>6} ns · over 0.5 ms: {:>4} · worst {:>8.1} µs",
            self.total_ns / self.count.max(1),
            self.over_half_ms,
            self.worst_ns as f64 / 1e3,
        );
    }
}

fn zset_operations(members: u64, name: &str, scores: Scores) {
    let hasher = KeyHasher::new(1);
    let change = change(&hasher);
    let at_random = |i: u64| (i + 7).wrapping_mul(0x2545_f491_4f6c_dd1d) % members;
    let few = members.min(1_000_000);
    let mut set = ZSet::new();
    println!("zset, {name}, {members} members");
    let mut times = Times::default();
    for i in 0..members {
        let score = scores.of(i);
        times.time(|| set.insert(&member(i), score, NewDeadline::None, &change));
    }
    times.print("ZADD of a new member");
    println!("{:.1} B a member held", set.bytes() as f64 / members as f64);
    let mut times = Times::default();
    for i in 0..few {
        times.time(|| black_box(set.get().rank(&member(at_random(i)))));
    }
    times.print("ZRANK");
    let mut times = Times::default();
    for i in 0..few {
        times.time(|| black_box(set.get().score(&member(at_random(i)))));
    }
    times.print("ZSCORE");
    let mut times = Times::default();
    for i in 0..few / 10 {
        let start = at_random(i) as usize;
        times.time(|| set.get().forward(start).take(10).for_each(|entry| drop(black_box(entry))));
    }
    times.print("ZRANGE of 10 by rank");
    let mut times = Times::default();
    for i in 0..few / 10 {
        let score = scores.of(at_random(i));
        times.time(|| black_box(set.get().by_score(Bound::Included(score), Bound::Unbounded)));
    }
    times.print("ZCOUNT");
    let mut times = Times::default();
    for i in 0..few {
        let i = at_random(i);
        let score = scores.of(members + i);
        times.time(|| set.insert(&member(i), score, NewDeadline::None, &change));
    }
    times.print("ZADD of another score");
    let mut times = Times::default();
    for i in 0..few / 2 {
        times.time(|| set.remove(&member(i * 2)));
    }
    times.print("ZREM");
    let mut times = Times::default();
    while times.time(|| set.maintain(64)) {}
    times.print("tidying in steps of 64");
    println!("{:.1} B a member held", set.bytes() as f64 / set.get().len() as f64);
    let mut times = Times::default();
    while !set.get().is_empty() {
        times.time(|| set.remove_range(0..1, |gone| drop(black_box(gone.score))));
    }
    times.print("ZPOPMIN");
    println!("{} bytes held when empty", set.bytes());
}

fn list_operations(members: u64) {
    let limits = ListLimits::default();
    let mut list = List::new();
    println!("list, {members} elements");
    let mut times = Times::default();
    for i in 0..members {
        times.time(|| list.push_back(&member(i), &limits));
    }
    times.print("RPUSH");
    println!("{:.1} B an element held", list.heap_bytes() as f64 / members as f64);
    let mut times = Times::default();
    for i in 0..members / 10 {
        let index = (i.wrapping_mul(0x2545_f491_4f6c_dd1d) % members) as usize;
        times.time(|| black_box(list.get().get(index)));
    }
    times.print("LINDEX");
    let mut times = Times::default();
    for i in 0..members / 100 {
        let index = (i.wrapping_mul(0x2545_f491_4f6c_dd1d) % members) as usize;
        times.time(|| list.insert(index, &member(i), &limits));
    }
    times.print("LINSERT at an index");
    let mut times = Times::default();
    for i in 0..members / 100 {
        let index = (i.wrapping_mul(0x2545_f491_4f6c_dd1d) % members) as usize;
        times.time(|| list.remove(index, 1, &limits));
    }
    times.print("LREM at an index");
    let mut times = Times::default();
    for i in 0..members {
        times.time(|| list.push_front(&member(i), &limits));
    }
    times.print("LPUSH");
    let mut times = Times::default();
    for i in 0..members {
        let front = i % 2 == 0;
        times.time(|| {
            let index = if front { 0 } else { list.get().len() - 1 };
            black_box(list.get().get(index));
            list.remove(index, 1, &limits);
        });
    }
    times.print("LPOP, RPOP in turn");
    let mut times = Times::default();
    while !list.get().is_empty() {
        times.time(|| list.drop_back(1, &limits));
    }
    times.print("RPOP");
    println!("{} bytes held when empty", list.heap_bytes());
}

fn main() {
    let told = std::env::args().nth(1).and_then(|told| told.parse().ok());
    let members = told.unwrap_or(1_000_000);
    for members in [10, 100, 1_000, 1_000_000] {
        bytes_a_member(members);
    }
    for (name, scores) in SCORES {
        zset_operations(members, name, scores);
    }
    list_operations(members);
}
