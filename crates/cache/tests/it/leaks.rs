//! A cache that is closed or dropped leaves nothing behind: no thread, no value, no event.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tidewheel::Cache;

use crate::loading::{Valid, until};

#[test]
fn every_value_and_the_cache_itself_are_dropped() {
    let alive = Arc::new(());
    let captured = Arc::downgrade(&alive);
    let (values, cache): (Vec<Weak<u32>>, Cache<u32, Arc<u32>>) = {
        let cache = Cache::builder()
            .max_capacity(100)
            .time_to_live(Duration::from_secs(60))
            .eviction_listener(move |_| {
                let _ = &alive;
            })
            .valid();
        let values = (0..500).map(|key| {
            let value = Arc::new(key);
            cache.insert(key % 200, Arc::clone(&value));
            Arc::downgrade(&value)
        });
        (values.collect(), cache)
    };
    until("what left is dropped", || {
        values
            .iter()
            .filter(|value| value.strong_count() > 0)
            .count()
            <= 100
    });
    let future = cache.drive(|_| std::future::pending());
    drop(cache);
    until("the threads have dropped the rest", || {
        values.iter().all(|value| value.strong_count() == 0)
    });
    // The thread lets go of its share after it has dropped the last value; the future has none.
    until("the listener is dropped with its cache", || {
        captured.upgrade().is_none()
    });
    drop(future);
}
