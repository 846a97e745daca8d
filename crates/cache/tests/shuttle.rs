//! Concurrent paths under schedules that shuttle chooses: `RUSTFLAGS="--cfg shuttle" cargo test -p
//! tidewheel --features shuttle --test shuttle --release`.
//!
//! Every test runs under random schedules and under PCT's, which find an ordering bug of a given
//! depth with a known probability; a failure prints the schedule, which replays it.
#![cfg(all(shuttle, feature = "shuttle"))]

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use shuttle::sync::Mutex;
use shuttle::thread;
use tidewheel::{
    Builder, Cache, Compute, Driver, Lifetime, ManualClock, OnFull, RemovalCause, SharedDriver,
};

const MS: Duration = Duration::from_millis(1);

const RANDOM_RUNS: usize = 5000;
const PCT_RUNS: usize = 5000;
/// Ordering constraints that a PCT run looks for.
const PCT_DEPTH: usize = 3;

fn check(test: fn()) {
    shuttle::check_random(test, RANDOM_RUNS);
    shuttle::check_pct(test, PCT_RUNS, PCT_DEPTH);
}

fn manual(clock: &ManualClock) -> Builder<u64, u64> {
    Cache::builder()
        .max_capacity(1000)
        .time_to_live(10 * MS)
        .shards(1)
        .clock(clock.clone())
        .driver(Driver::Manual)
}

fn cache() -> Arc<Cache<u64, u64>> {
    Arc::new(manual(&ManualClock::new()).build().expect("valid"))
}

type Shared = Arc<Cache<u64, u64>>;

/// The default hasher is another one in each run.
fn on_a_task(clock: &ManualClock) -> Builder<u64, u64, BuildHasherDefault<DefaultHasher>> {
    let builder = manual(clock).driver(Driver::Task);
    builder.hasher(BuildHasherDefault::<DefaultHasher>::default())
}

fn join(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().expect("no panic");
    }
}

/// A thread that shares the cache.
fn sharing<C: Send + Sync + 'static>(
    cache: &Arc<C>,
    act: impl FnOnce(&C) + Send + 'static,
) -> thread::JoinHandle<()> {
    let cache = Arc::clone(cache);
    thread::spawn(move || act(&cache))
}

/// Threads that share the cache, beside each other to their ends.
macro_rules! beside {
    ($cache:expr, $($act:expr),+ $(,)?) => {
        join(vec![$(sharing(&$cache, $act)),+])
    };
}

#[test]
fn insert_expire_get_remove_and_load_race() {
    check(|| {
        let clock = ManualClock::new();
        let cache = Arc::new(manual(&clock).build().expect("valid"));
        let known = |value: u64| value >= 100 || value == 7;
        let load = move |cache: &Cache<u64, u64>, own| {
            assert!(known(cache.get_or_load(1, || own)));
            assert!(cache.get(&1).is_none_or(known));
        };
        beside!(
            cache,
            move |cache| load(cache, 100),
            move |cache| load(cache, 101),
            move |cache| {
                cache.insert(1, 7);
                assert!(cache.remove(&1).is_none_or(known));
            },
            move |cache| {
                clock.advance(10 * MS);
                cache.advance(cache.now(), 100);
            },
        );
        cache.validate();
    });
}

#[test]
fn one_load_answers_all_and_a_second_never_runs_beside_it() {
    check(|| {
        let cache = cache();
        let (running, loads) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let threads = (0..4).map(|_| {
            let (running, loads) = (Arc::clone(&running), Arc::clone(&loads));
            sharing(&cache, move |cache| {
                let value = cache.get_or_load(1, || {
                    assert_eq!(running.fetch_add(1, SeqCst), 0);
                    thread::yield_now();
                    running.fetch_sub(1, SeqCst);
                    loads.fetch_add(1, SeqCst);
                    5_u64
                });
                assert_eq!(value, 5);
            })
        });
        join(threads.collect());
        assert_eq!(loads.load(SeqCst), 1);
    });
}

