//! Bytes per entry beyond key and value, with a TTL for every entry that can have one.

use std::time::Duration;

use anyhow::{Result, ensure};
use clap::ValueEnum;
use serde_json::json;

use super::Subjects;
use super::kind::CacheKind;
use super::subject::{Key, Value};
use crate::heap;
use crate::outcome::Outcome;
use crate::proc;
use crate::report::Report;
use crate::rng::Rng;
use crate::runner::{Common, Experiment, count};

const NAME: &str = "caches memory";
/// TTLs lie between one and two hours: none falls due, and they are not all alike.
const TTL_MS: (u64, u64) = (3_600_000, 7_200_000);

/// The types of the entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// `u64` to `u64`: 16 bytes.
    Integers,
    /// `String` of 16 bytes to `Box<[u8]>` of 32; their 24 and 16 inline bytes count as overhead.
    Strings,
}

impl Shape {
    /// The name in tables, and the bytes of key and value.
    fn facts(self) -> (&'static str, u64) {
        match self {
            Self::Integers => ("u64 → u64", 8 + 8),
            Self::Strings => ("String of 16 B → Box<[u8]> of 32 B", 16 + 32),
        }
    }
}

/// Options of `caches memory`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    subjects: Subjects,
    /// Entries, a table for each number (default 1000000,1200000,1500000,1900000,10000000).
    #[arg(long, value_delimiter = ',', value_name = "N,…", value_parser = count::<u64>)]
    entries: Option<Vec<u64>>,
    /// Types of the entries (default both).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SHAPE,…")]
    shape: Option<Vec<Shape>>,
}

pub(super) fn run(args: &Args) -> Result<Option<Outcome>> {
    ensure!(
        heap::COUNTED,
        "memory counts bytes: build the laboratory without the feature plain-alloc"
    );
    let unit = if args.common.basics.quick {
        1_000
    } else {
        100_000
    };
    let usual = || [10, 12, 15, 19, 100].map(|n| n * unit).to_vec();
    let entries = args.entries.clone().unwrap_or_else(usual);
    let shapes = args.shape.as_deref().unwrap_or(Shape::value_variants());
    let of_shape = |&shape: &Shape| entries.iter().map(move |&entries| (shape, entries));
    let cells: Vec<(Shape, u64)> = shapes.iter().flat_map(of_shape).collect();
    let title = |(shape, entries): &(Shape, u64)| format!("{entries} entries, {}", shape.facts().0);
    let experiment = Experiment {
        name: NAME,
        cells: cells.iter().map(title).collect(),
        subjects: &|_| args.subjects.kinds(),
        measure: &|kind, cell, _| measure(kind, cells[cell], args.common.basics.seed),
    };
    experiment.run(&args.common)
}

fn measure(kind: CacheKind, (shape, entries): (Shape, u64), seed: u64) -> Result<Report> {
    let (title, payload_bytes) = shape.facts();
    let filled = match shape {
        Shape::Integers => fill::<u64, u64>(kind, entries, seed)?,
        Shape::Strings => fill::<String, Box<[u8]>>(kind, entries, seed)?,
    };
    let params = json!({
        "entries": entries,
        "capacity": kind.has_capacity().then_some(entries + entries / 10),
        "shape": title,
        "payload_bytes": payload_bytes,
        "ttl": kind.has_ttl(),
        "seed": seed,
    });
    let mut report = Report::new(NAME, params).of(kind, kind.version());
    let overhead = |bytes: f64| bytes / filled.present.max(1) as f64 - payload_bytes as f64;
    let present = filled.present as f64 / entries as f64 * 100.0;
    let (requested, resident) = (
        overhead(filled.requested as f64),
        filled.resident.map(overhead),
    );
    let figures = &mut report.figures;
    figures.push("overhead_bytes_per_entry", requested);
    figures.push("overhead_rss_bytes_per_entry", resident);
    figures.push("present_percent", present);
    Ok(report)
}

/// A full cache.
struct Filled {
    requested: isize,
    resident: Option<f64>,
    present: u64,
}

fn fill<K: Key, V: Value>(kind: CacheKind, entries: u64, seed: u64) -> Result<Filled> {
    let rss = || proc::rss_bytes(std::process::id());
    let before = (heap::allocated(), rss());
    let cache = kind.build::<K, V>(usize::try_from(entries + entries / 10)?)?;
    let mut rng = Rng::new(seed);
    for id in 0..entries {
        let ttl = Duration::from_millis(rng.between(TTL_MS.0, TTL_MS.1));
        cache.insert(K::of(id), V::for_key(id), Some(ttl));
    }
    cache.settle();
    let requested = heap::allocated() - before.0;
    let resident = before.1.zip(rss());
    let is_there = |id: &u64| cache.get(&K::of(*id)).is_some();
    Ok(Filled {
        requested,
        resident: resident.map(|(then, now)| now as f64 - then as f64),
        present: (0..entries).filter(is_there).count() as u64,
    })
}

#[cfg(all(test, not(feature = "plain-alloc")))]
mod tests {
    use super::*;

    #[test]
    fn every_cache_needs_more_than_its_payload_and_keeps_all_entries() {
        for kind in [
            CacheKind::Tidewheel,
            CacheKind::NaiveScan,
            CacheKind::SlotWheel,
        ] {
            for shape in [Shape::Integers, Shape::Strings] {
                // Bytes are the process's: other tests allocate and free meanwhile.
                let is_likely = || {
                    let report = measure(kind, (shape, 50_000), 1).expect("measures");
                    let value = |key: &str| report.figures.value(key).expect(key);
                    assert_eq!(value("present_percent"), 100.0, "{kind} {shape:?}");
                    (4.0..400.0).contains(&value("overhead_bytes_per_entry"))
                };
                assert!((0..10).any(|_| is_likely()), "{kind} {shape:?}");
            }
        }
    }
}
