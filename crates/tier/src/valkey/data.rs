//! The data connections: scripts through the crate `redis`, on one connection to each primary.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex as Lock, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, RedisError, Script,
    ServerErrorKind,
};
use tidewheel_time::{monotonic_nanos, nanos};
use tokio::sync::Mutex;

use super::identity::{INFO, run_id};
use super::moving::Moving;
use super::open::{Address, Deployment, Servers};
use super::push::primary_of;
use super::scripts::{Scripts, Step, text};
use crate::core::server::ServerId;
use crate::engine::EngineError;

/// The time limit of one question unless told otherwise, in milliseconds.
const TIMEOUT_MS: u64 = 1000;

/// The number of times that a cluster's client follows a redirection, or tries a node that is away,
/// within a question's time.
const RETRIES: u32 = 4;

/// The shortest and the longest wait before it tries again what is refused for now, in
/// milliseconds. It has one such time for all. Two keys that are at two nodes, while their slot
/// moves, are not to be waited for: there are scripts over one key. For a cluster without an owner
/// callers do not wait either: they load.
const RETRY_PAUSE_MS: (u64, u64) = (1, 2);

/// Between two attempts to reach the server that is watched, if another one answers.
const AGAIN: Duration = Duration::from_millis(250);

/// A connection, to one primary or to all of a cluster.
#[derive(Clone)]
enum Link {
    /// A connection with the server that it leads to, if that says who it is.
    One(MultiplexedConnection, Option<ServerId>),
    Cluster(ClusterConnection),
}

/// The connection that is used now, and its number.
#[derive(Default)]
struct Current {
    number: u64,
    link: Option<Link>,
    /// Connections of before a later renewal are not used any more.
    renewal: u64,
    /// The server that was watched when this one was begun, and when that was.
    begun: Option<(Option<ServerId>, u64)>,
}

impl Current {
    /// True if it may lead to another server than the watched one, and to connect again may help.
    fn is_doubtful(&self, watched: Option<ServerId>) -> bool {
        let Some(Link::One(_, server)) = &self.link else {
            return false;
        };
        let is_other = watched.is_some() && watched != *server;
        let now = monotonic_nanos();
        let is_tried =
            |(tried, at): &(_, u64)| *tried == watched && now.saturating_sub(*at) < nanos(AGAIN);
        is_other && !self.begun.as_ref().is_some_and(is_tried)
    }
}

/// A script has not run.
pub(super) enum Failure {
    /// Its slot is being moved, and its keys are not all at one node.
    HalfMoved,
    Engine(EngineError),
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<Failure> for EngineError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::HalfMoved => Self::Refused("the slot is being moved".into()),
            Failure::Engine(error) => error,
        }
    }
}

/// Connects when it is needed, and again after a failure.
pub(super) struct Data {
    scripts: Scripts,
    servers: Servers,
    current: Mutex<Current>,
    renewals: AtomicU64,
    /// The server that is watched, where one has everything.
    watched: Lock<Option<ServerId>>,
    /// The one server says that it is a replica.
    is_replica: AtomicBool,
    moving: Moving,
    timeout_ms: AtomicU64,
}

impl Data {
    pub(super) fn new(servers: Servers) -> Self {
        Self {
            scripts: Scripts::new(),
            servers,
            current: Mutex::default(),
            renewals: AtomicU64::new(0),
            watched: Lock::default(),
            is_replica: AtomicBool::new(false),
            moving: Moving::default(),
            timeout_ms: AtomicU64::new(TIMEOUT_MS),
        }
    }

    /// Connections that are made from now on keep to it, and all questions.
    pub(super) fn set_timeout(&self, timeout: Duration) {
        let ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.timeout_ms.store(ms, SeqCst);
    }

