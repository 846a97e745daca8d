//! The worst single operation while ten million entries come and go, and the bytes they take.
//!
//! `cargo bench -p tidewheel-store --bench worst_operation [-- ENTRIES]` (10,000,000 unless told)
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::Instant;

use tidewheel_store::{KeyHasher, NewValue, Store};

/// Counts of operations by the power of two of their nanoseconds, and the worst.
struct Times {
    windows: [u64; 40],
    worst_ns: u64,
    total_ns: u64,
    count: u64,
}

impl Times {
    fn new() -> Self {
        Self {
            windows: [0; 40],
            worst_ns: 0,
            total_ns: 0,
            count: 0,
        }
    }

    fn time<R>(&mut self, operation: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = operation();
        let ns = start.elapsed().as_nanos() as u64;
        self.windows[(64 - ns.leading_zeros()) as usize] += 1;
        self.worst_ns = self.worst_ns.max(ns);
        self.total_ns += ns;
        self.count += 1;
        result
    }

    fn print(&self, name: &str, bytes_per_entry: f64) {
        let above = |ns: u64| -> u64 {
            self.windows
                .iter()
                .skip((64 - ns.leading_zeros()) as usize + 1)
                .sum()
        };
        println!(
            "{name:<28} mean {:>6.0} ns · over 65 µs: {:>5} · over 0.5 ms: {:>4} · over 2 ms: {:>3} · \
             worst {:>8.1} µs · {bytes_per_entry:>6.1} B/entry held",
            self.total_ns as f64 / self.count as f64,
            above(1 << 15),
            above(1 << 18),
            above(1 << 20),
            self.worst_ns as f64 / 1e3,
        );
    }
}

fn key(i: u64) -> [u8; 16] {
    let mut key: [u8; 16] = *b"key:000000000000";
    let mut rest = i;
    for digit in key.iter_mut().skip(4).rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

fn main() {
    let entries: u64 = std::env::args()
        .skip(1)
        .find_map(|arg| arg.parse().ok())
        .unwrap_or(10_000_000);
    let hasher = KeyHasher::new(1);
    let mut store: Store<()> = Store::new(hasher.clone());
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let value = [b'v'; 32];
    let now = 1 << 40;
    println!("one store, {entries} entries of 16 + 32 bytes with a deadline");

    let mut times = Times::new();
    for i in 0..entries {
        let key = key(i);
        let deadline = now + 30_000 + next() % 30_000;
        let hash = hasher.hash(&key);
        times.time(|| store.insert(hash, &key, 0, NewValue::Inline(&value), Some(deadline), now));
    }
    let per_entry = |store: &Store<()>| store.held_bytes() as f64 / store.len().max(1) as f64;
    times.print("insert", per_entry(&store));

    let mut times = Times::new();
    for _ in 0..entries / 4 {
        let key = key(next() % entries);
        let hash = hasher.hash(&key);
        let deadline = now + 30_000 + next() % 30_000;
        times.time(|| match store.find(hash, &key) {
            Some(slot) => {
                store.remove(slot);
            }
            None => {
                store.insert(hash, &key, 0, NewValue::Inline(&value), Some(deadline), now);
            }
        });
        if next() % 16 == 0 {
            times.time(|| store.maintain(64));
        }
    }
    times.print("remove or insert at random", per_entry(&store));

    let mut times = Times::new();
    let mut gone = 0u64;
    let mut tick = now + 30_000;
    while store.timed() > 0 {
        tick += 1;
        while times
            .time(|| store.expire(tick, 128, |_| gone += 1))
            .backlog
        {}
        times.time(|| store.maintain(64));
    }
    times.print("expire, slices of 128", per_entry(&store));
    println!(
        "{gone} expired at {:.0} ns each; {} bytes are still held",
        times.total_ns as f64 / gone as f64,
        store.held_bytes()
    );
}
