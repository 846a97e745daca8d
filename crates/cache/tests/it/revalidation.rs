//! Loaders and refreshers that see the old value, and may say that it has not changed.

use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use tidewheel::{
    Builder, Cache, Driver, Lifetime, Loaded, ManualClock, Outcome, Presence, RemovalCause, Ttl,
};

use crate::loading::{Failure, MS, manual};
use crate::manual_poll::{Alarm, block_on, flagged, poll};

const SECOND: Duration = Duration::from_secs(1);

type Events = Arc<Mutex<Vec<(u64, RemovalCause)>>>;

/// Entries that live for 100 ms, are stale after 50, and are kept for a second in case that the
/// origin fails.
fn kept(clock: &ManualClock) -> (Builder<u64, u64>, Events) {
    let events = Events::default();
    let told = Arc::clone(&events);
    let builder = manual(clock)
        .refresh_after(0.5)
        .stale_on_error(SECOND)
        .eviction_listener(move |removal| {
            told.lock()
                .expect("whole")
                .push((removal.value, removal.cause));
        });
    (builder, events)
}

fn unchanged(old: Option<u64>) -> Loaded<u64> {
    Loaded::unchanged(old.expect("there is one"), Lifetime::configured())
}

fn left(millis: u64) -> Ttl {
    Ttl::Left(Duration::from_millis(millis))
}

/// The ways to say that a value has not changed: a loader's, a refresher's, and both as futures.
fn each_way(test: impl Fn(&ManualClock, &Cache<u64, u64>, &Events, &dyn Fn())) {
    for way in 0..4 {
        let clock = ManualClock::new();
        let (builder, events) = kept(&clock);
        let same = |_: &u64, old| Ok::<_, Failure>(unchanged(Some(old)));
        let builder = match way {
            2 => builder.refresh_with_old(same),
            3 => builder
                .refresh_with_old_async(move |key, old| ready(same(&key, old)))
                .driver(Driver::Task),
            _ => builder,
        };
        let cache = builder.build().expect("valid");
        let mut drive = Box::pin(cache.drive(|_| pending()));
        let drive = Mutex::new(drive.as_mut());
        test(&clock, &cache, &events, &|| match way {
            0 => drop(cache.fetch(1).load_with_old(unchanged)),
            1 => drop(block_on(
                cache
                    .fetch_by_ref(&1)
                    .load_with_old_async(async |old| unchanged(old)),
            )),
            2 => {
                cache.get(&1);
                cache.run_refreshes(10);
            }
            _ => {
                cache.get(&1);
                let mut drive = drive.lock().expect("whole");
                for _ in 0..4 {
                    assert!(poll(drive.as_mut(), &Alarm::new()).is_pending());
                }
            }
        });
    }
}

#[test]
fn an_unchanged_value_lives_on_and_nobody_hears_of_it() {
    each_way(|clock, cache, events, say| {
        cache.insert_with(1, 10, Lifetime::configured().tag("a").tag("b"));
        cache.insert(2, 20);
        assert!(cache.pin(&1));
        let version = cache.version(&1);
        clock.advance(60 * MS);
        say();
        assert_eq!(cache.ttl(&1), left(100));
        assert_eq!(cache.version(&1), version);
        assert_eq!(cache.stats().inserts, 2);
        assert_eq!((cache.count_tag("a"), cache.count_tag("b")), (1, 1));
        clock.advance(40 * MS);
        cache.run_due();
        assert_eq!((cache.peek(&1), cache.peek(&2)), (Some(10), None));
        assert!(
            !events
                .lock()
                .expect("whole")
                .iter()
                .any(|event| event.0 == 10)
        );
        cache.validate();
        // Soft again after its own half.
        clock.advance(9 * MS);
        assert_eq!(cache.fetch(1).load(|| 11).outcome, Outcome::Hit);
        assert!(cache.invalidate_tag("b"));
        assert_eq!(cache.peek(&1), None);
        cache.run_due();
        cache.validate();
    });
}

