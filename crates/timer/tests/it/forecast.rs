//! Forecasts count deadlines, and may be off by so much; and engine time stands still or is
//! shifted.
//!
//! The bound. A forecast counts registered deadlines: the slot of a record is known, its tick
//! within the slot is not, so a slot's records are spread over it evenly. What is due before the
//! far edge of a window is then wrong by at most the records in slots that straddle this edge. A
//! record's slot is at its finest now and was at its coarsest when the record was filed; the tests
//! take the coarsest.

use proptest::collection::vec;
use proptest::prelude::*;
use tidewheel_time::Timeline;
use tidewheel_timer::{
    Forecast, HashedWheel, HierarchicalWheel, IndexedHeap, TimerQueue, TimerSet, forecast_window,
};

/// The lowest level whose ring reaches `tick` from `elapsed`: the rule that the wheel documents.
fn level_of(tick: u64, elapsed: u64) -> usize {
    let reached = |level: &usize| {
        let shift = 8 * (level + 1);
        level == &7 || tick >> shift <= (elapsed >> shift) + 1
    };
    (0..8)
        .find(reached)
        .expect("the top level reaches everything")
}

/// First and last tick of the slot that a record of `tick` is filed in.
fn slot_of(tick: u64, elapsed: u64) -> (u64, u64) {
    let span = (1_u64 << (8 * level_of(tick, elapsed))) - 1;
    (tick & !span, tick | span)
}

/// Deadlines that are due `distance` ticks from `now` or earlier.
fn due_within(ticks: &[u64], now: u64, distance: u64) -> u64 {
    let due = |tick: &&u64| tick.saturating_sub(now) <= distance;
    ticks.iter().filter(due).count() as u64
}

/// The last distance that belongs to a window.
fn last_of(window: usize) -> u64 {
    (1_u64.checked_shl(window as u32)).map_or(u64::MAX, |end| end - 1)
}

/// Compares a forecast with the registered ticks; `slots` are the slots of those ticks when they
/// were filed.
fn within_bound(forecast: &Forecast, ticks: &[u64], slots: &[(u64, u64)], now: u64) {
    assert_eq!(forecast.iter().sum::<u64>(), ticks.len() as u64);
    let mut sum = 0;
    for (window, count) in forecast.iter().enumerate() {
        sum += count;
        let edge = last_of(window);
        let straddles = |&&(first, last): &&(u64, u64)| {
            first.saturating_sub(now) <= edge && last.saturating_sub(now) > edge
        };
        let bound = slots.iter().filter(straddles).count() as u64;
        let exact = due_within(ticks, now, edge);
        assert!(
            sum.abs_diff(exact) <= bound,
            "window {window}: {sum} for {exact}, and {bound} straddle its edge"
        );
    }
}

fn distance() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => 0..700_u64,
        2 => 0..200_000_u64,
        1 => 0..1_u64 << 34,
        2 => (0..60_u32, -2..3_i64).prop_map(|(bits, off)| (1_u64 << bits).saturating_add_signed(off)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn forecast_of_the_wheel_errs_by_the_straddling_slots_at_most(
        start in prop_oneof![Just(0), Just(255), Just(65_535), Just(1 << 40), 0..1_u64 << 50],
        distances in vec(distance(), 1..300),
        looks in vec(0..100_000_u64, 1..6),
    ) {
        let mut timers = TimerSet::new(HierarchicalWheel::new(start));
        let mut pending: Vec<(u64, (u64, u64))> = Vec::new();
        for distance in distances {
            let tick = start + distance;
            timers.insert(tick, start);
            pending.push((tick, slot_of(tick, start)));
        }
        let mut now = start;
        for look in looks {
            now += look;
            timers.advance(now, u32::MAX, |_| {});
            pending.retain(|&(tick, _)| tick > now);
            let (ticks, slots): (Vec<u64>, Vec<(u64, u64)>) = pending.iter().copied().unzip();
            within_bound(&timers.forecast(now), &ticks, &slots, now);
            // Seen from a moment before, everything is further away by as much.
            within_bound(&timers.forecast(start), &ticks, &slots, start);
            let records: usize = timers.queue().records_by_level().iter().sum();
            prop_assert_eq!(records, ticks.len());
        }
    }
}

/// A forecast without error, from the deadlines themselves.
fn exact(deadlines: impl IntoIterator<Item = u64>, now: u64) -> Forecast {
    let mut forecast = [0; 65];
    for deadline in deadlines {
        forecast[forecast_window(deadline.saturating_sub(now))] += 1;
    }
    forecast
}

#[test]
fn windows_are_powers_of_two_and_the_first_is_what_is_due() {
    assert_eq!(
        [0, 1, 2, 3, 4, 7, 8].map(forecast_window),
        [0, 1, 2, 2, 3, 3, 4]
    );
    assert_eq!([u64::MAX / 2, u64::MAX].map(forecast_window), [63, 64]);
    for window in 0..=64 {
        assert_eq!(forecast_window(last_of(window)), window);
    }
}

/// Within the next 256 to 512 ticks a slot is a tick, so the forecast is exact there.
#[test]
fn forecast_of_the_wheel_is_exact_for_the_near_future() {
    let mut timers = TimerSet::new(HierarchicalWheel::new(1 << 40));
    let deadlines: Vec<u64> = (0..256).map(|i| (1 << 40) + i).collect();
    for &deadline in &deadlines {
        timers.insert(deadline, 1 << 40);
    }
    assert_eq!(timers.forecast(1 << 40), exact(deadlines, 1 << 40));
}

