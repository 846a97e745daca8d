//! The first article's table, with entries that really expire while ten readers read.
//!
//! String keys of 16 bytes, values of 32, keys drawn uniformly among all, deadlines uniform over the
//! window. Paced readers sleep 10 ms between two reads, as the article's do; closed ones do not. A
//! control with the same entries and nothing expiring comes first; its processor time is what the
//! readers cost, and the rest is the expiry's, whoever ran it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use serde_json::json;

use super::kind::{Kind, Settings, TtlOf};
use super::runner::{Common, Experiment, Share};
use super::subject::{Key, Subject, Sweeps, Value};
use crate::clock;
use crate::heap;
use crate::latency::{Latencies, Summary};
use crate::proc::CpuMeter;
use crate::progress::Progress;
use crate::report::{Figures, Report};
use crate::rng::Rng;

const PACE: Duration = Duration::from_millis(10);
const LONG_TTL: Duration = Duration::from_secs(3_600);
const CALM_NS: u64 = 300_000_000;
const ATTEMPTS: usize = 4;
const MAX_READERS: usize = 1_024;
/// From here on a window of 8 s, as in the measurements of the peers; 5 s below.
const MANY: u64 = 5_000_000;

type Cache = Arc<dyn Subject<String, [u8; 32]>>;

/// How readers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// 10 ms of sleep between two reads.
    Paced,
    /// One read after the other.
    Closed,
}

/// Options of `caches seed-table`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) common: Common,
    /// Entries, a table for each number (default 1000000,10000000).
    #[arg(long, value_delimiter = ',')]
    entries: Option<Vec<u64>>,
    /// Seconds over which the deadlines are spread (default 5, from 5M entries on 8).
    #[arg(long)]
    window: Option<f64>,
    /// Readers (default 10).
    #[arg(long)]
    readers: Option<usize>,
    /// How they read (default both).
    #[arg(long, value_enum, value_delimiter = ',')]
    mode: Option<Vec<Mode>>,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    entries: u64,
    mode: Mode,
    window_ns: u64,
}

pub(super) struct SeedTable {
    cells: Vec<Cell>,
    readers: usize,
    seed: u64,
}

/// What one phase found.
struct Phase {
    populate_ns: u64,
    reads: Summary,
    hits: u64,
    cpu_ns: Option<u64>,
    sweeps: Option<Sweeps>,
}

impl SeedTable {
    pub(super) fn new(args: &Args) -> Result<Self> {
        let quick = args.common.quick;
        let readers = args.readers.unwrap_or(10);
        if readers == 0 || readers > MAX_READERS {
            bail!("--readers lies in 1..={MAX_READERS}");
        }
        let entries = args.entries.clone().unwrap_or(if quick {
            vec![20_000]
        } else {
            vec![1_000_000, 10_000_000]
        });
        if entries.contains(&0) {
            bail!("--entries starts at 1");
        }
        let modes = args
            .mode
            .clone()
            .unwrap_or_else(|| Mode::value_variants().to_vec());
        let mut cells = Vec::new();
        for &entries in &entries {
            let usual = match (quick, entries >= MANY) {
                (true, _) => 0.5,
                (false, false) => 5.0,
                (false, true) => 8.0,
            };
            let window = args.window.unwrap_or(usual);
            if !(0.001..=3_600.0).contains(&window) {
                bail!("--window lies between a millisecond and an hour");
            }
            cells.extend(modes.iter().map(|&mode| Cell {
                entries,
                mode,
                window_ns: (window * 1e9) as u64,
            }));
        }
        Ok(Self {
            cells,
            readers,
            seed: args.common.seed,
        })
    }
}

