//! A miss: look, lease, wait, look again.

use std::future::poll_fn;
use std::hash::Hash;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tidewheel::{Lifetime, Loaded, Presence};
use tidewheel_time::{Moment, nanos};

use super::Inner;
use super::lead::Leased;
use super::open::{Opened, Question};
use super::versions::unique_id;
use crate::codec::TierKey;
use crate::core::age::Age;
use crate::core::change_waiters::Waiting;
use crate::core::faults::fault;
use crate::core::tags::SPACE;
use crate::engine::{EngineError, Lease, Look, Looked};
use crate::handle::held::Held;
use crate::handle::life::Given;

/// Between two looks at a key that another process loads, at first and at most. An invalidation
/// message ends the wait.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Waits that are as short as a lease says it lasts. Then it is not believed.
const SHORT_WAITS: u32 = 16;

/// Looks at values that turn out to be invalid, before the loader runs without the engine.
const INVALID_MAX: usize = 4;

/// A load waits for so many leases, before its loader runs without the engine.
const LEASES: u32 = 3;

/// The outcome of one look.
enum Next<'a, V> {
    Answer(Loaded<Held<V>>),
    /// This load has the lease, and perhaps an old value.
    Lead(Leased<'a>, Option<Loaded<Held<V>>>),
    /// Another one has it, for so long.
    Wait(Duration),
    /// The value is invalid, and fresh by its time.
    Again(u128),
    /// The engine is away.
    Alone,
}

/// A miss on its way.
pub(super) struct Miss<'a> {
    pub(super) look: Look,
    pub(super) lease: u128,
    pub(super) space: u64,
    /// Waits for changes of the key, from before the first question on.
    pub(super) waiter: Waiting<'a>,
}