/// The records of a coarse slot are spread over it evenly.
#[test]
fn forecast_of_the_wheel_spreads_a_coarse_slot_evenly() {
    let mut timers = TimerSet::new(HierarchicalWheel::new(0));
    for i in 0..65_536 {
        timers.insert(131_072 + i, 0);
    }
    // Seen from here, the slot reaches over the edges at 32,768 and 65,536.
    let now = 100_000;
    assert_eq!(
        timers.forecast(now),
        exact((0..65_536).map(|i| 131_072 + i), now)
    );
}

/// A timer that was moved later counts where its record is, until the wheel meets that record. A
/// dead record counts until it is swept. So the total is the number of records.
#[test]
fn forecast_of_the_wheel_counts_registered_deadlines() {
    let mut timers = TimerSet::new(HierarchicalWheel::new(0));
    let later = timers.insert(100, 0);
    let earlier = timers.insert(200, 0);
    let gone = timers.insert(250, 0);
    timers.reschedule(later, 5_000, 0);
    timers.reschedule(earlier, 3, 0);
    timers.cancel(gone);
    assert_eq!(timers.forecast(0), exact([100, 200, 3, 250], 0));
    assert_eq!((timers.len(), timers.queue().dead()), (2, 2));
    timers.advance(100, u32::MAX, |_| {});
    // The wheel meets this record at 100, and files it again for 5,000, in a slot of 256.
    let slot = slot_of(5_000, 100);
    within_bound(
        &timers.forecast(100),
        &[200, 250, 5_000],
        &[(200, 200), (250, 250), slot],
        100,
    );
    timers.advance(5_000, u32::MAX, |_| {});
    assert_eq!(timers.forecast(5_000), [0; 65]);
}

#[test]
fn forecast_of_the_heap_is_exact_after_moves_and_cancels() {
    let mut timers = TimerSet::new(IndexedHeap::<4>::new(7));
    let ids: Vec<_> = (0..2_000_u64)
        .map(|i| timers.insert(7 + i * i, 7))
        .collect();
    let mut deadlines: Vec<u64> = (0..2_000_u64).map(|i| 7 + i * i).collect();
    for i in (0..2_000).step_by(3) {
        deadlines[i] = 7 + i as u64;
        assert!(timers.reschedule(ids[i], deadlines[i], 7));
    }
    for i in (0..2_000).rev().step_by(4) {
        deadlines.remove(i);
        assert!(timers.cancel(ids[i]));
    }
    assert_eq!(timers.forecast(7), exact(deadlines.iter().copied(), 7));
    timers.advance(50_000, u32::MAX, |_| {});
    deadlines.retain(|&deadline| deadline > 50_000);
    assert_eq!(timers.forecast(50_000), exact(deadlines, 50_000));
}

/// The wheel with rounds keeps the whole tick, up to its horizon.
#[test]
fn forecast_of_the_hashed_wheel_is_exact_within_its_horizon() {
    let mut timers = TimerSet::new(HashedWheel::new(64, 0));
    let deadlines: Vec<u64> = (0..2_000_u64).map(|i| i * i * 97).collect();
    for &deadline in &deadlines {
        timers.insert(deadline, 0);
    }
    assert_eq!(timers.forecast(0), exact(deadlines.iter().copied(), 0));
    timers.insert(1 << 40, 0);
    assert_eq!(timers.forecast(0).iter().sum::<u64>(), 2_001);
}

every_queue! {
    /// Also during a backlog, with the clock ahead of the queue or behind it.
    fn forecast_counts_every_record_whatever_the_clock(make) {
        let mut timers = TimerSet::new(make(1_000));
        for i in 0..500_u64 {
            timers.insert(1_000 + i * 13, 1_000);
        }
        for now in [0, 1_000, 4_000, 1 << 40, u64::MAX] {
            assert_eq!(timers.forecast(now).iter().sum::<u64>(), 500);
        }
        assert_eq!(timers.forecast(u64::MAX)[0], 500);
        assert!(timers.advance(4_000, 100, |_| {}).backlog);
        assert_eq!(timers.forecast(4_000).iter().sum::<u64>(), timers.len() as u64);
        timers.drain(|_| {});
        assert_eq!(timers.forecast(4_000), [0; 65]);
    }

    /// Nothing expires while the origin is down; then everything goes on as if the pause had not
    /// been.
    fn freeze_and_resume_move_every_deadline_by_the_pause(make) {
        let time = Timeline::new();
        let mut timers = TimerSet::new(make(0));
        let set = [1_100, 1_101, 2_000, 90_000].map(|clock| (clock, timers.insert(time.now(clock), 0)));
        time.freeze(|| 1_000);
        assert!(time.is_frozen());
        for clock in [1_000, 5_000, 500_000] {
            timers.advance(time.now(clock), u32::MAX, |_| panic!("it expired in the freeze"));
        }
        assert_eq!(time.resume(|| 500_000), 499_000);
        for (clock, id) in set {
            let later = clock + 499_000;
            timers.advance(time.now(later - 1), u32::MAX, |_| panic!("early"));
            let mut fired = Vec::new();
            timers.advance(time.now(later), u32::MAX, |id| fired.push(id));
            assert_eq!(fired, [id]);
        }
    }
}
