//! Many entries are due within one second, while live ones are read.
//!
//! For every cache a control first, with the same entries and none of them due, then the expiry:
//! how long reads of live keys took, when the dead values were dropped, when their bytes were back,
//! and what processor time it took.

use anyhow::{Result, ensure};
use serde_json::json;

use self::phase::{Phase, Plan};
use super::Subjects;
use super::kind::CacheKind;
use crate::heap;
use crate::latency::Latencies;
use crate::outcome::Outcome;
use crate::report::{Figures, Report};
use crate::runner::{Common, Experiment, count, threads};

mod phase;
mod watch;

/// Options of `caches mass-expiry`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    subjects: Subjects,
    /// Entries that fall due (quick: 20000).
    #[arg(long, default_value_t = 1_000_000)]
    #[arg(default_value_if("quick", "true", "20000"), value_parser = count::<u64>)]
    entries: u64,
    /// Entries that stay (quick: 2000).
    #[arg(long, default_value_t = 100_000)]
    #[arg(default_value_if("quick", "true", "2000"), value_parser = count::<u64>)]
    live: u64,
    /// Seconds over which the deadlines are spread (quick: 0.2).
    #[arg(long, default_value_t = 1.0)]
    #[arg(default_value_if("quick", "true", "0.2"))]
    window: f64,
    /// Closed-loop readers, a table for each number (default 1,2).
    #[arg(long, value_delimiter = ',', value_name = "N,…", value_parser = threads)]
    readers: Option<Vec<usize>>,
    /// Nobody touches the cache; alone, or as one more table with --readers.
    #[arg(long)]
    idle: bool,
    /// The entries that stay are inserted at random places among the dying instead of before them.
    #[arg(long)]
    interleaved: bool,
    /// Seconds after the last deadline at which the watch is given up (quick: 2).
    #[arg(long, default_value_t = 8.0)]
    #[arg(default_value_if("quick", "true", "2"))]
    watch: f64,
}

const NAME: &str = "caches mass-expiry";

pub(super) fn run(args: &Args) -> Result<Option<Outcome>> {
    let common = &args.common;
    let mut readers = match (&args.readers, args.idle) {
        (Some(readers), _) => readers.clone(),
        (None, true) => Vec::new(),
        (None, false) => vec![1, 2],
    };
    readers.extend(args.idle.then_some(0));
    let sound = |seconds: f64| (0.0..=3_600.0).contains(&seconds);
    ensure!(
        sound(args.window) && sound(args.watch),
        "--window and --watch lie between 0 and 3600 seconds"
    );
    let plan = Plan {
        entries: args.entries,
        live: args.live,
        window_s: args.window,
        tail_s: if common.basics.quick { 0.2 } else { 1.0 },
        watch_s: args.watch,
        interleaved: args.interleaved,
        seed: common.basics.seed,
    };
    let takes_part = |kind: &CacheKind| kind.has_ttl();
    let kinds = args.subjects.kinds().into_iter();
    let (kinds, excluded): (Vec<CacheKind>, Vec<CacheKind>) = kinds.partition(takes_part);
    let experiment = Experiment {
        name: NAME,
        cells: readers.iter().map(|&n| title(&plan, n)).collect(),
        subjects: &|_| kinds.clone(),
        measure: &|kind, cell, _| measure(kind, &plan, readers[cell]),
    };
    let mut outcome = experiment.run(common)?;
    if let Some(outcome) = &mut outcome {
        let note = |kind| format!("{kind} is left out: it has no TTL of an entry's own");
        outcome.notes.extend(excluded.iter().map(note));
    }
    Ok(outcome)
}

fn title(plan: &Plan, readers: usize) -> String {
    let among = if plan.interleaved { " among them" } else { "" };
    let (entries, live, window_s) = (plan.entries, plan.live, plan.window_s);
    let who = match readers {
        0 => "nobody touches the cache".to_owned(),
        1 => "1 reader".to_owned(),
        n => format!("{n} readers"),
    };
    format!("{entries} entries due within {window_s} s, {live} live{among}, {who}")
}