#[test]
fn a_loader_is_given_the_old_value_while_it_is_kept() {
    let clock = ManualClock::new();
    let cache = kept(&clock).0.build().expect("valid");
    let asked = |key| {
        let mut given = None;
        let fetched = cache.fetch(key).load_with_old(|old| {
            given = Some(old);
            Err::<Loaded<u64>, _>(Failure(500))
        });
        drop(fetched);
        given
    };
    assert_eq!(asked(1), Some(None));
    cache.insert(1, 10);
    cache.insert(2, 20);
    cache.insert_with(3, 30, Lifetime::configured().tag("a"));
    assert_eq!(asked(1), None, "it is fresh");
    clock.advance(60 * MS);
    assert_eq!(asked(1), Some(Some(10)), "past its soft deadline");
    clock.advance(50 * MS);
    assert_eq!(asked(2), Some(Some(20)), "past its end");
    assert!(cache.invalidate_tag("a"));
    assert_eq!(asked(3), Some(None), "invalidated");
    clock.advance(SECOND);
    assert_eq!(asked(2), Some(None), "kept no longer");
    cache.insert(1, 11);
    cache.remove(&1);
    assert_eq!(asked(1), Some(None));
}

/// A dead value lives again.
#[test]
fn an_unchanged_value_past_its_end_is_there_again() {
    let clock = ManualClock::new();
    let (builder, events) = kept(&clock);
    let cache = builder.build().expect("valid");
    cache.insert_with(1, 10, Lifetime::configured().tag("a"));
    clock.advance(600 * MS);
    assert_eq!(cache.peek(&1), None);
    let fetched = cache.fetch(1).load_with_old(unchanged);
    assert_eq!((fetched.value, fetched.outcome), (10, Outcome::Loaded));
    assert_eq!((cache.peek(&1), cache.ttl(&1)), (Some(10), left(100)));
    assert_eq!(cache.count_tag("a"), 1);
    cache.run_due();
    assert!(events.lock().expect("whole").is_empty());
    cache.validate();
}

#[test]
fn a_lifetime_of_its_own_counts_for_an_unchanged_value() {
    let clock = ManualClock::new();
    let (builder, events) = kept(&clock);
    let cache = builder.build().expect("valid");
    let revalidate = |lifetime: &Lifetime| {
        let say = |old: Option<u64>| Loaded::unchanged(old.expect("kept"), lifetime.clone());
        cache.fetch(1).load_with_old(say)
    };
    cache.insert_with(1, 10, Lifetime::configured().tag("a"));
    clock.advance(60 * MS);
    let long = Lifetime::ttl(SECOND).fresh_for(10 * MS).tag("b");
    assert_eq!(revalidate(&long).outcome, Outcome::Loaded);
    assert_eq!(cache.ttl(&1), left(1000));
    assert_eq!((cache.count_tag("a"), cache.count_tag("b")), (0, 1));
    clock.advance(10 * MS);
    assert_eq!(revalidate(&Lifetime::forever()).outcome, Outcome::Loaded);
    assert_eq!(cache.ttl(&1), Ttl::Forever);
    assert_eq!(cache.count_tag("b"), 1);
    cache.insert(1, 11);
    clock.advance(60 * MS);
    cache.run_due();
    events.lock().expect("whole").clear();
    // Over at once, and not to be kept.
    let over = Lifetime::ttl(Duration::ZERO).stale_for(Duration::ZERO);
    assert_eq!(revalidate(&over).value, 11);
    assert_eq!(cache.peek(&1), None);
    cache.run_due();
    let left = [(11, RemovalCause::Replaced), (11, RemovalCause::Expired)];
    assert_eq!(*events.lock().expect("whole"), left);
    cache.validate();
}

