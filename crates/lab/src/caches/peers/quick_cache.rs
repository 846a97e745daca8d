//! quick_cache: no TTL, so an entry's is left out.

use std::convert::Infallible;
use std::time::Duration;

use quick_cache::UnitWeighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::super::kind::Settings;
use super::super::subject::{Hasher, Key, Subject, Value};

pub(in super::super) struct QuickCache<K, V>(Cache<K, V, UnitWeighter, Hasher>);

impl<K: Key, V: Value> QuickCache<K, V> {
    pub(in super::super) fn new(settings: &Settings) -> Self {
        Self(Cache::with(
            settings.capacity,
            settings.capacity as u64,
            UnitWeighter,
            Hasher::default(),
            DefaultLifecycle::default(),
        ))
    }
}

impl<K: Key, V: Value> Subject<K, V> for QuickCache<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.0.get(key)
    }

    fn insert(&self, key: K, value: V, _: Option<Duration>) {
        self.0.insert(key, value);
    }

    fn get_or_load(&self, key: &K, _: Option<Duration>, load: &dyn Fn() -> V) -> V {
        match self
            .0
            .get_or_insert_with(key, || Ok::<V, Infallible>(load()))
        {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }
}
