//! A load on this thread, which sleeps while another one loads.

use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::claim::{Asked, Step};
use super::{Answer, Said};
use crate::core::inner::Inner;
use crate::quiet::Quiet;

impl<K: Hash + Eq, V: Clone, S: BuildHasher> Inner<K, V, S> {
    pub(crate) fn load<E>(
        &self,
        key: K,
        absent: bool,
        load: impl FnOnce() -> Said<V, E>,
    ) -> Answer<V, E>
    where
        E: Send + Sync + 'static,
    {
        let load = Quiet::new(load, &self.counters);
        let mut request = match self.begin_load(key, absent, true) {
            Asked::Answer(answer) => return answer,
            Asked::Request(request) => request,
        };
        let mut waited = None;
        let lead = loop {
            match self.continue_load(&mut request, waited.take()) {
                Step::Answer(answer) => return answer,
                Step::Lead(lead) => break lead,
                Step::Wait(flight) => waited = Some((flight.wait(), flight)),
            }
        };
        // The lead is handed over before the panic goes on: the next leader need not wait for the unwinding.
        self.lead(|| match catch_unwind(AssertUnwindSafe(load.into_inner())) {
            Ok(said) => lead.finish(said),
            Err(panic) => {
                lead.give_up();
                resume_unwind(panic)
            }
        })
    }
}
