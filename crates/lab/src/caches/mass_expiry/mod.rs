//! Many entries due within one second beside live ones that are being read.
//!
//! For every cache a control first, with the same entries and none of them due, then the expiry: how
//! long reads of live keys took, when the dead values were dropped, when their bytes were back, and
//! what processor time it took.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use self::phase::{Phase, Plan};
use super::kind::{Kind, TtlOf};
use super::runner::{Common, Experiment, Share};
use crate::heap;
use crate::latency::Summary;
use crate::progress::Progress;
use crate::report::{Figures, Report};

mod phase;
mod readers;
mod watch;

/// Options of `caches mass-expiry`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) common: Common,
    /// Entries that fall due (default 1000000).
    #[arg(long)]
    entries: Option<u64>,
    /// Entries that stay (default 100000).
    #[arg(long)]
    live: Option<u64>,
    /// Seconds over which the deadlines are spread (default 1).
    #[arg(long)]
    window: Option<f64>,
    /// Closed-loop readers, a table for each number (default 1,2).
    #[arg(long, value_delimiter = ',', value_name = "N,…")]
    readers: Option<Vec<usize>>,
    /// Nobody touches the cache; alone, or as one more table with --readers.
    #[arg(long)]
    idle: bool,
    /// The entries that stay are inserted at random places among the dying instead of before them.
    #[arg(long)]
    interleaved: bool,
    /// Seconds after the last deadline at which the watch is given up (default 8).
    #[arg(long)]
    watch: Option<f64>,
}

const MAX_READERS: usize = 1_024;
const MAX_ENTRIES: u64 = 1 << 30;

pub(super) struct MassExpiry {
    plan: Plan,
    readers: Vec<usize>,
}

impl MassExpiry {
    pub(super) fn new(args: &Args) -> Result<Self> {
        let quick = args.common.quick;
        let readers = match (&args.readers, args.idle) {
            (Some(readers), idle) => {
                let mut readers = readers.clone();
                readers.extend(idle.then_some(0));
                readers
            }
            (None, true) => vec![0],
            (None, false) => vec![1, 2],
        };
        let seconds = |asked: Option<f64>, full: f64, small: f64| {
            let seconds = asked.unwrap_or(if quick { small } else { full });
            ((0.0..=3_600.0).contains(&seconds)).then_some((seconds * 1e9) as u64)
        };
        let (Some(window_ns), Some(watch_ns)) = (
            seconds(args.window, 1.0, 0.2),
            seconds(args.watch, 8.0, 2.0),
        ) else {
            bail!("--window and --watch lie between 0 and 3600 seconds");
        };
        let plan = Plan {
            entries: args
                .entries
                .unwrap_or(if quick { 20_000 } else { 1_000_000 }),
            live: args.live.unwrap_or(if quick { 2_000 } else { 100_000 }),
            window_ns,
            tail_ns: if quick { 200_000_000 } else { 1_000_000_000 },
            watch_ns,
            interleaved: args.interleaved,
            seed: args.common.seed,
        };
        if plan.entries == 0 || plan.live == 0 || plan.entries.max(plan.live) > MAX_ENTRIES {
            bail!("--entries and --live lie in 1..={MAX_ENTRIES}");
        }
        if readers.iter().any(|&n| n > MAX_READERS) {
            bail!("--readers is {MAX_READERS} at most");
        }
        Ok(Self { plan, readers })
    }
}

impl Experiment for MassExpiry {
    fn name(&self) -> &'static str {
        "caches mass-expiry"
    }

    fn cells(&self) -> Vec<String> {
        let plan = &self.plan;
        self.readers
            .iter()
            .map(|&readers| {
                format!(
                    "{} entries due within {} s, {} live{}, {}",
                    plan.entries,
                    plan.window_ns as f64 / 1e9,
                    plan.live,
                    if plan.interleaved { " among them" } else { "" },
                    match readers {
                        0 => "nobody touches the cache".to_owned(),
                        1 => "1 reader".to_owned(),
                        n => format!("{n} readers"),
                    }
                )
            })
            .collect()
    }

    fn excludes(&self, kind: Kind) -> Option<&'static str> {
        match kind.ttl_of() {
            TtlOf::Entry => None,
            TtlOf::Cache => Some("it has one TTL for the whole cache"),
            TtlOf::Nothing => Some("it has no TTL"),
        }
    }

    fn measure(&self, share: Share, progress: &Progress) -> Result<Report> {
        let plan = &self.plan;
        let readers = self.readers[share.cell];
        progress.phase("control", 2);
        let control = plan.control(share.kind, readers)?;
        progress.phase("expiry", 2);
        progress.set(1);
        let expiry = plan.expiry(share.kind, readers, control.populate_ns)?;
        let mut report = Report::new(self.name(), None, self.params(readers));
        if readers > 0 {
            let figures = &mut report.figures;
            reads(figures, "", "read", &expiry.reads, expiry.read_window_ns);
            reads(
                figures,
                "control_",
                "control read",
                &control.reads,
                control.read_window_ns,
            );
        }
        self.reclaim(&mut report.figures, &control, &expiry);
        if control.misses + expiry.misses > 0 {
            report.notes.push(format!(
                "reads of live keys that missed: {} in the control, {} in the expiry",
                control.misses, expiry.misses
            ));
        }
        Ok(report)
    }
}

