//! An engine in this process: for tests, and for several caches on one machine.

mod model;
mod pause;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tidewheel_time::{Clock, Moment, SystemClock};

use crate::core::invalidation_stream::{InvalidationStream, Owners};
use crate::core::names::Wire;
use crate::core::server::ServerId;
use crate::engine::{Answer, Backend, Filled, Look, Looked, TagAnswer};
pub(crate) use model::{Changed, Model, here};
#[cfg(feature = "valkey")]
pub(crate) use model::{tag_answer, version_bytes};
use pause::Pause;

/// The only source there is.
const SOURCE: u32 = 0;

/// An engine in this process. A clone is another handle to the same one.
///
/// Caches with the same namespace share their values, as processes do that have the same server.
/// All of it is gone with the last handle.
#[derive(Clone)]
pub struct Embedded(Arc<Inner>);

struct Inner {
    clock: Arc<dyn Clock>,
    is_real: bool,
    model: Mutex<Model>,
    streams: Mutex<Vec<Weak<InvalidationStream>>>,
}

impl Default for Embedded {
    fn default() -> Self {
        Self::new()
    }
}

impl Embedded {
    /// Makes an engine by the system's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::build(SystemClock::new(), true)
    }

    /// Makes an engine by a clock that is moved by hand.
    #[must_use]
    pub fn with_clock(clock: tidewheel::ManualClock) -> Self {
        Self::build(clock, false)
    }

    fn build(clock: impl Clock, is_real: bool) -> Self {
        Self(Arc::new(Inner {
            clock: Arc::new(clock),
            is_real,
            model: Mutex::new(Model::default()),
            streams: Mutex::default(),
        }))
    }

    /// Removes everything, as FLUSHALL does.
    pub fn flush(&self) {
        self.0.model().flush();
        for stream in self.0.streams() {
            stream.flushed(SOURCE);
        }
    }

    /// Runs one command, and tells everybody what it has changed.
    fn run<T: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Model, u64) -> (T, Changed),
    ) -> Answer<'static, T> {
        let now = self.0.now_ms();
        let (answer, changed) = command(&mut self.0.model(), now);
        for stream in self.0.streams() {
            stream.changed(changed.iter().map(Vec::as_slice));
        }
        Box::pin(std::future::ready(Ok(answer)))
    }

    /// The same of a command that answers nothing.
    fn write(
        &self,
        command: impl FnOnce(&mut Model, u64) -> ((), Changed),
    ) -> Answer<'static, Option<ServerId>> {
        self.run(move |model, now| (Some(here()), command(model, now).1))
    }
}

impl Inner {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.now().as_millis()).unwrap_or(u64::MAX)
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn streams(&self) -> Vec<Arc<InvalidationStream>> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Backend for Embedded {
    fn attach(&self, stream: Arc<InvalidationStream>) {
        stream.owned(Owners::One(SOURCE));
        stream.connected(SOURCE, here());
        // Nothing comes between this engine and its streams, now or ever.
        stream.heard(SOURCE, Moment(u64::MAX));
        stream.heard(SOURCE, Moment(u64::MAX));
        let mut streams = self
            .0
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        streams.push(Arc::downgrade(&stream));
    }

    fn detach(&self, stream: &Arc<InvalidationStream>) {
        let mut streams = self
            .0
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        streams.retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(stream)));
    }

    fn look(&self, look: Look) -> Answer<'_, Looked> {
        self.run(move |model, now| model.look(now, &look))
    }

    fn fill(&self, key: Wire, lease: u128, envelope: Vec<u8>, ttl_ms: u64) -> Answer<'_, Filled> {
        self.run(move |model, now| {
            let (is_stored, changed) = model.fill(now, &key, lease, envelope, ttl_ms);
            let server = Some(here());
            (Filled { is_stored, server }, changed)
        })
    }

    fn put(&self, key: Wire, envelope: Vec<u8>, ttl_ms: u64) -> Answer<'_, Option<ServerId>> {
        self.write(move |model, now| model.put(now, &key, envelope, ttl_ms))
    }

    fn remove(&self, key: Wire) -> Answer<'_, Option<ServerId>> {
        self.write(move |model, now| model.remove(now, &key))
    }

    fn release(&self, key: Wire, lease: u128) {
        // It is done when it returns.
        drop(self.run(move |model, now| model.release(now, &key, lease)));
    }

    fn tag(&self, tag: Vec<u8>, version: u64, ttl_ms: u64) -> Answer<'_, TagAnswer> {
        self.run(move |model, now| model.tag(now, tag, version, ttl_ms))
    }

    fn invalidate_tag(
        &self,
        tag: Vec<u8>,
        version: u64,
        ttl_ms: u64,
    ) -> Answer<'_, Option<ServerId>> {
        self.write(move |model, now| model.invalidate_tag(now, tag, version, ttl_ms))
    }

    fn pause(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(Pause::new(&*self.0.clock, self.0.is_real, time))
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").finish_non_exhaustive()
    }
}