fn measure(kind: CacheKind, plan: &Plan, readers: usize) -> Result<Report> {
    let control = phase::control(plan, kind, readers)?;
    let expiry = phase::expiry(plan, kind, readers, control.populate_ns)?;
    let mut params = json!(plan);
    params["readers"] = json!(readers);
    params["counting_allocator"] = json!(heap::COUNTED);
    let mut report = Report::new(NAME, params).of(kind, kind.version());
    let figures = &mut report.figures;
    if readers > 0 {
        reads(figures, "", &expiry.reads, expiry.read_window_ns);
        reads(figures, "control_", &control.reads, control.read_window_ns);
    }
    reclaim(figures, plan, &control, &expiry);
    if control.misses + expiry.misses > 0 {
        report.notes.push(format!(
            "reads of live keys that missed: {} in the control, {} in the expiry",
            control.misses, expiry.misses
        ));
    }
    Ok(report)
}

fn reclaim(figures: &mut Figures, plan: &Plan, control: &Phase, expiry: &Phase) {
    let watched = &expiry.watched;
    let ms = |ns: Option<i64>| ns.map(|ns| ns as f64 / 1e6);
    let all = (plan.entries + plan.live) as f64;
    // Threads of the cache itself; the control's tell what they take without expiry.
    let wall_ns = control.wall_ns.max(1) as f64;
    let idle = control.background_cpu_ns as f64 / wall_ns;
    let cpu_ns = expiry.background_cpu_ns as f64 - idle * expiry.wall_ns as f64;
    let dead = plan.entries as f64 - watched.dead_left as f64;
    let cpu_per_dead = (dead > 0.0).then(|| cpu_ns / dead);
    let dead_bytes_left = watched.dead_bytes_left.map(|left| left * 100.0);
    figures.push_or_never("dropped_99_ms", ms(watched.dropped_99_ns));
    figures.push_or_never("dropped_all_ms", ms(watched.dropped_all_ns));
    match heap::COUNTED {
        true => figures.push_or_never("bytes_90_ms", ms(watched.bytes_90_ns)),
        false => figures.push("bytes_90_ms", None),
    }
    figures.push("dead_values_left", watched.dead_left as f64);
    figures.push("dead_bytes_left_percent", dead_bytes_left);
    figures.push(
        "bytes_per_entry",
        watched.full_bytes.map(|bytes| bytes as f64 / all),
    );
    figures.push("background_cpu_ns_per_dead", cpu_per_dead);
}

/// The percentiles of one phase.
fn reads(figures: &mut Figures, key: &str, reads: &Latencies, window_ns: u64) {
    let window_s = window_ns.max(1) as f64 / 1e9;
    figures.push(format!("{key}reads_m"), reads.count() as f64 / 1e6);
    figures.push(format!("{key}read_mean_us"), reads.mean_us());
    for (name, value) in reads.percentiles() {
        figures.push(format!("{key}read_{name}_us"), value);
    }
    figures.push(
        format!("{key}over_1ms_per_s"),
        reads.over_1ms as f64 / window_s,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One share at a time: the living are counted for the whole process.
    #[test]
    fn a_cache_with_a_thread_drops_all_its_dead_whether_it_is_read_or_not() {
        for (interleaved, kind, readers, watch_s) in [
            (false, CacheKind::Tidewheel, 0, 0.5),
            (true, CacheKind::Tidewheel, 1, 0.5),
            // Its slots are emptied once a second.
            (true, CacheKind::SlotWheel, 1, 2.5),
        ] {
            let plan = Plan {
                entries: 3_000,
                live: 500,
                window_s: 0.1,
                tail_s: 0.1,
                watch_s,
                interleaved,
                seed: 3,
            };
            let report = measure(kind, &plan, readers).expect("measures");
            let value = |key: &str| report.figures.value(key);
            assert_eq!(value("dead_values_left"), Some(0.0), "{kind} {readers}");
            assert!(value("dropped_all_ms").is_some(), "{kind} {readers}");
            assert_eq!(value("read_p50_us").is_some(), readers == 1, "{kind}");
            assert_eq!(report.notes, Vec::<String>::new(), "{kind} {readers}");
        }
    }
}
