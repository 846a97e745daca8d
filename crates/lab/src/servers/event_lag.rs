//! Measures the delay of each key's `expired` event from the key's own deadline.
//!
//! Deadlines are absolute (SET … PXAT), so that they are exact on the wall clock that server and
//! laboratory share; on another machine the difference of the two clocks is part of every lag.

use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::json;
use tidewheel_resp::Reply;

use crate::clock::{self, Moment};
use crate::proc::Meter;
use crate::progress;
use crate::report::{Figures, Report};
use crate::rng::Rng;
use crate::runner::Basics;
use crate::servers::background::Background;
use crate::servers::client::Connection;
use crate::servers::keys::{Key, Ttl};
use crate::servers::loader::{load, load_s, long_ttl};
use crate::servers::server::{self, Target};

const CHANNEL: &str = "__keyevent@0__:expired";
/// The interval at which the listening thread checks whether it should end.
const LISTEN: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_millis(50);

/// Options of `event-lag`.
#[derive(Clone, Debug, clap::Args, Serialize)]
pub(crate) struct Args {
    /// Keys whose events are awaited (quick: 500).
    #[arg(long, default_value_t = 20_000)]
    #[arg(default_value_if("quick", "true", "500"))]
    keys: u64,
    /// Keys with TTLs of 1–2 h that are there as well (quick: none).
    #[arg(long, default_value_t = 1_000_000)]
    #[arg(default_value_if("quick", "true", "0"))]
    background: u64,
    #[command(flatten)]
    #[serde(flatten)]
    basics: Basics,
}

pub(crate) fn run(args: &Args, target: Target) -> Result<Report> {
    let &Args {
        keys, background, ..
    } = args;
    // From the start of loading to the first deadline, beside the time that loading takes; the
    // milliseconds in which the deadlines lie; and how long missing events are awaited.
    let (lead_s, spread_ms, wait_s) = match args.basics.quick {
        true => (0.5, 500, 10),
        false => (2.0, 20_000, 60),
    };
    let (mut connection, facts) = server::meet(target)?;
    let mut rng = Rng::new(args.basics.seed);
    let entries = (0..background).map(|id| (Key::live(id), long_ttl(&mut rng)));
    load(&mut connection, entries, "loading background keys")?;

    connection.call(&["CONFIG", "SET", "notify-keyspace-events", "Ex"])?;
    let arrived = Arc::new(AtomicU64::new(0));
    let listener = listen(target.port, &arrived)?;
    let start = Moment::ahead(lead_s + load_s(keys));
    let deadlines: Vec<u64> = (0..keys)
        .map(|_| start.wall_ms + rng.below(spread_ms))
        .collect();
    let entries = (0..).zip(&deadlines);
    let entries = entries.map(|(id, &deadline)| (Key::dying(id), Ttl::Pxat(deadline)));
    load(&mut connection, entries, "loading keys that fall due")?;
    if clock::mono_ns() >= start.mono_ns {
        bail!("loading took until after the first deadline");
    }

    let last_ns = start.mono_ns + spread_ms * 1_000_000;
    clock::sleep_until(start.mono_ns);
    let mut meter = Meter::start(target.pid);
    progress::say("listening for events");
    let give_up_ns = last_ns + wait_s * 1_000_000_000;
    loop {
        thread::sleep(LOOK);
        let arrived = arrived.load(Ordering::Relaxed);
        let now = clock::mono_ns();
        if now >= give_up_ns || (arrived >= keys && now >= last_ns) || listener.has_ended() {
            break;
        }
    }
    let taken = meter.read();
    let heard = listener.finish()?;

    let mut report = facts.report("event-lag", json!(args));
    report.params["spread_s"] = json!(spread_ms as f64 / 1e3);
    let figures = &mut report.figures;
    lags(figures, &deadlines, &heard);
    figures.push("server_cpu_percent", taken.server_percent());
    figures.push_noise(taken);
    Ok(report)
}

/// An event: the key, and the wall time at which it was read.
type Event = (u64, i64);

fn lags(figures: &mut Figures, deadlines_ms: &[u64], events: &[Event]) {
    let mut lags_us = BTreeMap::new();
    let mut again = 0_u64;
    for &(id, at_us) in events {
        let deadline_ms = deadlines_ms.get(id as usize);
        let lag_us = deadline_ms.map(|&deadline| at_us - deadline as i64 * 1_000);
        match (lags_us.entry(id), lag_us) {
            (Entry::Vacant(slot), Some(lag_us)) => {
                slot.insert(lag_us);
            }
            // A second event for a key, or one for a key that was never set.
            _ => again += 1,
        }
    }
    let mut lags_us: Vec<i64> = lags_us.into_values().collect();
    lags_us.sort_unstable();
    let arrived = lags_us.len();
    let early = lags_us.iter().filter(|&&lag| lag < 0).count();
    let at = |q: f64| crate::stats::quantile(&lags_us, q).map(|us| us as f64 / 1e3);
    figures.push("keys", deadlines_ms.len() as f64);
    figures.push("arrived", arrived as f64);
    figures.push("never_arrived", (deadlines_ms.len() - arrived) as f64);
    figures.push("early", early as f64);
    figures.push("events_repeated", again as f64);
    figures.push("lag_min_ms", at(0.0));
    figures.push("lag_p50_ms", at(0.5));
    figures.push("lag_p99_ms", at(0.99));
    figures.push("lag_p999_ms", at(0.999));
    figures.push("lag_max_ms", at(1.0));
}

/// Reads a subscribed connection.
fn listen(port: u16, arrived: &Arc<AtomicU64>) -> Result<Background<Vec<Event>>> {
    let mut connection = Connection::open(port)?;
    connection.call(&["SUBSCRIBE", CHANNEL])?;
    connection.set_patience(LISTEN)?;
    let arrived = Arc::clone(arrived);
    Ok(Background::start(move |stop| {
        let mut events = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let Some(message) = connection.try_receive()? else {
                continue;
            };
            let at_us = clock::wall_us();
            if let Some(id) = event_id(&message) {
                events.push((id, at_us));
                arrived.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(events)
    }))
}

/// The number of the dying key that a message speaks of.
fn event_id(message: &Reply) -> Option<u64> {
    match message {
        Reply::Array(items) => match items.as_slice() {
            [Reply::Bulk(kind), _, Reply::Bulk(key)] if kind == b"message" => Key::dying_id(key),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lag_runs_from_each_keys_own_deadline() {
        let mut figures = Figures::default();
        // Deadlines 10, 20, 30, 40 ms; the second is early, the third comes twice, the last never.
        let events = [(1, 19_999), (0, 10_500), (2, 45_000), (2, 46_000)];
        lags(&mut figures, &[10, 20, 30, 40], &events);
        for (key, value) in [
            ("keys", 4.0),
            ("arrived", 3.0),
            ("never_arrived", 1.0),
            ("early", 1.0),
            ("events_repeated", 1.0),
            ("lag_min_ms", -0.001),
            ("lag_p50_ms", 0.5),
            ("lag_max_ms", 15.0),
        ] {
            assert_eq!(figures.value(key), Some(value), "{key}");
        }
    }
}
