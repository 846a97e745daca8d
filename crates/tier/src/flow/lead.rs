//! The load that has the lease runs the loader, and stores the value in the engine.

use std::hash::Hash;
use std::time::Duration;

use tidewheel::Loaded;

use super::Inner;
use super::miss::Miss;
use super::open::{Question, unstored};
use super::versions::unique;
use crate::codec::{TierKey, pack};
use crate::core::age::{Age, Left};
use crate::core::envelope::{Envelope, TAG_BYTES_MAX, TAGS_MAX};
use crate::core::faults::fault;
use crate::core::names::Wire;
use crate::core::watch::Watch;
use crate::engine::{Backend, EngineError, Filled};
use crate::handle::held::Held;
use crate::handle::life::{Given, Life};

/// A lease that goes with its holder: when a loader fails or panics, or its future is dropped. It
/// begins when the lease is asked for: a future that is dropped before the answer comes may have
/// won it.
pub(super) struct Leased<'a> {
    backend: &'a dyn Backend,
    key: Option<Wire>,
    lease: u128,
}

impl<'a> Leased<'a> {
    pub(super) fn asked(backend: &'a dyn Backend, key: &Wire, lease: u128) -> Self {
        Self {
            backend,
            key: Some(key.clone()),
            lease,
        }
    }

    /// Keeps the lease if it is held: if not, it is another one's, or over.
    pub(super) fn keep_if(mut self, is_held: bool) -> Option<Self> {
        if !is_held {
            self.key = None;
        }
        is_held.then_some(self)
    }
}

impl Drop for Leased<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.backend.release(key, self.lease);
        }
    }
}

/// A value that is to be stored.
pub(super) struct Parcel {
    pub(super) envelope: Vec<u8>,
    pub(super) ttl_ms: u64,
    pub(super) left: Left,
}

