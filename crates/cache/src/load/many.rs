//! A load of many keys: one call of the loader for all that are missing and that nobody else is
//! loading.
//!
//! 1. All keys are looked up. Each one that is missing is claimed: this caller leads its load, or
//!    joins the one that is in progress. Nothing is waited for, so two callers with the same keys
//!    cannot wait for each other.
//! 2. The loader is called for the keys that are led, and their loads end.
//! 3. Only now, leading nothing, it waits for the loads that it has joined, one after the other. If
//!    one of those failed, its key may be led now: then go to 2.

use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use equivalent::Equivalent;

use super::claim::{NextStep, Request, Wait, Waited};
use super::form::BorrowedKey;
use super::lead::Lead;
use super::{CallerAnswer, LoadError, LoaderAnswer};
use crate::core::inner::Inner;
use crate::core::read::Purpose;
use crate::loaded::{Loaded, Presence};
use crate::shard::by_hash::ByHash;
use crate::shard::flight::Flight;

/// The keys that one caller asks for, and what has come of them so far.
pub(super) struct Many<'a, 'q, K: Hash + Eq, V, S: BuildHasher, E, Q: ?Sized> {
    inner: &'a Inner<K, V, S>,
    /// The answers, in the order of the keys.
    answers: Vec<Option<CallerAnswer<V, E>>>,
    missing: Vec<Missing<'a, 'q, K, V, S, Q>>,
    /// The missing keys by their hashes.
    table: ByHash<usize>,
}

/// A key that was not there.
struct Missing<'a, 'q, K: Hash + Eq, V, S: BuildHasher, Q: ?Sized> {
    sought: &'q Q,
    request: Request<'a, K>,
    /// The positions at which the key was asked for.
    places: Vec<usize>,
    /// If this caller loads it.
    lead: Option<Lead<'a, K, V, S>>,
    /// If another caller does.
    wait: Option<Wait<'a, K, V, S>>,
}

