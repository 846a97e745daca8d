//! The engines Valkey and Redis: one server, under Sentinel, or a Cluster.
//!
//! There are data connections (`data.rs`) and watching connections (`push/`), on a thread of their
//! own. Values are read from primaries alone: a replica may lack a change whose message was
//! received already.

mod data;
mod identity;
mod moving;
mod open;
mod push;
mod scripts;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::FromRedisValue;
use tokio::runtime::Runtime;
use tokio::task::AbortHandle;

use crate::core::invalidation_stream::InvalidationStream;
use crate::core::names::Wire;
use crate::core::server::ServerId;
use crate::embedded::tag_answer;
use crate::engine::{Answer, Backend, EngineError, Filled, Lease, Look, Looked, TagAnswer};
use data::{Data, Failure};
pub use open::OpenError;
use open::Servers;
use scripts::{Arguments, SelectScript, Step};

/// Between two attempts at invalidations that wait, when nobody reads.
const SETTLE: Duration = Duration::from_millis(250);

/// Valkey or Redis. A clone is another handle to the same connections.
///
/// It needs no more of an engine than version 6: scripts, RESP3 and CLIENT TRACKING. A program
/// needs the permission for `EVAL`, `EVALSHA`, `CLIENT TRACKING`, `INFO`, what the scripts call,
/// under Sentinel `ROLE`, and in a Cluster `ASKING`, and `CLUSTER` instead of `INFO`.
#[derive(Clone)]
pub struct Valkey(Arc<Inner>);

struct Inner {
    /// Taken when the last handle goes.
    runtime: Option<Runtime>,
    servers: Servers,
    data: Arc<Data>,
    watching: Mutex<HashMap<usize, [AbortHandle; 2]>>,
}

impl Valkey {
    /// One server, by its address: `redis://user:password@host:6379/0`. The last number is the
    /// database; it may be left out. `rediss://` is for TLS, with the feature `tls`: the system's
    /// certificates are trusted, or those that the variables `SSL_CERT_FILE` and `SSL_CERT_DIR`
    /// name. All of them must be readable.
    ///
    /// The server must be a primary. A replica is not asked, nor is a primary that has become one:
    /// it counts as away.
    ///
    /// An engine does not tell anybody of `SWAPDB`: after it, what was read before is believed for
    /// as long as it lives.
    ///
    /// # Errors
    ///
    /// If the address is none, or asks for a Unix socket, or for TLS without the feature or without
    /// certificates to trust. A server that is away is no error.
    pub fn open(url: &str) -> Result<Self, OpenError> {
        Self::build(Servers::one(url)?)
    }

    /// A Cluster, by the addresses of some of its nodes. Its database is 0.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and if an address names another database.
    pub fn cluster(urls: &[&str]) -> Result<Self, OpenError> {
        Self::build(Servers::cluster(urls)?)
    }

