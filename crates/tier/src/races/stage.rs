//! The stage is one process's engine: requests go into the world, and answers come when the script
//! says so.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use super::world::{World, away, is_split, owners, server};
use crate::core::envelope::Envelope;
use crate::core::faults::Fault;
use crate::core::invalidation_stream::{InvalidationStream, Source};
use crate::core::names::Wire;
use crate::core::server::ServerId;
use crate::embedded::{Changed, Model};
use crate::engine::{Answer, Backend, EngineError, Filled, Look, Looked, TagAnswer};

/// A world that this thread's tasks share. It is only ever used by one.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Unsent>>);

/// The closures in it are made and run by one thread; the mutex is there for the trait's sake.
struct Unsent(World);

impl Shared {
    pub(super) fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(Unsent(world))))
    }

    pub(super) fn with<T>(&self, run: impl FnOnce(&mut World) -> T) -> T {
        run(&mut self.lock().0)
    }

    fn lock(&self) -> MutexGuard<'_, Unsent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stage of one process.
#[derive(Clone)]
pub(super) struct Stage {
    pub(super) shared: Shared,
    pub(super) process: usize,
    pub(super) fault: Option<Fault>,
}

type Slot<T> = Arc<Mutex<Option<Result<T, EngineError>>>>;

/// An answer that has not come yet.
struct Coming<T>(Slot<T>);

impl<T> Future for Coming<T> {
    type Output = Result<T, EngineError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slot.take().map_or(Poll::Pending, Poll::Ready)
    }
}

fn put<T>(slot: &Slot<T>, answer: Result<T, EngineError>) {
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
}

impl Stage {
    fn send<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut World, Option<Source>) -> Result<T, EngineError> + Send + 'static,
    ) -> Answer<'static, T> {
        let slot: Slot<T> = Arc::default();
        let answer = Arc::clone(&slot);
        self.shared.with(|world| {
            let at = world.wires[self.process].data;
            world.requests.push(Box::new(move |world, is_broken| {
                if is_broken {
                    return Box::new(move || put(&answer, Err(away())));
                }
                let result = run(world, at);
                Box::new(move || put(&answer, result))
            }));
        });
        Box::pin(Coming(slot))
    }

    /// A write. A server that is the owner no more refuses it, and then the process connects to the
    /// owner.
    fn write(
        &self,
        command: impl FnOnce(&mut Model, u64) -> ((), Changed) + Send + 'static,
    ) -> Answer<'static, Option<ServerId>> {
        let process = self.process;
        self.send(move |world, at| {
            if !world.takes_writes(process, at) {
                return Err(away());
            }
            Ok(Some(world.command_at(at, command).1))
        })
    }

    /// Value and time to live by two commands, between which others come: a planted fault.
    fn split_look(&self, look: Look) -> Answer<'_, Looked> {
        let first = self.send({
            let look = look.clone();
            move |world, at| Ok(world.look(at, &look))
        });
        Box::pin(async move {
            let mut looked = first.await?;
            let again = Look {
                lease: None,
                ..look
            };
            let second = self
                .send(move |world, at| Ok(world.look(at, &again)))
                .await?;
            if let (Some((bytes, _)), Some((newer, _))) = (&mut looked.value, second.value) {
                *bytes = newer;
            }
            Ok(looked)
        })
    }
}

/// Notes until when a version lives.
fn note(world: &mut World, envelope: &[u8], ttl_ms: u64) {
    let Some(opened) = Envelope::open(envelope) else {
        return;
    };
    let Ok(version) = opened.payload.try_into().map(u64::from_be_bytes) else {
        return;
    };
    let end = world.now_ms + ttl_ms - u64::from(opened.kept_ms);
    let latest = world.ends.entry(version).or_insert(0);
    *latest = end.max(*latest);
}

impl Backend for Stage {
    fn attach(&self, stream: Arc<InvalidationStream>) {
        let source = self.shared.with(|world| {
            world.wires[self.process].stream = Some(Arc::clone(&stream));
            world.connect(self.process)
        });
        stream.owned(owners(0));
        if let Some((stream, source)) = source {
            stream.connected(source, server(source));
        }
    }

    fn detach(&self, _: &Arc<InvalidationStream>) {}

    fn look(&self, look: Look) -> Answer<'_, Looked> {
        if is_split(self.fault) {
            return self.split_look(look);
        }
        self.send(move |world, at| Ok(world.look(at, &look)))
    }

    fn fill(&self, key: Wire, lease: u128, envelope: Vec<u8>, ttl_ms: u64) -> Answer<'_, Filled> {
        self.send(move |world, at| {
            let sealed = envelope.clone();
            let fill = |model: &mut Model, now| model.fill(now, &key, lease, envelope, ttl_ms);
            let (is_stored, server) = world.command_at(at, fill);
            if is_stored {
                note(world, &sealed, ttl_ms);
            }
            let server = Some(server);
            Ok(Filled { is_stored, server })
        })
    }

    fn put(&self, key: Wire, envelope: Vec<u8>, ttl_ms: u64) -> Answer<'_, Option<ServerId>> {
        let process = self.process;
        self.send(move |world, at| {
            if !world.takes_writes(process, at) {
                return Err(away());
            }
            note(world, &envelope, ttl_ms);
            let put = |model: &mut Model, now| model.put(now, &key, envelope, ttl_ms);
            Ok(Some(world.command_at(at, put).1))
        })
    }

    fn remove(&self, key: Wire) -> Answer<'_, Option<ServerId>> {
        self.write(move |model, now| model.remove(now, &key))
    }

    fn release(&self, key: Wire, lease: u128) {
        drop(self.write(move |model, now| model.release(now, &key, lease)));
    }

    fn tag(&self, tag: Vec<u8>, version: u64, ttl_ms: u64) -> Answer<'_, TagAnswer> {
        self.send(move |world, at| {
            let tag = |model: &mut Model, now| model.tag(now, tag, version, ttl_ms);
            let (answer, server) = world.command_at(at, tag);
            Ok(TagAnswer {
                server: Some(server),
                ..answer
            })
        })
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
        let until = self.shared.with(|world| world.now_ms) + time.as_millis() as u64;
        Box::pin(std::future::poll_fn(move |_| {
            if self.shared.with(|world| world.now_ms) >= until {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        }))
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.process)
    }
}
