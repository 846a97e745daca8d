//! A server that logs to a simulated disk, in virtual time: it crashes at any moment, and what is
//! there afterwards is compared with what its clients were told.
//!
//! An episode has several lives of a server on one disk, each with other loops, shards, hashes and
//! settings. Each step a client says or sends something, a loop has a turn, or one of the log's
//! threads does its next step; the disk fails, becomes full and well again; the wall clock is
//! stepped. A life ends because the process is killed (the machine goes on) or the power goes
//! (what was not synced is lost or torn).
//!
//! What must hold after each crash:
//!
//! - The frames on disk are a beginning of what was taken to be written, byte by byte. It is as
//!   long as what any client was told of, if replies wait for the disk: its own changes, what it
//!   has read, messages and events.
//! - The data are those that these records make in another keyspace: values, deadlines, libraries.
//! - Engine time has gone on as if the server had run on. After a start of the machine, as the wall
//!   clock says.
//! - Accounts have their sum, and what was popped for a client is not there again.
//! - At rest, without faults, the log is well again, and all is on disk.
//!
//! | file | idea |
//! |---|---|
//! | `world.rs` | lives one after another |
//! | `life.rs` | one of them, with the steps of its threads |
//! | `people.rs` | clients, and what they were told |
//! | `first.rs` | a log that begins with a snapshot |
//! | `ledger.rs` | records: all, those that somebody depends on, those on disk |

mod first;
mod ledger;
mod life;
mod people;
mod world;

use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tidewheel_keyspace::plant_forgetting;

use self::world::{Done, World};
use super::episodes::number;
use super::is_deep;
use crate::time::clock::Clock;

const STEPS: u64 = 75_000;
const STEPS_DEEP: u64 = 1_000_000;
const STEPS_PER_EPISODE: u64 = 2_500;

/// A fault that a test plants, to see that it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plant {
    Nothing,
    /// Replies leave before their records are on disk.
    HoldsNothing,
    /// A base does not keep what changes before it is walked over.
    ForgetsBefore,
    /// A second is lost between two servers.
    WrongAnchor,
    /// A base shows another moment than the cut of the records.
    LateCut,
    /// After a failed sync frames follow without a new base.
    HidesFailure,
}

fn episode(seed: u64, plant: Plant) -> Result<Done, String> {
    let run = || -> Result<Done, String> {
        let mut world = World::new(seed, plant)?;
        for step in 0..STEPS_PER_EPISODE {
            world.step().map_err(|why| format!("step {step}: {why}"))?;
        }
        world.crash().map_err(|why| format!("at the end: {why}"))?;
        Ok(world.done)
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|why| {
        let text = why.downcast_ref::<String>();
        Err(text.map_or("a panic", |text| text.as_str()).to_owned())
    })
}

#[test]
fn a_crash_takes_nothing_that_a_client_was_told() {
    if let Some(seed) = number("TIDEWHEEL_SIMULATION_SEED") {
        println!("{:?}", episode(seed, Plant::Nothing));
        return;
    }
    let mut done = Done::default();
    let steps = if is_deep() { STEPS_DEEP } else { STEPS };
    let episodes = steps / STEPS_PER_EPISODE;
    for seed in 0..episodes {
        match episode(seed, Plant::Nothing) {
            Ok(of) => done.add(&of),
            Err(why) => panic!("TIDEWHEEL_SIMULATION_SEED={seed}: {why}"),
        }
    }
    println!("{done:?}");
    assert!(done.commands > steps / 5 && done.crashes > episodes && done.kills > episodes);
    assert!(done.bases > episodes / 2 && done.healed > episodes / 2);
    for count in [
        done.poisoned,
        done.full,
        done.lost,
        done.evicted,
        done.failed,
    ] {
        assert!(count > episodes / 4, "not everything is reached: {done:?}");
    }
}

/// What a new base would have held counted before the base was there.
#[test]
fn after_a_failed_sync_nothing_counts_before_the_base_that_replaces_it() {
    episode(8_520_393_162_200_662_215, Plant::Nothing).expect("nothing is taken");
}

/// The base lacked a key that had died since it began, and after the crash it was not yet time.
#[test]
fn a_base_is_not_put_in_force_when_its_own_segment_could_not_be_synced() {
    episode(4_984_621_666_565_975_473, Plant::Nothing).expect("nothing is taken");
}

/// The moment could not be written, of a base that lacked a key which had died since it began.
#[test]
fn a_base_is_not_put_in_force_when_its_moment_could_not_be_written() {
    episode(3_261_962_458_551_420_484, Plant::Nothing).expect("nothing is taken");
}

#[test]
#[ignore = "runs for an hour"]
fn crashes_take_nothing_for_an_hour() {
    let clock = Clock::start();
    let seconds = number("TIDEWHEEL_SIMULATION_SECONDS").unwrap_or(3_600);
    let ends_ns = clock.monotonic_ns() + seconds * 1_000_000_000;
    let first = RandomState::new().hash_one("disk") >> 1;
    println!("from seed {first}");
    let (mut done, mut seed) = (Done::default(), first);
    while clock.monotonic_ns() < ends_ns {
        match episode(seed, Plant::Nothing) {
            Ok(of) => done.add(&of),
            Err(why) => panic!("TIDEWHEEL_SIMULATION_SEED={seed}: {why}"),
        }
        seed += 1;
    }
    println!("{} episodes, {done:?}", seed - first);
}

#[test]
fn each_planted_fault_is_found() {
    let faults = [
        Plant::HoldsNothing,
        Plant::ForgetsBefore,
        Plant::WrongAnchor,
        Plant::LateCut,
        Plant::HidesFailure,
    ];
    for fault in faults {
        plant_forgetting(fault == Plant::ForgetsBefore);
        let found = (0..40).find_map(|seed| Some((seed, episode(seed, fault).err()?)));
        plant_forgetting(false);
        println!("{fault:?}: {found:.200?}");
        assert!(found.is_some(), "nobody finds {fault:?}");
    }
}
