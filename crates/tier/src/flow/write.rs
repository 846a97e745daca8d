//! Writes and invalidations.

use std::hash::Hash;

use super::Inner;
use super::miss::bytes;
use super::versions::{TAG_TTL_MS, unique};
use crate::codec::TierKey;
use crate::core::tags::SPACE;
use crate::engine::EngineError;
use crate::guard::pending::Invalidation;
use crate::handle::life::Life;

/// Invalidations that are tried again before one question.
const RETRIES: usize = 64;

impl<K, V> Inner<K, V>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(crate) async fn insert(&self, key: &K, value: &V, life: Life) -> Result<(), EngineError> {
        let wire = self.plane.names().wire(&bytes(key));
        let (_, space) = self.tag(SPACE).await?;
        let mut versions = Vec::with_capacity(life.tags.len());
        for tag in &life.tags {
            versions.push(self.tag(tag).await?.1);
        }
        let stored = match self.parcel(Some(value), &life, &versions, space) {
            Ok(Some(parcel)) => {
                self.ask(|engine| engine.put(wire, parcel.envelope, parcel.ttl_ms))
                    .await
            }
            Ok(None) => self.ask(|engine| engine.remove(wire)).await,
            Err(why) => self.ask(|engine| engine.remove(wire)).await.and(Err(why)),
        };
        self.first.invalidate(key);
        stored
    }

    pub(crate) async fn invalidate(&self, key: &K) -> Result<(), EngineError> {
        self.first.invalidate(key);
        let key_bytes = bytes(key);
        let wire = self.plane.names().wire(&key_bytes);
        let removed = self.ask(|engine| engine.remove(wire)).await;
        if removed.is_err() {
            self.pending.add(Invalidation::Key(key_bytes));
        }
        // Once more: it may have been read from the engine meanwhile.
        self.first.invalidate(key);
        removed
    }

    /// Invalidates a tag; the empty one is that of the whole namespace.
    pub(crate) async fn invalidate_tag(&self, tag: &str) -> Result<(), EngineError> {
        self.forget_tag(tag);
        let wire = self.plane.names().tag(tag);
        let done = self
            .ask(|engine| engine.invalidate_tag(wire, unique(), TAG_TTL_MS))
            .await;
        if done.is_err() {
            self.pending.add(Invalidation::Tag(tag.to_owned()));
        }
        self.forget_tag(tag);
        done
    }

    /// What this process has of a tag.
    fn forget_tag(&self, tag: &str) {
        self.plane.forget_tag(tag);
        if tag == SPACE {
            self.first.invalidate_all();
        } else {
            self.first.invalidate_tag(tag);
        }
    }

    /// Tries invalidations again that the engine has not taken, before it is asked for anything.
    pub(super) async fn settle_pending(&self) {
        if !self.pending.any() {
            return;
        }
        for _ in 0..RETRIES {
            let Some(first) = self.pending.first() else {
                return;
            };
            if self.settle(&first).await.is_err() {
                return;
            }
            self.pending.done(&first);
        }
    }

    async fn settle(&self, invalidation: &Invalidation) -> Result<(), EngineError> {
        match invalidation {
            Invalidation::Key(key) => {
                let wire = self.plane.names().wire(key);
                self.ask(|engine| engine.remove(wire)).await
            }
            Invalidation::Tag(tag) => {
                let wire = self.plane.names().tag(tag);
                self.ask(|engine| engine.invalidate_tag(wire, unique(), TAG_TTL_MS))
                    .await
            }
        }
    }
}
