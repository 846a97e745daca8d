//! Each public type can be held by a type without bounds, and its hasher need not be written.

use std::fmt::Debug;
use std::hash::Hash;

use tidewheel::{
    Builder, Cache, Compute, DefaultHashBuilder, DefaultHasher, Entries, Entry, EntryUpdate, Iter,
    Keys, Loaded, ManualClock, Removal, TaggedEntries, WeakCache,
};

use crate::loading::by_hand;

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
    loaded: Option<Loaded<V>>,
}

#[derive(Debug, Clone)]
struct WithHasher<K, V, S = DefaultHashBuilder>(Cache<K, V, S>, WeakCache<K, V, S>);

/// Handles are cloned, weakened and shown whatever the types are.
impl<K, V> Clone for App<K, V> {
    fn clone(&self) -> Self {
        Self {
            cache: self.cache.clone(),
            weak: self.weak.clone(),
        }
    }
}

impl<K: Hash + Eq, V: Clone> App<K, V> {
    /// Reads or stores a value; its bounds are what that needs: no `Send`, no `'static`.
    fn value(&self, key: K, value: V) -> V {
        if let Some(found) = self.cache.get(&key) {
            return found;
        }
        self.cache.entry(key).or_insert(value)
    }
}

fn shown<K, V>(app: &App<K, V>) -> String {
    format!("{:?} {:?}", app.cache, app.weak)
}

fn app() -> App<String, String> {
    let cache: Cache<String, String> = by_hand(&ManualClock::new()).build().expect("builds");
    let weak = cache.downgrade();
    App { cache, weak }
}

#[test]
fn a_type_without_bounds_holds_a_cache() {
    let app = app();
    let clone = app.clone();
    assert_eq!(clone.value("a".to_string(), "1".to_string()), "1");
    assert_eq!(app.value("a".to_string(), "2".to_string()), "1");
    assert!(shown(&app).contains("Cache"));
    assert!(app.weak.upgrade().is_some());
}

/// The last handle's drop must not depend on what is known of the types where it happens.
#[test]
fn the_last_handle_closes_where_nothing_is_known_of_the_types() {
    fn let_go<K, V>(app: App<K, V>) -> WeakCache<K, V> {
        app.weak
    }
    let app = app();
    app.cache.insert("a".to_string(), "1".to_string());
    let weak = let_go(app);
    assert!(weak.upgrade().is_none());
}

#[test]
fn the_default_hasher_can_be_named_and_shared() {
    use std::collections::HashMap;
    fn is_hasher<H: std::hash::Hasher + Clone + Debug>(_: &H) {}

    let hasher = DefaultHashBuilder::default();
    let by_hand: DefaultHasher = std::hash::BuildHasher::build_hasher(&hasher);
    is_hasher(&by_hand);
    let map: HashMap<u32, u32, DefaultHashBuilder> = HashMap::with_hasher(hasher.clone());
    assert!(map.is_empty());
    let cache: Cache<u32, u32> = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .hasher(hasher)
        .build()
        .expect("builds");
    let held = WithHasher(cache.clone(), cache.downgrade());
    held.0.insert(1, 1);
    assert!(held.1.upgrade().is_some());
    assert_eq!(cache.get(&1), Some(1));
}
