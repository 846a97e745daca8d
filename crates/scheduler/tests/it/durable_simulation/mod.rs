//! A durable scheduler in a simulated world. A seed decides the order of the threads. The disk
//! tears and reorders writes, the journal fails, and the power fails at any point. Then the next
//! process, called the next *life*, starts with the contents of the disk.
//!
//! The following is checked in every life:
//!
//! - Memory and journal agree, key by key and as a whole, whenever no thread is within a call.
//! - Acknowledged jobs survive, and of each key the job that was set last is pending under it.
//! - No job runs early, while it runs already, with a wrong attempt number, or after it was removed
//!   or replaced.
//! - A run that a crash may have cut off before is noted as failed, once, before it begins.
//! - A job that failed is pending again or a dead letter, in one write. A job ends only if its run
//!   succeeded.
//! - A periodic job keeps its rhythm across failures and crashes.
//! - A stop leaves on disk exactly the jobs that it reports as pending, the dead letters, and the
//!   runs without an end.
//! - In the end every acknowledged job has succeeded, or was ended by a call.
//!
//! Handlers fail, panic, give up and pass their runs on. Clients acknowledge those, or drop them,
//! and re-queue letters.
//!
//! A failure prints the setting that replays it:
//! `TIDEWHEEL_SIM=seed:crash:crash_one_in:failure_one_in`, 0 for none.

mod baton;
mod call;
mod disk;
mod key;
mod life;
mod truth;
mod world;

use baton::Random;
use life::Life;
use world::{Plan, World};

/// Lives of one run; the last one has no faults, and lasts until everything is due.
const LIVES: u64 = 4;

/// Runs a world to its end; returns what it has seen, and how many points there were at which it
/// might have died.
fn run(seed: u64, plan: Plan) -> World {
    let world = World::new(seed, plan);
    for number in 0..LIVES {
        world.truth().restart();
        Life::new(&world, seed ^ (number << 32)).live();
        check(&world, seed, plan);
    }
    world.calm();
    world.truth().restart();
    Life::new(&world, seed).outlive_everything();
    world.truth().nothing_is_lost();
    check(&world, seed, plan);
    world
}

#[track_caller]
fn check(world: &World, seed: u64, plan: Plan) {
    let Some(wrong) = world.truth().wrong.clone() else {
        return;
    };
    let [crash, one_in, failure] =
        [plan.crash_at, plan.crash_one_in, plan.failure_one_in].map(|number| number.unwrap_or(0));
    panic!("{wrong}\nto replay it: TIDEWHEEL_SIM={seed}:{crash}:{one_in}:{failure}");
}

/// True if the deep tier asks for as many seeds as ever: `TIDEWHEEL_DEEP=1`.
fn is_deep() -> bool {
    std::env::var_os("TIDEWHEEL_DEEP").is_some()
}

/// The run that the environment asks to replay.
fn replayed() -> Option<(u64, Plan)> {
    let text = std::env::var("TIDEWHEEL_SIM").ok()?;
    let numbers: Vec<u64> = text
        .split(':')
        .map(|n| n.parse().expect("a number"))
        .collect();
    let number = |at: usize| numbers.get(at).copied().filter(|n| *n > 0);
    let plan = Plan {
        crash_at: number(1),
        crash_one_in: number(2),
        failure_one_in: number(3),
        is_calm: false,
    };
    Some((numbers[0], plan))
}

fn run_or_replay(runs: impl IntoIterator<Item = (u64, Plan)>) {
    match replayed() {
        Some((seed, plan)) => {
            run(seed, plan);
        }
        None => runs
            .into_iter()
            .for_each(|(seed, plan)| drop(run(seed, plan))),
    }
}

#[test]
fn a_crash_at_every_operation_loses_nothing_that_was_acknowledged() {
    let seeds = if is_deep() { 4 } else { 1 };
    let runs = (0..seeds).flat_map(|seed| {
        let points = run(seed, Plan::default()).truth().points;
        assert!(points > 100, "too little happens");
        (1..=points).map(move |point| {
            let plan = Plan {
                crash_at: Some(point),
                ..Plan::default()
            };
            (seed, plan)
        })
    });
    run_or_replay(runs);
}

/// Seeds and what goes wrong under them: crashes alone, failures alone, both, neither.
fn random_runs(seeds: std::ops::Range<u64>) -> impl Iterator<Item = (u64, Plan)> {
    seeds.map(|seed| {
        let mut random = Random::new(!seed);
        let crash = 20 + random.below(200);
        let failure = 20 + random.below(200);
        let plan = Plan {
            crash_at: None,
            crash_one_in: random.one_in(2).then_some(crash),
            failure_one_in: random.one_in(2).then_some(failure),
            is_calm: false,
        };
        (seed, plan)
    })
}

#[test]
fn the_simulation_reaches_what_it_is_about() {
    for what in [
        "another attempt",
        "the start of a run is noted",
        "an acknowledgement",
        "a dead letter",
        "a periodic job goes on",
        "a job waits without its key",
    ] {
        let sees = |seed| run(seed, Plan::default()).truth().seen.get(what) > Some(&0);
        assert!((0..20).filter(|seed| sees(*seed)).count() >= 3, "{what}");
    }
}

#[test]
fn crashes_and_failures_of_the_journal_at_random_lose_nothing_that_was_acknowledged() {
    let seeds = if is_deep() { 1_000 } else { 150 };
    run_or_replay(random_runs(1_000..1_000 + seeds));
}

#[test]
#[ignore = "minutes: run by name"]
fn crashes_and_failures_of_the_journal_at_random_for_long() {
    run_or_replay(random_runs(10_000..60_000));
}
