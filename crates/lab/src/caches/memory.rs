//! Bytes per entry beyond key and value, with a TTL for every entry that can have one.

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde_json::json;

use super::kind::{Kind, Settings};
use super::runner::{Common, Experiment, Share};
use super::subject::{Key, Value};
use crate::heap;
use crate::proc;
use crate::progress::Progress;
use crate::report::Report;
use crate::rng::{Rng, mix};

/// TTLs lie between one and two hours: none falls due, and they are not all alike.
const TTL_MS: (u64, u64) = (3_600_000, 7_200_000);

/// What the entries are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shape {
    /// `u64` to `u64`: 16 bytes.
    Integers,
    /// `String` of 16 bytes to `Box<[u8]>` of 32; their 24 and 16 inline bytes count as overhead.
    Strings,
}

impl Shape {
    fn payload_bytes(self) -> u64 {
        match self {
            Self::Integers => 8 + 8,
            Self::Strings => 16 + 32,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Integers => "u64 → u64",
            Self::Strings => "String of 16 B → Box<[u8]> of 32 B",
        }
    }
}

/// Options of `caches memory`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) common: Common,
    /// Entries, a table for each number (default 1000000,1200000,1500000,1900000,10000000).
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    entries: Option<Vec<u64>>,
    /// What they are made of (default both).
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SHAPE,…")]
    shape: Option<Vec<Shape>>,
}

pub(super) struct Memory {
    cells: Vec<(Shape, u64)>,
    seed: u64,
}

impl Memory {
    pub(super) fn new(args: &Args) -> Result<Self> {
        if !heap::COUNTED {
            bail!("memory counts bytes: build the laboratory without the feature plain-alloc");
        }
        let unit = if args.common.quick { 1_000 } else { 100_000 };
        let entries = args
            .entries
            .clone()
            .unwrap_or_else(|| [10, 12, 15, 19, 100].map(|n| n * unit).to_vec());
        if entries.contains(&0) {
            bail!("--entries starts at 1");
        }
        let shapes = args
            .shape
            .clone()
            .unwrap_or_else(|| Shape::value_variants().to_vec());
        let cells = shapes
            .iter()
            .flat_map(|&shape| entries.iter().map(move |&entries| (shape, entries)))
            .collect();
        Ok(Self {
            cells,
            seed: args.common.seed,
        })
    }

    fn fill<K: Key, V: Value>(
        &self,
        kind: Kind,
        entries: u64,
        key: fn(u64) -> K,
    ) -> Result<Filled> {
        let settings = Settings {
            capacity: usize::try_from(entries + entries / 10)?,
        };
        let rss = || proc::rss_bytes(std::process::id());
        let before = (heap::allocated(), rss());
        let cache = kind.build::<K, V>(&settings)?;
        let empty = heap::allocated() - before.0;
        let mut rng = Rng::new(self.seed);
        for id in 0..entries {
            let ttl = std::time::Duration::from_millis(rng.between(TTL_MS.0, TTL_MS.1));
            cache.insert(key(id), V::for_key(id), Some(ttl));
        }
        cache.settle();
        let requested = heap::allocated() - before.0;
        let resident = before
            .1
            .zip(rss())
            .map(|(then, now)| now as f64 - then as f64);
        let present = (0..entries)
            .filter(|&id| cache.get(&key(id)).is_some())
            .count();
        Ok(Filled {
            empty,
            requested,
            resident,
            present: present as u64,
        })
    }
}

/// A full cache.
struct Filled {
    empty: isize,
    requested: isize,
    resident: Option<f64>,
    present: u64,
}

impl Experiment for Memory {
    fn name(&self) -> &'static str {
        "caches memory"
    }

    fn cells(&self) -> Vec<String> {
        self.cells
            .iter()
            .map(|(shape, entries)| format!("{entries} entries, {}", shape.title()))
            .collect()
    }

    fn excludes(&self, _: Kind) -> Option<&'static str> {
        None
    }

    fn measure(&self, share: Share, _: &Progress) -> Result<Report> {
        let (shape, entries) = self.cells[share.cell];
        let filled = match shape {
            Shape::Integers => self.fill::<u64, u64>(share.kind, entries, mix)?,
            Shape::Strings => self.fill::<String, Box<[u8]>>(share.kind, entries, String::of)?,
        };
        let params = json!({
            "entries": entries,
            "capacity": share.kind.has_capacity().then_some(entries + entries / 10),
            "shape": shape.title(),
            "payload_bytes": shape.payload_bytes(),
            "ttl": format!("{:?}", share.kind.ttl_of()).to_lowercase(),
            "seed": self.seed,
        });
        let mut report = Report::new(self.name(), None, params);
        let present = filled.present.max(1) as f64;
        let payload = shape.payload_bytes() as f64;
        let figures = &mut report.figures;
        figures.push(
            "overhead_bytes_per_entry",
            "overhead B/entry, requested",
            filled.requested as f64 / present - payload,
        );
        figures.push(
            "overhead_rss_bytes_per_entry",
            "overhead B/entry, resident",
            filled.resident.map(|rss| rss / present - payload),
        );
        figures.push("empty_mb", "empty, MB requested", filled.empty as f64 / 1e6);
        figures.push(
            "present_percent",
            "present %",
            filled.present as f64 / entries as f64 * 100.0,
        );
        Ok(report)
    }
}

#[cfg(all(test, not(feature = "plain-alloc")))]
mod tests {
    use super::*;

    #[test]
    fn every_cache_needs_more_than_its_payload_and_keeps_all_entries() {
        use Kind::{ArticleWheel, NaiveScan, Tidewheel};
        let experiment = Memory {
            cells: vec![(Shape::Integers, 200_000), (Shape::Strings, 200_000)],
            seed: 1,
        };
        for kind in [Tidewheel, NaiveScan, ArticleWheel] {
            for cell in 0..2 {
                let share = Share {
                    kind,
                    cell,
                    round: 1,
                };
                let report = experiment
                    .measure(share, &Progress::new())
                    .expect("measures");
                let value = |key: &str| report.figures.value(key).expect(key);
                assert_eq!(value("present_percent"), 100.0, "{kind} {cell}");
                let overhead = value("overhead_bytes_per_entry");
                assert!(
                    overhead > 4.0 && overhead < 400.0,
                    "{kind} {cell}: {overhead}"
                );
            }
        }
    }
}