impl<K, V> Inner<K, V>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Runs the loader, and stores what it brings if the lease is still this load's.
    pub(super) async fn lead<E, F>(
        &self,
        miss: Miss<'_>,
        leased: Leased<'_>,
        kept: Option<Loaded<Held<V>>>,
        load: F,
    ) -> Result<Loaded<Held<V>>, E>
    where
        F: Future<Output = Result<Option<Given<V>>, E>>,
    {
        let (began, before) = (self.stream.now(), self.before());
        self.counters.loads();
        let given = match load.await {
            Ok(given) => given,
            // What the first tier still has is no answer: if the engine has it no more, it may have
            // been invalidated.
            Err(error) => return self.old(kept.map(|entry| entry.value)).ok_or(error),
        };
        let (value, life) = self.parts(&given);
        let parcel = match self.versions_since(&life.tags, began).await {
            // What cannot be written is for those who wait.
            Ok(Some(versions)) => self
                .parcel(value, &life, &versions, miss.space)
                .unwrap_or_default(),
            Ok(None) => None,
            Err(_) => return Ok(self.kept_here(given, before)),
        };
        let Some(parcel) = parcel else {
            self.counters.fills_refused();
            return Ok(self.answer_only(given));
        };
        let mut question = self.question(miss.look.key.slot);
        let filled = self.fill(&miss, parcel.envelope, parcel.ttl_ms).await;
        // The fill has ended the lease, or somebody else has.
        drop(leased.keep_if(filled.is_err()));
        match filled {
            Ok(filled) if filled.is_stored => {
                question.answered_by(filled.server);
                Ok(self.filled(&question, given, &life, parcel.left))
            }
            Ok(_) => {
                self.counters.fills_refused();
                Ok(self.answer_only(given))
            }
            Err(_) => Ok(self.kept_here(given, before)),
        }
    }

    async fn fill(
        &self,
        miss: &Miss<'_>,
        envelope: Vec<u8>,
        ttl_ms: u64,
    ) -> Result<Filled, EngineError> {
        let key = miss.look.key.clone();
        if fault!(H7) {
            let put = self.ask(|engine| engine.put(key, envelope, ttl_ms)).await;
            return put.map(|server| Filled {
                is_stored: true,
                server,
            });
        }
        self.ask(|engine| engine.fill(key, miss.lease, envelope, ttl_ms))
            .await
    }

    /// The engine has it. The message of that change comes to this process too, and takes the entry
    /// away again, unless it came before.
    fn filled(
        &self,
        question: &Question,
        given: Option<Given<V>>,
        life: &Life,
        left: Left,
    ) -> Loaded<Held<V>> {
        self.counters.fills();
        let value = given.map(|given| given.value);
        if !life.tags.is_empty() {
            // Its tags are looked up when it is read.
            return self.value_only(value);
        }
        self.entry(question, value, Vec::new(), left)
    }

    /// The entry for those who wait, and nobody else.
    pub(super) fn answer_only(&self, given: Option<Given<V>>) -> Loaded<Held<V>> {
        self.value_only(given.map(|given| given.value))
    }

    pub(super) fn value_only(&self, value: Option<V>) -> Loaded<Held<V>> {
        unstored(Held {
            value,
            watch: Watch::never(),
            more: None,
        })
    }

    /// A value, or that there is none, and the life that the loader gave.
    fn parts<'g>(&self, given: &'g Option<Given<V>>) -> (Option<&'g V>, Life) {
        match given {
            Some(given) => (Some(&given.value), given.life.clone()),
            None => (
                None,
                Life::ttl(self.settings.negative_ttl).stale_for(Duration::ZERO),
            ),
        }
    }

    /// The bytes for the engine; `None` for a life of no time, and then it is not stored.
    pub(super) fn parcel(
        &self,
        value: Option<&V>,
        life: &Life,
        versions: &[u64],
        space: u64,
    ) -> Result<Option<Parcel>, EngineError> {
        let configured = &self.settings.life;
        let ttl = self.jittered(life.ttl.or(configured.ttl).unwrap_or_default());
        let hard = millis(ttl);
        if hard == 0 {
            return Ok(None);
        }
        check_tags(&life.tags)?;
        let fresh = life
            .fresh_for
            .or(configured.fresh_for.filter(|_| value.is_some()));
        let grace = fresh.map_or(0, |fresh| hard.saturating_sub(millis(fresh)));
        let kept = millis(life.stale_for.or(configured.stale_for).unwrap_or_default());
        let mut bytes = Vec::new();
        if let Some(value) = value {
            let written = self.codec.write(value, &mut bytes);
            written.map_err(|error| EngineError::Unstorable(error.to_string()))?;
        }
        let (payload, is_compressed) = pack(bytes, self.settings.compress_above);
        let envelope = Envelope {
            is_absent: value.is_none(),
            is_compressed,
            grace_ms: narrow(grace),
            kept_ms: narrow(kept),
            id: super::versions::unique_id(),
            space,
            tags: life
                .tags
                .iter()
                .map(String::as_str)
                .zip(versions.iter().copied())
                .collect(),
            payload: &payload,
        };
        let ttl_ms = hard.saturating_add(u64::from(envelope.kept_ms));
        let left = Left::of(&envelope, ttl_ms);
        debug_assert_ne!(left.age, Age::Kept, "it begins before its end");
        Ok(Some(Parcel {
            envelope: envelope.seal(),
            ttl_ms,
            left,
        }))
    }

    /// A time to live, less a random part of the jitter.
    fn jittered(&self, ttl: Duration) -> Duration {
        let share = (unique() >> 11) as f64 / (1u64 << 53) as f64;
        let ttl = ttl.min(Duration::from_millis(TTL_MAX_MS));
        ttl.mul_f64(1.0 - share * self.settings.jitter)
    }
}

fn check_tags(tags: &[String]) -> Result<(), EngineError> {
    let why = if tags.len() > TAGS_MAX {
        format!("{} tags, of at most {TAGS_MAX}", tags.len())
    } else if tags.iter().any(|tag| tag.len() > TAG_BYTES_MAX) {
        format!("a tag of more than {TAG_BYTES_MAX} bytes")
    } else {
        return Ok(());
    };
    Err(EngineError::Unstorable(why))
}

/// The longest time to live that an engine takes: some 285 years of milliseconds overflow its own
/// clock.
const TTL_MAX_MS: u64 = 100 * 365 * 24 * 3600 * 1000;

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis())
        .unwrap_or(u64::MAX)
        .min(TTL_MAX_MS)
}

fn narrow(ms: u64) -> u32 {
    u32::try_from(ms).unwrap_or(u32::MAX)
}
