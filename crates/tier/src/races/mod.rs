//! Races from seeds run processes, an engine and the network, one step at a time.
//!
//! Each seed deals out steps in another order: a request arrives, a reply arrives, an invalidation
//! message arrives, a connection breaks, a loader goes on. In the end everything is delivered. Then
//! no process may hold what the engine would not say.
//!
//! Each rule of `core/mod.rs` is switched off once: then the same test must fail.

mod dice;
mod script;
mod stage;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::core::faults::{Fault, planted};
use script::{Scenario, run};

/// Seeds of a run, unless `TIDEWHEEL_SEEDS` says how many.
const SEEDS: u64 = 1_000;

/// Seeds within which a planted fault must be found.
const SEEDS_OF_A_FAULT: u64 = 20_000;

fn seeds() -> u64 {
    let seeds = std::env::var("TIDEWHEEL_SEEDS").ok();
    seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(SEEDS)
}

/// The first seed that fails, if one does.
fn first_failure(scenario: Scenario, fault: Option<Fault>, seeds: u64) -> Option<(u64, String)> {
    (0..seeds).find_map(|seed| {
        let result = planted(fault, || run(scenario, fault, seed));
        result.err().map(|what| (seed, what))
    })
}

fn holds(scenario: Scenario) {
    if let Some((seed, what)) = first_failure(scenario, None, seeds()) {
        panic!("{scenario:?}, seed {seed}: {what}");
    }
}

/// Some seed must fail with a rule switched off.
fn is_needed(scenario: Scenario, fault: Fault) {
    let found = catch_unwind(AssertUnwindSafe(|| {
        first_failure(scenario, Some(fault), SEEDS_OF_A_FAULT)
    }));
    // A planted fault may also break an assertion of the code.
    assert!(
        !matches!(found, Ok(None)),
        "{fault:?} can be switched off, and no seed of {SEEDS_OF_A_FAULT} notices"
    );
}

#[test]
fn no_process_holds_an_old_value_when_all_is_quiet() {
    holds(Scenario::Changes);
}

#[test]
fn nor_when_one_key_is_written_again_and_again() {
    holds(Scenario::Rewrites);
}

#[test]
fn nor_when_connections_break() {
    holds(Scenario::Breaks);
}

#[test]
fn nor_when_slots_move() {
    holds(Scenario::Moves);
}

#[test]
fn nor_when_a_replica_takes_over_that_lacks_the_last_writes() {
    holds(Scenario::Failovers);
}

#[test]
fn nor_when_a_server_that_has_handed_over_goes_on_answering() {
    holds(Scenario::Handovers);
}

#[test]
fn nor_when_a_replica_is_promoted_while_the_primary_goes_on_taking_writes() {
    holds(Scenario::Promotions);
}

macro_rules! needed {
    ($($name:ident: $scenario:ident, $fault:ident;)*) => {$(
        #[test]
        fn $name() {
            is_needed(Scenario::$scenario, Fault::$fault);
        }
    )*};
}

needed! {
    h1_a_fill_token_is_needed: Changes, H1;
    h2_a_broken_connection_ends_its_watch: Breaks, H2;
    h3_all_keys_and_flushes_are_needed: Changes, H3;
    h4_a_life_begins_when_the_question_is_sent: Changes, H4;
    h5_value_and_time_to_live_are_of_one_version: Rewrites, H5;
    h6_no_clock_of_another_machine: Changes, H6;
    h7_only_the_holder_of_the_lease_fills: Changes, H7;
    h8_a_failover_ends_every_watch: Failovers, H8;
    h9_a_moved_slot_ends_every_watch: Moves, H9;
    h10_replicas_are_not_read: Changes, H10;
    h11_absences_are_entries_like_others: Changes, H11;
    h13_only_answers_of_the_watched_server_are_kept: Handovers, H13;
    h14_what_a_failover_loses_is_repeated: Promotions, H14;
}
