//! Every strategy is compared with a naive model in virtual time.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::ValueEnum;
use tidewheel_timer::Timers;

use super::deadlines::Deadlines;
use super::{Entries, Expiry, Left, Strategy};
use crate::rng::Rng;

const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;
/// Neither at a minute nor at a second.
const START: u64 = 17 * HOUR + 1_234_567;

/// A strategy and what it ought to know.
struct Twin {
    kind: Strategy,
    strategy: Box<dyn Expiry<Deadlines>>,
    entries: Deadlines,
    model: BTreeMap<u32, u64>,
    now: u64,
    budget: u32,
}

impl Twin {
    fn new(kind: Strategy, places: usize) -> Self {
        Self {
            kind,
            strategy: kind.build(START, 3, || 0),
            entries: Deadlines::new(places),
            model: BTreeMap::new(),
            now: START,
            budget: u32::MAX,
        }
    }

    /// Sets a new deadline or moves the one that is there.
    fn set(&mut self, id: u32, deadline: u64) {
        let (entries, now) = (&mut self.entries, self.now);
        match entries.timer(id) {
            None => {
                entries.set(id, deadline);
                self.strategy.insert(entries, id, deadline, now);
            }
            Some(old) => {
                self.strategy.reschedule(entries, id, old, deadline, now);
                entries.set(id, deadline);
            }
        }
        self.model.insert(id, deadline);
    }

    fn cancel(&mut self, id: u32) {
        if let Some(old) = self.entries.timer(id) {
            self.strategy.cancel(&mut self.entries, id, old);
            self.entries.clear(id);
        }
        self.model.remove(&id);
    }

    /// Calls once at `at`; returns what it found.
    fn call(&mut self, at: u64) -> (Vec<u32>, bool) {
        let mut due = Vec::new();
        let left = loop {
            let (entries, budget) = (&mut self.entries, self.budget);
            let left = self.strategy.advance(entries, at, budget, &mut due);
            if left != Left::Unfinished {
                break left;
            }
        };
        for id in &due {
            let deadline = self.model.remove(id);
            let early = deadline.is_none_or(|deadline| at < deadline);
            assert!(!early, "{}: {id} of {deadline:?} at {at}", self.kind);
            assert_eq!(self.entries.timer(*id), None, "{}", self.kind);
        }
        (due, left == Left::Backlog)
    }

    /// Makes all calls that are asked for up to `until`; returns what they found.
    fn run(&mut self, until: u64) -> Vec<u32> {
        let mut found = Vec::new();
        let mut idle = 0;
        while let Some(wake) = self.strategy.wake().filter(|&wake| wake <= until) {
            let at = self.now.max(wake);
            let (due, _) = self.call(at);
            let in_vain = due.is_empty() && at == self.now;
            idle = u32::from(in_vain) * (idle + 1);
            assert!(idle < 10_000, "{} asks for calls forever", self.kind);
            self.now = at;
            found.extend(due);
        }
        self.now = until;
        if let Some(bound) = self.kind.late_at_most_ms() {
            let late = |(_, deadline): &(&u32, &u64)| **deadline + bound < until;
            assert_eq!(self.model.iter().find(late), None, "{}", self.kind);
        }
        found
    }
}

fn every_kind(test: impl Fn(Strategy)) {
    let kinds = Strategy::value_variants().iter().copied();
    kinds.for_each(test);
}

/// The distance of a deadline of the model: mostly near, some in the next layers, some in the past.
fn distance(kind: Strategy, rng: &mut Rng) -> u64 {
    match rng.below(20) {
        // A wheel of days must be gone round; others would be called for every second of them.
        0 if kind == Strategy::MixedRadixWheel => rng.below(17 * DAY),
        0 => 0,
        1..8 => rng.below(3 * SECOND),
        8..14 => rng.below(40) * SECOND,
        14..19 => rng.below(10 * 60 * SECOND),
        _ => rng.below(3 * HOUR),
    }
}

