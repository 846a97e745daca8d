//! A listener that is a future: in order, one at a time, and nobody waits for it who must not.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use tidewheel::{Builder, Cache, Driver, ManualClock, OnFull};

use crate::loading::{MS, Valid, in_time};
use crate::manual_poll::{Alarm, Door, block_on, flagged, poll, turn};

type Numbers = Cache<u64, u64>;

fn on_a_task(clock: &ManualClock) -> Builder<u64, u64> {
    Cache::builder()
        .max_capacity(1000)
        .no_default_ttl()
        .clock(clock.clone())
        .driver(Driver::Task)
}

#[test]
fn at_a_full_queue_the_driver_waits_and_what_writers_cause_is_dropped_and_counted() {
    let clock = ManualClock::new();
    let door = Arc::new(Door::default());
    let (pass, told) = (Arc::clone(&door), Arc::new(AtomicUsize::new(0)));
    let tell = Arc::clone(&told);
    let cache: Numbers = on_a_task(&clock)
        .shards(4)
        .listener_queue(10, OnFull::Wait)
        .eviction_listener_async(move |_| {
            let (pass, tell) = (Arc::clone(&pass), Arc::clone(&tell));
            async move {
                pass.pass().await;
                tell.fetch_add(1, SeqCst);
            }
        })
        .valid();
    let mut drive = Box::pin(cache.drive(|_| pending()));
    let all = 10 + 64;
    // No writer waits.
    (0..=1000).for_each(|value| cache.insert(1, value));
    assert_eq!(cache.stats().events_dropped, 1000 - all);
    cache.insert_with_ttl(2, 2, 5 * MS);
    clock.advance(5 * MS);
    turn(&mut drive);
    assert_eq!(
        (cache.get(&2), cache.len()),
        (None, 2),
        "invisible, and there"
    );
    door.set(true);
    turn(&mut drive);
    turn(&mut drive);
    assert_eq!(cache.len(), 1);
    assert_eq!(told.load(SeqCst) as u64, all + 1);
    // At the end nothing is dropped.
    (10..500).for_each(|key| cache.insert(key, key));
    block_on(cache.close_async());
    assert_eq!(cache.stats().events_dropped, 1000 - all);
    assert_eq!(told.load(SeqCst) as u64, all + 1 + 491);
}

/// It looked again and again: each hold of a shard told of the events that were waiting there.
#[test]
fn a_poll_ends_though_events_wait_and_something_is_due_soon() {
    in_time("the poll returns", || {
        for (limit, due, later, wait) in [(3, 1, 3, 1), (100, 1, 100, 1), (3, 40, 40, 1)] {
            let clock = ManualClock::new();
            let cache: Numbers = on_a_task(&clock)
                .shards(1)
                .listener_queue(limit, OnFull::Wait)
                .eviction_listener_async(|_| pending())
                .valid();
            let mut drive = Box::pin(cache.drive(|_| pending()));
            cache.insert(0, 1);
            cache.remove(&0);
            turn(&mut drive);
            (0..due).for_each(|key| cache.insert_with_ttl(key, key, 4 * MS));
            (0..later).for_each(|key| cache.insert_with_ttl(1000 + key, key, (4 + wait) * MS));
            turn(&mut drive);
            clock.advance(4 * MS);
            turn(&mut drive);
            assert_eq!(cache.get(&0), None);
        }
    });
}

/// `close_async` waited for an answer that the drive future got, since it polled first: nobody woke
/// `close_async`.
#[test]
fn who_waits_for_an_answer_is_woken_when_another_task_gets_it() {
    let go = Arc::new(AtomicBool::new(false));
    let waits = Arc::clone(&go);
    let cache: Numbers = on_a_task(&ManualClock::new())
        .eviction_listener_async(move |_| {
            let go = Arc::clone(&waits);
            async move { flagged(&go).await }
        })
        .valid();
    let (driving, closing) = (Alarm::new(), Alarm::new());
    let mut drive = Box::pin(cache.drive(|_| pending()));
    cache.insert(1, 1);
    let mut close = Box::pin(cache.close_async());
    assert!(poll(close.as_mut(), &closing).is_pending());
    turn(&mut drive);
    assert!(poll(close.as_mut(), &closing).is_pending());
    let before = closing.woken.load(SeqCst);
    go.store(true, SeqCst);
    assert!(poll(drive.as_mut(), &driving).is_ready());
    assert!(closing.woken.load(SeqCst) > before, "nobody woke it");
    assert!(poll(close.as_mut(), &closing).is_ready());
}
