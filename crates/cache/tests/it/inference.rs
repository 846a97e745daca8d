//! The compiler infers the type of a loader's value: it is the cache's, so nothing has to be
//! annotated. A type without bounds can hold each public type.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tidewheel::{
    Builder, Cache, Compute, DefaultHashBuilder, Entries, Entry, EntryUpdate, Iter, Keys, Lifetime,
    Loaded, ManualClock, Removal, TaggedEntries, WeakCache,
};

use crate::loading::{Valid, by_hand};
use crate::manual_poll::block_on;

fn cache<V: Send + Sync + 'static>() -> Cache<u32, V> {
    by_hand(&ManualClock::new()).valid()
}

/// As in every port from moka: the value is made by `into`, by `collect`, by a coercion.
#[test]
fn the_value_of_a_plain_loader_future_or_closure_is_inferred() {
    let texts = cache::<String>();
    assert_eq!(texts.get_or_load(1, || "a".into()), "a");
    let some = texts.optionally_get_or_load(2, || Some("b".into()));
    assert_eq!(some.as_deref(), Some("b"));
    let parsed = texts.try_get_or_load(3, || "c".parse());
    assert_eq!(parsed.as_deref(), Ok("c"));
    let collected = texts.get_or_load(5, || ["d", "e"].into_iter().collect());
    assert_eq!(collected, "de");
    let shared = cache::<Arc<dyn Fn() -> u32 + Send + Sync>>();
    assert_eq!(shared.get_or_load(1, || Arc::new(|| 7))(), 7);
    block_on(async {
        assert_eq!(texts.get_or_load_async(6, async { "a".into() }).await, "a");
        let parsed = texts.try_get_or_load_async(7, async { "c".parse() });
        assert_eq!(parsed.await.as_deref(), Ok("c"));
    });
    let longer = |old: &String| format!("{old}{old}");
    let inserted = texts
        .entry(2)
        .and_update(longer)
        .or_insert_with(|| "c".into());
    assert_eq!(inserted, "bb");
    assert_eq!(texts.update(&2, |_| "d".into()).as_deref(), Some("d"));
}

/// One method for all four shapes of a loader; its answer has the same shape.
#[test]
fn a_loader_with_a_lifetime_answers_in_its_own_shape() {
    let texts = cache::<String>();
    let minute = || Lifetime::ttl(Duration::from_secs(60));
    let plain: String = texts
        .fetch(1)
        .load_with(|| Loaded::new("a".into(), minute()))
        .value;
    let maybe: Option<String> = texts.fetch(2).load_with(|| None::<Loaded<_>>).value;
    assert_eq!((&*plain, maybe), ("a", None));
    let failed = texts.fetch(3).load_with(|| Err::<Loaded<_>, _>("down"));
    assert_eq!(failed.value, Err(Arc::new("down")));
    let both = texts.fetch(4).load_with(|| {
        let number: u32 = "4".parse()?;
        Ok::<_, std::num::ParseIntError>(Some(Loaded::from(number.to_string())))
    });
    assert_eq!(both.value, Ok(Some("4".into())));
}

/// A user's type: nothing is known of `K` and `V` here.
struct App<K, V> {
    cache: Cache<K, V>,
    weak: WeakCache<K, V>,
}

/// The same for what is held for a moment.
#[derive(Debug)]
#[expect(dead_code, reason = "only has to compile")]
struct Moments<'a, K, V, F> {
    builder: Option<Builder<K, V>>,
    entry: Option<Entry<'a, K, V>>,
    update: Option<EntryUpdate<'a, K, V, F>>,
    iter: Option<Iter<'a, K, V>>,
    entries: Option<Entries<'a, K, V>>,
    tagged: Option<TaggedEntries<'a, K, V>>,
    keys: Option<Keys<'a, K, V>>,
    removal: Option<Removal<K, V>>,
    compute: Option<Compute<V>>,
}

#[derive(Debug, Clone)]
struct WithHasher<K, V, S = DefaultHashBuilder>(Cache<K, V, S>);

impl<K: Hash + Eq, V: Clone> App<K, V> {
    /// Its bounds are what a look needs: no `Send`, no `'static`.
    fn value(&self, key: &K) -> Option<V> {
        self.cache.get(key)
    }
}

/// The last handle's drop must not depend on what is known of the types where it happens.
#[test]
fn a_type_without_bounds_holds_a_cache_and_lets_go() {
    fn let_go<K, V>(app: App<K, V>) -> WeakCache<K, V> {
        app.weak
    }
    let cache = WithHasher(cache::<u32>()).0;
    cache.insert(1, 10);
    let weak = cache.downgrade();
    let app = App { cache, weak };
    assert_eq!(app.value(&1), Some(10));
    assert!(let_go(app).upgrade().is_none());
}