/// Without an old value, or where none was given, there is nothing that could live on.
#[test]
fn an_unchanged_value_is_a_new_one_where_there_was_none() {
    let clock = ManualClock::new();
    let (builder, events) = kept(&clock);
    let cache = builder.build().expect("valid");
    let say = || Loaded::unchanged(7, Lifetime::ttl(SECOND));
    assert_eq!(cache.fetch(1).load_with_old(|_| say()).value, 7);
    cache.insert(2, 6);
    clock.advance(60 * MS);
    assert_eq!(cache.fetch(2).load_with(say).value, 7);
    let many = cache.get_or_load_many([&3], |keys| keys.into_iter().map(|key| (key, say())));
    assert_eq!(many, [Some(7)]);
    cache.run_due();
    assert_eq!(
        *events.lock().expect("whole"),
        [(6, RemovalCause::Replaced)]
    );
    assert!((1..=3).all(|key| cache.ttl(&key) == left(if key == 1 { 940 } else { 1000 })));
}

/// A writer comes between; each case says how, and what is there then.
#[test]
fn whoever_writes_the_key_meanwhile_goes_before_an_unchanged_value() {
    type Write = fn(&Cache<u64, u64>, &ManualClock);
    let writes: [(Write, Option<u64>); 8] = [
        (|cache, _| cache.insert(1, 99), Some(99)),
        (
            |cache, _| {
                cache.remove(&1);
            },
            None,
        ),
        (
            |cache, _| {
                cache.update(&1, |old| old + 1);
            },
            Some(11),
        ),
        (|cache, _| cache.invalidate_all(), None),
        (
            |cache, _| {
                cache.invalidate_tag("a");
            },
            None,
        ),
        (
            |cache, _| {
                cache.invalidate_if(|key, _| *key == 1);
            },
            None,
        ),
        (
            |cache, _| {
                cache.remove(&1);
                cache.insert_with(1, 10, Lifetime::ttl(5 * SECOND));
            },
            Some(10),
        ),
        // It has ended and was removed: that is no write.
        (
            |cache, clock| {
                clock.advance(2 * SECOND);
                cache.run_due();
                assert_eq!(cache.len(), 0);
            },
            Some(10),
        ),
    ];
    for (at, (write, there)) in writes.into_iter().enumerate() {
        for way in 0..3 {
            let clock = ManualClock::new();
            let (builder, _) = kept(&clock);
            let this: Arc<Mutex<Option<tidewheel::WeakCache<u64, u64>>>> = Arc::default();
            let (later, inner) = (clock.clone(), Arc::clone(&this));
            let builder = match way {
                2 => builder.refresh_with_old(move |_, old| {
                    let cache = inner.lock().expect("whole").clone();
                    write(
                        &cache.and_then(|cache| cache.upgrade()).expect("lives"),
                        &later,
                    );
                    unchanged(Some(old))
                }),
                _ => builder,
            };
            let cache = builder.build().expect("valid");
            *this.lock().expect("whole") = Some(cache.downgrade());
            cache.insert_with(1, 10, Lifetime::configured().tag("a"));
            clock.advance(60 * MS);
            match way {
                0 => {
                    let fetched = cache.fetch(1).load_with_old(|old| {
                        write(&cache, &clock);
                        unchanged(old)
                    });
                    assert_eq!(fetched.value, 10);
                }
                1 => {
                    let go = AtomicBool::new(false);
                    let mut load = pin!(cache.fetch(1).load_with_old_async(async |old| {
                        flagged(&go).await;
                        unchanged(old)
                    }));
                    let alarm = Alarm::new();
                    assert!(poll(load.as_mut(), &alarm).is_pending());
                    write(&cache, &clock);
                    go.store(true, SeqCst);
                    let Poll::Ready(fetched) = poll(load.as_mut(), &alarm) else {
                        panic!("pending");
                    };
                    assert_eq!(fetched.value, 10);
                }
                _ => {
                    assert_eq!(cache.get(&1), Some(10));
                    cache.run_refreshes(1);
                }
            }
            assert_eq!(cache.peek(&1), there, "write {at}, way {way}");
            let tagged = there.is_some() && [2, 7].contains(&at);
            assert_eq!(
                cache.count_tag("a"),
                u64::from(tagged),
                "write {at}, way {way}"
            );
            if at == 6 {
                assert_eq!(cache.ttl(&1), left(5000));
            }
            cache.run_due();
            cache.validate();
        }
    }
}

