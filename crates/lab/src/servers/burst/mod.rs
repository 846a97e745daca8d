//! A burst of deadlines: many keys are due within a short window, while others stay.
//!
//! `mass-expiry` and `sparse` are this experiment with different sizes. Keys that stay are read by
//! one closed loop; the dying are touched by nobody. A second connection asks at a steady, modest
//! rate how many keys there are and how much memory they take, from well before the first
//! deadline on, so that its cost is in the figures "before" as much as in those after.

use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::json;

use self::figures::{Course, figures};
use self::plan::{Plan, Survivors};
use self::watch::{Release, watch};
use crate::clock::{self, Moment};
use crate::proc::{self, Meter};
use crate::report::Report;
use crate::rng::Rng;
use crate::schedule::Schedule;
use crate::servers::background::Background;
use crate::servers::getter::{self, Seen};
use crate::servers::keys::{Key, Ttl};
use crate::servers::loader::{load, long_ttl};
use crate::servers::server::{self, Target};

pub(super) use self::plan::Args;

mod figures;
mod plan;
mod watch;

/// The reader's first half second warms caches and counts for nothing.
const WARM_UP_NS: u64 = 500_000_000;
const NS_PER_S: f64 = 1e9;

pub(crate) fn run(plan: &Plan, target: Target) -> Result<Report> {
    let (mut connection, facts) = server::meet(target)?;
    let rss = || proc::rss_bytes(target.pid);
    let rest = Duration::from_secs_f64(plan.rest_s);
    let mut rng = Rng::new(plan.args.basics.seed);
    let empty = rss();

    let live_entry = |id: u64, rng: &mut Rng| match plan.mass {
        true => (Key::live(id), Ttl::None),
        false => (Key::live(id), long_ttl(rng)),
    };
    let mut live_only = None;
    if plan.args.survivors == Survivors::First {
        let entries = (0..plan.live).map(|id| live_entry(id, &mut rng));
        load(&mut connection, entries, "loading keys that stay")?;
        thread::sleep(rest);
        live_only = rss();
    }

    let offsets: Vec<u32> = (0..plan.dying)
        .map(|_| rng.below(plan.window_ms) as u32)
        .collect();
    let base = Moment::ahead(plan.lead_s());
    let schedule = Schedule::new(base.mono_ns, offsets.clone());
    let dying_entry = |id: u64| {
        let deadline = base.wall_ms + u64::from(offsets[id as usize]);
        (Key::dying(id), Ttl::Pxat(deadline))
    };
    let load_s = match plan.args.survivors {
        Survivors::First => {
            let entries = (0..plan.dying).map(dying_entry);
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
    thread::sleep(rest);
    let loaded = rss();
    let start_ns = clock::mono_ns();
    if start_ns + (plan.before_s * NS_PER_S) as u64 > schedule.first_ns {
        bail!("loading took {load_s:.1} s and the first deadline came too soon: raise --lead-s");
    }

    let (live, mut rng) = (plan.live, Rng::new(plan.args.basics.seed ^ 1));
    let pick = move || Key::live(rng.below(live));
    let reads = !plan.args.no_gets && live > 0;
    let getter = reads.then(|| getter::start(target.port, pick));
    let getter = getter.transpose()?;
    let before_ns = start_ns + WARM_UP_NS.min((plan.before_s * NS_PER_S / 2.0) as u64);
    let mut meter = Meter::start(target.pid);
    let release = Release::new((plan.dying, plan.live), empty, live_only, loaded);
    let polls = watch(
        plan,
        &mut connection,
        (target.pid, &mut meter),
        &schedule,
        &release,
    )?;
    let seen = getter.map(Background::finish).transpose()?;
    let seen = seen.unwrap_or_default();
    let taken = meter.read();
    let expired = server::info_number(&mut connection, "stats", "expired_keys");

    let name = if plan.mass { "mass-expiry" } else { "sparse" };
    let mut report = facts.report(name, json!(plan));
    let course = Course {
        plan,
        schedule: &schedule,
        polls: &polls,
        seen: &seen,
        before_ns,
        release: &release,
        expired,
        taken,
    };
    report.figures = figures(&course);
    let Seen { missing, wrong, .. } = seen;
    if missing + wrong > 0 {
        let faults = format!("{missing} GETs of keys that stay found nothing");
        let note = format!("{faults}, {wrong} found a wrong value");
        report.notes.push(note);
    }
    Ok(report)
}
