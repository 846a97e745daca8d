//! Random operations on `Tasks` in virtual time, against a map of deadlines.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use proptest::prelude::*;
use tidewheel_scheduler::{CatchUp, Due, Tasks};

#[derive(Debug, Clone)]
enum Op {
    Set {
        key: u8,
        delay: u64,
    },
    Repeat {
        key: u8,
        delay: u64,
        period: u64,
        catch_up: CatchUp,
    },
    Move {
        key: u8,
        delay: u64,
    },
    MoveOrSet {
        key: u8,
        delay: u64,
    },
    Remove {
        key: u8,
    },
    Pass {
        ticks: u64,
        budget: u32,
    },
    Maintain {
        budget: u32,
    },
    Drain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pending {
    value: u32,
    deadline: u64,
    repeats: Option<(u64, CatchUp)>,
}

fn delays() -> impl Strategy<Value = u64> {
    // Around the edges of the wheel's levels, and far beyond them.
    prop_oneof![
        4 => 0..4u64,
        4 => 0..600u64,
        2 => 250..260u64,
        2 => 60_000..70_000u64,
        1 => (1u64 << 32)..(1u64 << 34),
    ]
}

fn policies() -> impl Strategy<Value = CatchUp> {
    prop_oneof![
        Just(CatchUp::Skip),
        (0..4u32).prop_map(CatchUp::Burst),
        Just(CatchUp::Delay),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    let key = 0..12u8;
    prop_oneof![
        6 => (key.clone(), delays()).prop_map(|(key, delay)| Op::Set { key, delay }),
        2 => (key.clone(), delays(), 20..400u64, policies()).prop_map(
            |(key, delay, period, catch_up)| Op::Repeat { key, delay, period, catch_up }
        ),
        6 => (key.clone(), delays()).prop_map(|(key, delay)| Op::Move { key, delay }),
        2 => (key.clone(), delays()).prop_map(|(key, delay)| Op::MoveOrSet { key, delay }),
        3 => key.prop_map(|key| Op::Remove { key }),
        8 => (0..300u64, 1..64u32).prop_map(|(ticks, budget)| Op::Pass { ticks, budget }),
        1 => (60_000..80_000u64).prop_map(|ticks| Op::Pass { ticks, budget: u32::MAX }),
        1 => (1..64u32).prop_map(|budget| Op::Maintain { budget }),
        1 => Just(Op::Drain),
    ]
}

/// The next run of the periodic task, by the words of `CatchUp`: counted run by run.
fn next_run(deadline: u64, now: u64, period: u64, catch_up: CatchUp) -> (u64, u64) {
    let missed_runs = (1..).take_while(|n| deadline + n * period <= now).count() as u64;
    match catch_up {
        CatchUp::Delay => (now + period, missed_runs),
        CatchUp::Skip => (deadline + (missed_runs + 1) * period, missed_runs),
        CatchUp::Burst(most) => {
            let left_out = missed_runs.saturating_sub(u64::from(most));
            (deadline + (left_out + 1) * period, left_out)
        }
        other => panic!("{other:?}"),
    }
}

#[derive(Debug, Default)]
struct Model {
    pending: BTreeMap<u8, Pending>,
    now: u64,
    values: u32,
}

impl Model {
    fn value(&mut self) -> u32 {
        self.values += 1;
        self.values
    }

    fn set(&mut self, key: u8, pending: Pending) -> Option<u32> {
        self.pending.insert(key, pending).map(|old| old.value)
    }

    fn run(&mut self, due: &Due<u8, u32>) {
        let pending = self
            .pending
            .remove(&due.key)
            .expect("what is due was pending");
        assert!(pending.deadline <= self.now, "a task ran early");
        assert_eq!((pending.value, pending.deadline), (due.value, due.deadline));
        let earliest = self.pending.values().map(|other| other.deadline).min();
        // A periodic task that is behind is filed at a deadline that others may have passed.
        let is_plain = self.pending.values().all(|other| other.repeats.is_none());
        if is_plain {
            assert!(
                earliest.is_none_or(|other| other >= pending.deadline),
                "out of order"
            );
        }
        let mut missed = 0;
        if let Some((period, catch_up)) = pending.repeats {
            let (deadline, left_out) = next_run(pending.deadline, self.now, period, catch_up);
            missed = left_out;
            self.pending.insert(
                due.key,
                Pending {
                    deadline,
                    ..pending
                },
            );
        }
        assert_eq!(due.missed, missed);
    }
}

fn apply(tasks: &mut Tasks<u8, u32>, model: &mut Model, op: Op) {
    let now = model.now;
    match op {
        Op::Set { key, delay } => {
            let pending = Pending {
                value: model.value(),
                deadline: now + delay,
                repeats: None,
            };
            let old = tasks.set(key, pending.value, pending.deadline, now);
            assert_eq!(old, model.set(key, pending));
        }
        Op::Repeat {
            key,
            delay,
            period,
            catch_up,
        } => {
            let pending = Pending {
                value: model.value(),
                deadline: now + delay,
                repeats: Some((period, catch_up)),
            };
            let period = NonZeroU64::new(period).expect("not 0");
            let old =
                tasks.set_periodic(key, pending.value, pending.deadline, period, catch_up, now);
            assert_eq!(old, model.set(key, pending));
        }
        Op::Move { key, delay } => {
            let entry = model.pending.get_mut(&key);
            assert_eq!(tasks.move_to(&key, now + delay, now), entry.is_some());
            if let Some(entry) = entry {
                entry.deadline = now + delay;
            }
        }
        Op::MoveOrSet { key, delay } => {
            let value = model.value();
            let moved = tasks.move_or_set(key, now + delay, now, || value);
            assert_eq!(moved, model.pending.contains_key(&key));
            let fresh = Pending {
                value,
                deadline: now + delay,
                repeats: None,
            };
            model.pending.entry(key).or_insert(fresh).deadline = now + delay;
        }
        Op::Remove { key } => {
            let removed = model.pending.remove(&key).map(|pending| pending.value);
            assert_eq!(tasks.remove(&key), removed);
        }
        Op::Pass { ticks, budget } => {
            model.now += ticks;
            loop {
                let progress = tasks.advance(model.now, budget, |due| model.run(&due));
                if !progress.backlog {
                    break;
                }
            }
            let overdue = model
                .pending
                .values()
                .filter(|p| p.deadline <= model.now)
                .count();
            assert_eq!(overdue, 0, "a task is late");
        }
        Op::Maintain { budget } => {
            tasks.maintain(budget);
        }
        Op::Drain => {
            let mut drained = BTreeMap::new();
            tasks.drain(|key, value| assert_eq!(drained.insert(key, value), None));
            let pending = std::mem::take(&mut model.pending);
            let expected: BTreeMap<u8, u32> = pending
                .into_iter()
                .map(|(key, pending)| (key, pending.value))
                .collect();
            assert_eq!(drained, expected);
        }
    }
    compare(tasks, model);
}

fn compare(tasks: &Tasks<u8, u32>, model: &Model) {
    tasks.validate();
    assert_eq!(tasks.len(), model.pending.len());
    for (key, pending) in &model.pending {
        assert_eq!(tasks.value(key), Some(&pending.value));
        assert_eq!(tasks.deadline(key), Some(pending.deadline));
    }
    let earliest = model.pending.values().map(|pending| pending.deadline).min();
    if let Some(earliest) = earliest {
        let next = tasks.next_deadline().expect("something is pending");
        assert!(next <= earliest, "the next call would be too late");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn every_task_runs_once_at_its_latest_deadline(ops in prop::collection::vec(ops(), 1..120)) {
        let mut tasks = Tasks::new();
        let mut model = Model::default();
        for op in ops {
            apply(&mut tasks, &mut model, op);
        }
    }
}
