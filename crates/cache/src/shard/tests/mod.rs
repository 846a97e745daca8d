//! A shard alone, in virtual time: random calls, compared with a naive model after each.

mod calls;
mod flying;
mod truth;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use self::calls::{Call, Setup};
use self::world::run;
use crate::planted::{Fault, PLANTED};

/// Random bits, from which a call takes what it needs.
struct Bits(u64);

impl Bits {
    /// One of the numbers below `most`.
    fn below(&mut self, most: u64) -> u64 {
        let taken = self.0 % most;
        self.0 /= most;
        taken
    }

    fn flip(&mut self) -> bool {
        self.below(2) == 1
    }
}

fn check(cases: u32, shrinks: u32) -> Result<(), String> {
    let calls = prop::collection::vec(
        any::<u64>().prop_map(|bits| Call::of(&mut Bits(bits))),
        1..150,
    );
    let setup = any::<u64>().prop_map(|bits| Setup::of(&mut Bits(bits)));
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: shrinks,
        ..Config::default()
    };
    let test = |(setup, calls): (Setup, Vec<Call>)| {
        run(&setup, &calls);
        Ok(())
    };
    let failed = TestRunner::new(config).run(&(setup, calls), test);
    failed.map_err(|failed| failed.to_string())
}

#[test]
fn a_shard_behaves_like_its_model() {
    let cases = std::env::var("PROPTEST_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse().ok()).unwrap_or(200);
    check(cases, 4000).unwrap_or_else(|failed| panic!("{failed}"));
}

/// Each takes a few hundredths of a second.
#[test]
fn each_planted_fault_is_found() {
    let faults = [
        Fault::LazyDelete,
        Fault::Sweep,
        Fault::TwoLeads,
        Fault::EventOrder,
        Fault::WeightLeak,
        Fault::Stale,
    ];
    for fault in faults {
        PLANTED.set(Some(fault));
        let found = catch_unwind(AssertUnwindSafe(|| check(4000, 0)));
        PLANTED.set(None);
        assert!(!matches!(found, Ok(Ok(()))), "{fault:?} is not found");
    }
}
