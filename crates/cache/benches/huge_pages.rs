//! The gain from pages of 2 MiB on this machine: nanoseconds of a read and of an insertion into a
//! full cache, and the process's memory.
//!
//! `cargo bench -p tidewheel --bench huge_pages -- 1000000`

#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use tidewheel::Cache;

const OPERATIONS: u64 = 200_000;
const ROUNDS: usize = 15;
const TTL: Duration = Duration::from_secs(3600);

type Numbers = Cache<u64, u64>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo bench` says `--bench` too.
    let entries = std::env::args()
        .skip(1)
        .find(|argument| argument != "--bench")
        .map_or(Ok(1_000_000), |n| n.parse())?;
    let mut caches = Vec::new();
    for huge in [false, true] {
        let before = resident_kib();
        let cache = full(entries, huge)?;
        let grown = resident_kib()
            .zip(before)
            .map(|(after, before)| after - before);
        println!("huge pages: {huge:5}; KiB: {grown:?}");
        caches.push(cache);
    }
    // Turn about, so that both have the same neighbours.
    let mut nanos = [const { Vec::new() }; 4];
    for round in 0..ROUNDS as u64 {
        for (i, cache) in caches.iter().enumerate() {
            nanos[i].push(reads(cache, entries, round));
            nanos[i + 2].push(insertions(cache, entries + round * OPERATIONS));
        }
    }
    let [read, read_huge, insert, insert_huge] = nanos.map(median);
    println!("ns of a read:       {read:.1}, on huge pages {read_huge:.1}");
    println!("ns of an insertion: {insert:.1}, on huge pages {insert_huge:.1}");
    Ok(())
}

fn full(entries: u64, huge: bool) -> Result<Numbers, tidewheel::BuildError> {
    let builder = Cache::builder().max_capacity(entries).time_to_live(TTL);
    let cache = builder.huge_pages(huge).build()?;
    (0..entries).for_each(|key| cache.insert(key, key));
    Ok(cache)
}

fn reads(cache: &Numbers, entries: u64, round: u64) -> f64 {
    let mut at = round;
    timed(|| {
        // Some are there no more.
        at = at
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(round | 1);
        black_box(cache.get(&((at >> 32) % entries)));
    })
}

fn insertions(cache: &Numbers, from: u64) -> f64 {
    let mut key = from;
    timed(|| {
        cache.insert(key, key);
        key += 1;
    })
}

fn timed(mut operation: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..OPERATIONS).for_each(|_| operation());
    start.elapsed().as_nanos() as f64 / OPERATIONS as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// `None` where the system does not tell.
fn resident_kib() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
