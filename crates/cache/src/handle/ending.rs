//! Closes a cache and waits for it as a future.

use std::hash::{BuildHasher, Hash};

use super::cache::Cache;

/// # Waiting for the end
impl<K, V, S> Cache<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// As [`close`](Self::close), without blocking the thread: waits for the cache's threads,
    /// empties it, and delivers every event; also when the task that drives it was never spawned,
    /// or is gone, or is busy.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel::{Cache, Driver, ManualClock};
    /// # async fn shut_down() -> Result<(), tidewheel::BuildError> {
    /// let cache = Cache::<u64, String>::builder()
    ///     .max_capacity(1000)
    ///     .time_to_live(Duration::from_secs(60))
    ///     .driver(Driver::Task)
    ///     .clock(ManualClock::new())
    ///     .eviction_listener_async(|removal| async move {
    ///         println!("{} has left", removal.key); // or send it somewhere
    ///     })
    ///     .build()?;
    /// cache.insert(1, "tea".to_string());
    /// cache.close_async().await; // "1 has left"
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Dropping the returned future is safe at any point: the cache is closed from its first poll
    /// on, and the next call, or whoever drives the cache, goes on with the events where it was.
    /// Idempotent. It does not wait for the future of [`drive`](Self::drive), which ends at its
    /// next poll, and takes its refreshes with it.
    ///
    /// A listener, loader or closure may await it. Then it waits for nobody, like `close`.
    pub async fn close_async(&self) {
        self.owner.close_async().await;
    }
}
