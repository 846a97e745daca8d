//! A load on this thread, which sleeps while another caller loads.

use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind};

use equivalent::Equivalent;

use super::claim::{NextStep, Request};
use super::form::KeyForm;
use super::lead::Lead;
use super::many::Many;
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
        self.load_by(key, absent, |lead| {
            let answer = catch_unwind(AssertUnwindSafe(load.into_inner()));
            lead.conclude(answer, None)
        })
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
        self.load_by(key, absent, |lead| {
            let (old, inherited) = lead.old().unzip();
            let answer = catch_unwind(AssertUnwindSafe(|| load.into_inner()(old)));
            lead.conclude(answer, inherited.as_ref())
        })
    }

    /// Looks a key up, and lets `run` run the loader if this thread leads the load.
    #[inline(always)]
    fn load_by<E>(
        &self,
        key: impl KeyForm<K>,
        absent: bool,
        run: impl FnOnce(Lead<'_, K, V, S>) -> Found<V, E>,
    ) -> Found<V, E>
    where
        E: Send + Sync + 'static,
    {
        let key = Quiet::new(key, &self.counters);
        let hash = self.hash(key.sought());
        if let Some(found) = self.look_up(hash, key.sought(), absent, Purpose::Load) {
            return found;
        }
        self.load_missing(self.request(hash, key.into_inner(), absent, true), run)
    }

    #[cold]
    fn load_missing<'a, E>(
        &'a self,
        mut request: Request<'a, K>,
        run: impl FnOnce(Lead<'a, K, V, S>) -> Found<V, E>,
    ) -> Found<V, E>
    where
        E: Send + Sync + 'static,
    {
        let mut waited = None;
        loop {
            match self.continue_load(&mut request, waited.take()) {
                NextStep::Answer(found) => return found,
                NextStep::Lead(lead) => return self.lead(|| run(lead)),
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
                many.waited(at, wait.block());
            } else {
                return many.answers();
            }
        }
    }
}