impl MassExpiry {
    fn params(&self, readers: usize) -> Value {
        let plan = &self.plan;
        json!({
            "entries": plan.entries,
            "live": plan.live,
            "window_s": plan.window_ns as f64 / 1e9,
            "tail_s": plan.tail_ns as f64 / 1e9,
            "watch_s": plan.watch_ns as f64 / 1e9,
            "readers": readers,
            "interleaved": plan.interleaved,
            "seed": plan.seed,
            "counting_allocator": heap::COUNTED,
        })
    }

    fn reclaim(&self, figures: &mut Figures, control: &Phase, expiry: &Phase) {
        let entries = self.plan.entries as f64;
        let watched = &expiry.watched;
        let ms = |ns: Option<i64>| ns.map(|ns| ns as f64 / 1e6);
        figures.push_or_never(
            "dropped_99_ms",
            "99 % of dead values dropped, ms after last deadline",
            ms(watched.dropped_99_ns),
        );
        figures.push_or_never(
            "dropped_all_ms",
            "all dropped, ms",
            ms(watched.dropped_all_ns),
        );
        let back = ("bytes_90_ms", "90 % of bytes back, ms");
        if heap::COUNTED {
            figures.push_or_never(back.0, back.1, ms(watched.bytes_90_ns));
        } else {
            figures.push(back.0, back.1, None);
        }
        figures.push(
            "dead_values_left",
            "dead values left",
            watched.dead_left as f64,
        );
        figures.push(
            "dead_bytes_left_percent",
            "dead bytes left %",
            watched.dead_bytes_left.map(|left| left * 100.0),
        );
        figures.push(
            "bytes_per_entry",
            "bytes/entry full",
            watched
                .full_bytes
                .map(|bytes| bytes as f64 / (self.plan.entries + self.plan.live) as f64),
        );
        let mb = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / 1e6);
        figures.push("rss_full_mb", "RSS full MB", mb(watched.full_rss));
        figures.push("rss_end_mb", "RSS at the end MB", mb(watched.end_rss));
        // Threads of the cache itself; the control's tell what they take without expiry.
        let idle_share = control
            .background_cpu_ns
            .map(|ns| ns as f64 / control.wall_ns.max(1) as f64);
        let cpu_ns = expiry
            .background_cpu_ns
            .zip(idle_share)
            .map(|(ns, idle)| ns as f64 - idle * expiry.wall_ns as f64);
        let dead = entries - watched.dead_left as f64;
        figures.push(
            "background_cpu_ns_per_dead",
            "CPU of its own threads, ns per dropped entry",
            cpu_ns.filter(|_| dead > 0.0).map(|ns| ns / dead),
        );
        figures.push("populate_s", "populate s", expiry.populate_ns as f64 / 1e9);
    }
}

/// The percentiles of one phase.
fn reads(figures: &mut Figures, key: &str, label: &str, reads: &Summary, window_ns: u64) {
    let per_s = |count: u64| count as f64 / (window_ns.max(1) as f64 / 1e9);
    figures.push(
        format!("{key}reads_m"),
        format!("{label}s M"),
        reads.count as f64 / 1e6,
    );
    for (name, head, value) in [
        ("mean", "average", reads.mean_us),
        ("p50", "p50", reads.p50_us),
        ("p99", "p99", reads.p99_us),
        ("p999", "p99.9", reads.p999_us),
        ("p9999", "p99.99", reads.p9999_us),
        ("max", "max", reads.max_us),
    ] {
        figures.push(
            format!("{key}read_{name}_us"),
            format!("{label} {head} µs"),
            value,
        );
    }
    figures.push(
        format!("{key}over_1ms_per_s"),
        format!("{label}s over 1 ms /s"),
        per_s(reads.over_1ms),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn tiny(interleaved: bool) -> MassExpiry {
        MassExpiry {
            plan: Plan {
                entries: 3_000,
                live: 500,
                window_ns: 100_000_000,
                tail_ns: 100_000_000,
                watch_ns: 3_000_000_000,
                interleaved,
                seed: 3,
            },
            readers: vec![0, 1],
        }
    }

    /// One share at a time: the living are counted for the whole process.
    #[test]
    fn a_cache_with_a_thread_drops_all_its_dead_whether_it_is_read_or_not() {
        for (interleaved, kind) in [
            (false, Kind::Tidewheel),
            (true, Kind::Tidewheel),
            (true, Kind::ArticleWheel),
        ] {
            let experiment = tiny(interleaved);
            for cell in 0..2 {
                let share = Share {
                    kind,
                    cell,
                    round: 1,
                };
                let report = experiment
                    .measure(share, &Progress::new())
                    .expect("measures");
                let value = |key: &str| report.figures.value(key);
                assert_eq!(value("dead_values_left"), Some(0.0), "{kind} {cell}");
                assert!(value("dropped_all_ms").is_some(), "{kind} {cell}");
                assert_eq!(value("read_p50_us").is_some(), cell == 1, "{kind}");
                assert_eq!(report.notes, Vec::<String>::new(), "{kind} {cell}");
            }
        }
    }

    #[test]
    fn idle_is_a_table_of_its_own() {
        let cells = tiny(true).cells();
        assert!(cells[0].ends_with("nobody touches the cache"), "{cells:?}");
        assert!(
            cells[1].contains("500 live among them, 1 reader"),
            "{cells:?}"
        );
    }
}
