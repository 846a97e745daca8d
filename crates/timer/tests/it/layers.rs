//! A timer of 7,100 s walks down the layers, as the classic description of layered wheels tells it.
//!
//! There the wheels are seconds, minutes and hours: 7,100 s lie beyond the minutes, so the timer
//! waits in the wheel of hours with 3,500 s left; when its hour comes it goes down to the minutes
//! with 20 s left, then to the seconds, and fires there. Here a tick is a millisecond and the
//! wheels are of 256 slots: of 1 ms, 256 ms, 65.5 s, 4.66 h ... The walk is the same, and so are
//! the places at which it goes wrong elsewhere: rounding, what is left after a step, and the order
//! of the wheels' turns.

use tidewheel_timer::{HierarchicalWheel, TimerId, TimerSet};

const SECOND: u64 = 1_000;

/// Follows the one record there is from sleep to sleep: (level, clock at which it came there), then
/// the clock at which it fired.
fn walk(
    timers: &mut TimerSet<HierarchicalWheel>,
    id: TimerId,
    from: u64,
) -> (Vec<(usize, u64)>, u64) {
    let mut steps = vec![(level(timers), from)];
    loop {
        let now = timers.next_deadline().expect("the timer is pending");
        let mut fired = Vec::new();
        timers.advance(now, u32::MAX, |id| fired.push(id));
        timers.validate();
        if !fired.is_empty() {
            assert_eq!(fired, [id]);
            return (steps, now);
        }
        steps.push((level(timers), now));
        assert!(steps.len() <= 8, "more steps than levels: {steps:?}");
    }
}

/// The level of the one record there is.
fn level(timers: &TimerSet<HierarchicalWheel>) -> usize {
    let levels = timers.queue().records_by_level();
    assert_eq!(levels.iter().sum::<usize>(), 1, "one timer, one record");
    levels
        .iter()
        .position(|&records| records == 1)
        .expect("it is somewhere")
}

/// Start of the slot of `level` that holds `tick`.
fn slot(tick: u64, level: usize) -> u64 {
    tick >> (8 * level) << (8 * level)
}

#[test]
fn timer_of_7100_s_walks_down_the_layers_and_fires_on_time() {
    let deadline = 7_100 * SECOND;
    let mut timers = TimerSet::new(HierarchicalWheel::new(0));
    let id = timers.insert(deadline, 0);
    let (steps, fired) = walk(&mut timers, id, 0);
    // 108 slots of 65.5 s; what is left then, 22,112 ms, is 86 slots of 256 ms; and 96 ms.
    assert_eq!(
        steps,
        [(2, 0), (1, slot(deadline, 2)), (0, slot(deadline, 1)),]
    );
    assert_eq!(slot(deadline, 2), 108 * 65_536);
    assert_eq!(slot(deadline, 1) - slot(deadline, 2), 86 * 256);
    assert_eq!(deadline - slot(deadline, 1), 96);
    assert_eq!(fired, deadline);
}

#[test]
fn timer_of_7100_s_passes_each_layer_once_on_a_coarse_clock() {
    let mut timers = TimerSet::new(HierarchicalWheel::new(0));
    let id = timers.insert(7_100 * SECOND, 0);
    let mut levels = vec![level(&timers)];
    for now in (0..7_100 * SECOND).step_by(50) {
        timers.advance(now, u32::MAX, |_| panic!("early, at {now}"));
        levels.push(level(&timers));
    }
    levels.dedup();
    assert_eq!(
        levels,
        [2, 1, 0],
        "each layer in use is passed once, downwards"
    );
    let mut fired = Vec::new();
    timers.advance(7_100 * SECOND, u32::MAX, |id| fired.push(id));
    assert_eq!(fired, [id]);
}

#[test]
fn timer_set_in_mid_turn_walks_down_on_time_whatever_the_phase() {
    for start in [
        1,
        255,
        256,
        65_535,
        65_536,
        1_234_567,
        (1 << 24) - 1,
        (1 << 32) - 7,
        1 << 40,
    ] {
        let deadline = start + 7_100 * SECOND;
        let mut timers = TimerSet::new(HierarchicalWheel::new(start));
        let id = timers.insert(deadline, start);
        let (steps, fired) = walk(&mut timers, id, start);
        assert_eq!(fired, deadline, "from {start}");
        assert!(
            steps.is_sorted_by(|a, b| a.0 > b.0),
            "from {start}: {steps:?}"
        );
        for &(level, at) in &steps[1..] {
            assert!(at == slot(deadline, level + 1), "from {start}: {steps:?}");
        }
    }
}

#[test]
fn a_timer_moved_earlier_walks_down_with_the_time_that_is_left() {
    let mut timers = TimerSet::new(HierarchicalWheel::new(0));
    let id = timers.insert(7_100 * SECOND, 0);
    // 2,000 s on, 5,100 s are left. Make it 3,500 s, the rest that the classic walk stores.
    let now = 2_000 * SECOND;
    timers.advance(now, u32::MAX, |_| panic!("early"));
    let deadline = now + 3_500 * SECOND;
    assert!(timers.reschedule(id, deadline, now));
    let mut fired = Vec::new();
    let mut clock = now;
    let mut levels = Vec::new();
    while fired.is_empty() {
        clock = timers.next_deadline().expect("pending");
        timers.advance(clock, u32::MAX, |id| fired.push(id));
        levels.push(timers.queue().records_by_level());
    }
    assert_eq!((fired, clock), (vec![id], deadline));
    // The old record stays behind at level 2 until it is met, and is not met before.
    assert_eq!(
        levels,
        [
            [0, 1, 1, 0, 0, 0, 0, 0],
            [1, 0, 1, 0, 0, 0, 0, 0],
            [0, 0, 1, 0, 0, 0, 0, 0],
        ]
    );
    assert_eq!((timers.len(), timers.queue().dead()), (0, 1));
    timers.advance(7_100 * SECOND, u32::MAX, |_| panic!("it fired twice"));
    assert_eq!(timers.queue().dead(), 0);
}

#[test]
fn a_timer_moved_later_comes_down_and_goes_up_again_with_the_time_that_is_left() {
    let mut timers = TimerSet::new(HierarchicalWheel::new(0));
    let id = timers.insert(3_600 * SECOND, 0);
    let deadline = 7_100 * SECOND;
    assert!(timers.reschedule(id, deadline, 1_000 * SECOND));
    let (steps, fired) = walk(&mut timers, id, 1_000 * SECOND);
    assert_eq!(fired, deadline);
    // Where its record comes down first, 3,561 s are left: up to the layer that reaches so far.
    let met = slot(3_600 * SECOND, 2);
    assert_eq!(
        steps,
        [
            (2, 1_000 * SECOND),
            (2, met),
            (1, slot(deadline, 2)),
            (0, slot(deadline, 1)),
        ]
    );
}

#[test]
fn timer_that_uses_every_layer_passes_each_and_fires_on_time() {
    // One more than the first tick of each level's third slot, from the top one down.
    let deadline = (0..8).map(|level| 2_u64 << (8 * level)).sum();
    let mut timers = TimerSet::new(HierarchicalWheel::new(0));
    let id = timers.insert(deadline, 0);
    let (steps, fired) = walk(&mut timers, id, 0);
    let levels: Vec<usize> = steps.iter().map(|&(level, _)| level).collect();
    assert_eq!(levels, [7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(fired, deadline);
}
