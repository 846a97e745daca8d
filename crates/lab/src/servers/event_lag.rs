//! How late the `expired` event of each key arrives, measured from the key's own deadline.
//!
//! Deadlines are absolute (SET … PXAT), so that they are exact on the wall clock that server and
//! laboratory share; on another machine the difference of the two clocks is part of every lag.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use serde_json::json;

use super::sized;
use crate::client::{Address, Connection};
use crate::clock::{self, Anchor};
use crate::getter::{Getter, Pick};
use crate::keys::{Key, Kind, Ttl};
use crate::loader::{load, long_ttl};
use crate::proc::{CpuMeter, NoiseMeter};
use crate::progress::Progress;
use crate::report::{Figures, Report};
use crate::resp::Value;
use crate::rng::Rng;
use crate::server::{self, ExpiredEvents, Target};

const CHANNEL: &str = "__keyevent@0__:expired";
/// How often the listening thread looks whether it should end.
const LISTEN: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_millis(50);

/// Options of `event-lag`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Keys whose events are awaited (default 20000).
    #[arg(long)]
    keys: Option<u64>,
    /// Keys with TTLs of 1–2 h that are there as well (default 1000000).
    #[arg(long)]
    background: Option<u64>,
    /// The deadlines lie uniformly in this many seconds (default 20).
    #[arg(long)]
    spread_s: Option<f64>,
    /// Wait this long after the last deadline for events that are missing (default 60).
    #[arg(long)]
    wait_s: Option<f64>,
    /// Seconds from the start of loading the keys to the first deadline.
    #[arg(long, default_value_t = 2.0)]
    lead_s: f64,
    /// Read background keys in a closed loop meanwhile.
    #[arg(long)]
    gets: bool,
    /// Seed of the deadlines.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A small run of a few seconds.
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(args: &Args, target: &Target, progress: &Progress) -> Result<Report> {
    let keys = sized(args.keys, args.quick, 20_000, 500);
    let background = sized(args.background, args.quick, 1_000_000, 0);
    let spread_ms = (sized(args.spread_s, args.quick, 20.0, 1.0) * 1e3).max(1.0) as u64;
    let wait_s = sized(args.wait_s, args.quick, 60.0, 10.0);
    if args.gets && background == 0 {
        bail!("--gets reads background keys, and --background is 0");
    }

    let (mut connection, facts) = server::meet(target)?;
    let mut rng = Rng::new(args.seed);
    let entries = (0..background as usize).map(|id| (Key::live(id as u64), long_ttl(&mut rng)));
    load(
        &mut connection,
        entries,
        "loading background keys",
        progress,
    )?;

    let events = ExpiredEvents::enable(&target.address)?;
    let listener = Listener::start(&target.address)?;
    let base_ms = clock::wall_us() / 1_000 + (args.lead_s * 1e3) as i64;
    let deadlines: Vec<i64> = (0..keys)
        .map(|_| base_ms + rng.below(spread_ms) as i64)
        .collect();
    let entries = deadlines
        .iter()
        .enumerate()
        .map(|(id, &deadline)| (Key::dying(id as u64), Ttl::Pxat(deadline as u64)));
    load(
        &mut connection,
        entries,
        "loading keys that fall due",
        progress,
    )?;
    if clock::wall_us() / 1_000 >= base_ms {
        bail!("loading took until after the first deadline: raise --lead-s");
    }

    let getter = if args.gets {
        let mut rng = Rng::new(args.seed ^ 1);
        let pick = move || Some(Pick::lasting(Key::live(rng.below(background))));
        Some(Getter::start(&target.address, None, pick)?)
    } else {
        None
    };
    let first_ns = Anchor::now().mono_of_wall_us(base_ms * 1_000);
    let last_ns = first_ns + spread_ms * 1_000_000;
    let mut cpu = facts.pid.map(CpuMeter::new);
    clock::sleep_until(first_ns);
    let start_ns = clock::mono_ns();
    let cpu_start = cpu.as_mut().and_then(CpuMeter::read_ns);
    let mut noise = NoiseMeter::start(cpu_start);
    progress.phase("listening for events", keys);
    let give_up_ns = last_ns + (wait_s * 1e9) as u64;
    loop {
        thread::sleep(LOOK);
        let arrived = listener.arrived.load(Ordering::Relaxed);
        progress.set(arrived);
        let now = clock::mono_ns();
        if now >= give_up_ns || (arrived >= keys && now >= last_ns) || listener.has_ended() {
            break;
        }
    }
    let wall_ns = clock::mono_ns() - start_ns;
    let cpu_end = cpu.as_mut().and_then(CpuMeter::read_ns);
    let others_ns = noise.others_ns(cpu_end);
    let seen = getter.map(Getter::finish).transpose()?;
    let heard = listener.finish()?;
    drop(events);
    connection.call(&["FLUSHALL"])?;

    let params = json!({
        "keys": keys,
        "background": background,
        "spread_ms": spread_ms,
        "wait_s": wait_s,
        "gets": args.gets,
        "seed": args.seed,
    });
    let mut report = Report::new("event-lag", Some(facts), params);
    lags(&mut report.figures, &deadlines, &heard);
    let percent = |ns: u64| ns as f64 / wall_ns as f64 * 100.0;
    report.figures.push(
        "server_cpu_percent",
        "server CPU %",
        cpu_start
            .zip(cpu_end)
            .map(|(start, end)| percent(end.saturating_sub(start))),
    );
    let summary = seen.map(|seen| seen.log.within(start_ns, start_ns + wall_ns));
    report
        .figures
        .push("get_p99_us", "GET p99 µs", summary.and_then(|s| s.p99_us));
    report.figures.push(
        "get_p999_us",
        "GET p99.9 µs",
        summary.and_then(|s| s.p999_us),
    );
    report.figures.push(
        "get_max_ms",
        "GET max ms",
        summary.and_then(|s| s.max_us).map(|us| us / 1e3),
    );
    report.figures.push(
        "others_cpu_percent",
        "noise: others' CPU, % of a core",
        others_ns.map(percent),
    );
    Ok(report)
}