impl Experiment for SeedTable {
    fn name(&self) -> &'static str {
        "caches seed-table"
    }

    fn cells(&self) -> Vec<String> {
        let title = |cell: &Cell| {
            format!(
                "{} entries, {} {} readers, deadlines over {} s",
                cell.entries,
                self.readers,
                match cell.mode {
                    Mode::Paced => "paced",
                    Mode::Closed => "closed-loop",
                },
                cell.window_ns as f64 / 1e9
            )
        };
        self.cells.iter().map(title).collect()
    }

    fn excludes(&self, kind: Kind) -> Option<&'static str> {
        match kind.ttl_of() {
            TtlOf::Entry => None,
            TtlOf::Cache => Some("it has one TTL for the whole cache"),
            TtlOf::Nothing => Some("it has no TTL"),
        }
    }

    fn measure(&self, share: Share, progress: &Progress) -> Result<Report> {
        let cell = &self.cells[share.cell];
        progress.phase("control", 2);
        let control = self
            .attempt(share.kind, cell, None)?
            .context("a control run has no deadlines to miss")?;
        progress.phase("expiry", 2);
        progress.set(1);
        let mut lead_ns = control.populate_ns + control.populate_ns / 4 + CALM_NS;
        let mut expiry = None;
        for _ in 0..ATTEMPTS {
            expiry = self.attempt(share.kind, cell, Some(lead_ns))?;
            if expiry.is_some() {
                break;
            }
            lead_ns = lead_ns.saturating_mul(2);
        }
        let expiry = expiry.context("populating did not end before the first deadline")?;
        let params = json!({
            "entries": cell.entries,
            "window_s": cell.window_ns as f64 / 1e9,
            "readers": self.readers,
            "mode": cell.mode.to_possible_value().map(|value| value.get_name().to_owned()),
            "seed": self.seed,
            "counting_allocator": heap::COUNTED,
        });
        let mut report = Report::new(self.name(), None, params);
        figures(&mut report.figures, cell, &control, &expiry);
        Ok(report)
    }
}

impl SeedTable {
    /// `None` when the first deadline came before the last insert.
    fn attempt(&self, kind: Kind, cell: &Cell, lead_ns: Option<u64>) -> Result<Option<Phase>> {
        let settings = Settings {
            capacity: usize::try_from(cell.entries + cell.entries / 4)?,
        };
        let cache: Cache = Arc::from(kind.build::<String, [u8; 32]>(&settings)?);
        let start_ns = clock::mono_ns();
        let mut rng = Rng::new(self.seed);
        for id in 0..cell.entries {
            let ttl = lead_ns.map_or(LONG_TTL, |lead_ns| {
                let deadline = start_ns + lead_ns + rng.below(cell.window_ns);
                Duration::from_nanos(deadline.saturating_sub(clock::mono_ns()).max(1))
            });
            cache.insert(String::of(id), <[u8; 32]>::for_key(id), Some(ttl));
        }
        cache.settle();
        let populated_ns = clock::mono_ns();
        let first_ns = lead_ns.map_or(populated_ns + CALM_NS, |lead_ns| start_ns + lead_ns);
        if populated_ns + CALM_NS / 2 > first_ns {
            return Ok(None);
        }
        let window = (first_ns, first_ns + cell.window_ns);
        let stop = AtomicBool::new(false);
        let mut process = CpuMeter::new(std::process::id());
        let (reads, hits, cpu_ns) = thread::scope(|scope| -> Result<_> {
            let mut readers = Vec::with_capacity(self.readers);
            for number in 0..self.readers {
                let rng = Rng::new(self.seed.wrapping_add(number as u64 + 1));
                let (cache, stop) = (cache.as_ref(), &stop);
                readers.push(
                    thread::Builder::new()
                        .name(format!("reader-{number}"))
                        .spawn_scoped(scope, move || read(cache, cell, window, rng, stop))?,
                );
            }
            clock::sleep_until(window.0);
            let before = process.read_ns();
            clock::sleep_until(window.1);
            let cpu_ns = before.zip(process.read_ns()).map(|(then, now)| now - then);
            stop.store(true, Ordering::Relaxed);
            let (mut all, mut hits) = (Latencies::new(), 0);
            for reader in readers {
                let (latencies, found) = reader.join().map_err(|_| anyhow!("a reader panicked"))?;
                all.add(&latencies);
                hits += found;
            }
            Ok((all.summary(), hits, cpu_ns))
        })?;
        Ok(Some(Phase {
            populate_ns: populated_ns - start_ns,
            reads,
            hits,
            cpu_ns,
            sweeps: cache.sweeps(),
        }))
    }
}

