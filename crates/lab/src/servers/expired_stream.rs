//! Expired keys that become entries of a stream: whether all are there, and how late.
//!
//! A million keys are due within one second, while one closed loop GETs keys that stay. Then the
//! stream is read from its start. `--off` is the same without a stream.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::json;
use tidewheel_resp::Reply;

use crate::clock::{self, Moment};
use crate::latency::Latencies;
use crate::proc::Meter;
use crate::progress;
use crate::report::{Figures, Report};
use crate::rng::Rng;
use crate::runner::Basics;
use crate::servers::background::Background;
use crate::servers::client::Connection;
use crate::servers::getter;
use crate::servers::keys::{Key, Ttl};
use crate::servers::loader::{load, load_s};
use crate::servers::server::{self, Target};

const NAME: &str = "expired";
const PAGE: &str = "10000";
const LOOK: Duration = Duration::from_millis(20);

/// Options of `expired-stream`.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub(crate) struct Args {
    /// Keys that are due (quick: 20000).
    #[arg(long, default_value_t = 1_000_000)]
    #[arg(default_value_if("quick", "true", "20000"))]
    keys: u64,
    /// Keys that stay, and are read.
    #[arg(long, default_value_t = 100_000)]
    #[arg(default_value_if("quick", "true", "2000"))]
    live: u64,
    /// Entries have values.
    #[arg(long)]
    values: bool,
    /// Without a stream.
    #[arg(long)]
    off: bool,
    /// Do not read meanwhile.
    #[arg(long)]
    no_gets: bool,
    #[command(flatten)]
    #[serde(flatten)]
    basics: Basics,
}

pub(crate) fn run(args: &Args, target: Target) -> Result<Report> {
    let (window_ms, before_s, wait_s) = match args.basics.quick {
        true => (300, 0.5, 5),
        false => (1_000, 3.0, 60),
    };
    let (mut connection, facts) = server::meet(target)?;
    if !args.off {
        let values = if args.values { " values" } else { "" };
        let stream = format!("0 {NAME} {}{values}", args.keys * 2);
        connection.call(&["CONFIG", "SET", "expired-stream", &stream])?;
    }
    let entries = (0..args.live).map(|id| (Key::live(id), Ttl::None));
    load(&mut connection, entries, "loading keys that stay")?;
    let mut rng = Rng::new(args.basics.seed);
    let first = Moment::ahead(before_s + 2.0 + load_s(args.keys));
    let deadlines: Vec<u64> = (0..args.keys)
        .map(|_| first.wall_ms + rng.below(window_ms))
        .collect();
    let entries = (0..).zip(&deadlines);
    let entries = entries.map(|(id, &deadline)| (Key::dying(id), Ttl::Pxat(deadline)));
    load(&mut connection, entries, "loading keys that fall due")?;
    let start_ns = clock::mono_ns();
    if start_ns + (before_s * 1e9) as u64 > first.mono_ns {
        bail!("loading took until too near the first deadline");
    }

    let (live, mut picks) = (args.live, Rng::new(args.basics.seed ^ 1));
    let pick = move || Key::live(picks.below(live));
    let getter = (!args.no_gets).then(|| getter::start(target.port, pick));
    let getter = getter.transpose()?;
    let last_ns = first.mono_ns + window_ms * 1_000_000;
    clock::sleep_until(first.mono_ns);
    progress::say("everything falls due");
    let mut meter = Meter::start(target.pid);
    clock::sleep_until(last_ns);
    let stays = args.live + u64::from(!args.off);
    let give_up_ns = last_ns + wait_s * 1_000_000_000;
    while server::dbsize(&mut connection)? > stays && clock::mono_ns() < give_up_ns {
        thread::sleep(LOOK);
    }
    let gone_ns = clock::mono_ns();
    let taken = meter.read();
    thread::sleep(Duration::from_millis(200));
    let seen = getter.map(Background::finish).transpose()?;

    let mut report = facts.report("expired-stream", json!(args));
    let figures = &mut report.figures;
    let warm_ns = start_ns + 500_000_000;
    if let Some(seen) = seen {
        latencies(figures, "before", &seen.log.within(warm_ns, first.mono_ns));
        let window = seen.log.touching(first.mono_ns, last_ns);
        latencies(figures, "in_window", &window);
    }
    let gone_ms = (gone_ns as f64 - last_ns as f64) / 1e6;
    figures.push("keys_gone_ms", gone_ms);
    if !args.off {
        let told = read_stream(&mut connection)?;
        entries_of(figures, &deadlines, &told);
    }
    let per_key = |ns: f64| ns / 1e3 / args.keys.max(1) as f64;
    figures.push("server_cpu_us_per_key", taken.server_ns.map(per_key));
    figures.push_noise(taken);
    Ok(report)
}