/// One event: which key, and the wall time at which it was read.
type Event = (u64, i64);

fn lags(figures: &mut Figures, deadlines_ms: &[i64], events: &[Event]) {
    let mut first_at: Vec<Option<i64>> = vec![None; deadlines_ms.len()];
    let mut again = 0_u64;
    for &(id, at_us) in events {
        match first_at.get_mut(id as usize) {
            Some(slot @ None) => *slot = Some(at_us),
            // A second event for a key, or one for a key that was never set.
            _ => again += 1,
        }
    }
    let mut lags_us: Vec<i64> = first_at
        .iter()
        .zip(deadlines_ms)
        .filter_map(|(at, deadline)| at.map(|at_us| at_us - deadline * 1_000))
        .collect();
    lags_us.sort_unstable();
    let arrived = lags_us.len();
    let early = lags_us.iter().filter(|&&lag| lag < 0).count();
    let at = |q: f64| crate::stats::quantile(&lags_us, q).map(|us| us as f64 / 1e3);
    figures.push("keys", "keys", deadlines_ms.len() as f64);
    figures.push("arrived", "events arrived", arrived as f64);
    figures.push(
        "never_arrived",
        "never arrived",
        (deadlines_ms.len() - arrived) as f64,
    );
    figures.push("early", "early", early as f64);
    figures.push("events_repeated", "events repeated", again as f64);
    for (key, label, q) in [
        ("lag_min_ms", "lag min ms", 0.0),
        ("lag_p50_ms", "lag p50 ms", 0.5),
        ("lag_p99_ms", "lag p99 ms", 0.99),
        ("lag_p999_ms", "lag p99.9 ms", 0.999),
        ("lag_max_ms", "lag max ms", 1.0),
    ] {
        figures.push(key, label, at(q));
    }
    let over = |us: i64| lags_us.iter().filter(|&&lag| lag > us).count() as f64;
    figures.push("lag_over_1ms", "events later than 1 ms", over(1_000));
    figures.push("lag_over_10ms", "events later than 10 ms", over(10_000));
}

/// The subscribed connection and the thread that reads it.
#[derive(Debug)]
struct Listener {
    stop: Arc<AtomicBool>,
    arrived: Arc<AtomicU64>,
    thread: JoinHandle<Result<Vec<Event>>>,
}

impl Listener {
    fn start(address: &Address) -> Result<Self> {
        let mut connection = Connection::open(address)?;
        connection.call(&["SUBSCRIBE", CHANNEL])?;
        connection.set_patience(LISTEN)?;
        let stop = Arc::new(AtomicBool::new(false));
        let arrived = Arc::new(AtomicU64::new(0));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&arrived));
        let thread = thread::Builder::new()
            .name("listener".to_owned())
            .spawn(move || {
                let mut events = Vec::new();
                while !stopped.load(Ordering::Relaxed) {
                    let Some(message) = connection.try_receive()? else {
                        continue;
                    };
                    let at_us = clock::wall_us();
                    if let Some(id) = event_id(&message) {
                        events.push((id, at_us));
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(events)
            })?;
        Ok(Self {
            stop,
            arrived,
            thread,
        })
    }

    /// Whether the connection broke: [`Self::finish`] will tell why.
    fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    fn finish(self) -> Result<Vec<Event>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| anyhow!("the thread that listens panicked"))?
    }
}

/// The number of the dying key that a message speaks of.
fn event_id(message: &Value) -> Option<u64> {
    let Value::Array(items) = message else {
        return None;
    };
    let [Value::Bulk(Some(kind)), _, Value::Bulk(Some(key))] = items.as_slice() else {
        return None;
    };
    let key = Key::parse(key)?;
    (kind == b"message" && key.kind == Kind::Dying).then_some(key.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lag_runs_from_each_keys_own_deadline() {
        let mut figures = Figures::default();
        // Deadlines 10, 20, 30, 40 ms; the second is early, the third comes twice, the last never.
        lags(
            &mut figures,
            &[10, 20, 30, 40],
            &[(1, 19_999), (0, 10_500), (2, 45_000), (2, 46_000)],
        );
        for (key, value) in [
            ("keys", 4.0),
            ("arrived", 3.0),
            ("never_arrived", 1.0),
            ("early", 1.0),
            ("events_repeated", 1.0),
            ("lag_min_ms", -0.001),
            ("lag_p50_ms", 0.5),
            ("lag_max_ms", 15.0),
            ("lag_over_1ms", 1.0),
            ("lag_over_10ms", 1.0),
        ] {
            assert_eq!(figures.value(key), Some(value), "{key}");
        }
    }

    #[test]
    fn only_messages_about_dying_keys_are_events() {
        let message = |kind: &str, key: &[u8]| {
            Value::Array(vec![
                Value::Bulk(Some(kind.into())),
                Value::Bulk(Some(CHANNEL.into())),
                Value::Bulk(Some(key.to_vec())),
            ])
        };
        assert_eq!(
            event_id(&message("message", &Key::dying(5).bytes())),
            Some(5)
        );
        assert_eq!(event_id(&message("message", &Key::live(5).bytes())), None);
        assert_eq!(event_id(&message("pmessage", &Key::dying(5).bytes())), None);
        assert_eq!(event_id(&Value::Integer(1)), None);
    }
}
