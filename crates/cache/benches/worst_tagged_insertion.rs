//! The worst single insertion and removal while each of two million entries has a tag of its own.
//!
//! `cargo bench -p tidewheel --bench worst_tagged_insertion [-- ENTRIES]` (2,000,000 unless told)
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::{Duration, Instant};

use tidewheel::{Cache, Driver, Lifetime};

/// The longest of all calls, longest first.
const LONGEST: usize = 8;

fn measure(name: &str, entries: u64, mut operation: impl FnMut(u64)) {
    let mut longest = [Duration::ZERO; LONGEST];
    let (mut total, mut slow) = (Duration::ZERO, 0);
    for entry in 0..entries {
        let start = Instant::now();
        operation(entry);
        let took = start.elapsed();
        total += took;
        slow += u32::from(took > Duration::from_millis(1));
        if took > longest[LONGEST - 1] {
            longest[LONGEST - 1] = took;
            longest.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
    println!(
        "{name:<28} mean {:>5.0} ns, {slow} over 1 ms, longest {longest:.0?}",
        total.as_nanos() as f64 / entries as f64
    );
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let entries = arguments.find_map(|arg| arg.parse().ok());
    let entries: u64 = entries.unwrap_or(2_000_000);
    let cache: Cache<u64, u64> = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    // Names are made before the clock is read.
    let mut lifetimes = (0..entries).map(|entry| Lifetime::forever().tag(format!("user:{entry}")));
    let mut next = lifetimes.next();
    measure("untagged, for comparison", entries, |entry| {
        cache.insert(entry + entries, 0);
    });
    measure("insertion, a tag of its own", entries, |entry| {
        cache.insert_with(entry, 0, next.take().expect("one each"));
        next = lifetimes.next();
    });
    measure("removal, and of its tag", entries, |entry| {
        cache.invalidate(&entry);
    });
}
