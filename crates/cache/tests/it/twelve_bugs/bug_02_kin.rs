//! Kin of bug 2: ends of a cache at awkward moments, and what its threads do while nobody lets them
//! go on.

use std::sync::{Arc, Mutex, OnceLock};

use tidewheel::{Cache, RemovalCause};

#[cfg(feature = "system")]
use super::stage::Valid;
use super::stage::{MS, StageClock, tidewheel};

/// A listener closes its cache while events wait in all shards. None of them is lost.
#[test]
fn a_listener_that_closes_its_cache_still_hears_of_every_entry() {
    const KEYS: u32 = 1000;
    let clock = StageClock::new();
    let own: Arc<OnceLock<Cache<u32, u32>>> = Arc::default();
    let told = Arc::new(Mutex::new(Vec::new()));
    let cache: Cache<u32, u32> = tidewheel(&clock)
        .shards(16)
        .eviction_listener({
            let (own, told) = (Arc::downgrade(&own), Arc::clone(&told));
            move |removal| {
                let closes = removal.cause == RemovalCause::Expired;
                told.lock().expect("whole").push(removal.key);
                let own = own.upgrade().filter(|_| closes);
                if let Some(cache) = own.as_ref().and_then(|own| own.get()) {
                    cache.close();
                }
            }
        })
        .valid();
    assert!(own.set(cache.clone()).is_ok());
    for key in 0..KEYS {
        cache.insert(key, key);
    }
    (KEYS - 16..KEYS).for_each(|key| cache.insert_with_ttl(key, key, 10 * MS));
    clock.advance(10 * MS);
    cache.advance(cache.now(), u32::MAX);
    let mut told = told.lock().expect("whole").clone();
    // The sixteen replaced values are told of as well.
    assert_eq!(told.len(), KEYS as usize + 16);
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len(), KEYS as usize);
}
