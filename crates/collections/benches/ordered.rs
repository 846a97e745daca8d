//! Sorted sets and lists: bytes a member, time an operation, and the worst single operation while
//! they grow.
//!
//! `cargo bench -p tidewheel-collections --bench ordered [-- MEMBERS]` (1,000,000 unless told)
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::alloc::System;
use std::hint::black_box;
use std::ops::Bound;
use std::time::Instant;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tidewheel_collections::{
    Change, Limits, List, ListLimits, ListRef, NewDeadline, ZSet, ZSetRef,
};
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

/// The scores that the members get.
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

/// Prints what a member costs in collections of `members`: its own 16 bytes and a part of its key's
/// cost included.
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
            let set = zset_of(members, scores, &hasher);
            let bytes = match set.get() {
                ZSetRef::Packed(packed) => Some(packed.bytes().to_vec()),
                ZSetRef::Large(_) => None,
            };
            keep(&mut store, i, bytes.as_deref(), || set);
        }
        print(&format!("zset, {name}"), before);
    }
    let before = allocated();
    let mut store = Store::new(hasher.clone());
    for i in 0..keys {
        let mut list = List::new();
        for i in 0..members {
            list.push_back(&member(i), &ListLimits::default());
        }
        let bytes = match list.get() {
            ListRef::Packed(packed) => Some(packed.bytes().to_vec()),
            ListRef::Large(_) => None,
        };
        list.tighten();
        keep(&mut store, i, bytes.as_deref(), || list);
    }
    print("list", before);
}

/// One kind of operation. The runs are alike, so an operation's least time is what it takes by
/// itself: what other processes took in one run, they do not take in all.
#[derive(Default)]
struct Phase {
    best_ns: Vec<u32>,
    cpu_ns: u64,
}

/// The phases of some equal runs, by name.
#[derive(Default)]
struct Runs {
    phases: Vec<(String, Phase)>,
}

/// Processor time of this process.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let first = stat.split_whitespace().next();
    first.and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

impl Runs {
    fn phase(&mut self, name: &str, mut operation: impl FnMut(u64) -> bool) {
        let at = self.phases.iter().position(|(known, _)| known == name);
        let at = at.unwrap_or_else(|| {
            self.phases.push((
                name.to_owned(),
                Phase {
                    cpu_ns: u64::MAX,
                    ..Phase::default()
                },
            ));
            self.phases.len() - 1
        });
        let phase = &mut self.phases[at].1;
        let before = cpu_ns();
        for i in 0.. {
            let start = Instant::now();
            let more = operation(i);
            let ns = start.elapsed().as_nanos() as u32;
            match phase.best_ns.get_mut(i as usize) {
                Some(best) => *best = ns.min(*best),
                None => phase.best_ns.push(ns),
            }
            if !more {
                break;
            }
        }
        phase.cpu_ns = phase.cpu_ns.min(cpu_ns() - before);
    }

    fn print(&self, title: &str) {
        println!("{title}");
        for (name, phase) in &self.phases {
            let worst = phase.best_ns.iter().zip(1..).max();
            let (worst, number) = worst.unwrap_or((&0, 0));
            println!(
                "  {name:<28} {:>6} ns of processor time · worst {:>8.1} µs, the {number}th",
                phase.cpu_ns / phase.best_ns.len().max(1) as u64,
                f64::from(*worst) / 1e3,
            );
        }
    }
}

fn zset_operations(members: u64, name: &str, scores: Scores, runs: u32) {
    let hasher = KeyHasher::new(1);
    let change = change(&hasher);
    let at_random = |i: u64| (i + 7).wrapping_mul(0x2545_f491_4f6c_dd1d) % members;
    let few = members.min(1_000_000);
    let mut all = Runs::default();
    let mut held = String::new();
    for _ in 0..runs {
        let mut set = ZSet::new();
        all.phase("ZADD of a new member", |i| {
            set.insert(&member(i), scores.of(i), NewDeadline::None, &change);
            i + 1 < members
        });
        held = format!("{:.1}", set.bytes() as f64 / members as f64);
        all.phase("ZRANK", |i| {
            black_box(set.get().rank(&member(at_random(i))));
            i + 1 < few
        });
        all.phase("ZSCORE", |i| {
            black_box(set.get().score(&member(at_random(i))));
            i + 1 < few
        });
        all.phase("ZRANGE of 10 by rank", |i| {
            let entries = set.get().forward(at_random(i) as usize);
            entries.take(10).for_each(|entry| {
                black_box(entry);
            });
            i + 1 < few / 4
        });
        all.phase("ZCOUNT", |i| {
            let score = Bound::Included(scores.of(at_random(i)));
            black_box(set.get().by_score(score, Bound::Unbounded));
            i + 1 < few / 4
        });
        all.phase("ZADD of another score", |i| {
            let other = at_random(i);
            let score = scores.of(members + other);
            set.insert(&member(other), score, NewDeadline::None, &change);
            i + 1 < few
        });
        all.phase("ZREM of every other", |i| {
            set.remove(&member(i * 2));
            i + 1 < members / 2
        });
        all.phase("tidying, a step of 64", |_| set.maintain(64));
        all.phase("ZPOPMIN", |_| {
            set.remove_range(0..1, |gone| {
                black_box(gone.score);
            });
            !set.get().is_empty()
        });
        held += &format!(
            " B a member held when full, {} in all when empty",
            set.bytes()
        );
    }
    all.print(&format!("zset, {name}, {members} members: {held}"));
}

fn list_operations(members: u64, runs: u32) {
    let limits = ListLimits::default();
    let at_random = |i: u64| (i.wrapping_mul(0x2545_f491_4f6c_dd1d) % members) as usize;
    let mut all = Runs::default();
    let mut held = String::new();
    for _ in 0..runs {
        let mut list = List::new();
        all.phase("RPUSH", |i| {
            list.push_back(&member(i), &limits);
            i + 1 < members
        });
        held = format!("{:.1}", list.heap_bytes() as f64 / members as f64);
        all.phase("LINDEX", |i| {
            black_box(list.get().get(at_random(i)));
            i + 1 < members / 10
        });
        all.phase("LINSERT at an index", |i| {
            list.insert(at_random(i), &member(i), &limits);
            i + 1 < members / 100
        });
        all.phase("LREM at an index", |i| {
            list.remove(at_random(i), 1, &limits);
            i + 1 < members / 100
        });
        all.phase("LPUSH", |i| {
            list.push_front(&member(i), &limits);
            i + 1 < members
        });
        all.phase("LPOP, RPOP in turn", |i| {
            let index = if i % 2 == 0 { 0 } else { list.get().len() - 1 };
            black_box(list.get().get(index));
            list.remove(index, 1, &limits);
            i + 1 < members
        });
        all.phase("RPOP", |_| {
            list.drop_back(1, &limits);
            !list.get().is_empty()
        });
        held += &format!(
            " B an element held when full, {} in all when empty",
            list.heap_bytes()
        );
    }
    all.print(&format!("list, {members} elements: {held}"));
}

fn main() {
    let told = std::env::args().nth(1).and_then(|told| told.parse().ok());
    let members = told.unwrap_or(1_000_000);
    for members in [10, 100, 1_000, 1_000_000] {
        bytes_a_member(members);
    }
    for (name, scores) in SCORES {
        zset_operations(members, name, scores, 3);
    }
    list_operations(members, 3);
}