impl<K, V> Inner<K, V>
where
    K: TierKey + Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// The value of a key that the first tier has not, from the engine or the loader. Runs within a
    /// load of the first tier: an invalidation message of the key supersedes that from now on.
    pub(crate) async fn miss<E, F>(
        &self,
        key: &K,
        old: Option<Held<V>>,
        load: F,
    ) -> Result<Loaded<Held<V>>, E>
    where
        F: Future<Output = Result<Option<Given<V>>, E>>,
    {
        let bytes = bytes(key);
        let lease = unique_id();
        let ms = u32::try_from(self.settings.lease.as_millis()).unwrap_or(u32::MAX);
        let mut miss = Miss {
            look: Look {
                key: self.stream.names().wire(&bytes),
                lease: Some((lease, ms.max(1))),
                invalid: None,
            },
            lease,
            space: 0,
            waiter: self.stream.change_waiters.listen(&bytes),
        };
        let patience = self.settings.lease.saturating_mul(LEASES);
        let give_up = Moment(self.stream.now().0.saturating_add(nanos(patience)));
        let (mut pause, mut invalid, mut waited) = (FIRST_PAUSE, 0, 0);
        loop {
            match self.step(&mut miss).await {
                Next::Answer(entry) => return Ok(entry),
                Next::Lead(leased, kept) => {
                    return self.lead(miss, leased, kept, load).await;
                }
                Next::Again(id) if invalid < INVALID_MAX => {
                    invalid += 1;
                    miss.look.invalid = Some(id);
                }
                Next::Wait(left) if self.stream.now() < give_up => {
                    if waited == 0 {
                        self.counters.waits();
                    }
                    waited += 1;
                    // A lease that has no end, of somebody who does not know our keys, says zero.
                    let least = if waited > SHORT_WAITS {
                        pause / 8
                    } else {
                        Duration::ZERO
                    };
                    self.wait(&miss.waiter, pause.min(left).max(least)).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                _ => return self.alone(old, load).await,
            }
        }
    }

    /// The value of a key from the engine, or nothing. Who asks at the same time shares the answer.
    pub(crate) async fn look_up(&self, key: &K) -> Option<V> {
        for _ in 0..INVALID_MAX {
            drop(self.remove_unbelieved(key));
            let fetch = self.first.fetch(key.clone());
            let fetched = fetch.load_with_async(self.look_once(key)).await;
            let is_good = |held: &Held<V>| held.is_believed(self.stream.clock());
            let is_hit = matches!(fetched.outcome, tidewheel::Outcome::Hit);
            if !is_hit || fetched.value.as_ref().is_none_or(is_good) {
                return fetched.value?.value;
            }
        }
        None
    }

    async fn look_once(&self, key: &K) -> Presence<Held<V>> {
        let nothing = Presence::AbsentFor(Duration::ZERO);
        if !self.settle_pending().await {
            return nothing;
        }
        let look = Look {
            key: self.stream.names().wire(&bytes(key)),
            lease: None,
            invalid: None,
        };
        let mut question = self.question(look.key.slot);
        let Ok(space) = self.space(&mut question).await else {
            return nothing;
        };
        let Ok(looked) = self.looked(look).await else {
            return nothing;
        };
        question.answered_by(looked.server);
        match self.open(&question, looked.value.as_ref(), space).await {
            Ok(Opened::Valid { age, entry }) if age != Age::Kept => Presence::Present(entry),
            _ => nothing,
        }
    }

    /// The namespace's version. It decides over what is looked up after it, so whoever says it must
    /// be watched too.
    async fn space(&self, question: &mut Question) -> Result<u64, EngineError> {
        let (tag, space) = self.tag(SPACE).await?;
        if tag.is_replaced() && !fault!(H13) {
            question.doubt();
        }
        Ok(space)
    }

    async fn looked(&self, look: Look) -> Result<Looked, EngineError> {
        let looked = self.ask(|engine| engine.look(look)).await?;
        self.counters.looks();
        if looked.value.is_some() {
            self.counters.found();
        }
        Ok(looked)
    }

    /// Makes one look.
    async fn step(&self, miss: &mut Miss<'_>) -> Next<'_, V> {
        if !self.settle_pending().await {
            return Next::Alone;
        }
        let mut question = self.question(miss.look.key.slot);
        let Ok(space) = self.space(&mut question).await else {
            return Next::Alone;
        };
        miss.space = space;
        let asked = Leased::asked(&*self.backend, &miss.look.key, miss.lease);
        let looked = match self.looked(miss.look.clone()).await {
            Ok(looked) => looked,
            Err(error) => {
                // After other errors it may have been won.
                drop(asked.keep_if(error != EngineError::LeftAlone));
                return Next::Alone;
            }
        };
        let leased = asked.keep_if(looked.lease == Lease::Won);
        question.answered_by(looked.server);
        match self.open(&question, looked.value.as_ref(), space).await {
            Ok(opened) => next(leased, looked.lease, opened),
            Err(_) => Next::Alone,
        }
    }

    /// Waits until an invalidation message comes, for so long at most.
    async fn wait(&self, waiter: &Waiting<'_>, most: Duration) {
        let mut pause = pin!(self.backend.pause(most));
        let mut changed = pin!(waiter.changed());
        poll_fn(|context| {
            let is_rung = changed.as_mut().poll(context).is_ready();
            if is_rung || pause.as_mut().poll(context).is_ready() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

/// The next step after a look's answer.
fn next<'a, V>(leased: Option<Leased<'a>>, lease: Lease, opened: Opened<V>) -> Next<'a, V> {
    match (leased, lease, opened) {
        (Some(leased), _, Opened::Valid { mut entry, .. }) => {
            // For a loader that fails: it is not to be asked again at once.
            entry.lifetime = Lifetime::ttl(Duration::ZERO);
            Next::Lead(leased, Some(entry))
        }
        (Some(leased), ..) => Next::Lead(leased, None),
        (
            None,
            Lease::Held(_),
            Opened::Valid {
                age: Age::Soft | Age::Fresh,
                entry,
            },
        ) => Next::Answer(entry),
        (None, Lease::Held(left), _) => Next::Wait(Duration::from_millis(left.saturating_add(1))),
        (None, _, Opened::Valid { entry, .. }) => Next::Answer(entry),
        (None, _, Opened::Invalid(id)) => Next::Again(id),
        (None, _, Opened::Nothing) => Next::Alone,
    }
}

/// A key's bytes.
pub(super) fn bytes<K: TierKey>(key: &K) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.write(&mut bytes);
    bytes
}