/// The old value stays, and the next caller asks.
#[test]
fn a_loader_that_panics_or_is_dropped_with_the_old_value_leaves_it() {
    let clock = ManualClock::new();
    let cache = kept(&clock).0.build().expect("valid");
    cache.insert_with(1, 10, Lifetime::configured().tag("a"));
    clock.advance(60 * MS);
    let load = || {
        cache
            .fetch(1)
            .load_with_old(|_| -> Loaded<u64> { panic!("the loader's") })
    };
    assert!(catch_unwind(AssertUnwindSafe(load)).is_err());
    let mut dropped = Box::pin(
        cache
            .fetch(1)
            .load_with_old_async(|_| pending::<Loaded<u64>>()),
    );
    assert!(poll(dropped.as_mut(), &Alarm::new()).is_pending());
    assert_eq!(cache.fetch(1).load(|| 11).outcome, Outcome::Stale);
    drop(dropped);
    let call = |_: Option<u64>| -> std::future::Ready<Loaded<u64>> { panic!("the closure's") };
    let load = || block_on(cache.fetch(1).load_with_old_async(call));
    assert!(catch_unwind(AssertUnwindSafe(load)).is_err());
    cache.validate();
    assert_eq!(cache.fetch(1).load_with_old(unchanged).value, 10);
    assert_eq!((cache.ttl(&1), cache.count_tag("a")), (left(100), 1));
    cache.validate();
}

/// The weigher of the value that lives on is user code.
#[test]
fn a_weigher_that_panics_leaves_the_old_value_as_it_is() {
    let clock = ManualClock::new();
    let armed = Arc::new(AtomicBool::new(false));
    let arm = Arc::clone(&armed);
    let builder = kept(&clock).0.weigher(move |_, _| {
        assert!(!arm.load(SeqCst), "the weigher's");
        3
    });
    let cache = builder.build().expect("valid");
    cache.insert_with(1, 10, Lifetime::configured().tag("a"));
    clock.advance(60 * MS);
    armed.store(true, SeqCst);
    let load = || cache.fetch(1).load_with_old(unchanged);
    assert!(catch_unwind(AssertUnwindSafe(load)).is_err());
    assert_eq!(cache.ttl(&1), left(40));
    armed.store(false, SeqCst);
    assert_eq!(load().value, 10);
    assert_eq!(
        (cache.ttl(&1), cache.weight(), cache.count_tag("a")),
        (left(100), 3, 1)
    );
    cache.validate();
}

/// A value whose copies can be made to panic.
#[derive(Debug)]
struct Copied(Arc<AtomicBool>);

impl Clone for Copied {
    fn clone(&self) -> Self {
        assert!(!self.0.load(SeqCst), "the value's Clone");
        Self(Arc::clone(&self.0))
    }
}

/// The refresh has failed before it began, and the key is free for others.
#[test]
fn a_clone_that_panics_for_a_refresher_ends_the_refresh_alone() {
    let clock = ManualClock::new();
    let armed = Arc::new(AtomicBool::new(false));
    let cache: Cache<u64, Copied> = Cache::builder()
        .max_capacity(10)
        .time_to_live(100 * MS)
        .refresh_after(0.5)
        .refresh_with_old(|_, old| Loaded::unchanged(old, Lifetime::configured()))
        .clock(clock.clone())
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    cache.insert(1, Copied(Arc::clone(&armed)));
    clock.advance(60 * MS);
    assert!(cache.get(&1).is_some());
    armed.store(true, SeqCst);
    assert_eq!(cache.run_refreshes(1), 1);
    armed.store(false, SeqCst);
    let stats = cache.stats();
    assert_eq!((stats.refreshes_begun, stats.refreshes_failed), (1, 1));
    cache.validate();
    assert!(cache.get(&1).is_some());
    cache.run_refreshes(1);
    assert_eq!(cache.stats().refreshes_done, 1);
    assert_eq!(cache.ttl(&1), left(100));
}

