//! The data plane: scripts through the crate `redis`, on one connection to each primary.

use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::{
    AsyncConnectionConfig, Client, ErrorKind, FromRedisValue, RedisError, Script, ServerErrorKind,
};
use tokio::sync::Mutex;

use super::open::{Kind, Servers};
use super::push::primary_of;
use super::scripts::text;
use crate::engine::EngineError;

/// How long a connection may take, and one command on it.
const CONNECT: Duration = Duration::from_millis(700);
const COMMAND: Duration = Duration::from_millis(700);

/// How often the client of a cluster follows a redirection, or tries a node that is away, within the time that a question
/// has.
const RETRIES: u32 = 4;

/// A connection, to one primary or to all of a cluster.
#[derive(Clone)]
enum Link {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// The connection that is used now, and its number.
#[derive(Default)]
struct Current {
    number: u64,
    link: Option<Link>,
}

/// Connects when it is needed, and again after a failure.
pub(super) struct Data {
    servers: Servers,
    current: Mutex<Current>,
}

impl Data {
    pub(super) fn new(servers: Servers) -> Self {
        Self {
            servers,
            current: Mutex::default(),
        }
    }

    /// Runs a script.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        keys: &[Vec<u8>],
        arguments: &[Vec<u8>],
    ) -> Result<T, EngineError> {
        let (number, link) = self.link().await?;
        let result = match link {
            Link::One(mut link) => invoke(&mut link, script, keys, arguments).await,
            Link::Cluster(mut link) => invoke(&mut link, script, keys, arguments).await,
        };
        if let Err(error) = &result
            && is_of_the_connection(error)
        {
            self.discard(number).await;
        }
        result.map_err(engine_error)
    }

    async fn link(&self) -> Result<(u64, Link), EngineError> {
        let mut current = self.current.lock().await;
        if let Some(link) = &current.link {
            return Ok((current.number, link.clone()));
        }
        let link = self.connect().await?;
        current.number += 1;
        current.link = Some(link.clone());
        Ok((current.number, link))
    }

    /// Throws a connection away, unless another one has taken its place.
    async fn discard(&self, number: u64) {
        let mut current = self.current.lock().await;
        // The client of a cluster mends its own connections.
        if current.number == number && matches!(current.link, Some(Link::One(_))) {
            current.link = None;
        }
    }

    async fn connect(&self) -> Result<Link, EngineError> {
        match &self.servers.kind {
            Kind::One(address) => self.connect_one(address).await,
            Kind::Sentinel(sentinels, name) => {
                let primary = primary_of(sentinels, name, &self.servers.login, CONNECT).await;
                let none = || EngineError::Away("no Sentinel names a primary".into());
                self.connect_one(&primary.ok_or_else(none)?).await
            }
            Kind::Cluster(nodes) => {
                let infos: Result<Vec<_>, _> =
                    nodes.iter().map(|node| self.servers.info(node)).collect();
                let client = ClusterClientBuilder::new(infos.map_err(engine_error)?)
                    .connection_timeout(CONNECT)
                    .response_timeout(COMMAND)
                    .retries(RETRIES)
                    .build()
                    .map_err(engine_error)?;
                let link = client.get_async_connection().await;
                link.map(Link::Cluster).map_err(engine_error)
            }
        }
    }

    async fn connect_one(&self, address: &super::open::Address) -> Result<Link, EngineError> {
        let info = self.servers.info(address).map_err(engine_error)?;
        let client = Client::open(info).map_err(engine_error)?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT))
            .set_response_timeout(Some(COMMAND));
        let link = client
            .get_multiplexed_async_connection_with_config(&config)
            .await;
        link.map(Link::One).map_err(engine_error)
    }
}

/// Runs a script by its hash, and by its text where that is not known.
async fn invoke<T: FromRedisValue>(
    link: &mut impl ConnectionLike,
    script: &Script,
    keys: &[Vec<u8>],
    arguments: &[Vec<u8>],
) -> Result<T, RedisError> {
    let command = |name: &str, what: &str| {
        let mut command = redis::cmd(name);
        command.arg(what).arg(keys.len()).arg(keys).arg(arguments);
        command
    };
    let done = command("EVALSHA", script.get_hash())
        .query_async(link)
        .await;
    match done {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            command("EVAL", text(script)).query_async(link).await
        }
        done => done,
    }
}

/// Whether another connection may do better: this one broke, or leads to a server that is no primary any more.
fn is_of_the_connection(error: &RedisError) -> bool {
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