#[test]
fn a_leader_that_panics_hands_over() {
    // The panics are meant, and caught.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<Meant>().is_none() {
            hook(info);
        }
    }));
    check(|| {
        let cache = cache();
        let loads = Arc::new(AtomicUsize::new(0));
        let threads = (0..3).map(|_| {
            let loads = Arc::clone(&loads);
            sharing(&cache, move |cache| {
                let load = || {
                    if loads.fetch_add(1, SeqCst) < 2 {
                        std::panic::resume_unwind(Box::new(Meant));
                    }
                    5_u64
                };
                let loaded = catch_unwind(AssertUnwindSafe(|| cache.get_or_load(1, load)));
                assert!(loaded.is_err() || loaded.is_ok_and(|value| value == 5));
            })
        });
        join(threads.collect());
        assert_eq!(loads.load(SeqCst), 3);
        assert_eq!(cache.peek(&1), Some(5));
    });
}

struct Meant;

/// Polls a future up to `polls` times, whenever it is woken, and then drops it.
fn poll_some<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..polls {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        thread::yield_now();
    }
    None
}

/// Ready after some polls.
fn slow(mut polls: usize, value: u64) -> impl Future<Output = u64> {
    poll_fn(move |context: &mut Context<'_>| {
        if polls == 0 {
            return Poll::Ready(value);
        }
        polls -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

#[test]
fn futures_dropped_midway_hand_over_and_nobody_waits_for_ever() {
    check(|| {
        let cache = cache();
        let dropped = |cache: &Cache<u64, u64>, polls| {
            let load = cache.get_or_load_async(1, slow(2, 5));
            assert!(matches!(poll_some(load, polls), None | Some(5)));
        };
        let awaited = |cache: &Cache<u64, u64>| {
            let load = cache.get_or_load_async(1, slow(1, 5));
            assert_eq!(shuttle::future::block_on(load), 5);
        };
        beside!(
            cache,
            move |cache| dropped(cache, 1),
            move |cache| dropped(cache, 2),
            awaited,
            awaited,
            |cache| assert_eq!(cache.get_or_load(1, || 5_u64), 5),
        );
        assert_eq!(cache.get_or_load(1, || 6_u64), 5);
    });
}

#[test]
fn async_closures_lose_nothing_beside_plain_writers_and_loads() {
    check(|| {
        let cache = cache();
        let above = Arc::new(AtomicUsize::new(0));
        let changes = (0..2).map(|polls| {
            let above = Arc::clone(&above);
            sharing(&cache, move |cache| {
                let change = cache.entry(1).compute_async(|old: Option<u64>| async move {
                    slow(polls, 0).await;
                    Compute::Put((old.unwrap_or(0) + 1).into())
                });
                let now = shuttle::future::block_on(change).expect("it was stored");
                above.fetch_add(usize::from(now > 100), SeqCst);
            })
        });
        let mut threads: Vec<_> = changes.collect();
        threads.push(sharing(&cache, move |cache| {
            let change = cache.entry(1).compute_async(|_| std::future::pending());
            assert!(poll_some(change, 2).is_none());
        }));
        threads.push(sharing(&cache, move |cache| cache.insert(1, 100)));
        threads.push(sharing(&cache, move |cache| {
            let value = cache.get_or_load(1, || 50);
            assert!(value <= 2 || (50..=52).contains(&value) || (100..=102).contains(&value));
        }));
        join(threads);
        assert_eq!(cache.peek(&1), Some(100 + above.load(SeqCst) as u64));
        cache.validate();
    });
}

#[test]
fn bulk_loads_of_the_same_keys_in_any_order_load_each_once() {
    check(|| {
        let cache = cache();
        let loads = Arc::new(AtomicUsize::new(0));
        let count = move |cache: &Cache<u64, u64>, loads: &AtomicUsize, keys: [u64; 2]| {
            let answers = cache.get_or_load_many(&keys, |missing| {
                loads.fetch_add(missing.len(), SeqCst);
                thread::yield_now();
                missing.into_iter().map(|key| (key, 10 * key))
            });
            assert_eq!(answers, keys.map(|key| Some(10 * key)));
        };
        let [one, other, task] = [(); 3].map(|()| Arc::clone(&loads));
        beside!(
            cache,
            move |cache| count(cache, &one, [1, 2]),
            move |cache| count(cache, &other, [2, 1]),
            move |cache| {
                let load = cache.get_or_load_many_async(&[2, 3], |missing| {
                    task.fetch_add(missing.len(), SeqCst);
                    async {
                        slow(1, 0).await;
                        missing.into_iter().map(|key| (key, 10 * key))
                    }
                });
                assert_eq!(shuttle::future::block_on(load), [Some(20), Some(30)]);
            },
        );
        assert_eq!(loads.load(SeqCst), 3);
        cache.validate();
    });
}

#[test]
fn a_task_that_was_chosen_and_dropped_passes_the_lead_on() {
    check(|| {
        let cache = cache();
        let own = Arc::clone(&cache);
        let mut leader: Pin<Box<dyn Future<Output = u64> + Send>> =
            Box::pin(async move { own.get_or_load_async(1, std::future::pending()).await });
        let mut context = Context::from_waker(Waker::noop());
        assert!(leader.as_mut().poll(&mut context).is_pending());
        // Polled once, perhaps chosen, and gone.
        let gone = |cache: &Cache<u64, u64>| {
            let load = cache.get_or_load_async(1, std::future::pending::<u64>());
            assert!(matches!(poll_some(load, 1), None | Some(9)));
        };
        beside!(cache, move |_| drop(leader), gone, gone, |cache| {
            let load = cache.get_or_load_async(1, slow(0, 9));
            assert_eq!(shuttle::future::block_on(load), 9);
        });
        assert_eq!(cache.peek(&1), Some(9));
    });
}

#[test]
fn a_load_never_overwrites_what_was_stored_or_removed_meanwhile() {
    check(|| {
        let cache = cache();
        let written = Arc::new(AtomicUsize::new(0));
        let origin = Arc::clone(&written);
        beside!(
            cache,
            move |cache| {
                // The origin as it is when the loader runs.
                let value = cache.get_or_load(1, || {
                    let value = origin.load(SeqCst) as u64;
                    thread::yield_now();
                    value
                });
                assert!(value <= 2);
            },
            move |cache| {
                written.store(1, SeqCst);
                cache.insert(1, 1);
                written.store(2, SeqCst);
                cache.invalidate(&1);
            },
        );
        // After the last invalidation, the cache may hold nothing that is older.
        assert!(matches!(cache.peek(&1), None | Some(2)));
    });
}

#[test]
fn updates_lose_nothing_beside_loads_and_insertions_of_other_keys() {
    check(|| {
        let cache = cache();
        cache.insert(1, 0);
        let twice = |cache: &Cache<u64, u64>| {
            for _ in 0..2 {
                assert!(cache.update(&1, |old| old + 1).is_some());
            }
        };
        beside!(cache, twice, twice, |cache| {
            cache.entry(1).and_update(|old| old + 1).or_insert(100_u64);
            cache.insert(2, 2);
            assert_eq!(cache.get_or_load(3, || 3_u64), 3);
        });
        assert_eq!(cache.get(&1), Some(5));
        cache.validate();
    });
}

#[test]
fn a_computation_is_one_step_beside_inserts_removals_and_loads() {
    check(|| {
        let cache = cache();
        let compute = |cache: &Cache<u64, u64>, number: u64| {
            let seen = cache.entry(1).compute(|old| {
                let old = old.copied();
                thread::yield_now();
                Compute::Put((old.map_or(0, |old| old * 10) + number).into())
            });
            assert!(seen.is_some());
        };
        beside!(
            cache,
            move |cache| compute(cache, 1),
            move |cache| compute(cache, 2),
            |cache| {
                let value = cache.get_or_load(1, || 0_u64);
                assert!(matches!(value, 0 | 1 | 2 | 12 | 21), "{value}");
            },
            |cache| {
                let value = cache.remove(&1);
                assert!(matches!(value, None | Some(0 | 1 | 2 | 12 | 21)));
            },
        );
        cache.validate();
    });
}

/// A refresher of its own value, and a stale entry.
fn stale(load: impl Fn(&u64) -> u64 + Send + Sync + 'static) -> Shared {
    let clock = ManualClock::new();
    let cache = manual(&clock)
        .refresh_after(0.5)
        .refresh_with(move |key: &u64| Ok::<u64, std::convert::Infallible>(load(key)))
        .build();
    let cache = Arc::new(cache.expect("valid"));
    cache.insert(1, 1);
    clock.advance(6 * MS);
    cache
}

#[test]
fn closing_during_traffic_leaves_nothing() {
    check(|| {
        let cache = stale(|key| *key);
        let traffic = |cache: &Cache<u64, u64>, key| {
            assert_eq!(cache.get_or_load(key, || key), key);
            cache.insert(key, key);
            cache.run_refreshes(1);
            cache.update(&key, |old| old + 1);
        };
        beside!(
            cache,
            move |cache| traffic(cache, 1),
            move |cache| traffic(cache, 2),
            |cache| cache.close(),
        );
        assert_eq!((cache.len(), cache.weight()), (0, 0));
        cache.validate();
    });
}

#[test]
fn the_events_of_a_key_keep_their_order() {
    check(|| {
        let events = Arc::new(Mutex::new(HashMap::<u64, Vec<(u64, RemovalCause)>>::new()));
        let heard = Arc::clone(&events);
        let cache = manual(&ManualClock::new())
            .listener_queue(1, OnFull::Wait)
            .eviction_listener(move |removal: tidewheel::Removal<u64, u64>| {
                let mut events = heard.lock().expect("whole");
                let of_key = events.entry(removal.key).or_default();
                of_key.push((removal.value, removal.cause));
            })
            .build();
        let cache = Arc::new(cache.expect("valid"));
        let write = |cache: &Cache<u64, u64>, key| {
            (0..3).for_each(|value| cache.insert(key, value));
            cache.remove(&key);
        };
        beside!(
            cache,
            move |cache| write(cache, 1),
            move |cache| write(cache, 2),
            |cache| _ = cache.advance(cache.now(), 10),
        );
        cache.close();
        let events = events.lock().expect("whole");
        for key in 1..3 {
            let expected = [
                (0, RemovalCause::Replaced),
                (1, RemovalCause::Replaced),
                (2, RemovalCause::Removed),
            ];
            assert_eq!(events.get(&key).map(Vec::as_slice), Some(&expected[..]));
        }
    });
}

#[test]
fn a_refresh_and_a_writer_race() {
    check(|| {
        let cache = stale(|_| {
            thread::yield_now();
            2
        });
        let read = |cache: &Cache<u64, u64>| {
            assert!(matches!(cache.get(&1), Some(1..=3)));
            cache.run_refreshes(1);
        };
        beside!(cache, read, read, |cache| cache.insert(1, 3));
        // A refresh that began after the insertion finds a fresh entry: nothing overwrites it.
        assert_eq!(cache.get(&1), Some(3));
    });
}

/// A step that was disturbed is repeated. It must end where it ended the first time, although
/// removals would let it come further.
#[test]
fn invalidate_if_passes_nobody_over_beside_removals() {
    const MATCHING: u64 = 48;
    const OTHERS: u64 = 6;
    check(|| {
        let cache = cache();
        (0..MATCHING + OTHERS).for_each(|key| cache.insert(key, u64::from(key < MATCHING)));
        let threads = [0, 1].map(|half| {
            let cache = Arc::clone(&cache);
            thread::spawn(move || {
                for key in (MATCHING..MATCHING + OTHERS).skip(half).step_by(2) {
                    assert!(cache.invalidate(&key));
                }
            })
        });
        let removed = cache.invalidate_if(|_, value| *value == 1);
        assert_eq!(removed, MATCHING);
        join(threads.into());
        assert!(cache.is_empty());
        cache.validate();
    });
}

/// Bugs 1 and 9: a thread that finds an expired entry, the sweeper or a reader, must not remove the
/// value that replaced it.
#[test]
fn a_fresh_value_survives_threads_that_saw_the_expired_one() {
    const KEYS: u64 = 20;
    check(|| {
        let clock = ManualClock::new();
        let cache = Arc::new(manual(&clock).build().expect("valid"));
        (0..KEYS).for_each(|key| cache.insert(key, 0));
        clock.advance(10 * MS);
        beside!(
            cache,
            |cache| _ = cache.advance(cache.now(), u32::MAX),
            |cache| {
                for key in [0, 7, 19] {
                    assert!(cache.get(&key).is_none_or(|value| value == 1));
                }
            },
            |cache| (0..KEYS).step_by(3).for_each(|key| cache.insert(key, 1)),
        );
        for key in (0..KEYS).step_by(3) {
            assert_eq!(cache.get(&key), Some(1), "the fresh value of {key}");
        }
        cache.validate();
    });
}

/// Counts what a listener was told, and lets others wait for it.
#[derive(Default)]
struct Told {
    count: Mutex<usize>,
    changed: shuttle::sync::Condvar,
}

impl Told {
    fn one_more(&self) {
        *self.count.lock().expect("whole") += 1;
        self.changed.notify_all();
    }

    fn wait_for(&self, count: usize) {
        let mut told = self.count.lock().expect("whole");
        while *told < count {
            told = self.changed.wait(told).expect("whole");
        }
    }
}

/// Only the task can deliver the last events. If the wake-up for an event is lost, the event is
/// never delivered.
#[test]
fn a_task_delivers_every_event_though_writers_deliver_beside_it() {
    check(|| {
        let told = Arc::new(Told::default());
        let tell = Arc::clone(&told);
        let cache = on_a_task(&ManualClock::new())
            .shards(2)
            .listener_queue(3, OnFull::Wait)
            .eviction_listener(move |_: tidewheel::Removal<u64, u64>| {
                thread::yield_now();
                tell.one_more();
            })
            .build();
        let cache = Arc::new(cache.expect("valid"));
        for key in 0..8 {
            cache.insert_with(key, key, Lifetime::forever());
        }
        let task = cache.drive(|_| std::future::pending());
        let mut threads = vec![thread::spawn(move || shuttle::future::block_on(task))];
        for first in [0, 4] {
            threads.push(sharing(&cache, move |cache| {
                for key in first..first + 4 {
                    cache.invalidate(&key);
                }
            }));
        }
        told.wait_for(8);
        cache.close();
        join(threads);
    });
}

/// A cache of a few entries with room for one event; when its listener is told of key 9, it calls
/// `answer`.
fn with_a_listener_that_calls(
    answer: fn(&Cache<u64, u64>),
    keys: &[u64],
) -> (Arc<Cache<u64, u64>>, Arc<Told>) {
    let told = Arc::new(Told::default());
    let tell = Arc::clone(&told);
    let slot: Arc<Mutex<Option<tidewheel::WeakCache<u64, u64>>>> = Arc::default();
    let own = Arc::clone(&slot);
    let cache = manual(&ManualClock::new())
        .listener_queue(1, OnFull::Wait)
        .eviction_listener(move |removal: tidewheel::Removal<u64, u64>| {
            let own = own.lock().expect("whole").clone();
            let cache = own.and_then(|own| own.upgrade());
            if let Some(cache) = cache.filter(|_| removal.key == 9) {
                answer(&cache);
            }
            tell.one_more();
        })
        .build();
    let cache = Arc::new(cache.expect("valid"));
    *slot.lock().expect("whole") = Some(cache.downgrade());
    keys.iter().for_each(|key| cache.insert(*key, *key));
    (cache, told)
}

/// The queue is full. The listener wants the keys that the closure and the loader are about to
/// supply, and these write other keys and their own.
#[test]
fn a_listener_a_closure_and_a_loader_do_not_wait_for_each_other_at_a_full_queue() {
    check(|| {
        let wants = |cache: &Cache<u64, u64>| {
            cache.insert(1, 100);
            assert!(matches!(cache.get_or_load(2, || 200), 200 | 20));
        };
        let (cache, told) = with_a_listener_that_calls(wants, &[1, 3, 4, 9]);
        beside!(
            cache,
            |cache| _ = cache.invalidate(&9),
            |cache| {
                cache.update(&1, |old| {
                    cache.insert(3, 30);
                    old + 1
                });
            },
            |cache| {
                let loaded = cache.get_or_load(2, || {
                    cache.insert(4, 40);
                    20
                });
                assert!(matches!(loaded, 200 | 20));
            },
        );
        assert_eq!(cache.stats().listener_panics, 0);
        let left = cache.stats().inserts as usize;
        cache.close();
        assert_eq!(*told.count.lock().expect("whole"), left);
    });
}

/// A loader closes the cache while a listener waits for that loader. All events are delivered, and
/// nobody waits for ever.
#[test]
fn a_loader_that_closes_the_cache_leaves_no_event_untold() {
    check(|| {
        let loads = |cache: &Cache<u64, u64>| {
            cache.get_or_load(2, || 200_u64);
        };
        let (cache, told) = with_a_listener_that_calls(loads, &[1, 3, 9]);
        beside!(cache, |cache| _ = cache.invalidate(&9), |cache| {
            cache.get_or_load(2, || {
                cache.close();
                20_u64
            });
        });
        // Unless the listener's load was first, this does nothing any more.
        cache.close();
        let left = cache.stats().inserts as usize;
        assert_eq!(*told.count.lock().expect("whole"), left);
    });
}

/// A read of one cache writes another at a full queue, whose listener writes the first.
#[test]
fn a_read_that_writes_another_cache_and_that_ones_listener_do_not_wait_for_each_other() {
    check(|| {
        let told = Arc::new(Told::default());
        let tell = Arc::clone(&told);
        let read = cache();
        read.insert(1, 1);
        let target = Arc::clone(&read);
        let written = manual(&ManualClock::new())
            .listener_queue(1, OnFull::Wait)
            .eviction_listener(move |removal: tidewheel::Removal<u64, u64>| {
                target.insert(removal.key, 2);
                tell.one_more();
            })
            .build();
        let written = Arc::new(written.expect("valid"));
        (5..8).for_each(|key| written.insert(key, key));
        beside!(
            written,
            |written| _ = written.invalidate(&5),
            move |written| {
                read.view(&1, |_| written.invalidate(&6));
                written.invalidate(&7);
            }
        );
        assert_eq!(written.stats().listener_panics, 0);
        assert_eq!(*told.count.lock().expect("whole"), 3);
    });
}

/// Above the alarms of the caches is the list of those to be polled: neither loses a wake-up.
#[test]
fn a_shared_task_misses_no_deadline_no_event_and_no_newcomer() {
    check(|| {
        let told = Arc::new(Told::default());
        let driver = SharedDriver::task();
        let clock = ManualClock::new();
        let build = |told: &Arc<Told>| {
            let tell = Arc::clone(told);
            let cache = manual(&clock)
                .driver(&driver)
                .hasher(BuildHasherDefault::<DefaultHasher>::default())
                .eviction_listener(move |_: tidewheel::Removal<u64, u64>| tell.one_more())
                .build();
            cache.expect("valid")
        };
        let first = build(&told);
        // Time moves by hand: a sleep is over at once, or ended by a wake-up.
        let task = driver.drive(|duration| async move {
            if !duration.is_zero() {
                std::future::pending::<()>().await;
            }
        });
        let mut threads = vec![thread::spawn(move || shuttle::future::block_on(task))];
        let (one, mover) = (first.clone(), clock.clone());
        threads.push(thread::spawn(move || {
            one.insert(1, 1);
            mover.advance(10 * MS);
        }));
        let second = build(&told);
        let (other, mover) = (second.clone(), clock.clone());
        threads.push(thread::spawn(move || {
            other.insert(1, 1);
            other.insert(2, 2);
            other.invalidate(&2);
            mover.advance(10 * MS);
        }));
        told.wait_for(3);
        drop((first, second, driver));
        join(threads);
    });
}

/// Whoever goes last, a handle or the task, ends the cache; nobody waits, and every event is told
/// once.
#[test]
fn the_last_handle_and_the_task_leave_no_event_untold() {
    check(|| {
        let told = Arc::new(Told::default());
        let tell = Arc::clone(&told);
        let cache = on_a_task(&ManualClock::new())
            .eviction_listener(move |_: tidewheel::Removal<u64, u64>| tell.one_more())
            .build()
            .expect("valid");
        (0..3).for_each(|key| cache.insert(key, key));
        let task = cache.drive(|_| std::future::pending());
        let other = cache.clone();
        join(vec![
            thread::spawn(move || {
                // Perhaps to its end, perhaps dropped before.
                poll_some(task, 3);
            }),
            thread::spawn(move || drop(other)),
            thread::spawn(move || drop(cache)),
        ]);
        assert_eq!(*told.count.lock().expect("whole"), 3);
    });
}

/// The listener's future is polled by whoever has the turn: two tasks, of which one is dropped
/// midway.
#[test]
fn tasks_that_share_an_async_listener_tell_everything_once() {
    check(|| {
        let told = Arc::new(Told::default());
        let tell = Arc::clone(&told);
        let cache = on_a_task(&ManualClock::new())
            .eviction_listener_async(move |_: tidewheel::Removal<u64, u64>| {
                let tell = Arc::clone(&tell);
                async move {
                    slow(1, 0).await;
                    tell.one_more();
                }
            })
            .build();
        let cache = Arc::new(cache.expect("valid"));
        (0..3).for_each(|key| cache.insert(key, key));
        cache.invalidate(&0);
        let task = cache.drive(|_| std::future::pending());
        let closer = Arc::clone(&cache);
        let dropped = Arc::clone(&cache);
        join(vec![
            thread::spawn(move || shuttle::future::block_on(task)),
            thread::spawn(move || {
                poll_some(dropped.close_async(), 2);
            }),
            thread::spawn(move || shuttle::future::block_on(closer.close_async())),
        ]);
        assert_eq!(*told.count.lock().expect("whole"), 3);
    });
}

/// A refresh that is a future, a writer of its key, and the end of whoever polls it.
#[test]
fn an_async_refresh_a_writer_and_a_dropped_task_race() {
    check(|| {
        let clock = ManualClock::new();
        let cache = on_a_task(&clock)
            .refresh_after(0.0)
            .refresh_with_async(|key: u64| async move { Ok::<_, ()>(slow(1, key + 100).await) })
            .build();
        let cache = Arc::new(cache.expect("valid"));
        cache.insert(1, 1);
        cache.get(&1);
        let task = cache.drive(|_| std::future::pending());
        let (writer, loader) = (Arc::clone(&cache), Arc::clone(&cache));
        join(vec![
            thread::spawn(move || {
                poll_some(task, 3);
            }),
            thread::spawn(move || writer.insert(1, 7)),
            thread::spawn(move || {
                clock.advance(10 * MS);
                let value = loader.get_or_load(1, || 5_u64);
                assert!(matches!(value, 5 | 7 | 101), "{value}");
            }),
        ]);
        assert_eq!(cache.stats().refreshes_running, 0);
        cache.validate();
    });
}
