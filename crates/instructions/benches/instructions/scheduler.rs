//! The scheduler's core in virtual time.

use std::hint::black_box;

use foldhash::fast::FixedState;
use gungraun::{library_benchmark, library_benchmark_group};
use tidewheel_scheduler::Tasks;

use crate::input::{MOVE_MS, START, order, scatter, ttls_ms};

/// Timer records that an advance may touch at a time.
const BUDGET: u32 = 128;

/// Tasks and what is to be done with them.
struct Planned {
    tasks: Tasks<u64, u64, FixedState>,
    keys: Vec<u64>,
    deadlines: Vec<u64>,
}

fn none() -> Planned {
    Planned {
        tasks: Tasks::with_hasher(FixedState::with_seed(1)),
        keys: order().into_iter().map(scatter).collect(),
        deadlines: ttls_ms().into_iter().map(|ttl| START + ttl).collect(),
    }
}

fn pending() -> Planned {
    let mut planned = none();
    put(&mut planned);
    planned
}

fn to_delay() -> Planned {
    let mut planned = pending();
    for deadline in &mut planned.deadlines {
        *deadline += MOVE_MS;
    }
    planned
}

#[inline(always)]
fn put(planned: &mut Planned) {
    for (&key, &deadline) in planned.keys.iter().zip(&planned.deadlines) {
        black_box(planned.tasks.set(key, key, deadline, START));
    }
}

#[library_benchmark]
#[bench::set(setup = none)]
fn sets(mut planned: Planned) -> Planned {
    put(&mut planned);
    planned
}

#[library_benchmark]
#[bench::move_later(setup = to_delay)]
fn moves(mut planned: Planned) -> Planned {
    for (key, &deadline) in planned.keys.iter().zip(&planned.deadlines) {
        black_box(planned.tasks.move_to(key, deadline, START));
    }
    planned
}

#[library_benchmark]
#[bench::remove(setup = pending)]
fn removes(mut planned: Planned) -> Planned {
    for key in &planned.keys {
        black_box(planned.tasks.remove(key));
    }
    planned
}

// Wakes for each deadline, as a driver does.
#[library_benchmark]
#[bench::fire(setup = pending)]
fn fires(mut planned: Planned) -> Planned {
    while let Some(next) = planned.tasks.next_deadline() {
        planned.tasks.advance(next, BUDGET, |due| {
            black_box(due);
        });
    }
    planned
}

library_benchmark_group!(name = tasks, benchmarks = [sets, moves, removes, fires]);
