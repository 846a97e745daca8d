//! Loads and entries by reference: a key is made only where something is stored under it.

use std::borrow::{Borrow, ToOwned};
use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use tidewheel::{Cache, Loaded, ManualClock, Outcome};

use crate::loading::{MS, Valid, by_hand, unreached};
use crate::manual_poll::block_on;

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
    by_hand(&ManualClock::new())
        .max_capacity(1000)
        .time_to_live(100 * MS)
        .negative_ttl(10 * MS)
        .valid()
}

#[test]
fn a_hit_by_reference_makes_no_key() {
    let cache = cache();
    let name = Name(1);
    assert_eq!(cache.fetch_by_ref(&name).load(|| 7).value, 7);
    assert_eq!(made(), 1);

    let ask = || cache.fetch_by_ref(&name);
    let fails = || Err::<u64, _>("unreached");
    assert_eq!(ask().load(unreached).value, 7);
    assert_eq!(ask().try_load(fails).value, Ok(7));
    assert_eq!(ask().optionally_load(|| None).value, Some(7));
    assert_eq!(ask().load_with(|| Loaded::from(8)).outcome, Outcome::Hit);
    assert_eq!(block_on(ask().load_async(ready(8))).value, 7);
    assert_eq!(block_on(ask().try_load_async(ready(fails()))).value, Ok(7));
    let none = ask().optionally_load_async(ready(None));
    assert_eq!(block_on(none).value, Some(7));
    let with = ask().load_with_async(ready(Loaded::from(8)));
    assert_eq!(block_on(with).value, 7);
    assert_eq!(cache.entry_by_ref(&name).or_insert(8), 7);
    assert_eq!(cache.entry_by_ref(&name).or_insert_with(unreached), 7);
    assert_eq!(made(), 0);
}
