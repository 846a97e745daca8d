//! Measures for each strategy the cost of a second of expiry, the lateness, and the dead that are
//! held meanwhile.
//!
//! The clock is virtual: a strategy is called at exactly the times it asks for. Times are processor
//! time. Two courses, each with a strategy of its own:
//!
//! 1. `n` entries within the first second, times to live of 30 to 59 s, so that a
//!    thirtieth of all falls due in each second from 30 to 60;
//! 2. `n` entries that live for an hour and more, and 1,000 others that fall due in each of ten
//!    seconds. A walk over everything pays for all of them, a wheel for the thousand.

use std::ops::Range;

use anyhow::Result;
use clap::ValueEnum;
use serde_json::json;

use super::course::Course;
use super::strategies::Strategy;
use super::strategies::deadlines::Deadlines;
use super::tally::Tally;
use crate::clock;
use crate::heap;
use crate::outcome::Outcome;
use crate::report::Report;
use crate::runner::{Common, Experiment};
use crate::stats;

const NAME: &str = "expiry ticks";
const SECOND_MS: u64 = 1_000;
/// The first time of the virtual clock: ten minutes past an hour, so that the hands of the layered
/// wheel's hours stand still meanwhile.
const START_MS: u64 = 300_000 * 3_600_000 + 600_000;

/// Times to live: 30 + i % 30 s.
const TTL_S: u64 = 30;
/// Seconds in which nothing is due, and in which a thirtieth of all is.
const IDLE_S: Range<u64> = 5..15;
const FULL_S: Range<u64> = 35..55;
/// The time at which the last entry is due, and that at which the watch ends.
const ALL_DUE_S: u64 = 61;
const END_S: u64 = 91;

/// The few of the second course: one a millisecond, for ten seconds.
const FEW: u64 = 10_000;
const FEW_PER_S: f64 = 1_000.0;
const FEW_SET_S: u64 = 1;
const FEW_TTL_S: u64 = 12;
const FEW_DUE_S: Range<u64> = 13..23;

pub(super) fn run(common: &Common, sizes: &[u64]) -> Result<Option<Outcome>> {
    let seed = |round: usize| common.basics.seed.wrapping_add(round as u64);
    let experiment = Experiment {
        name: NAME,
        cells: sizes.iter().map(|size| format!("{size} entries")).collect(),
        subjects: &|_| Strategy::value_variants().to_vec(),
        measure: &|strategy, cell, round| Ok(measure(strategy, sizes[cell], seed(round))),
    };
    experiment.run(common)
}

fn measure(strategy: Strategy, entries: u64, seed: u64) -> Report {
    let params = json!({ "entries": entries, "seed": seed, "few": FEW_PER_S });
    let mut report = Report::new(NAME, params).of(strategy, env!("CARGO_PKG_VERSION"));
    a_thirtieth_each_second(strategy, entries, seed, &mut report);
    few_of_many(strategy, entries, seed, &mut report);
    if strategy == Strategy::MixedRadixWheel {
        let note = "the hand of the hours does not move within the measurement; when it does, all of \
                    an hour is filed again in one call";
        report.notes.push(note.to_owned());
    }
    report
}

fn at_second(second: u64) -> u64 {
    START_MS + second * SECOND_MS
}

/// The time at which entry `i` of `n` is inserted: evenly within the first second.
fn inserted_ms(i: u64, n: u64) -> u64 {
    START_MS + i * SECOND_MS / n
}

fn deadline_ms(i: u64, n: u64) -> u64 {
    inserted_ms(i, n) + (TTL_S + i % TTL_S) * SECOND_MS
}

fn a_thirtieth_each_second(strategy: Strategy, n: u64, seed: u64, report: &mut Report) {
    let entries = Deadlines::new(n as usize);
    let mut tally = Tally::new(START_MS, END_S * SECOND_MS);
    for i in 0..n {
        tally.falls_due(deadline_ms(i, n));
    }
    let before = heap::allocated();
    let mut course = Course::new(strategy, entries, START_MS, seed);
    let stretch = clock::Stretch::start();
    for i in 0..n {
        course.insert(i as u32, deadline_ms(i, n), inserted_ms(i, n));
    }
    let insert_ns = stretch.stop();
    let counted = heap::counted().map(|now| (now - before) as f64);
    let bytes = counted.unwrap_or(course.own_bytes() as f64);

    course.run_until(at_second(IDLE_S.start));
    let idle_us = seconds_us(&mut course, IDLE_S);
    let mut full_us = Vec::new();
    let mut longest_ns = 0;
    for second in IDLE_S.end..END_S {
        // Every other second is timed by the call, which looks at the clock a thousand times.
        if !FULL_S.contains(&second) {
            course.run_until(at_second(second + 1));
        } else if second % 2 == 0 {
            longest_ns = longest_ns.max(course.longest_until(at_second(second + 1)));
        } else {
            full_us.push(us(course.time_until(at_second(second + 1))));
        }
        course.settle(|id, at_ms| tally.found(deadline_ms(u64::from(id), n), at_ms));
    }

    let figures = &mut report.figures;
    figures.push("insert_ns", insert_ns as f64 / n as f64);
    figures.push("bytes_per_timer", bytes / n as f64);
    figures.push("second_idle_us", stats::mean(&idle_us));
    figures.push("second_full_us", stats::mean(&full_us));
    figures.push("longest_call_us", us(longest_ns));
    tally.report(TTL_S * SECOND_MS..ALL_DUE_S * SECOND_MS, report);
}