impl<'a, 'q, K, V, S, E, Q> Many<'a, 'q, K, V, S, E, Q>
where
    K: Hash + Eq,
    V: Clone,
    S: BuildHasher,
    E: LoadError,
    Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized,
{
    /// Looks all keys up, and claims those that are missing.
    pub(super) fn begin(
        inner: &'a Inner<K, V, S>,
        keys: impl IntoIterator<Item = &'q Q>,
        blocks: bool,
    ) -> Self {
        let mut many = Self {
            inner,
            answers: Vec::new(),
            missing: Vec::new(),
            table: ByHash::new(),
        };
        for key in keys {
            many.claim_or_answer(key, blocks);
        }
        for at in 0..many.missing.len() {
            many.go_on(at, None);
        }
        many
    }

    fn claim_or_answer(&mut self, key: &'q Q, blocks: bool) {
        let hash = self.inner.hash(key);
        let place = self.answers.len();
        if let Some(found) = self.inner.look_up(hash, key, true, Purpose::Load) {
            return self.answers.push(Some(found.value));
        }
        self.answers.push(None);
        let is = |at: &&usize| {
            self.missing[**at]
                .request
                .asks(hash, |stored| key.equivalent(stored))
        };
        if let Some(at) = self.table.find(hash.0, is).copied() {
            return self.missing[at].places.push(place);
        }
        let request = self.inner.request(hash, BorrowedKey(key), true, blocks);
        self.table.add(hash.0, self.missing.len());
        self.missing.push(Missing {
            sought: key,
            request,
            places: vec![place],
            lead: None,
            wait: None,
        });
    }

    /// The next step for a missing key.
    fn go_on(&mut self, at: usize, waited: Option<Waited<V>>) {
        let missing = &mut self.missing[at];
        match self.inner.continue_load(&mut missing.request, waited) {
            NextStep::Answer(found) => self.answer(at, found.value),
            NextStep::Lead(lead) => missing.lead = Some(lead),
            NextStep::Wait(flight) => {
                missing.wait = Some(Wait::new(self.inner, missing.request.hash, flight));
            }
        }
    }

    fn answer(&mut self, at: usize, answer: CallerAnswer<V, E>) {
        let (last, others) = match self.missing[at].places.split_last() {
            Some((last, others)) => (*last, others),
            None => return,
        };
        for place in others {
            self.answers[*place] = Some(answer.clone());
        }
        self.answers[last] = Some(answer);
    }

    /// The keys that the loader is to be called for.
    pub(super) fn keys_to_load(&self) -> Vec<K> {
        let led = self.missing.iter().filter(|missing| missing.lead.is_some());
        led.map(|missing| missing.sought.to_owned()).collect()
    }

    /// The loads that these are.
    pub(super) fn flights(&self) -> Vec<Arc<Flight<V>>> {
        let leads = self
            .missing
            .iter()
            .filter_map(|missing| missing.lead.as_ref());
        leads.map(|lead| Arc::clone(&lead.flight)).collect()
    }

    /// Ends the loads with what the loader says, or with its panic. The values that came before the
    /// panic count.
    pub(super) fn end<I, T>(&mut self, load: impl FnOnce() -> std::thread::Result<Result<I, E>>)
    where
        I: IntoIterator<Item = (K, T)>,
        T: Into<Loaded<V>>,
    {
        let taken = catch_unwind(AssertUnwindSafe(|| {
            load().map(|answer| self.take_answer(answer))
        }));
        if let Err(panic) = taken.and_then(|taken| taken) {
            self.give_up();
            resume_unwind(panic);
        }
    }

    fn take_answer<I, T>(&mut self, answer: Result<I, E>)
    where
        I: IntoIterator<Item = (K, T)>,
        T: Into<Loaded<V>>,
    {
        match answer {
            Ok(pairs) => {
                for (key, value) in pairs {
                    self.take_value(key, value.into());
                }
                self.end_rest(|| Ok(Presence::Absent));
            }
            Err(error) => {
                let error = Arc::new(error);
                self.end_rest(|| Err(Arc::clone(&error)));
            }
        }
    }

    /// A value of the loader's. One that it was not asked for is dropped: a writer may have stored
    /// a newer one.
    fn take_value(&mut self, key: K, loaded: Loaded<V>) {
        let hash = self.inner.hash(&key);
        let is = |at: &&usize| self.missing[**at].sought.equivalent(&key);
        let found = self.table.find(hash.0, is).copied();
        match found.and_then(|at| Some((at, self.missing[at].lead.take()?))) {
            Some((at, lead)) => self.answer(at, lead.finish::<E>(Ok(loaded.into()), None).value),
            None => self.inner.counters.discard(loaded),
        }
        self.inner.counters.discard(key);
    }

    /// Ends the loads for which the loader has given no value.
    fn end_rest(&mut self, answer: impl Fn() -> LoaderAnswer<V, Arc<E>>) {
        for at in 0..self.missing.len() {
            if let Some(lead) = self.missing[at].lead.take() {
                self.answer(at, lead.finish(answer(), None).value);
            }
        }
    }

    /// The loader has panicked: others load.
    fn give_up(&mut self) {
        for missing in &mut self.missing {
            if let Some(lead) = missing.lead.take() {
                lead.give_up();
            }
        }
    }

    /// The next load to wait for, with its number.
    pub(super) fn next_wait(&mut self) -> Option<(usize, Wait<'a, K, V, S>)> {
        let mut missing = self.missing.iter_mut().enumerate();
        missing.find_map(|(at, missing)| Some((at, missing.wait.take()?)))
    }

    /// A load that was waited for is over, and perhaps others with it.
    pub(super) fn waited(&mut self, at: usize, waited: Waited<V>) {
        self.go_on(at, Some(waited));
        for at in 0..self.missing.len() {
            if let Some(wait) = self.missing[at].wait.take() {
                match wait.try_end() {
                    Ok(waited) => self.go_on(at, Some(waited)),
                    Err(wait) => self.missing[at].wait = Some(wait),
                }
            }
        }
    }

    /// An answer for each key, in their order.
    pub(super) fn answers(mut self) -> Vec<CallerAnswer<V, E>> {
        let answers = std::mem::take(&mut self.answers);
        let answer = |answer: Option<_>| answer.expect("all have been answered");
        answers.into_iter().map(answer).collect()
    }
}

impl<K: Hash + Eq, V, S: BuildHasher, E, Q: ?Sized> Drop for Many<'_, '_, K, V, S, E, Q> {
    fn drop(&mut self) {
        self.inner.counters.discard_all(self.answers.drain(..));
    }
}
