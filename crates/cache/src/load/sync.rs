//! A load on this thread, which sleeps while another one loads.

use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use equivalent::Equivalent;

use super::claim::{Request, Step};
use super::form::KeyForm;
use super::many::Many;
use super::{Answer, Found, Said};
use crate::core::inner::Inner;
use crate::lifetime::Loaded;
use crate::quiet::Quiet;

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Inner<K, V, S> {
    #[inline(always)]
    pub(crate) fn load<E>(
        &self,
        key: impl KeyForm<K>,
        absent: bool,
        load: impl FnOnce() -> Said<V, E>,
    ) -> Found<V, E>
    where
        E: Send + Sync + 'static,
    {
        let load = Quiet::new(load, &self.counters);
        let key = Quiet::new(key, &self.counters);
        let hash = self.hash(key.sought());
        if let Some(found) = self.glance(hash, key.sought(), absent, true) {
            return found;
        }
        self.load_missing(self.request(hash, key.into_inner(), absent, true), load)
    }

    #[cold]
    fn load_missing<'a, E>(
        &'a self,
        mut request: Request<'a, K>,
        load: Quiet<'_, impl FnOnce() -> Said<V, E>>,
    ) -> Found<V, E>
    where
        E: Send + Sync + 'static,
    {
        let mut waited = None;
        let lead = loop {
            match self.continue_load(&mut request, waited.take()) {
                Step::Answer(found) => return found,
                Step::Lead(lead) => break lead,
                Step::Wait(flight) => waited = Some((flight.wait(), flight)),
            }
        };
        // The lead is handed over before the panic goes on: the next leader need not wait for the unwinding.
        self.lead(|| match catch_unwind(AssertUnwindSafe(load.into_inner())) {
            Ok(said) => lead.finish(said.map_err(Arc::new)),
            Err(panic) => {
                lead.give_up();
                resume_unwind(panic)
            }
        })
    }

    pub(crate) fn load_many<'q, E, Q, I, T>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
        mut load: impl FnMut(Vec<K>) -> Result<I, E>,
    ) -> Vec<Answer<V, E>>
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
