//! A listener that is a future: in order, one at a time, and nobody waits for it who must not.

use std::future::{Future, pending, poll_fn};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use tidewheel::{Builder, Cache, Driver, ManualClock, OnFull, RemovalCause};

use crate::manual_poll::turn;
use crate::with_timeout::{MS, block_on, in_time, sleep, until};

type Numbers = Cache<u64, u64>;

fn on_a_task(clock: &ManualClock) -> Builder<u64, u64> {
    Cache::builder()
        .max_capacity(1000)
        .no_default_ttl()
        .clock(clock.clone())
        .driver(Driver::Task)
}

/// A door that futures wait at, without a waker: who polls again goes on.
#[derive(Default)]
struct Door(Mutex<(bool, Vec<Waker>)>);

impl Door {
    fn open(&self) {
        let mut door = self.0.lock().expect("whole");
        door.0 = true;
        let wakers = std::mem::take(&mut door.1);
        drop(door);
        wakers.into_iter().for_each(Waker::wake);
    }

    async fn pass(&self) {
        poll_fn(|context| {
            let mut door = self.0.lock().expect("whole");
            if door.0 {
                return Poll::Ready(());
            }
            door.1.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

#[test]
fn events_are_told_one_at_a_time_and_in_order() {
    in_time("all are told", || {
        let told = Arc::new(Mutex::new(Vec::new()));
        let telling = Arc::new(AtomicBool::new(false));
        let (tell, at_it) = (Arc::clone(&told), Arc::clone(&telling));
        let cache: Numbers = on_a_task(&ManualClock::new())
            .eviction_listener_async(move |removal| {
                let (tell, at_it) = (Arc::clone(&tell), Arc::clone(&at_it));
                assert!(!at_it.swap(true, SeqCst), "one at a time");
                async move {
                    sleep(MS / 4).await;
                    tell.lock()
                        .expect("whole")
                        .push((removal.key, removal.value));
                    at_it.store(false, SeqCst);
                }
            })
            .build()
            .expect("valid");
        let drive = cache.drive(sleep);
        let task = thread::spawn(move || block_on(drive));
        let writers: Vec<_> = (0..3)
            .map(|key| {
                let cache = cache.clone();
                thread::spawn(move || (0..50).for_each(|value| cache.insert(key, value)))
            })
            .collect();
        writers
            .into_iter()
            .for_each(|writer| writer.join().expect("no panic"));
        block_on(cache.close_async());
        task.join().expect("the task ends");
        let told = told.lock().expect("whole");
        for key in 0..3 {
            let values: Vec<_> = told
                .iter()
                .filter(|event| event.0 == key)
                .map(|event| event.1)
                .collect();
            assert_eq!(values, (0..50).collect::<Vec<_>>(), "of key {key}");
        }
        assert_eq!(cache.stats().listener_panics, 0);
    });
}

#[test]
fn expiry_goes_on_while_the_listener_is_awaited() {
    let clock = ManualClock::new();
    let door = Arc::new(Door::default());
    let (pass, told) = (Arc::clone(&door), Arc::new(AtomicUsize::new(0)));
    let tell = Arc::clone(&told);
    let cache: Numbers = on_a_task(&clock)
        .time_to_live(10 * MS)
        .eviction_listener_async(move |_| {
            let (pass, tell) = (Arc::clone(&pass), Arc::clone(&tell));
            async move {
                pass.pass().await;
                tell.fetch_add(1, SeqCst);
            }
        })
        .build()
        .expect("valid");
    let mut drive = Box::pin(cache.drive(|_| pending()));
    cache.insert(1, 1);
    cache.remove(&1);
    turn(&mut drive);
    (2..100).for_each(|key| cache.insert(key, key));
    clock.advance(10 * MS);
    turn(&mut drive);
    assert_eq!((cache.len(), told.load(SeqCst)), (0, 0));
    door.open();
    turn(&mut drive);
    assert_eq!(told.load(SeqCst), 99);
}

#[test]
fn at_a_full_queue_the_driver_waits_and_what_writers_cause_is_dropped_and_counted() {
    let clock = ManualClock::new();
    let door = Arc::new(Door::default());
    let (pass, told) = (Arc::clone(&door), Arc::new(AtomicUsize::new(0)));
    let tell = Arc::clone(&told);
    let cache: Numbers = on_a_task(&clock)
        .listener_queue(10, OnFull::Wait)
        .eviction_listener_async(move |_| {
            let (pass, tell) = (Arc::clone(&pass), Arc::clone(&tell));
            async move {
                pass.pass().await;
                tell.fetch_add(1, SeqCst);
            }
        })
        .build()
        .expect("valid");
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
    door.open();
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

#[test]
fn a_task_that_is_dropped_while_the_listener_is_awaited_loses_no_event() {
    let door = Arc::new(Door::default());
    let (pass, told) = (Arc::clone(&door), Arc::new(Mutex::new(Vec::new())));
    let tell = Arc::clone(&told);
    let cache: Numbers = on_a_task(&ManualClock::new())
        .eviction_listener_async(move |removal| {
            let (pass, tell) = (Arc::clone(&pass), Arc::clone(&tell));
            async move {
                pass.pass().await;
                tell.lock()
                    .expect("whole")
                    .push((removal.key, removal.cause));
            }
        })
        .build()
        .expect("valid");
    (0..3).for_each(|key| cache.insert(key, key));
    for key in 0..3 {
        cache.remove(&key);
        let mut drive = Box::pin(cache.drive(|_| pending()));
        turn(&mut drive);
        assert!(told.lock().expect("whole").is_empty());
    }
    door.open();
    let mut drive = Box::pin(cache.drive(|_| pending()));
    turn(&mut drive);
    let all: Vec<_> = (0..3).map(|key| (key, RemovalCause::Removed)).collect();
    let mut told = told.lock().expect("whole").clone();
    assert_eq!(told[0].0, 0, "the one that was awaited");
    told.sort_unstable_by_key(|event| event.0);
    assert_eq!(told, all);
}

#[test]
fn a_listener_that_panics_is_called_again_for_the_next_event() {
    let cache: Numbers = on_a_task(&ManualClock::new())
        .eviction_listener_async(|removal| {
            assert!(removal.key != 1, "meant");
            async move { assert!(removal.key != 2, "meant") }
        })
        .build()
        .expect("valid");
    (0..4).for_each(|key| cache.insert(key, key));
    (0..4).for_each(|key| {
        cache.remove(&key);
    });
    let mut drive = Box::pin(cache.drive(|_| pending()));
    turn(&mut drive);
    assert_eq!(cache.stats().listener_panics, 2);
    cache.remove(&0);
    until("nothing is left", || cache.is_empty());
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
                .build()
                .expect("valid");
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

#[derive(Default)]
struct CountingWaker(AtomicUsize);

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_task_that_awaits_the_listener_does_not_wake_itself() {
    in_time("the poll returns", || {
        let clock = ManualClock::new();
        let cache: Numbers = on_a_task(&clock)
            .shards(1)
            .eviction_listener_async(|_| pending())
            .build()
            .expect("valid");
        let count = Arc::new(CountingWaker::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut drive = Box::pin(cache.drive(|_| pending()));
        cache.insert(0, 1);
        cache.remove(&0);
        turn(&mut drive);
        let mut poll = || {
            assert!(
                drive
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
        };
        (0..6).for_each(|key| cache.insert_with_ttl(key, key, (4 + key as u32 / 3) * MS));
        poll();
        clock.advance(4 * MS);
        (0..8).for_each(|_| poll());
        let before = count.0.load(SeqCst);
        (0..8).for_each(|_| poll());
        assert_eq!(count.0.load(SeqCst), before, "nothing has happened");
    });
}

#[test]
fn a_poll_ends_though_the_timer_ends_at_once() {
    in_time("the poll returns", || {
        let cache: Numbers = on_a_task(&ManualClock::new())
            .eviction_listener_async(|_| pending())
            .build()
            .expect("valid");
        cache.insert_with_ttl(1, 1, 100 * MS);
        let mut drive = Box::pin(cache.drive(|_| std::future::ready(())));
        turn(&mut drive);
    });
}

/// Counts its calls.
#[derive(Default)]
struct Calls(AtomicUsize);

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// `close_async` waited for an answer that the drive future got, since it polled first: nobody woke
/// `close_async`.
#[test]
fn who_waits_for_an_answer_is_woken_when_another_task_gets_it() {
    let ready = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&ready);
    let cache: Numbers = on_a_task(&ManualClock::new())
        .eviction_listener_async(move |_| {
            let ready = Arc::clone(&answers);
            poll_fn(move |_| match ready.load(SeqCst) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
        })
        .build()
        .expect("valid");
    let mut drive = Box::pin(cache.drive(|_| pending()));
    cache.insert(1, 1);
    let calls = Arc::new(Calls::default());
    let waker = Waker::from(Arc::clone(&calls));
    let mut close = Box::pin(cache.close_async());
    let mut closing = Context::from_waker(&waker);
    assert!(close.as_mut().poll(&mut closing).is_pending());
    turn(&mut drive);
    assert!(close.as_mut().poll(&mut closing).is_pending());
    let before = calls.0.load(SeqCst);
    ready.store(true, SeqCst);
    let mut driving = Context::from_waker(Waker::noop());
    assert!(drive.as_mut().poll(&mut driving).is_ready());
    assert!(calls.0.load(SeqCst) > before, "nobody woke it");
    assert!(close.as_mut().poll(&mut closing).is_ready());
}
