//! A load on this thread, which sleeps while another caller loads.

use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};

use equivalent::Equivalent;

use super::claim::{NextStep, Request};
use super::form::KeyForm;
use super::lead::Lead;
use super::many::Many;
use super::old::{Old, end_load};
use super::{CallerAnswer, Found, LoaderAnswer};
use crate::core::inner::Inner;
use crate::core::read::Purpose;
use crate::loaded::Loaded;
use crate::quiet::Quiet;

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Inner<K, V, S> {
    #[inline(always)]
    pub(crate) fn load<E>(
        &self,
        key: impl KeyForm<K>,
        absent: bool,
        load: impl FnOnce() -> LoaderAnswer<V, E>,
    ) -> Found<V, E>
    where
        E: Send + Sync + 'static,
    {
        let load = Quiet::new(load, &self.counters);
        let key = Quiet::new(key, &self.counters);
        let hash = self.hash(key.sought());
        if let Some(found) = self.look_up(hash, key.sought(), absent, Purpose::Load) {
            return found;
        }
        self.load_missing(self.request(hash, key.into_inner(), absent, true), load)
    }

    #[cold]
    fn load_missing<'a, E>(
        &'a self,
        mut request: Request<'a, K>,
        load: Quiet<'_, impl FnOnce() -> LoaderAnswer<V, E>>,
    ) -> Found<V, E>
    where
        E: Send + Sync + 'static,
    {
        match self.lead_missing(&mut request) {
            Ok(lead) => self.lead(|| {
                let answer = catch_unwind(AssertUnwindSafe(load.into_inner()));
                end_load(lead, answer, None)
            }),
            Err(found) => found,
        }
    }

    /// As [`load`](Self::load), with a loader that is given the old value.
    pub(crate) fn load_with_old<E>(
        &self,
        key: impl KeyForm<K>,
        absent: bool,
        load: impl FnOnce(Option<V>) -> LoaderAnswer<V, E>,
    ) -> Found<V, E>
    where
        E: Send + Sync + 'static,
    {
        let load = Quiet::new(load, &self.counters);
        let key = Quiet::new(key, &self.counters);
        let hash = self.hash(key.sought());
        if let Some(found) = self.look_up(hash, key.sought(), absent, Purpose::Load) {
            return found;
        }
        let mut request = self.request(hash, key.into_inner(), absent, true);
        match self.lead_missing(&mut request) {
            Ok(lead) => self.lead(|| {
                let old = self.old_of(&lead);
                let (old, inherited) = old.map_or((None, None), Old::parts);
                let answer = catch_unwind(AssertUnwindSafe(|| load.into_inner()(old)));
                end_load(lead, answer, inherited)
            }),
            Err(found) => found,
        }
    }

    /// Waits until this thread leads the load, or there is an answer.
    fn lead_missing<'a, E>(
        &'a self,
        request: &mut Request<'a, K>,
    ) -> Result<Lead<'a, K, V, S>, Found<V, E>>
    where
        E: Send + Sync + 'static,
    {
        let mut waited = None;
        loop {
            match self.continue_load(request, waited.take()) {
                NextStep::Answer(found) => return Err(found),
                NextStep::Lead(lead) => return Ok(lead),
                NextStep::Wait(flight) => waited = Some((flight.wait(), flight)),
            }
        }
    }

    pub(crate) fn load_many<'q, E, Q, I, T>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        mut load: impl FnMut(Vec<K>) -> Result<I, E>,
    ) -> Vec<CallerAnswer<V, E>>
    where
        E: Send + Sync + 'static,
        Q: Hash + Equivalent<K> + ToOwned<Owned = K> + ?Sized + 'q,
        I: IntoIterator<Item = (K, T)>,
        T: Into<Loaded<V>>,
    {
        let mut many = Many::begin(self, keys, true);
        loop {
            let keys = many.keys_to_load();
            if !keys.is_empty() {
                self.lead(|| many.end(|| Ok(load(keys))));
            } else if let Some((at, wait)) = many.next_wait() {
                let (turn, flight) = wait.block();
                many.waited(at, turn, flight);
            } else {
                return many.answers();
            }
        }
    }
}
