//! Running the simulation: 150,000 steps in every build, a million in the deep tier, and hours when
//! somebody asks for them.
//!
//! A failure names the seed of its episode, and `TIDEWHEEL_SIMULATION_SEED=n` runs that one alone.
//! The ignored test goes on from a seed of its own for `TIDEWHEEL_SIMULATION_SECONDS=n`, an hour by
//! default.

use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::done::Done;
use super::is_deep;
use super::world::World;
use crate::time::clock::Clock;

const STEPS: u64 = 150_000;
const STEPS_DEEP: u64 = 1_000_000;
const STEPS_PER_EPISODE: u64 = 5_000;

/// Runs one episode; the failure's message names its seed.
fn episode(seed: u64) -> Done {
    let run = || -> Result<Done, String> {
        let mut world = World::new(seed);
        for step in 0..STEPS_PER_EPISODE {
            world.step().map_err(|why| format!("step {step}: {why}"))?;
        }
        let finished = world.finish();
        finished.map_err(|why| format!("at the end: {why}"))?;
        Ok(world.done)
    };
    let outcome = catch_unwind(AssertUnwindSafe(run));
    let why = match outcome {
        Ok(Ok(done)) => return done,
        Ok(Err(why)) => why,
        Err(_) => "a panic".to_owned(),
    };
    panic!("TIDEWHEEL_SIMULATION_SEED={seed}: {why}");
}

pub(super) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

#[test]
fn every_client_gets_its_own_replies_all_of_them_and_in_order() {
    if let Some(seed) = number("TIDEWHEEL_SIMULATION_SEED") {
        println!("{:?}", episode(seed));
        return;
    }
    let mut done = Done::default();
    let steps = if is_deep() { STEPS_DEEP } else { STEPS };
    for seed in 0..steps / STEPS_PER_EPISODE {
        done.add(&episode(seed));
    }
    println!("{done:?}");
    assert!(done.commands > steps / 4 && done.events > steps / 10);
    assert!(done.closed > steps / 1_000 && done.messages > steps / 100);
    assert!(done.denied > steps / 200 && done.evicted > steps / 1_000);
    assert!(done.given_up > steps / 2_000 && done.scripts > steps / 50);
}

#[test]
#[ignore = "runs for an hour"]
fn every_client_gets_its_own_replies_for_an_hour() {
    let clock = Clock::start();
    let seconds = number("TIDEWHEEL_SIMULATION_SECONDS").unwrap_or(3_600);
    let ends_ns = clock.monotonic_ns() + seconds * 1_000_000_000;
    let first = RandomState::new().hash_one("simulation") >> 1;
    println!("from seed {first}");
    let mut done = Done::default();
    while clock.monotonic_ns() < ends_ns {
        done.add(&episode(first + done.episodes));
        if done.episodes.is_power_of_two() {
            println!("{done:?}");
        }
    }
    println!("{} steps, {done:?}", done.episodes * STEPS_PER_EPISODE);
}
