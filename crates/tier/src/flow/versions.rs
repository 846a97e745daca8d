//! Versions of tags: the present one, and that of a value that was loaded a moment ago.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tidewheel_time::Moment;

use super::Inner;
use crate::codec::TierKey;
use crate::core::slot::slot;
use crate::core::tags::Tag;
use crate::engine::{EngineError, TagAnswer};

/// The engine keeps a tag's version for so many milliseconds: 30 days. A version that is gone is
/// replaced by another, and entries that had it count as invalidated.
pub(super) const TAG_TTL_MS: u64 = 30 * 24 * 3600 * 1000;

/// Times that a version is asked for while others change it.
const ATTEMPTS: usize = 8;

/// The error of an engine's milliseconds, in both directions together.
const ROUNDING: Duration = Duration::from_millis(2);

/// A number that nobody else has drawn.
pub(crate) fn unique() -> u64 {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    SEED.hash_one(NEXT.fetch_add(1, Relaxed))
}

/// An id that nobody else has drawn.
pub(crate) fn unique_id() -> u128 {
    u128::from(unique()) << 64 | u128::from(unique())
}

impl<K, V> Inner<K, V>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// The present version of a tag.
    pub(super) async fn tag(&self, name: &str) -> Result<(Arc<Tag>, u64), EngineError> {
        for _ in 0..ATTEMPTS {
            if let Some(known) = self.known_tag(name) {
                return Ok(known);
            }
            let wire = self.stream.names().tag(name);
            let cover = self.stream.cover_tag(slot(&wire));
            let tag = self.stream.tags.ask(name, cover);
            let answer = self.ask_tag(wire).await?;
            if !tag.is_of(answer.server) {
                return Ok((Tag::doubtful(), answer.version));
            }
            if let Some(version) = tag.learn(answer.version, self.stream.now()) {
                return Ok((tag, version));
            }
        }
        Err(EngineError::TimedOut)
    }

    fn known_tag(&self, name: &str) -> Option<(Arc<Tag>, u64)> {
        let tag = self.stream.tags.get(name)?;
        let version = tag.current(self.stream.clock())?;
        Some((tag, version))
    }

    /// The versions for a value whose load began then, if none of its tags was invalidated since.
    ///
    /// A version that this process knew before is right: if it is not the present one any more, the
    /// value is invalid from the start, as it should be. Others are asked for, together with the
    /// time since their last invalidation.
    pub(super) async fn versions_since(
        &self,
        tags: &[String],
        began: Moment,
    ) -> Result<Option<Vec<u64>>, EngineError> {
        let mut versions = Vec::with_capacity(tags.len());
        for name in tags {
            let known = self.known_tag(name);
            if let Some((_, version)) = known.filter(|(tag, _)| tag.was_known(began)) {
                versions.push(version);
                continue;
            }
            let answer = self.ask_tag(self.stream.names().tag(name)).await?;
            let took = Duration::from_nanos(self.stream.now().0.saturating_sub(began.0)) + ROUNDING;
            let within = |age| Duration::from_millis(age) <= took;
            if answer.invalidated_ms.is_some_and(within) {
                return Ok(None);
            }
            versions.push(answer.version);
        }
        Ok(Some(versions))
    }

    async fn ask_tag(&self, wire: Vec<u8>) -> Result<TagAnswer, EngineError> {
        self.ask(|engine| engine.tag(wire, unique(), TAG_TTL_MS))
            .await
    }
}
