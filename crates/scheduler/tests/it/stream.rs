//! The stream in tokio's paused time.
#![allow(
    clippy::disallowed_methods,
    reason = "a test reads tokio's paused clock"
)]

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use futures_core::Stream;
use tidewheel_scheduler::{CatchUp, Run, Serial, TaskStream};
use tokio::time::{Instant, timeout};

const MS: Duration = Duration::from_millis(1);

async fn next(tasks: &mut TaskStream<u32, u32>) -> Run<u32, u32> {
    tasks.next().await
}

#[tokio::test(start_paused = true)]
async fn tasks_come_in_time_and_in_order() {
    let start = Instant::now();
    let mut tasks = TaskStream::new();
    for key in (1..=1000).rev() {
        assert_eq!(tasks.set(key, key, key * 7 * MS), None);
    }
    for key in 1..=1000 {
        assert_eq!(next(&mut tasks).await.key, key);
        let late = start.elapsed() - key * 7 * MS;
        assert!(late <= 2 * MS, "{late:?}");
    }
    assert!(tasks.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_task_can_be_moved_and_removed_until_it_is_handed_out() {
    let mut tasks = TaskStream::new();
    for key in 1..=4 {
        tasks.set(key, key, (10 + key / 2) * MS);
    }
    assert_eq!(next(&mut tasks).await.value, 1);
    tokio::time::advance(5 * MS).await;
    // All are due now.
    assert_eq!(tasks.get(&3), Some(Duration::ZERO));
    assert_eq!(tasks.remove(&2), Some(2));
    assert!(tasks.move_to(&3, 50 * MS));
    assert_eq!(next(&mut tasks).await.value, 4);
    assert_eq!(next(&mut tasks).await.value, 3);
}

#[tokio::test(start_paused = true)]
async fn an_empty_stream_waits_and_goes_on() {
    let mut tasks = TaskStream::new();
    assert!(timeout(100 * MS, next(&mut tasks)).await.is_err());
    tasks.set(1, 1, 10 * MS);
    assert_eq!(next(&mut tasks).await.key, 1);
    tasks.set(2, 2, 3_600_000 * MS);
    assert!(timeout(100 * MS, next(&mut tasks)).await.is_err());
    // Earlier than what it slept for.
    tasks.set(3, 3, MS);
    assert_eq!(
        timeout(100 * MS, next(&mut tasks)).await.map(|run| run.key),
        Ok(3)
    );
}

#[tokio::test(start_paused = true)]
async fn periodic_tasks_come_again() {
    let start = Instant::now();
    let mut tasks = TaskStream::new();
    tasks.set_periodic(1, 1, 10 * MS, 10 * MS, CatchUp::Skip);
    for round in 1..=20 {
        next(&mut tasks).await;
        let late = start.elapsed() - round * 10 * MS;
        assert!(late <= 2 * MS, "{late:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_a_stream_too() {
    let mut tasks = TaskStream::new();
    tasks.set(1, 1, MS);
    let run = poll_fn(|context| Pin::new(&mut tasks).poll_next(context)).await;
    assert_eq!(run.map(|run| run.key), Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_given_up_loses_no_task() {
    let mut tasks = TaskStream::new();
    tasks.set(1, 1, 10 * MS);
    for _ in 0..20 {
        if let Ok(run) = timeout(MS, tasks.next()).await {
            assert_eq!((run.key, tasks.len()), (1, 0));
            return;
        }
    }
    panic!("it never came");
}

#[tokio::test(start_paused = true)]
async fn a_task_set_at_an_instant_comes_then() {
    let start = Instant::now();
    let mut tasks = TaskStream::new();
    tasks.set_at(1, "later", start + 50 * MS);
    tasks.set_at(2, "now", start);
    assert_eq!(
        (tasks.next().await.key, start.elapsed() <= 2 * MS),
        (2, true)
    );
    assert_eq!(tasks.peek(&1), Some(&"later"));
    assert!(tasks.move_or_set(1, 70 * MS, || "not asked for"));
    assert!(!tasks.move_or_set(3, 20 * MS, || "new"));
    assert_eq!(tasks.next().await.value, "new");
    assert_eq!(tasks.next().await.value, "later");
    let late = start.elapsed() - 70 * MS;
    assert!(late <= 2 * MS, "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn tasks_without_a_key_are_all_there() {
    let mut tasks: TaskStream<Serial, &str> = TaskStream::new();
    let keys = [
        tasks.add("same", MS),
        tasks.add("same", 2 * MS),
        tasks.add("same", 3 * MS),
    ];
    assert_eq!(tasks.remove(&keys[1]), Some("same"));
    assert_eq!(tasks.next().await.key, keys[0]);
    assert_eq!(tasks.next().await.key, keys[2]);
}