    /// A primary under Sentinel, by the addresses of the Sentinels and its name there. User,
    /// password and database of the addresses are those of the primary.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn sentinel(urls: &[&str], name: &str) -> Result<Self, OpenError> {
        Self::build(Servers::sentinel(urls, name)?)
    }

    fn build(servers: Servers) -> Result<Self, OpenError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tidewheel-tier")
            .enable_all()
            .build()
            .map_err(|error| OpenError::Thread(error.to_string()))?;
        Ok(Self(Arc::new(Inner {
            runtime: Some(runtime),
            data: Arc::new(Data::new(servers.clone())),
            servers,
            watching: Mutex::default(),
        })))
    }

    /// Runs something on the engine's thread, and waits for it on any.
    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, EngineError>> + Send + 'static,
    ) -> Answer<'static, T> {
        let Some(runtime) = &self.0.runtime else {
            return Box::pin(async { Err(EngineError::Away("it was closed".into())) });
        };
        let timeout = self.0.data.timeout();
        let task = runtime.spawn(async move {
            let in_time = tokio::time::timeout(timeout, work).await;
            in_time.unwrap_or(Err(EngineError::TimedOut))
        });
        Box::pin(async move {
            let ended = |error: tokio::task::JoinError| EngineError::Away(error.to_string());
            task.await.map_err(ended)?
        })
    }

    /// Runs a script, and tells which server has, where one has everything.
    fn tell<T: FromRedisValue + Send + 'static>(
        &self,
        step: Step,
    ) -> Answer<'static, (T, Option<ServerId>)> {
        let inner = Arc::clone(&self.0);
        self.spawn(async move { Ok(inner.data.run(step).await?) })
    }

    /// Runs a script over a value and its lease; or, while their slot moves to another node, those
    /// over one key, in order. What the last one says is the answer.
    fn tell_both<T: FromRedisValue + Send + 'static>(
        &self,
        which: SelectScript,
        key: Wire,
        arguments: impl Into<Arguments>,
        instead: fn(Wire, Arguments) -> (Option<Step>, Step),
    ) -> Answer<'static, (T, Option<ServerId>)> {
        let (inner, arguments) = (Arc::clone(&self.0), arguments.into());
        let both = Step {
            which,
            keys: vec![key.value.clone(), key.lease.clone()],
            arguments: Arc::clone(&arguments),
        };
        self.spawn(async move {
            let done = inner.data.run(both).await;
            if !matches!(done, Err(Failure::HalfMoved)) {
                return Ok(done?);
            }
            let (first, last) = instead(key, arguments);
            if let Some(first) = first {
                inner.data.run::<()>(first).await?;
            }
            Ok(inner.data.run(last).await?)
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // In a task, where a runtime may not be waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn number(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn place(stream: &Arc<InvalidationStream>) -> usize {
    Arc::as_ptr(stream) as usize
}

/// The lease of a fill's arguments.
fn lease_of(arguments: &Arguments) -> Arguments {
    arguments.iter().take(1).cloned().collect()
}

/// The answer of the script `look`.
type LookReply = (Option<Vec<u8>>, i64, i64, i64, Vec<u8>);

/// The server that has answered: as the answer says, or else as the connection does.
fn server(id: &[u8], connected: Option<ServerId>) -> Option<ServerId> {
    if id.is_empty() {
        connected
    } else {
        Some(ServerId::of(id))
    }
}

fn looked(reply: (LookReply, Option<ServerId>)) -> Looked {
    let ((value, pttl, lease, left, id), connected) = reply;
    let natural = |number: i64| u64::try_from(number).unwrap_or(0);
    Looked {
        value: value.map(|value| (value, natural(pttl))),
        lease: match lease {
            1 => Lease::Won,
            2 => Lease::Held(natural(left)),
            _ => Lease::Unasked,
        },
        server: server(&id, connected),
    }
}

impl Backend for Valkey {
    fn attach(&self, stream: Arc<InvalidationStream>) {
        let Some(runtime) = &self.0.runtime else {
            return;
        };
        self.0.data.set_timeout(stream.timeout());
        let key = place(&stream);
        let settled = Arc::clone(&stream);
        let settling = runtime.spawn(async move {
            loop {
                tokio::time::sleep(SETTLE).await;
                settled.settle().await;
            }
        });
        let task = runtime.spawn(push::watch(
            self.0.servers.clone(),
            stream,
            Arc::clone(&self.0.data),
        ));
        let mut watching = self
            .0
            .watching
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        watching.insert(key, [task.abort_handle(), settling.abort_handle()]);
    }

    fn detach(&self, stream: &Arc<InvalidationStream>) {
        let mut watching = self
            .0
            .watching
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(tasks) = watching.remove(&place(stream)) {
            tasks.iter().for_each(AbortHandle::abort);
        }
    }

    fn look(&self, look: Look) -> Answer<'_, Looked> {
        let (lease, ms) = look.lease.map_or((Vec::new(), 0), |(lease, ms)| {
            (lease.to_be_bytes().to_vec(), ms)
        });
        let invalid = look
            .invalid
            .map_or(Vec::new(), |id| id.to_be_bytes().to_vec());
        let arguments = [lease, number(ms.into()), invalid];
        let one = |key: Wire, arguments| {
            // Not the lease's own key: a fill could not compare it and store the value in one step.
            let look = Step::one(|scripts| &scripts.look_one, key.value, arguments);
            (None, look)
        };
        let reply = self.tell_both(|scripts| &scripts.look, look.key, arguments, one);
        Box::pin(async move { reply.await.map(looked) })
    }

    fn fill(&self, key: Wire, lease: u128, envelope: Vec<u8>, ttl_ms: u64) -> Answer<'_, Filled> {
        let arguments = [lease.to_be_bytes().to_vec(), envelope, number(ttl_ms)];
        let one = |key: Wire, arguments: Arguments| {
            // A lease of before the slot began to move stores nothing: then nobody is to wait for
            // its end.
            let release = Step::one(
                |scripts| &scripts.release_one,
                key.lease,
                lease_of(&arguments),
            );
            let fill = Step::one(|scripts| &scripts.fill_one, key.value, arguments);
            (Some(release), fill)
        };
        let reply = self.tell_both::<(bool, Vec<u8>)>(|scripts| &scripts.fill, key, arguments, one);
        Box::pin(async move {
            let ((is_stored, id), connected) = reply.await?;
            let server = server(&id, connected);
            Ok(Filled { is_stored, server })
        })
    }

    fn put(&self, key: Wire, envelope: Vec<u8>, ttl_ms: u64) -> Answer<'_, Option<ServerId>> {
        let arguments = [envelope, number(ttl_ms)];
        let one = |key: Wire, arguments| {
            // The lease first: whoever has it could replace the value otherwise, with what was
            // loaded before.
            let end = Step::one(
                |scripts| &scripts.remove_one,
                key.lease,
                Arguments::default(),
            );
            (
                Some(end),
                Step::one(|scripts| &scripts.set, key.value, arguments),
            )
        };
        let reply = self.tell_both(|scripts| &scripts.put, key, arguments, one);
        Box::pin(async move { reply.await.map(|((), server)| server) })
    }

    fn remove(&self, key: Wire) -> Answer<'_, Option<ServerId>> {
        let one = |key: Wire, arguments: Arguments| {
            // The lease first: whoever has it could bring the value back otherwise. A lease that
            // somebody gets between the two is of a load that has begun since: to remove what that
            // stores costs a load, and no more.
            let end = Step::one(
                |scripts| &scripts.remove_one,
                key.lease,
                Arc::clone(&arguments),
            );
            (
                Some(end),
                Step::one(|scripts| &scripts.remove_one, key.value, arguments),
            )
        };
        let reply = self.tell_both(|scripts| &scripts.remove, key, [], one);
        Box::pin(async move { reply.await.map(|((), server)| server) })
    }

    fn release(&self, key: Wire, lease: u128) {
        let arguments = [lease.to_be_bytes().to_vec()];
        let one = |key: Wire, arguments: Arguments| {
            // It is at one of the two, and the order does not matter: it is compared at each.
            let release =
                |key, arguments| Step::one(|scripts| &scripts.release_one, key, arguments);
            let first = release(key.lease, Arc::clone(&arguments));
            (Some(first), release(key.value, arguments))
        };
        // It runs on its own. If it fails, the lease runs out.
        drop(self.tell_both::<()>(|scripts| &scripts.release, key, arguments, one));
    }

    fn tag(&self, tag: Vec<u8>, version: u64, ttl_ms: u64) -> Answer<'_, TagAnswer> {
        let made = crate::embedded::version_bytes(b'c', version);
        let arguments = Arguments::from([made, number(ttl_ms)]);
        let reply =
            self.tell::<(Vec<u8>, i64, Vec<u8>)>(Step::one(|scripts| &scripts.tag, tag, arguments));
        Box::pin(async move {
            let ((bytes, pttl, said_by), connected) = reply.await?;
            let age = ttl_ms.saturating_sub(u64::try_from(pttl).unwrap_or(0));
            Ok(TagAnswer {
                server: server(&said_by, connected),
                ..tag_answer(&bytes, age)
            })
        })
    }

    fn invalidate_tag(
        &self,
        tag: Vec<u8>,
        version: u64,
        ttl_ms: u64,
    ) -> Answer<'_, Option<ServerId>> {
        let bytes = crate::embedded::version_bytes(b'i', version);
        let arguments = Arguments::from([bytes, number(ttl_ms)]);
        let reply = self.tell(Step::one(|scripts| &scripts.set, tag, arguments));
        Box::pin(async move { reply.await.map(|((), server)| server) })
    }

    fn pause(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let Some(runtime) = &self.0.runtime else {
            return Box::pin(std::future::ready(()));
        };
        let sleep = runtime.spawn(async move { tokio::time::sleep(time).await });
        Box::pin(async move {
            // It cannot fail while this handle lives.
            let _ = sleep.await;
        })
    }
}

impl fmt::Debug for Valkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Valkey").field(&self.0.servers).finish()
    }
}
