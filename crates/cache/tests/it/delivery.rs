//! Delivery to the listener: who calls it, that nobody waits for ever on its account, that no event
//! waits for somebody else's call.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::thread;

use tidewheel::{Builder, Cache, Compute, Driver, Loaded, Removal};

use crate::loading::{Own, Told, Valid, full_at, heard};
use crate::manual_poll::Alarm;

/// The key whose removal makes the listener go on as the test wants.
const CUE: u64 = 50;

type Numbers = Cache<u64, u64>;

/// A cache whose listener, when it hears of the cue, says so and then calls `answer`.
struct Stage {
    cache: Numbers,
    listening: Receiver<()>,
    told: Told,
}

fn stage(builder: Builder<u64, u64>, answer: impl Fn(&Numbers) + Send + Sync + 'static) -> Stage {
    let (slot, own) = Own::pair();
    let told = Told::default();
    let tell = told.clone();
    let (say, listening) = channel();
    let cache = builder
        .eviction_listener(move |removal: Removal<u64, u64>| {
            if removal.key == CUE {
                let cache = own.get();
                say.send(()).expect("the test listens");
                answer(&cache.expect("it is open"));
            }
            tell.tell(removal);
        })
        .valid();
    slot.set(&cache);
    for key in [1, 2, 3, CUE] {
        cache.insert(key, key);
    }
    Stage {
        cache,
        listening,
        told,
    }
}

/// Has the listener called about the cue from within `act`'s user code; both must come to an end.
///
/// `act` gets the cache, and something to call from within the loader or closure of key 1: when
/// that returns, the listener is being called by another thread, and is about to wait for key 1.
fn together(answer: fn(&Numbers), act: impl FnOnce(&Numbers, &dyn Fn()) + Send + 'static) {
    let Stage {
        cache,
        listening,
        told,
    } = stage(full_at(1), answer);
    let (enter, entered) = channel();
    let (done, all_done) = channel();
    let (cue, cue_done) = (cache.clone(), done.clone());
    thread::spawn(move || {
        heard(&entered, "the closure runs");
        assert_eq!(cue.remove(&CUE), Some(CUE));
        cue_done.send(()).expect("the test waits");
    });
    let actor = cache.clone();
    thread::spawn(move || {
        act(&actor, &|| {
            enter.send(()).expect("the other waits");
            heard(&listening, "the listener is called");
        });
        done.send(()).expect("the test waits");
    });
    heard(&all_done, "listener and closure are done");
    heard(&all_done, "listener and closure are done");
    assert_eq!(cache.stats().listener_panics, 0);
    while cache.advance(cache.now(), u32::MAX).backlog {}
    let left = cache.stats().inserts - cache.len() as u64;
    assert_eq!(told.count() as u64, left, "each is told");
    cache.validate();
}

/// The closure writes other keys, or its own alone.
#[test]
fn a_listener_and_a_closure_at_a_full_queue_do_not_wait_for_each_other() {
    let writes: fn(&Numbers) = |cache| cache.insert(1, 100);
    let updates: fn(&Numbers) = |cache| _ = cache.update(&1, |old| old + 100);
    for others in [true, false] {
        together(writes, move |cache, meet| {
            let updated = cache.update(&1, |old| {
                meet();
                (2..4)
                    .filter(|_| others)
                    .for_each(|key| cache.insert(key, 10 * key));
                old + 10
            });
            assert_eq!(updated, Some(11));
        });
    }
    together(updates, |cache, meet| {
        cache.entry(1).compute(|_| {
            meet();
            assert_eq!(cache.remove(&2), Some(2));
            Compute::Remove
        });
    });
    together(writes, |cache, meet| {
        let put = cache.entry(1).compute(|_| {
            meet();
            Compute::Put(Loaded::from(12))
        });
        assert_eq!(put, Some(12));
    });
}

/// The driver could not deliver, because a writer was delivering. That writer had passed the
/// event's shard already, so nobody delivered the event.
#[test]
fn an_event_behind_a_writer_that_delivers_wakes_the_task_that_drives() {
    let (go, gone) = channel::<()>();
    let gone = Mutex::new(gone);
    let (say, listening) = channel::<u64>();
    let told = Told::default();
    let tell = told.clone();
    let held = AtomicBool::new(false);
    let cache: Numbers = full_at(3)
        .driver(Driver::Task)
        .shards(2)
        .eviction_listener(move |removal: Removal<u64, u64>| {
            let third = tell.count() == 2;
            if third && !held.swap(true, SeqCst) {
                say.send(removal.key).expect("the test listens");
                heard(&gone.lock().expect("whole"), "the test goes on");
            }
            tell.tell(removal);
        })
        .valid();
    for key in 0..100 {
        cache.insert(key, key);
    }
    // In the order of shards, which is that of delivery.
    let in_order: Vec<u64> = cache.keys().collect();
    let (first, second, last) = (in_order[0], in_order[1], in_order[99]);
    let behind = in_order[2];
    let alarm = Alarm::new();
    let waker = Waker::from(Arc::clone(&alarm));
    let mut drive = pin!(cache.drive(|_| std::future::pending()));
    let mut context = Context::from_waker(&waker);
    assert!(drive.as_mut().poll(&mut context).is_pending());
    let writer = {
        let cache = cache.clone();
        thread::spawn(move || {
            // The third fills the queue.
            for key in [first, second, last] {
                cache.remove(&key);
            }
        })
    };
    assert_eq!(heard(&listening, "the listener is called"), last);
    // The writer is at the last shard. Now something happens in the first one, and the task is
    // woken.
    cache.remove(&behind);
    assert!(drive.as_mut().poll(&mut context).is_pending());
    let woken = alarm.woken.load(SeqCst);
    go.send(()).expect("the listener waits");
    writer.join().expect("no panic");
    if told.count() < 4 {
        assert!(alarm.woken.load(SeqCst) > woken, "nobody wakes the driver");
        assert!(drive.as_mut().poll(&mut context).is_pending());
    }
    assert_eq!(told.keys(), [first, second, last, behind]);
    cache.close();
}