    /// The time limit of one question, with everything that it waits for.
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms.load(SeqCst))
    }

    /// The time limit of a connection, or of one command on it: so that there is time to tell of a
    /// failure.
    pub(super) fn limit(&self) -> Duration {
        self.timeout().mul_f64(0.7)
    }

    /// This server is watched now: no other one is to be asked.
    pub(super) fn watched(&self, server: ServerId) {
        *self.watched.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
    }

    /// Sets whether the one server says that it is a replica. A replica is not asked: it may be cut
    /// off, and then all that it has is old.
    pub(super) fn found_replica(&self, is_replica: bool) {
        self.is_replica.store(is_replica, SeqCst);
    }

    /// Others own what is asked for: the next question goes through a new connection.
    pub(super) fn renew(&self) {
        self.renewals.fetch_add(1, SeqCst);
    }

    /// Runs a script, and tells which server has, where one has everything. In a Cluster the answer
    /// says it.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        step: Step,
    ) -> Result<(T, Option<ServerId>), Failure> {
        if self.is_replica.load(SeqCst) {
            return Err(EngineError::Away("it is a replica".into()).into());
        }
        let script = (step.which)(&self.scripts);
        if self.moving.has(step.slot_key()) {
            return self.run_one(script, &step).await;
        }
        let (number, link) = self.link().await?;
        match link {
            Link::One(mut link, server) => {
                let done = invoke(&mut link, script, &step, b"").await;
                if done.as_ref().is_err_and(is_of_the_connection) {
                    self.discard(number).await;
                }
                Ok((done.map_err(engine_error)?, server))
            }
            Link::Cluster(mut link) => match invoke(&mut link, script, &step, b"1").await {
                Err(error) if is_half_moved(&error) => {
                    self.moving.note(step.slot_key());
                    self.run_one(script, &step).await
                }
                done => Ok((done.map_err(engine_error)?, None)),
            },
        }
    }

    /// Runs a script whose slot is half moved, if it is over one key.
    async fn run_one<T: FromRedisValue>(
        &self,
        script: &Script,
        step: &Step,
    ) -> Result<(T, Option<ServerId>), Failure> {
        if step.keys.len() > 1 {
            return Err(Failure::HalfMoved);
        }
        let servers = (&self.servers, self.limit());
        let done = self.moving.run(servers, script, step).await;
        Ok((done.map_err(engine_error)?, None))
    }

    async fn link(&self) -> Result<(u64, Link), EngineError> {
        let mut current = self.current.lock().await;
        let renewal = self.renewals.load(SeqCst);
        let watched = *self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if current.renewal != renewal || current.is_doubtful(watched) {
            current.link = None;
        }
        if let Some(link) = &current.link {
            return Ok((current.number, link.clone()));
        }
        (current.renewal, current.begun) = (renewal, Some((watched, monotonic_nanos())));
        let link = self.connect().await?;
        current.number += 1;
        current.link = Some(link.clone());
        Ok((current.number, link))
    }

    /// Throws a connection away, unless another one has taken its place.
    async fn discard(&self, number: u64) {
        let mut current = self.current.lock().await;
        if current.number == number {
            current.link = None;
        }
    }

    async fn connect(&self) -> Result<Link, EngineError> {
        match &self.servers.deployment {
            Deployment::One(address) => self.connect_one(address).await,
            Deployment::Sentinel(sentinels, name) => {
                let login = &self.servers.login;
                let primary = primary_of(sentinels, name, login, self.limit()).await;
                let none = || EngineError::Away("no Sentinel names a primary".into());
                self.connect_one(&primary.ok_or_else(none)?).await
            }
            Deployment::Cluster(nodes) => {
                let infos: Result<Vec<_>, _> =
                    nodes.iter().map(|node| self.servers.info(node)).collect();
                let client = ClusterClientBuilder::new(infos.map_err(engine_error)?)
                    .connection_timeout(self.limit())
                    .response_timeout(self.limit())
                    .retries(RETRIES)
                    .min_retry_wait(RETRY_PAUSE_MS.0)
                    .max_retry_wait(RETRY_PAUSE_MS.1)
                    .build()
                    .map_err(engine_error)?;
                let link = client.get_async_connection().await;
                link.map(Link::Cluster).map_err(engine_error)
            }
        }
    }

    async fn connect_one(&self, address: &Address) -> Result<Link, EngineError> {
        let mut link = node(&self.servers, address, self.limit())
            .await
            .map_err(engine_error)?;
        let [info, section] = INFO.map(|word| String::from_utf8_lossy(word));
        let mut question = redis::cmd(&info);
        question.arg(&*section);
        let answer: Result<Vec<u8>, _> = question.query_async(&mut link).await;
        // Where that is not allowed, nothing is watched either.
        let server = answer.ok().and_then(|info| run_id(&info));
        Ok(Link::One(link, server))
    }
}

/// A connection to one server.
pub(super) async fn node(
    servers: &Servers,
    address: &Address,
    limit: Duration,
) -> Result<MultiplexedConnection, RedisError> {
    let client = Client::open(servers.info(address)?)?;
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(limit))
        .set_response_timeout(Some(limit));
    let connect = client.get_multiplexed_async_connection_with_config(&config);
    connect.await
}

/// Runs a script by its hash, and by its text where that is not known. Its last argument is not
/// empty if it is to say who has run it.
pub(super) async fn invoke<T: FromRedisValue>(
    link: &mut impl ConnectionLike,
    script: &Script,
    step: &Step,
    asks_who: &[u8],
) -> Result<T, RedisError> {
    let by_hash = command("EVALSHA", script.get_hash(), step, asks_who);
    match by_hash.query_async(link).await {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            let by_text = command("EVAL", text(script), step, asks_who);
            by_text.query_async(link).await
        }
        done => done,
    }
}

pub(super) fn command(name: &str, what: &str, step: &Step, asks_who: &[u8]) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(what).arg(step.keys.len()).arg(&step.keys);
    command.arg(&*step.arguments).arg(asks_who);
    command
}

/// True if the slot is half moved: the keys are at two nodes, or the client was sent to and fro
/// between the two.
fn is_half_moved(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Server(
            ServerErrorKind::TryAgain | ServerErrorKind::Ask | ServerErrorKind::Moved
        )
    )
}

/// True if another connection may do better: this one broke, or leads to a server that is no
/// primary any more.
pub(super) fn is_of_the_connection(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_unrecoverable_error()
        || matches!(
            error.kind(),
            ErrorKind::Server(
                ServerErrorKind::ReadOnly
                    | ServerErrorKind::MasterDown
                    | ServerErrorKind::BusyLoading
            )
        )
}

fn engine_error(error: RedisError) -> EngineError {
    if error.is_timeout() {
        EngineError::TimedOut
    } else if is_of_the_connection(&error) || error.is_cluster_error() {
        EngineError::Away(error.to_string())
    } else {
        match error.kind() {
            ErrorKind::ClusterConnectionNotFound | ErrorKind::Io => {
                EngineError::Away(error.to_string())
            }
            _ => EngineError::Refused(error.to_string()),
        }
    }
}
