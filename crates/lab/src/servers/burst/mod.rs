//! A burst of deadlines: many keys due within a short window, beside keys that stay.
//!
//! `mass-expiry` and `sparse` are this experiment with different sizes. Keys that stay are read by
//! one closed loop; the dying are touched by nobody. A second connection asks at a steady, modest
//! rate how many keys there are and how much memory they take, from well before the first
//! deadline on, so that its cost is in the figures "before" as much as in those after.

use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::json;

use self::figures::{Course, figures};
use self::plan::{Plan, Survivors};
use self::watch::{Memory, Release, watch};
use crate::clock::{self, Anchor};
use crate::proc::{self, CpuMeter, NoiseMeter};
use crate::report::Report;
use crate::rng::Rng;
use crate::schedule::Schedule;
use crate::servers::background::Background;
use crate::servers::client::{Address, Connection};
use crate::servers::getter::{self, Pick, Seen};
use crate::servers::keys::{Key, Ttl};
use crate::servers::loader::{load, long_ttl};
use crate::servers::server::{self, Target};

pub(super) use self::plan::{MassExpiry, Sparse};

mod figures;
mod plan;
mod watch;

/// Time for a freshly loaded server to come to rest before its memory is read.
const SETTLE: Duration = Duration::from_millis(500);
/// The reader's first half second warms caches and counts for nothing.
const WARM_UP_NS: u64 = 500_000_000;
const NS_PER_S: f64 = 1e9;

pub(crate) fn run(plan: &Plan, name: &'static str, target: &Target) -> Result<Report> {
    let (mut connection, facts) = server::meet(target)?;
    let pid = facts.pid;
    let mut rng = Rng::new(plan.how.seed);
    let empty = memory(&mut connection, pid);
    let expired_before = expired_keys(&mut connection);

    let live_entry = |id: u64, rng: &mut Rng| {
        (
            Key::live(id),
            if !plan.mass { long_ttl(rng) } else { Ttl::None },
        )
    };
    let mut live_only = None;
    if plan.how.survivors == Survivors::First {
        let entries = (0..plan.live as usize).map(|id| live_entry(id as u64, &mut rng));
        load(&mut connection, entries, "loading keys that stay")?;
        std::thread::sleep(SETTLE);
        live_only = Some(memory(&mut connection, pid));
    }

    let offsets: Vec<u32> = (0..plan.dying)
        .map(|_| rng.below(plan.how.window_ms) as u32)
        .collect();
    let anchor = Anchor::now();
    let base_ms = clock::wall_us() / 1_000 + (plan.lead_s() * 1e3) as i64;
    let base_ns = anchor.mono_of_wall_us(base_ms * 1_000);
    let schedule = Schedule::new(base_ns, offsets.clone());
    let dying_entry = |id: u64| {
        let deadline = base_ms as u64 + u64::from(offsets[id as usize]);
        (Key::dying(id), Ttl::Pxat(deadline))
    };
    let load_s = match plan.how.survivors {
        Survivors::First => {
            let entries = (0..plan.dying as usize).map(|id| dying_entry(id as u64));
            load(&mut connection, entries, "loading keys that fall due")?
        }
        Survivors::Interleaved => {
            let mut order: Vec<u64> = (0..plan.dying + plan.live).collect();
            rng.shuffle(&mut order);
            let entries = order
                .into_iter()
                .map(|id| match id.checked_sub(plan.dying) {
                    Some(live) => live_entry(live, &mut rng),
                    None => dying_entry(id),
                });
            load(&mut connection, entries, "loading all keys, mixed")?
        }
    };
    std::thread::sleep(SETTLE);
    let loaded = memory(&mut connection, pid);
    let start_ns = clock::mono_ns();
    if start_ns + (plan.how.before_s * NS_PER_S) as u64 > schedule.first_ns {
        bail!("loading took {load_s:.1} s and the first deadline came too soon: raise --lead-s");
    }

    let getter = if !plan.how.no_gets && plan.live > 0 {
        Some(start_getter(&target.address, plan)?)
    } else {
        None
    };
    let before_ns = start_ns + WARM_UP_NS.min((plan.how.before_s * NS_PER_S / 2.0) as u64);
    let noise = NoiseMeter::start(pid.and_then(|pid| CpuMeter::new(pid).read_ns()));
    let release = Release::new((plan.dying, plan.live), empty, live_only, loaded);
    let polls = watch(plan, &mut connection, pid, &schedule, &release)?;
    let seen = getter
        .map(Background::finish)
        .transpose()?
        .unwrap_or_default();
    let others_ns = noise.others_ns(polls.last().and_then(|poll| poll.cpu_ns));
    let expired = expired_keys(&mut connection)
        .zip(expired_before)
        .map(|(now, then)| now - then);
    connection.call(&["FLUSHALL"])?;

    let mut report = facts.report(name, json!(plan));
    let course = Course {
        plan,
        schedule: &schedule,
        polls: &polls,
        seen: &seen,
        before_ns,
        empty,
        loaded,
        live_only,
        release: &release,
        load_s,
        expired,
        others_ns,
    };
    report.figures = figures(&course);
    notes(&mut report, &seen);
    Ok(report)
}

fn start_getter(address: &Address, plan: &Plan) -> Result<Background<Seen>> {
    let (live, mut rng) = (plan.live, Rng::new(plan.how.seed ^ 1));
    getter::start(address, None, move || {
        Some(Pick::lasting(Key::live(rng.below(live))))
    })
}

fn notes(report: &mut Report, seen: &Seen) {
    if seen.missing + seen.wrong > 0 {
        report.notes.push(format!(
            "{} GETs of keys that stay found nothing, {} found a wrong value",
            seen.missing, seen.wrong
        ));
    }
    if seen.log.left_out() > 0 {
        report.notes.push(format!(
            "{} GETs were beyond the log's cap",
            seen.log.left_out()
        ));
    }
}

fn expired_keys(connection: &mut Connection) -> Option<f64> {
    server::info_number(connection, "stats", "expired_keys")
}

fn memory(connection: &mut Connection, pid: Option<u32>) -> Memory {
    Memory {
        rss_bytes: pid.and_then(proc::rss_bytes),
        used_bytes: server::info_number(connection, "memory", "used_memory"),
    }
}
