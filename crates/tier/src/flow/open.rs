//! An answer of the engine becomes an entry of the first tier, or nothing.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tidewheel::{Lifetime, Loaded};
use tidewheel_time::{Moment, nanos};

use super::Inner;
use crate::codec::{TierKey, unpack};
use crate::core::age::{Age, Left};
use crate::core::envelope::Envelope;
use crate::core::faults::fault;
use crate::core::invalidation_stream::Cover;
use crate::core::server::ServerId;
use crate::core::tags::Tag;
use crate::core::watch::Watch;
use crate::engine::EngineError;
use crate::handle::held::{Held, Kept, More};

/// The engine is looked at again so long after a soft deadline, while another process loads.
const SOFT_PAUSE: Duration = Duration::from_millis(100);

/// The state before a question was sent.
#[derive(Debug)]
pub(super) struct Question {
    /// The cover of the key.
    pub(super) cover: Cover,
    /// The first tier's time.
    pub(super) begin: Duration,
    /// The number of times that the namespace had been cleared.
    cleared: u64,
}

impl Question {
    /// Keeps nothing of the answer: it is of another server than the one that is watched.
    pub(super) fn doubt(&mut self) {
        self.cover = Cover::Refused;
    }

    /// Notes the server that has answered.
    pub(super) fn answered_by(&mut self, server: Option<ServerId>) {
        let is_told_of = match &self.cover {
            Cover::Watched(watch) | Cover::Degraded(watch) => watch.is_of(server),
            Cover::Refused => false,
        };
        if !is_told_of {
            self.doubt();
        }
    }
}

/// A value of the engine's.
pub(super) enum Opened<V> {
    /// The value may be used.
    Valid { age: Age, entry: Loaded<Held<V>> },
    /// The value counts as none: a tag of it was invalidated, or it cannot be read. This is its id.
    Invalid(u128),
    /// The bytes are none of ours.
    Nothing,
}

impl<K, V> Inner<K, V>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// The cover of a key, and the time: both before the question is sent.
    pub(super) fn question(&self, slot: u16) -> Question {
        Question {
            cover: self.stream.cover(slot),
            begin: self.first.now(),
            cleared: self.stream.cleared(),
        }
    }

    /// Reads what was answered.
    pub(super) async fn open(
        &self,
        question: &Question,
        value: Option<&(Vec<u8>, u64)>,
        space: u64,
    ) -> Result<Opened<V>, EngineError> {
        let envelope = value.and_then(|(bytes, pttl)| Some((Envelope::open(bytes)?, *pttl)));
        let Some((envelope, pttl)) = envelope else {
            let Some((bytes, _)) = value else {
                return Ok(Opened::Nothing);
            };
            self.counters.unreadable();
            // A damaged one has an id for the engine: who asks with it may load the value again.
            return Ok(Envelope::id_of(bytes).map_or(Opened::Nothing, Opened::Invalid));
        };
        let Some(tags) = self.check(&envelope, space).await? else {
            return Ok(Opened::Invalid(envelope.id));
        };
        let Some(value) = self.read(&envelope) else {
            self.counters.unreadable();
            return Ok(Opened::Invalid(envelope.id));
        };
        let left = Left::of(&envelope, pttl);
        let entry = self.entry(question, value, tags, left);
        let age = left.age;
        Ok(Opened::Valid { age, entry })
    }

    /// The tags of an envelope, if all of its versions are the present ones.
    async fn check(
        &self,
        envelope: &Envelope<'_>,
        space: u64,
    ) -> Result<Option<Vec<Arc<Tag>>>, EngineError> {
        if envelope.space != space {
            return Ok(None);
        }
        let mut tags = Vec::with_capacity(envelope.tags.len());
        for (name, version) in &envelope.tags {
            let (tag, present) = self.tag(name).await?;
            if present != *version {
                return Ok(None);
            }
            tags.push(tag);
        }
        Ok(Some(tags))
    }

    /// The value, or that there is none; `None` if it cannot be read.
    fn read(&self, envelope: &Envelope<'_>) -> Option<Option<V>> {
        if envelope.is_absent {
            return Some(None);
        }
        let bytes = unpack(envelope.payload, envelope.is_compressed).ok()?;
        self.codec.read(&bytes).ok().map(Some)
    }

    /// An entry of the first tier. Its time begins when the question was sent.
    pub(super) fn entry(
        &self,
        question: &Question,
        value: Option<V>,
        tags: Vec<Arc<Tag>>,
        left: Left,
    ) -> Loaded<Held<V>> {
        let mut begin = question.begin;
        if fault!(H4) {
            begin = self.first.now();
        }
        let (watch, most) = match &question.cover {
            Cover::Watched(watch) => (Arc::clone(watch), Duration::MAX),
            Cover::Degraded(watch) => (Arc::clone(watch), self.stream.degraded_life()),
            Cover::Refused => (Watch::never(), Duration::ZERO),
        };
        let soft = match left.age {
            Age::Soft => Some(SOFT_PAUSE),
            _ => left.soft,
        };
        let end = begin.saturating_add(left.hard).saturating_add(left.kept);
        let kept = (!left.kept.is_zero()).then_some(Kept {
            until: end,
            cleared: question.cleared,
        });
        let held = Held {
            value,
            watch,
            more: More::of(tags, soft.map(|soft| self.soft(soft)), kept),
        };
        let mut ttl = left.local();
        if fault!(H6) {
            ttl += crate::core::faults::skew();
        }
        let mut life = kept_after(Lifetime::ttl_since(begin, ttl.min(most)), left.kept);
        if let Some(soft) = soft {
            life = life.fresh_for(soft);
        }
        Loaded::new(held, life)
    }

    fn soft(&self, soft: Duration) -> Moment {
        Moment(self.stream.now().0.saturating_add(nanos(soft)))
    }
}

/// A lifetime after whose end an entry is kept for so long. Set only where it is needed: an entry
/// without one takes less memory, and is read in less time.
pub(super) fn kept_after(life: Lifetime, kept: Duration) -> Lifetime {
    if kept.is_zero() {
        return life;
    }
    life.stale_for(kept)
}

/// An entry that is answered to those who wait, and not stored.
pub(super) fn unstored<V>(held: Held<V>) -> Loaded<Held<V>> {
    let life = Lifetime::ttl(Duration::ZERO).stale_for(Duration::ZERO);
    Loaded::new(held, life)
}
