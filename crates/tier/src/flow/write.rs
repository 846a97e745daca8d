//! Writes and invalidations go to the engine.

use std::future::poll_fn;
use std::hash::Hash;
use std::task::Poll;
use std::time::Duration;

use super::Inner;
use super::miss::bytes;
use super::versions::{TAG_TTL_MS, unique};
use crate::codec::TierKey;
use crate::core::tags::SPACE;
use crate::engine::EngineError;
use crate::guard::pending::{Invalidation, Turn};
use crate::handle::life::Life;

/// Invalidations that are tried again at the same time.
const BATCH: usize = 128;

/// The pause between two looks whether another question still tries the invalidations, and the
/// number of looks.
const TURN: Duration = Duration::from_millis(5);
const TURNS: usize = 200;

impl<K, V> Inner<K, V>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(crate) async fn insert(&self, key: &K, value: &V, life: Life) -> Result<(), EngineError> {
        let key_bytes = bytes(key);
        self.settle_before(&key_bytes, &life.tags).await?;
        let wire = self.stream.names().wire(&key_bytes);
        let (_, space) = self.tag(SPACE).await?;
        let mut versions = Vec::with_capacity(life.tags.len());
        for tag in &life.tags {
            versions.push(self.tag(tag).await?.1);
        }
        let reign = self.recent.reign();
        let stored = match self.parcel(Some(value), &life, &versions, space) {
            Ok(Some(parcel)) => {
                self.ask(|engine| engine.put(wire, parcel.envelope, parcel.ttl_ms))
                    .await
            }
            Ok(None) => self.ask(|engine| engine.remove(wire)).await,
            Err(why) => self.ask(|engine| engine.remove(wire)).await.and(Err(why)),
        };
        if stored.is_ok() {
            self.taken(Invalidation::Key(key_bytes), reign);
        }
        self.first.invalidate(key);
        self.settle_after(&stored).await;
        stored.map(drop)
    }

    pub(crate) async fn invalidate(&self, key: &K) -> Result<(), EngineError> {
        self.first.invalidate(key);
        let key_bytes = bytes(key);
        let wire = self.stream.names().wire(&key_bytes);
        let reign = self.recent.reign();
        let removed = self.ask(|engine| engine.remove(wire)).await;
        match &removed {
            Ok(_) => self.taken(Invalidation::Key(key_bytes), reign),
            Err(_) => self.pending.add(Invalidation::Key(key_bytes)),
        }
        // Once more: it may have been read from the engine meanwhile.
        self.first.invalidate(key);
        self.settle_after(&removed).await;
        removed.map(drop)
    }

    /// Invalidates a tag; the empty one is that of the whole namespace.
    pub(crate) async fn invalidate_tag(&self, tag: &str) -> Result<(), EngineError> {
        self.forget_tag(tag);
        let wire = self.stream.names().tag(tag);
        let (failed, reign) = (self.pending.last(), self.recent.reign());
        let done = self
            .ask(|engine| engine.invalidate_tag(wire, unique(), TAG_TTL_MS))
            .await;
        let invalidation = Invalidation::Tag(tag.to_owned());
        match &done {
            Err(_) => self.pending.add(invalidation),
            Ok(_) => {
                if tag == SPACE {
                    self.pending.all_done(failed);
                }
                self.taken(invalidation, reign);
            }
        }
        self.forget_tag(tag);
        self.settle_after(&done).await;
        done.map(drop)
    }

    /// The engine has taken an invalidation, or a write, which was sent in this reign. If another
    /// server has taken over since, it is to be repeated there.
    fn taken(&self, invalidation: Invalidation, reign: u64) {
        if !self.recent.note(&invalidation, reign, self.stream.now()) {
            self.pending.add(invalidation);
        }
    }

    /// Forgets this process's entries of a tag.
    fn forget_tag(&self, tag: &str) {
        self.stream.forget_tag(tag);
        if tag == SPACE {
            self.first.invalidate_all();
        }
    }

    /// Tries invalidations again that the engine has not taken, before it is asked for anything.
    /// Tells whether none waits any more, here or in another process: if not, nothing may be read
    /// from the engine.
    pub(super) async fn settle_pending(&self) -> bool {
        let is_settled = !self.pending.any()
            || match self.turn().await {
                Some(_turn) => self.settle_all().await,
                None => !self.pending.any(),
            };
        is_settled && !self.stream.is_quiet()
    }

    /// Settles invalidations of a value before it is written: one that waits would take the value
    /// away again when it is tried later.
    async fn settle_before(&self, key: &[u8], tags: &[String]) -> Result<(), EngineError> {
        if !self.pending.any() {
            return Ok(());
        }
        let _turn = self.turn().await.ok_or(EngineError::TimedOut)?;
        for one in &self.pending.of(key, tags) {
            self.settle(one).await?;
        }
        Ok(())
    }

    /// The right to try them again, when nobody else has it; `None` if that takes too long.
    async fn turn(&self) -> Option<Turn<'_>> {
        for _ in 0..TURNS {
            if let Some(turn) = self.pending.turn() {
                return Some(turn);
            }
            self.backend.pause(TURN).await;
        }
        None
    }

    /// Tries all that wait; the first one alone, to see whether the engine is there.
    async fn settle_all(&self) -> bool {
        let mut count = 1;
        while self.pending.any() {
            if !self.settle_some(count).await {
                return false;
            }
            count = BATCH;
        }
        true
    }

    /// A few of them at the same time. Tells whether the engine has taken all of these.
    async fn settle_some(&self, count: usize) -> bool {
        let some = self.pending.some(count);
        let mut tried: Vec<_> = some.iter().map(|one| Box::pin(self.settle(one))).collect();
        let mut is_done = true;
        poll_fn(|context| {
            tried.retain_mut(|one| match one.as_mut().poll(context) {
                Poll::Ready(result) => {
                    is_done &= result.is_ok();
                    false
                }
                Poll::Pending => true,
            });
            if tried.is_empty() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        is_done
    }

    async fn settle(
        &self,
        (invalidation, number): &(Invalidation, u64),
    ) -> Result<(), EngineError> {
        let reign = self.recent.reign();
        match invalidation {
            Invalidation::Key(key) => {
                let wire = self.stream.names().wire(key);
                self.ask(|engine| engine.remove(wire)).await?;
            }
            Invalidation::Tag(tag) => {
                let wire = self.stream.names().tag(tag);
                self.ask(|engine| engine.invalidate_tag(wire, unique(), TAG_TTL_MS))
                    .await?;
            }
        }
        if self.recent.note(invalidation, reign, self.stream.now()) {
            self.pending.done(invalidation, *number);
        }
        Ok(())
    }

    /// Tries others after a write that the engine has taken: they may be taken too.
    async fn settle_after<T>(&self, written: &Result<T, EngineError>) {
        if written.is_ok()
            && self.pending.any()
            && let Some(_turn) = self.pending.turn()
        {
            self.settle_some(BATCH).await;
        }
    }
}
