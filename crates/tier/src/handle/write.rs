//! Threads and tasks write and invalidate through these calls.

use std::hash::Hash;
use std::time::Duration;

use super::block::block_on;
use super::cache::TieredCache;
use super::life::Life;
use crate::codec::TierKey;
use crate::core::tags::SPACE;
use crate::engine::EngineError;

/// # Writing and invalidating
///
/// When `insert` or `invalidate` returns, no process reads the old value from the engine any more.
/// Each forgets its own copy when the message of the change arrives; this process has forgotten it
/// already.
///
/// With `invalidate_tag` and `clear`, the values stay in the engine. Until the message of the new
/// version arrives, another process may read one of them once more, and what it stores with the old
/// version is invalid for everybody.
impl<K, V> TieredCache<K, V>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Stores a value in the engine, with the tier's life. The first tier has it when it is read
    /// for the first time.
    ///
    /// # Errors
    ///
    /// If the engine has not taken it; it may have, if it took too long. It is not tried again: it
    /// could replace what another process has written since. [`EngineError::Unstorable`] says that
    /// the value cannot be stored; what was there before is removed then.
    pub fn insert(&self, key: K, value: V) -> Result<(), EngineError> {
        self.insert_with(key, value, Life::configured())
    }

    /// Inserts as [`insert`](Self::insert) does, with a time to live of its own.
    ///
    /// # Errors
    ///
    /// As that.
    pub fn insert_with_ttl(&self, key: K, value: V, ttl: Duration) -> Result<(), EngineError> {
        self.insert_with(key, value, Life::ttl(ttl))
    }

    /// Inserts as [`insert`](Self::insert) does, with a life of its own.
    ///
    /// # Errors
    ///
    /// As that.
    pub fn insert_with(&self, key: K, value: V, life: Life) -> Result<(), EngineError> {
        block_on(self.insert_with_async(key, value, life))
    }

    /// Inserts as [`insert`](Self::insert) does, for tasks.
    ///
    /// # Errors
    ///
    /// As that.
    pub async fn insert_async(&self, key: K, value: V) -> Result<(), EngineError> {
        self.insert_with_async(key, value, Life::configured()).await
    }

    /// Inserts as [`insert_with`](Self::insert_with) does, for tasks.
    ///
    /// # Errors
    ///
    /// As [`insert`](Self::insert).
    pub async fn insert_with_async(&self, key: K, value: V, life: Life) -> Result<(), EngineError> {
        self.inner.insert(&key, &value, life).await
    }

    /// Removes a key from both tiers. A load in progress, in any process, stores nothing.
    ///
    /// # Errors
    ///
    /// If the engine has not taken it. Then this cache tries again, before it reads anything else
    /// from the engine.
    pub fn invalidate(&self, key: &K) -> Result<(), EngineError> {
        block_on(self.inner.invalidate(key))
    }

    /// Invalidates as [`invalidate`](Self::invalidate) does, for tasks.
    ///
    /// # Errors
    ///
    /// As that.
    pub async fn invalidate_async(&self, key: &K) -> Result<(), EngineError> {
        self.inner.invalidate(key).await
    }

    /// Invalidates everything that was stored with a tag, however much that is, in one step. What a
    /// loader returns that was running meanwhile is not stored. Nothing has the empty tag.
    ///
    /// # Errors
    ///
    /// As [`invalidate`](Self::invalidate).
    pub fn invalidate_tag(&self, tag: &str) -> Result<(), EngineError> {
        block_on(self.invalidate_tag_async(tag))
    }

    /// Invalidates as [`invalidate_tag`](Self::invalidate_tag) does, for tasks.
    ///
    /// # Errors
    ///
    /// As that.
    pub async fn invalidate_tag_async(&self, tag: &str) -> Result<(), EngineError> {
        if tag.is_empty() {
            // To the engine, it would be the whole namespace.
            return Ok(());
        }
        self.inner.invalidate_tag(tag).await
    }

    /// Invalidates the whole namespace, in one step. Its values leave the engine when their time is
    /// over, or it needs room.
    ///
    /// # Errors
    ///
    /// As [`invalidate`](Self::invalidate).
    pub fn clear(&self) -> Result<(), EngineError> {
        block_on(self.clear_async())
    }

    /// Clears as [`clear`](Self::clear) does, for tasks.
    ///
    /// # Errors
    ///
    /// As that.
    pub async fn clear_async(&self) -> Result<(), EngineError> {
        self.inner.invalidate_tag(SPACE).await
    }
}
