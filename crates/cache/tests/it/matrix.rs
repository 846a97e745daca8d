//! Each scenario under every configuration: the same script, and what it must show in all of them.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tidewheel::Condition;

use crate::support::load::Load;
use crate::support::op::{At, Life, New, Op, Tags};
use crate::support::setup::Setup;
use crate::support::{check::COMPARED, is_deep, mixed};

/// Of so many configurations one is run, but for the deep tier, which runs all. Thirteen divides
/// none of the matrix's sides, so all of their values come.
const EVERY: usize = 13;

/// Runs a scenario under the matrix of configurations; says which one failed.
fn under_every_configuration(scenario: impl Fn(&Setup, u64) -> Vec<Op>) {
    let before = COMPARED.load(Relaxed);
    let setups = Setup::all();
    let every = if is_deep() { 1 } else { EVERY };
    let mut ran = 0;
    for (number, setup) in setups.iter().enumerate().step_by(every) {
        ran += 1;
        let seed = mixed(number as u64);
        let ops = scenario(setup, seed);
        let told = std::panic::catch_unwind(|| crate::support::run(setup, &ops));
        assert!(told.is_ok(), "under {setup:?}, seed {seed}");
    }
    assert!(COMPARED.load(Relaxed) > before + ran);
}

#[test]
fn random_operations_behave_like_the_model() {
    under_every_configuration(|_, seed| {
        (0..60)
            .map(|step| Op::from_bits(mixed(seed ^ step)))
            .collect()
    });
}

#[test]
fn time_that_stands_still_ends_nothing() {
    under_every_configuration(|_, seed| {
        let mut ops: Vec<Op> = (0..20).map(|key| Op::Insert(key, New::of(1))).collect();
        ops.extend([Op::Pass(3_500_000), Op::Freeze, Op::Drive(1 << 40)]);
        ops.extend((0..20).map(|step| Op::from_bits(mixed(seed ^ step))));
        ops.extend([Op::Resume, Op::Drive(1_000_000)]);
        ops.extend((0..20).map(|step| Op::from_bits(mixed(seed ^ step ^ 99))));
        ops
    });
}

#[test]
fn what_is_read_is_refreshed_and_keeps_its_tags_and_lifetime() {
    under_every_configuration(|_, seed| {
        let mut ops = Vec::new();
        for round in 0..2 {
            let bits = mixed(seed ^ round);
            for key in 0..6 {
                let bits = bits >> (key * 4);
                ops.push(Op::Store(Load {
                    new: New {
                        weight: 1,
                        life: match bits & 3 {
                            0 => Life::For(Duration::from_millis(40)),
                            1 => Life::Forever,
                            2 => Life::Until(At::After(Duration::from_millis(45))),
                            _ => Life::Configured,
                        },
                        tags: Tags(1 << (key % 4)),
                    },
                    fresh: (bits & 12 == 4).then_some(Duration::from_millis(9)),
                    stale: (bits & 12 == 8).then_some(Duration::from_millis(70)),
                    ..Load::of(key)
                }));
            }
            for tick in 0..14 {
                ops.push(Op::Drive(3_000_000));
                let key = (bits >> (tick * 3)) as u16 % 6;
                ops.push(Op::Get(key));
                ops.push(Op::Refresh);
                if tick == 6 {
                    let ttl = Duration::from_millis(30);
                    ops.push(Op::Expire(key, ttl, Condition::Always));
                }
            }
            // What is over is served in place of errors, or not.
            ops.push(Op::Drive(60_000_000));
            ops.extend((0..6).map(|key| {
                Op::Load(Load {
                    succeeds: false,
                    ..Load::of(key)
                })
            }));
            let tag = (bits >> 50) as u8 % 4;
            ops.push(Op::InvalidateTag(tag));
            ops.extend((0..6).map(Op::Get));
        }
        ops
    });
}