fn random_steps(kind: Strategy, seed: u64, budget: u32) {
    let mut rng = Rng::new(seed);
    let mut twin = Twin::new(kind, 64);
    twin.budget = budget;
    for _ in 0..2_000 {
        let id = rng.below(64) as u32;
        match rng.below(10) {
            0..5 => {
                let deadline = (twin.now + distance(kind, &mut rng)).saturating_sub(rng.below(50));
                twin.set(id, deadline);
            }
            5 => twin.cancel(id),
            6..9 => drop(twin.run(twin.now + rng.below(2 * SECOND))),
            _ => drop(twin.run(twin.now + rng.below(100 * SECOND))),
        }
    }
    let left = twin.model.len();
    let days = u64::from(kind == Strategy::MixedRadixWheel) * 18;
    let found = twin.run(twin.now + 4 * HOUR + days * DAY);
    assert_eq!(found.len(), left, "{kind}");
    assert_eq!(twin.model, BTreeMap::new(), "{kind}");
}

#[test]
fn random_steps_match_the_model() {
    every_kind(|kind| (0..2).for_each(|seed| random_steps(kind, seed, u32::MAX)));
}

#[test]
fn random_steps_match_the_model_on_a_small_budget() {
    every_kind(|kind| random_steps(kind, 10, 3));
}

#[test]
fn stale_records_do_not_pile_up() {
    every_kind(|kind| {
        let mut twin = Twin::new(kind, 100);
        for round in 0..2_500 {
            for id in 0..100 {
                twin.set(id, START + HOUR + round * SECOND);
            }
        }
        // A quarter of a million records of eight bytes and more would be two million.
        let bytes = twin.strategy.bytes();
        assert!(bytes < 1_000_000, "{kind} holds {bytes} bytes");
    });
}

#[test]
fn a_budget_divides_what_is_due_at_once() {
    every_kind(|kind| {
        let mut twin = Twin::new(kind, 1_000);
        (0..1_000).for_each(|id| twin.set(id, START + 10 * SECOND));
        twin.budget = 256;
        let mut calls = Vec::new();
        while let Some(wake) = twin.strategy.wake().filter(|&at| at <= START + 11 * SECOND) {
            twin.now = twin.now.max(wake);
            let (due, backlog) = twin.call(twin.now);
            assert_eq!(backlog, backlog && due.len() == 256, "{kind}");
            calls.extend((!due.is_empty()).then_some(due.len()));
        }
        if matches!(kind, Strategy::Scan | Strategy::Sampling) {
            assert_eq!(calls, [1_000], "{kind} takes no budget");
        } else {
            assert_eq!(calls, [256, 256, 256, 232], "{kind}");
        }
    });
}

/// The number of 10,000 dead that one call of sampling finds; `removed` is told after each part of
/// it.
fn sampled(clock_ns: fn() -> u64, removed: impl Fn(usize)) -> usize {
    let mut entries = Deadlines::new(10_000);
    let mut strategy = Strategy::Sampling.build(START, 1, clock_ns);
    for id in 0..10_000 {
        entries.set(id, START + 1);
        strategy.insert(&mut entries, id, START + 1, START);
    }
    let mut found = 0;
    loop {
        let mut due = Vec::new();
        let left = strategy.advance(&mut entries, START + 100, u32::MAX, &mut due);
        found += due.len();
        removed(due.len());
        if left != Left::Unfinished {
            assert_eq!(left, Left::Nothing);
            assert_eq!(strategy.wake(), Some(START + 200));
            return found;
        }
    }
}

#[test]
fn sampling_stops_at_its_share_of_the_processor() {
    // A clock on which every look takes 10 ms.
    fn slow_ns() -> u64 {
        static NOW: AtomicU64 = AtomicU64::new(0);
        NOW.fetch_add(10_000_000, Ordering::Relaxed)
    }
    // Three looks after the first, of 16 rounds of 20 each.
    assert_eq!(sampled(slow_ns, |_| {}), 3 * 16 * 20);
}

#[test]
fn the_removal_of_what_sampling_found_counts_against_its_share() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    fn now_ns() -> u64 {
        NOW.load(Ordering::Relaxed)
    }
    // 40 µs an entry: 320 take 12.8 ms, so the clock reads more than 25 ms after twice as many.
    let removed = |entries| {
        NOW.fetch_add(entries as u64 * 40_000, Ordering::Relaxed);
    };
    assert_eq!(sampled(now_ns, removed), 2 * 16 * 20);
}