fn few_of_many(strategy: Strategy, n: u64, seed: u64, report: &mut Report) {
    let entries = Deadlines::new((n + FEW) as usize);
    let mut course = Course::new(strategy, entries, START_MS, seed);
    for i in 0..n {
        // As many distinct times to live as in the other course, an hour and more.
        let ttl_ms = (3_600 + i % TTL_S * 60) * SECOND_MS;
        let now_ms = inserted_ms(i, n);
        course.insert(i as u32, now_ms + ttl_ms, now_ms);
    }
    course.run_until(at_second(FEW_SET_S));
    for i in 0..FEW {
        let now_ms = at_second(FEW_SET_S) + i * FEW_DUE_S.count() as u64 * SECOND_MS / FEW;
        course.run_until(now_ms);
        course.insert((n + i) as u32, now_ms + FEW_TTL_S * SECOND_MS, now_ms);
    }
    course.run_until(at_second(FEW_DUE_S.start));
    let few_us = seconds_us(&mut course, FEW_DUE_S);
    course.run_until(at_second(FEW_DUE_S.end + 1));
    let mut found = 0;
    course.settle(|_, _| found += 1);

    let unfound = (FEW - found) as f64 / FEW as f64 * 100.0;
    report.figures.push("second_few_us", stats::mean(&few_us));
    report.figures.push("few_unfound_percent", unfound);
}

/// The processor time of each of these seconds.
fn seconds_us(course: &mut Course, seconds: Range<u64>) -> Vec<f64> {
    let time = |second| us(course.time_until(at_second(second + 1)));
    seconds.map(time).collect()
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_finds_what_it_promises() {
        for &strategy in Strategy::value_variants() {
            let report = measure(strategy, 3_000, 1);
            let value = |key: &str| report.figures.value(key).expect(key);
            for key in report.figures.keys() {
                assert!(value(key).is_finite(), "{strategy}: {key}");
            }
            assert_eq!(value("never_found"), 0.0, "{strategy}");
            match strategy.late_at_most_ms() {
                Some(bound) => {
                    assert!(value("late_max_ms") <= bound as f64, "{strategy}");
                    assert_eq!(value("few_unfound_percent"), 0.0, "{strategy}");
                }
                None => assert!(value("late_p99_ms") > 1_000.0 && value("dead_max") > 100.0),
            }
            if strategy.late_at_most_ms() == Some(0) {
                assert_eq!(value("dead_max"), 0.0, "{strategy}");
            }
        }
    }

    #[test]
    fn a_scan_is_late_by_half_a_second_and_holds_half_a_seconds_dead() {
        let report = measure(Strategy::Scan, 30_000, 1);
        let value = |key: &str| report.figures.value(key).expect("a figure");
        assert!((490.0..=510.0).contains(&value("late_p50_ms")));
        assert!((980.0..=1_000.0).contains(&value("late_max_ms")));
        // A thousand fall due in a second.
        assert!((450.0..=510.0).contains(&value("dead_mean")));
        assert!((900.0..=1_000.0).contains(&value("dead_max")));
    }

    #[test]
    fn curves_rise_to_all_and_fall_to_nothing_and_can_be_repeated() {
        let report = measure(Strategy::Sampling, 3_000, 7);
        assert_eq!(report.curves, measure(Strategy::Sampling, 3_000, 7).curves);
        assert_ne!(report.curves, measure(Strategy::Sampling, 3_000, 8).curves);
        let [lateness, dead] = ["lateness", "dead"].map(|key| &report.curves[key].points);
        assert!(lateness.len() <= 200);
        assert!(lateness.is_sorted_by(|a, b| a[0] < b[0] && a[1] <= b[1]));
        assert_eq!(lateness.last().map(|point| point[1]), Some(1.0));
        assert!(dead.iter().any(|point| point[1] > 100.0));
        assert_eq!(dead.last().map(|point| point[1]), Some(0.0));
    }
}