fn latencies(figures: &mut Figures, name: &str, gets: &Latencies) {
    for (figure, quantile) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)] {
        figures.push(format!("get_{figure}_us_{name}"), gets.at_us(quantile));
    }
    figures.push(format!("get_max_ms_{name}"), gets.max_ms());
}

/// One entry, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Told {
    id: u64,
    appended: u64,
    deadline: u64,
    fired: u64,
}

fn read_stream(connection: &mut Connection) -> Result<Vec<Told>> {
    progress::say("reading the stream");
    let mut all = Vec::new();
    let mut from = "-".to_owned();
    loop {
        let page = connection.call(&["XRANGE", NAME, &from, "+", "COUNT", PAGE])?;
        let Reply::Array(entries) = page else {
            bail!("XRANGE was answered with {page:?}");
        };
        let Some(last) = entries.last() else {
            return Ok(all);
        };
        from = format!("({}", parts(last).context("an entry has an id")?.0);
        for entry in &entries {
            all.push(told(entry).with_context(|| format!("cannot read {entry:?}"))?);
        }
    }
}

fn parts(entry: &Reply) -> Option<(&str, &[Reply])> {
    match entry {
        Reply::Array(parts) => match parts.as_slice() {
            [Reply::Bulk(id), Reply::Array(words)] => Some((std::str::from_utf8(id).ok()?, words)),
            _ => None,
        },
        _ => None,
    }
}

fn told(entry: &Reply) -> Option<Told> {
    let (id, words) = parts(entry)?;
    let word = |at: usize| match words.get(at) {
        Some(Reply::Bulk(word)) => Some(word.as_slice()),
        _ => None,
    };
    let number = |at: usize| std::str::from_utf8(word(at)?).ok()?.parse().ok();
    Some(Told {
        id: Key::dying_id(word(1)?)?,
        appended: id.split('-').next()?.parse().ok()?,
        deadline: number(3)?,
        fired: number(5)?,
    })
}

fn entries_of(figures: &mut Figures, deadlines: &[u64], told: &[Told]) {
    let mut times = vec![0_u32; deadlines.len()];
    let (mut wrong, mut early) = (0_u64, 0_u64);
    let (mut fired, mut appended) = (Vec::new(), Vec::new());
    for one in told {
        match deadlines.get(one.id as usize) {
            Some(deadline) if *deadline == one.deadline => times[one.id as usize] += 1,
            _ => wrong += 1,
        }
        early += u64::from(one.fired < one.deadline || one.appended < one.deadline);
        fired.push(one.fired.saturating_sub(one.deadline));
        appended.push(one.appended.saturating_sub(one.deadline));
    }
    let count = |of: fn(u32) -> bool| times.iter().filter(|n| of(**n)).count() as f64;
    figures.push("entries", told.len() as f64);
    figures.push("keys_told_once", count(|n| n == 1));
    figures.push("keys_never_told", count(|n| n == 0));
    figures.push("keys_told_again", count(|n| n > 1));
    figures.push("entries_wrong", wrong as f64);
    figures.push("entries_early", early as f64);
    for (name, mut late) in [("fired", fired), ("appended", appended)] {
        late.sort_unstable();
        let at = |q: f64| crate::stats::quantile(&late, q).map(|ms| ms as f64);
        figures.push(format!("{name}_late_p50_ms"), at(0.5));
        figures.push(format!("{name}_late_p99_ms"), at(0.99));
        figures.push(format!("{name}_late_max_ms"), at(1.0));
    }
    let last = told.iter().map(|one| one.appended).max();
    let after = last.zip(deadlines.iter().max());
    let after = after.map(|(last, deadline)| last as f64 - *deadline as f64);
    figures.push("last_entry_after_last_deadline_ms", after);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_counted_by_key_and_late_by_their_deadline() {
        let told = |id, deadline, fired, appended| Told {
            id,
            appended,
            deadline,
            fired,
        };
        let mut figures = Figures::default();
        // The second is told twice, the third never, and one has another deadline.
        let all = [
            told(0, 10, 10, 12),
            told(1, 20, 19, 25),
            told(1, 20, 21, 21),
            told(3, 41, 41, 41),
        ];
        entries_of(&mut figures, &[10, 20, 30, 40], &all);
        for (key, value) in [
            ("entries", 4.0),
            ("keys_told_once", 1.0),
            ("keys_told_again", 1.0),
            ("keys_never_told", 2.0),
            ("entries_wrong", 1.0),
            ("entries_early", 1.0),
            ("fired_late_max_ms", 1.0),
            ("appended_late_max_ms", 5.0),
            ("last_entry_after_last_deadline_ms", 1.0),
        ] {
            assert_eq!(figures.value(key), Some(value), "{key}");
        }
    }
}