/// It is given to the one who loads; those who wait get the value that lives on.
#[test]
fn those_who_wait_for_a_revalidation_get_the_old_value() {
    let clock = ManualClock::new();
    let cache = kept(&clock).0.build().expect("valid");
    cache.insert(1, 10);
    clock.advance(600 * MS);
    let go = AtomicBool::new(false);
    let mut leader = pin!(cache.fetch(1).load_with_old_async(async |old| {
        flagged(&go).await;
        unchanged(old)
    }));
    let never = |_| -> std::future::Ready<Loaded<u64>> { unreachable!("somebody else loads") };
    let mut waits = pin!(cache.fetch(1).load_with_old_async(never));
    let alarm = Alarm::new();
    assert!(poll(leader.as_mut(), &alarm).is_pending());
    assert!(poll(waits.as_mut(), &alarm).is_pending());
    go.store(true, SeqCst);
    assert!(poll(leader.as_mut(), &alarm).is_ready());
    let Poll::Ready(fetched) = poll(waits.as_mut(), &alarm) else {
        panic!("pending");
    };
    assert_eq!((fetched.value, fetched.outcome), (10, Outcome::Joined));
}

/// A refresher with the old value may answer: gone, failed, or private.
#[test]
fn a_refresher_with_the_old_value_may_say_all_that_others_may() {
    let clock = ManualClock::new();
    let asked = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&asked);
    let (builder, events) = kept(&clock);
    let builder = builder.negative_ttl(SECOND);
    let cache = builder
        .refresh_with_old(move |key: &u64, old: u64| {
            assert_eq!(old, key * 10);
            count.fetch_add(1, SeqCst);
            match key {
                1 => Ok(Presence::Absent),
                2 => Err(Failure(500)),
                3 => Ok(Loaded::private(old).into()),
                4 => Ok(Loaded::from(41).into()),
                _ => Ok(Presence::AbsentFor(5 * SECOND)),
            }
        })
        .build()
        .expect("valid");
    (1..=5).for_each(|key| cache.insert(key, key * 10));
    clock.advance(60 * MS);
    assert!((1..=5).all(|key| cache.get(&key).is_some()));
    assert_eq!(cache.run_refreshes(10), 5);
    let there: Vec<_> = (1..=5).map(|key| cache.peek(&key)).collect();
    assert_eq!(there, [None, Some(20), None, Some(41), None]);
    clock.advance(2 * SECOND);
    let negative = |key| cache.fetch(key).optionally_load(|| Some(7)).outcome;
    assert_eq!(
        (negative(1), negative(5)),
        (Outcome::Loaded, Outcome::Negative)
    );
    cache.run_due();
    let replaced = (40, RemovalCause::Replaced);
    assert!(events.lock().expect("whole").contains(&replaced));
    assert_eq!(asked.load(SeqCst), 5);
    cache.validate();
}

/// A use, as any write.
#[test]
fn an_idle_time_begins_again_with_an_unchanged_value() {
    let clock = ManualClock::new();
    let cache: Cache<u64, u64> = Cache::builder()
        .max_capacity(10)
        .time_to_idle(100 * MS)
        .clock(clock.clone())
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    cache.insert_with(1, 10, Lifetime::ttl(SECOND).fresh_for(50 * MS));
    clock.advance(60 * MS);
    let fetched = cache.fetch(1).load_with_old(|old| {
        let lifetime = Lifetime::ttl(150 * MS);
        Loaded::unchanged(old.expect("stale"), lifetime)
    });
    assert_eq!(fetched.value, 10);
    assert_eq!(cache.ttl(&1), left(100));
    clock.advance(90 * MS);
    assert_eq!(cache.get(&1), Some(10));
    assert_eq!(cache.ttl(&1), left(60), "the time to live ends first");
    cache.validate();
}
