//! Loads and entries by reference: a key is made only where something is stored under it.

use std::borrow::{Borrow, ToOwned};
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::Poll;

use tidewheel::{Cache, Compute, Driver, Loaded, ManualClock, Outcome};

use crate::loading::{MS, unreached};
use crate::manual_poll::{Alarm, block_on, flagged, poll};

/// The borrowed form of keys; counts the keys that are made from it.
#[derive(Debug, Hash, PartialEq, Eq)]
struct Name(u64);

#[derive(Debug, Hash, PartialEq, Eq)]
struct Key(Name);

impl Borrow<Name> for Key {
    fn borrow(&self) -> &Name {
        &self.0
    }
}

thread_local! {
    static MADE: AtomicUsize = const { AtomicUsize::new(0) };
}

impl ToOwned for Name {
    type Owned = Key;

    fn to_owned(&self) -> Key {
        MADE.with(|made| made.fetch_add(1, SeqCst));
        Key(Self(self.0))
    }
}

fn made() -> usize {
    MADE.with(|made| made.swap(0, SeqCst))
}

fn cache() -> Cache<Key, u64> {
    Cache::builder()
        .max_capacity(1000)
        .time_to_live(100 * MS)
        .negative_ttl(10 * MS)
        .clock(ManualClock::new())
        .driver(Driver::Manual)
        .build()
        .expect("valid")
}

#[test]
fn a_hit_by_reference_makes_no_key() {
    let cache = cache();
    let name = Name(1);
    assert_eq!(cache.fetch_by_ref(&name).load(|| 7).value, 7);
    assert_eq!(made(), 1);

    assert_eq!(cache.fetch_by_ref(&name).load(unreached).value, 7);
    let fails = || Err::<u64, _>("unreached");
    assert_eq!(cache.fetch_by_ref(&name).try_load(fails).value, Ok(7));
    assert_eq!(
        cache.fetch_by_ref(&name).optionally_load(|| None).value,
        Some(7)
    );
    block_on(async {
        assert_eq!(
            cache
                .fetch_by_ref(&name)
                .load_async(async { 8 })
                .await
                .value,
            7
        );
        let fails = ready(Err::<u64, _>("unreached"));
        assert_eq!(
            cache.fetch_by_ref(&name).try_load_async(fails).await.value,
            Ok(7)
        );
        let none = ready(None);
        assert_eq!(
            cache
                .fetch_by_ref(&name)
                .optionally_load_async(none)
                .await
                .value,
            Some(7)
        );
        let with = ready(Loaded::from(8));
        assert_eq!(
            cache.fetch_by_ref(&name).load_with_async(with).await.value,
            7
        );
    });
    let with = cache.fetch_by_ref(&name).load_with(|| Loaded::from(8));
    assert_eq!((with.value, with.outcome), (7, Outcome::Hit));
    assert_eq!(cache.entry_by_ref(&name).or_insert(8), 7);
    assert_eq!(cache.entry_by_ref(&name).or_insert_with(unreached), 7);
    assert_eq!(made(), 0);
}

#[test]
fn what_is_remembered_is_answered_without_a_key() {
    let cache = cache();
    let (failing, absent) = (Name(1), Name(2));
    let fails = || {
        cache
            .fetch_by_ref(&failing)
            .try_load(|| Err::<u64, _>("down"))
            .value
    };
    assert_eq!(*fails().expect_err("fails"), "down");
    assert_eq!(
        cache.fetch_by_ref(&absent).optionally_load(|| None).value,
        None
    );
    assert_eq!(made(), 2);
    assert_eq!(*fails().expect_err("remembered"), "down");
    assert_eq!(
        cache
            .fetch_by_ref(&absent)
            .optionally_load(|| Some(1))
            .value,
        None
    );
    assert_eq!(made(), 0);
}

#[test]
fn entries_by_reference_change_what_owned_keys_find() {
    let cache = cache();
    let name = Name(1);
    assert_eq!(cache.entry_by_ref(&name).or_insert(1), 1);
    let two = cache.entry_by_ref(&name).and_update(|value| value + 1);
    assert_eq!(two.or_insert(9), 2);
    let three = cache.entry_by_ref(&name).compute(|old| match old {
        Some(old) => Compute::Update(old + 1),
        None => Compute::Keep,
    });
    assert_eq!(three, Some(3));
    assert_eq!(cache.entry(Key(Name(1))).or_insert(9), 3);
    assert_eq!(cache.get(&name), Some(3));
    assert!(format!("{:?}", cache.entry_by_ref(&name)).contains("Name(1)"));
    cache.validate();
}

#[test]
fn owned_and_borrowed_keys_share_one_load() {
    let cache = cache();
    let name = Name(1);
    let go = AtomicBool::new(false);
    let mut leader = Box::pin(cache.fetch_by_ref(&name).load_async(async {
        flagged(&go).await;
        7
    }));
    let mut follower = Box::pin(cache.fetch(Key(Name(1))).load_async(async { 8 }));
    let alarm = Alarm::new();
    assert!(poll(leader.as_mut(), &alarm).is_pending());
    assert!(poll(follower.as_mut(), &alarm).is_pending());
    go.store(true, SeqCst);
    let Poll::Ready(led) = poll(leader.as_mut(), &alarm) else {
        panic!("it has loaded");
    };
    assert_eq!((led.value, led.outcome), (7, Outcome::Loaded));
    let Poll::Ready(found) = poll(follower.as_mut(), &alarm) else {
        panic!("the value is there");
    };
    assert_eq!((found.value, found.outcome), (7, Outcome::Joined));
    assert_eq!(cache.stats().loads, 1);
}

/// A slice, a path, a string: what has an owned form is asked by its borrowed one.
#[test]
fn unsized_keys_are_borrowed() {
    let cache: Cache<Arc<str>, u64> = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .driver(Driver::Manual)
        .clock(ManualClock::new())
        .build()
        .expect("valid");
    let key: Arc<str> = "tea".into();
    assert_eq!(cache.fetch_by_ref(&key).load(|| 1).value, 1);
    let cache: Cache<Vec<u8>, u64> = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .driver(Driver::Manual)
        .clock(ManualClock::new())
        .build()
        .expect("valid");
    assert_eq!(cache.fetch_by_ref(&b"tea"[..]).load(|| 1).value, 1);
    assert_eq!(
        cache
            .entry_by_ref([b't', b'e', b'a'].as_slice())
            .or_insert(2),
        1
    );
}
