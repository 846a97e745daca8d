//! Loaders and refreshers that see the old value, and may say that it has not changed.

use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use tidewheel::{
    Builder, Cache, Driver, Lifetime, Loaded, ManualClock, Outcome, RemovalCause, Ttl,
};

use crate::loading::{MS, Told, Valid, by_hand, manual};
use crate::manual_poll::{Alarm, block_on, poll};

const SECOND: Duration = Duration::from_secs(1);

/// Entries that live for 100 ms, are stale after 50, and are kept for a second in case that the
/// origin fails.
fn kept(clock: &ManualClock) -> (Builder<u64, u64>, Told) {
    let told = Told::default();
    let builder = manual(clock)
        .refresh_after(0.5)
        .stale_on_error(SECOND)
        .eviction_listener(told.ear());
    (builder, told)
}

fn unchanged(old: Option<u64>) -> Loaded<u64> {
    Loaded::unchanged(old.expect("there is one"), Lifetime::configured())
}

fn left(millis: u64) -> Ttl {
    Ttl::Left(Duration::from_millis(millis))
}

/// Without an old value, or where none was given, there is nothing that could live on.
#[test]
fn an_unchanged_value_is_a_new_one_where_there_was_none() {
    let clock = ManualClock::new();
    let (builder, events) = kept(&clock);
    let cache = builder.valid();
    let say = || Loaded::unchanged(7, Lifetime::ttl(SECOND));
    assert_eq!(cache.fetch(1).load_with_old(|_| say()).value, 7);
    cache.insert(2, 6);
    clock.advance(60 * MS);
    assert_eq!(cache.fetch(2).load_with(say).value, 7);
    let many = cache.get_or_load_many([&3], |keys| keys.into_iter().map(|key| (key, say())));
    assert_eq!(many, [Some(7)]);
    cache.run_due();
    assert_eq!(events.events(), [(2, 6, RemovalCause::Replaced)]);
    assert!((1..=3).all(|key| cache.ttl(&key) == left(if key == 1 { 940 } else { 1000 })));
}

/// It has ended and was removed: that is no write.
#[test]
fn an_unchanged_value_is_there_again_though_its_entry_has_ended_meanwhile() {
    let clock = ManualClock::new();
    let cache = kept(&clock).0.valid();
    cache.insert(1, 10);
    clock.advance(60 * MS);
    let fetched = cache.fetch(1).load_with_old(|old| {
        clock.advance(2 * SECOND);
        cache.run_due();
        assert_eq!(cache.len(), 0);
        unchanged(old)
    });
    assert_eq!((fetched.value, cache.peek(&1)), (10, Some(10)));
}

#[test]
fn an_async_refresher_is_given_the_old_value_which_lives_on() {
    let clock = ManualClock::new();
    let (builder, events) = kept(&clock);
    let builder = builder.refresh_with_old_async(|_, old| ready(unchanged(Some(old))));
    let cache = builder.driver(Driver::Task).valid();
    let mut drive = Box::pin(cache.drive(|_| pending()));
    cache.insert_with(1, 10, Lifetime::configured().tag("a"));
    clock.advance(60 * MS);
    cache.get(&1);
    for _ in 0..4 {
        assert!(poll(drive.as_mut(), &Alarm::new()).is_pending());
    }
    assert_eq!((cache.ttl(&1), cache.count_tag("a")), (left(100), 1));
    assert_eq!(events.count(), 0);
    cache.validate();
}

/// The old value stays, and the next caller asks.
#[test]
fn a_loader_that_panics_or_is_dropped_with_the_old_value_leaves_it() {
    let clock = ManualClock::new();
    let cache = kept(&clock).0.valid();
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
    let cache = builder.valid();
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
    let cache: Cache<u64, Copied> = by_hand(&clock)
        .max_capacity(10)
        .time_to_live(100 * MS)
        .refresh_after(0.5)
        .refresh_with_old(|_, old| Loaded::unchanged(old, Lifetime::configured()))
        .valid();
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