/// One reader, until it is told to stop; counts what was under way within the window.
fn read(
    cache: &dyn Subject<String, [u8; 32]>,
    cell: &Cell,
    window: (u64, u64),
    mut rng: Rng,
    stop: &AtomicBool,
) -> (Latencies, u64) {
    let (mut latencies, mut hits) = (Latencies::new(), 0);
    let mut key = String::of(0);
    while !stop.load(Ordering::Relaxed) {
        key.clear();
        if write!(key, "key-{:012}", rng.below(cell.entries)).is_err() {
            break;
        }
        let from = clock::mono_ns();
        let found = cache.get(&key).is_some();
        let now = clock::mono_ns();
        if now >= window.0 && from < window.1 {
            latencies.record(now - from);
            hits += u64::from(found);
        }
        if cell.mode == Mode::Paced {
            thread::sleep(PACE);
        }
    }
    (latencies, hits)
}

fn figures(figures: &mut Figures, cell: &Cell, control: &Phase, expiry: &Phase) {
    for (key, label, reads) in [
        ("", "read", &expiry.reads),
        ("control_", "control read", &control.reads),
    ] {
        figures.push(
            format!("{key}reads_k"),
            format!("{label}s k"),
            reads.count as f64 / 1e3,
        );
        for (name, head, value) in [
            ("mean", "average", reads.mean_us),
            ("p50", "p50", reads.p50_us),
            ("p99", "p99", reads.p99_us),
            ("p999", "p99.9", reads.p999_us),
            ("max", "worst", reads.max_us),
        ] {
            figures.push(
                format!("{key}read_{name}_us"),
                format!("{label} {head} µs"),
                value,
            );
        }
    }
    let percent = |cpu_ns: Option<u64>| cpu_ns.map(|ns| ns as f64 / cell.window_ns as f64 * 100.0);
    figures.push("cpu_percent", "CPU, % of a core", percent(expiry.cpu_ns));
    figures.push(
        "control_cpu_percent",
        "control CPU, % of a core",
        percent(control.cpu_ns),
    );
    // Closed readers take what is left of the machine, so only paced ones leave a difference.
    let per_entry = expiry
        .cpu_ns
        .zip(control.cpu_ns)
        .filter(|_| cell.mode == Mode::Paced)
        .map(|(with, without)| (with as f64 - without as f64) / cell.entries as f64);
    figures.push(
        "expiry_cpu_ns_per_entry",
        "CPU of the expiry, ns per entry",
        per_entry,
    );
    figures.push(
        "hit_percent",
        "hits %",
        (expiry.reads.count > 0).then(|| expiry.hits as f64 / expiry.reads.count as f64 * 100.0),
    );
    let sweep = |value: fn(&Sweeps) -> f64| {
        expiry
            .sweeps
            .as_ref()
            .filter(|sweeps| sweeps.count > 0)
            .map(value)
    };
    figures.push(
        "sweep_mean_ms",
        "sweep average ms",
        sweep(|s| s.total_ns as f64 / s.count as f64 / 1e6),
    );
    figures.push(
        "sweep_max_ms",
        "sweep longest ms",
        sweep(|s| s.longest_ns as f64 / 1e6),
    );
    figures.push("populate_s", "populate s", expiry.populate_ns as f64 / 1e9);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_expire_while_they_are_read_and_none_does_in_the_control() {
        let experiment = SeedTable {
            cells: [Mode::Paced, Mode::Closed]
                .map(|mode| Cell {
                    entries: 2_000,
                    mode,
                    window_ns: 200_000_000,
                })
                .to_vec(),
            readers: 2,
            seed: 1,
        };
        for (kind, cell) in [
            (Kind::Tidewheel, 0),
            (Kind::Tidewheel, 1),
            (Kind::NaiveScan, 0),
        ] {
            let share = Share {
                kind,
                cell,
                round: 1,
            };
            let report = experiment
                .measure(share, &Progress::new())
                .expect("measures");
            let value = |key: &str| report.figures.value(key).expect(key);
            assert!(value("reads_k") > 0.0);
            assert!(value("hit_percent") < 99.0, "{}", value("hit_percent"));
            assert!(value("read_max_us") >= value("read_p50_us"));
        }
    }
}
