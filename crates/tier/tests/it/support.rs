//! Caches on an engine, and waiting.

use std::time::Duration;

use tidewheel::Cache;
use tidewheel_engines::eventually;
use tidewheel_tier::{Raw, Tier, Tiered, TieredCache, Valkey};

pub(crate) type Texts = TieredCache<String, String>;

pub(crate) const MS: Duration = Duration::from_millis(1);

/// A tier with short times.
pub(crate) fn tier(engine: Valkey) -> Tier<String> {
    Tier::new("test", engine, Raw)
        .time_to_live(Duration::from_secs(60))
        .staleness(400 * MS)
        .degraded_life(300 * MS)
        .lease(2000 * MS)
}

pub(crate) fn cache(tier: Tier<String>) -> Texts {
    Cache::builder()
        .max_capacity(100_000)
        .no_default_ttl()
        .tiered(tier)
        .expect("valid")
}

pub(crate) fn url(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

/// A cache of one process, as it were: with connections of its own.
pub(crate) fn on_server(port: u16) -> Texts {
    let cache = cache(tier(Valkey::open(&url(port)).expect("an address")));
    wait_watched(&cache);
    cache
}

pub(crate) fn wait_watched(cache: &Texts) {
    eventually("connections that tell of changes", || {
        cache.is_watched().then_some(())
    });
}

/// Has a value in the first tier, to stay: the message of this process's own fill takes the entry
/// away that the fill left.
pub(crate) fn warm(cache: &Texts, key: &str, value: &str) {
    eventually("a value in the first tier", || {
        let got = cache.get_or_load(key.to_owned(), || value.to_owned());
        assert_eq!(got, value);
        std::thread::sleep(20 * MS);
        cache.get_local(key)
    });
}
