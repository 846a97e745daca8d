//! The timer structures with a slab of their own.

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group};
use tidewheel_timer::{HierarchicalWheel, IndexedHeap, TimerId, TimerQueue, TimerSet};

use crate::input::{MOVE_MS, OPERATIONS, START, order, ttls_ms};

/// Records that a firing may touch at a time, as drivers set it.
const BUDGET: u32 = 128;

/// Timers and the moves that are to be made.
struct Timers<Q> {
    set: TimerSet<Q>,
    ids: Vec<TimerId>,
    deadlines: Vec<u64>,
}

type Wheel = Timers<HierarchicalWheel>;
type Heap = Timers<IndexedHeap<4>>;

fn empty<Q: TimerQueue>(queue: Q) -> Timers<Q> {
    Timers {
        set: TimerSet::new(queue),
        ids: Vec::with_capacity(OPERATIONS),
        deadlines: ttls_ms().iter().map(|ttl| START + ttl).collect(),
    }
}

fn full<Q: TimerQueue>(queue: Q) -> Timers<Q> {
    let mut timers = empty(queue);
    insert(&mut timers);
    timers
}

/// Ids in random order, and the deadline that each is to get: its own, changed.
fn moved<Q: TimerQueue>(queue: Q, change: impl Fn(u64) -> u64) -> Timers<Q> {
    let mut timers = full(queue);
    let order = order();
    timers.ids = order.iter().map(|&at| timers.ids[at as usize]).collect();
    timers.deadlines = order
        .iter()
        .map(|&at| change(timers.deadlines[at as usize]))
        .collect();
    timers
}

fn empty_wheel() -> Wheel {
    empty(HierarchicalWheel::new(START))
}

fn full_wheel() -> Wheel {
    full(HierarchicalWheel::new(START))
}

fn wheel_to_delay() -> Wheel {
    moved(HierarchicalWheel::new(START), |deadline| deadline + MOVE_MS)
}

fn wheel_to_hasten() -> Wheel {
    moved(HierarchicalWheel::new(START), |deadline| deadline - MOVE_MS)
}

fn empty_heap() -> Heap {
    empty(IndexedHeap::new(START))
}

fn full_heap() -> Heap {
    full(IndexedHeap::new(START))
}

#[inline(always)]
fn insert<Q: TimerQueue>(timers: &mut Timers<Q>) {
    for &deadline in &timers.deadlines {
        timers.ids.push(timers.set.insert(deadline, START));
    }
}

/// Wakes for each deadline, as a driver does.
#[inline(always)]
fn fire<Q: TimerQueue>(timers: &mut Timers<Q>) {
    while let Some(next) = timers.set.next_deadline() {
        timers.set.advance(next, BUDGET, |id| {
            black_box(id);
        });
    }
}

#[library_benchmark]
#[bench::wheel_insert(setup = empty_wheel)]
fn wheel_inserts(mut timers: Wheel) -> Wheel {
    insert(&mut timers);
    timers
}

#[library_benchmark]
#[bench::wheel_reschedule_later(setup = wheel_to_delay)]
#[bench::wheel_reschedule_earlier(setup = wheel_to_hasten)]
fn wheel_reschedules(mut timers: Wheel) -> Wheel {
    for (&id, &deadline) in timers.ids.iter().zip(&timers.deadlines) {
        black_box(timers.set.reschedule(id, deadline, START));
    }
    timers
}

#[library_benchmark]
#[bench::wheel_cancel(setup = wheel_to_delay)]
fn wheel_cancels(mut timers: Wheel) -> Wheel {
    for &id in &timers.ids {
        black_box(timers.set.cancel(id));
    }
    timers
}

#[library_benchmark]
#[bench::wheel_next_deadline(setup = full_wheel)]
fn wheel_looks(timers: Wheel) -> Wheel {
    for _ in 0..OPERATIONS {
        black_box(black_box(&timers.set).next_deadline());
    }
    timers
}

#[library_benchmark]
#[bench::wheel_fire(setup = full_wheel)]
fn wheel_fires(mut timers: Wheel) -> Wheel {
    fire(&mut timers);
    timers
}

#[library_benchmark]
#[bench::heap_insert(setup = empty_heap)]
fn heap_inserts(mut timers: Heap) -> Heap {
    insert(&mut timers);
    timers
}

#[library_benchmark]
#[bench::heap_fire(setup = full_heap)]
fn heap_fires(mut timers: Heap) -> Heap {
    fire(&mut timers);
    timers
}

library_benchmark_group!(
    name = timers,
    benchmarks = [
        wheel_inserts,
        wheel_reschedules,
        wheel_cancels,
        wheel_looks,
        wheel_fires,
        heap_inserts,
        heap_fires,
    ]
);
