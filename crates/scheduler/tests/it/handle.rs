//! A handle's other calls than set, move and remove: points in time, keys, iteration, the caller as
//! the driver.
#![allow(
    clippy::disallowed_methods,
    reason = "an instant is one of the system's clock"
)]

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use tidewheel_scheduler::{Clock, ManualClock, Scheduler, Serial};

use crate::common::{HOUR, MS};

fn manual<K: std::hash::Hash + Eq + 'static, V: 'static>(clock: &ManualClock) -> Scheduler<K, V> {
    let builder = Scheduler::builder().shards(4);
    builder.manual(clock, |_, _| {}).expect("valid")
}

#[test]
fn a_task_is_set_at_a_wall_time_or_at_an_instant() {
    let clock = ManualClock::new();
    clock.set_wall(HOUR);
    let tasks = manual(&clock);
    let at = SystemTime::UNIX_EPOCH + 2 * HOUR;
    tasks.set_at(1, (), at).expect("runs");
    tasks.set_at(2, (), SystemTime::UNIX_EPOCH).expect("runs");
    tasks.set_at(3, (), Instant::now() + HOUR).expect("runs");
    tasks.set_at(4, (), Instant::now() - MS).expect("runs");
    assert_eq!(
        (tasks.get(&1), tasks.get(&2)),
        (Some(HOUR), Some(Duration::ZERO))
    );
    let left = tasks.get(&3).expect("pending");
    assert!(left > HOUR / 2 && left <= HOUR + MS, "{left:?}");
    assert_eq!(tasks.get(&4), Some(Duration::ZERO));
}

#[test]
fn tasks_without_a_key_are_as_many_as_were_added() {
    let tasks = manual::<Serial, u32>(&ManualClock::new());
    let keys: BTreeSet<Serial> = (0..100)
        .map(|n| tasks.add(n, HOUR).expect("runs"))
        .collect();
    assert_eq!((keys.len(), tasks.len()), (100, 100));
}

#[test]
fn an_iteration_meets_every_task_that_stays_exactly_once() {
    let clock = ManualClock::new();
    let tasks = manual(&clock);
    for key in 0..5000u32 {
        tasks.set(key, key, HOUR).expect("runs");
    }
    let mut met = Vec::new();
    let mut others = 5000..;
    for (key, value, left) in tasks.iter() {
        assert_eq!((key, left), (value, HOUR));
        met.push(key);
        // What comes and goes meanwhile: not the ones that are counted.
        let other = others.next().expect("endless");
        tasks.set(other, other, HOUR).expect("runs");
        tasks.remove(&(other - 7).max(5000));
        tasks.move_to(&key, HOUR);
    }
    met.retain(|key| *key < 5000);
    met.sort_unstable();
    assert!(
        met.into_iter().eq(0..5000),
        "a task was missed, or met twice"
    );
}

#[test]
fn the_caller_drives_by_the_clock_that_it_reads() {
    let clock = ManualClock::new();
    clock.advance(17 * HOUR);
    let tasks = manual(&clock);
    assert_eq!(tasks.now(), clock.now());
    for key in 1..=3u32 {
        tasks.set(key, (), key * HOUR).expect("runs");
    }
    clock.advance(3 * HOUR);
    let earlier = tasks.now() - HOUR;
    let progress = tasks.advance(earlier, u32::MAX);
    assert_eq!(progress.fired, 2);
    assert!(progress.next.is_some_and(|next| next <= HOUR));
    assert_eq!(
        tasks.advance(tasks.now() + HOUR, u32::MAX).fired,
        1,
        "a later time is now"
    );
    assert_eq!(tasks.run_due(), 0);
}

#[test]
fn what_the_callback_of_a_drain_sets_is_not_drained_whichever_its_shard() {
    let tasks = manual(&ManualClock::new());
    for key in 0..100u32 {
        tasks.set(key, (), HOUR).expect("runs");
    }
    let drained = tasks.drain(|key, ()| {
        tasks.set(key + 1000, (), HOUR).expect("runs");
    });
    assert_eq!((drained, tasks.len()), (100, 100));
}

/// It panicked in the standard library.
#[test]
fn a_name_with_a_nul_character_is_an_error() {
    let started = Scheduler::<u64, ()>::builder()
        .name("a\0b")
        .start(|_, _| {});
    let error = started.expect_err("no thread has such a name");
    assert!(error.to_string().contains("NUL"), "{error}");
}
