//! The builder connects, makes the stream and its consumers, and starts to pull from them.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::{ConnectOptions, ToServerAddrs};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::consumer::Consumer;
use super::lines::Lines;
use super::queues::Rules;
use super::subjects::Subjects;
use super::wire::{Letter, NO_STREAM, Wire, code};
use super::{Inner, NatsStore};
use crate::engine_clock::EngineClock;
use crate::shape::error::StoreError;
use crate::shape::task::Priority;
use crate::wakes::Wakes;

/// The time limit of a call.
const PATIENCE: Duration = Duration::from_secs(1);

/// The interval at which the client asks whether the server is there. After two questions without
/// an answer, the connection is made anew.
const PING: Duration = Duration::from_secs(2);

/// Bytes that a space's name may have, and the longest lease.
const NAME_MAX: usize = 200;
const LEASE_MAX: Duration = Duration::from_secs(24 * 3600);

/// The number of tries to make something that cannot be made yet.
const TRIES: u32 = 40;

/// Longest pause before a lost connection is tried again.
const RECONNECT: Duration = Duration::from_millis(200);

/// Options of a [`NatsStore`].
#[derive(Clone)]
pub struct NatsBuilder {
    space: String,
    replicas: usize,
    only_there: bool,
    lookahead: Duration,
    lease: Duration,
    options: Option<Arc<dyn Fn() -> ConnectOptions + Send + Sync>>,
}

impl fmt::Debug for NatsBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsBuilder")
            .field("space", &self.space)
            .field("replicas", &self.replicas)
            .finish_non_exhaustive()
    }
}

impl NatsStore {
    /// Options of a store for one *space*: letters, digits, `-` and `_`. Its stream is `TW_` and
    /// the space's name. Stores of other spaces have nothing of it, and each has queues of its own.
    #[must_use]
    pub fn builder(space: impl Into<String>) -> NatsBuilder {
        NatsBuilder {
            space: space.into(),
            replicas: 1,
            only_there: false,
            lookahead: Duration::from_secs(24),
            lease: Duration::from_secs(16),
            options: None,
        }
    }
}

impl NatsBuilder {
    /// The number of nodes that have the stream (default 1): 3, to survive one.
    #[must_use]
    pub fn replicas(mut self, replicas: usize) -> Self {
        self.replicas = replicas;
        self
    }

    /// Makes no stream: one that is not there is refused, and one that is there stays as it is,
    /// with its replicas and its lease. For a program that looks into what others have made.
    #[must_use]
    pub fn only_there(mut self) -> Self {
        self.only_there = true;
        self
    }

    /// Tasks are handed over and claimed so long before they are due (default 24 s), whatever the
    /// workers' lookahead is. It is longer than a lease and an election together, so a delivery
    /// that was lost with a node is made again in time.
    #[must_use]
    pub fn lookahead(mut self, lookahead: Duration) -> Self {
        self.lookahead = lookahead;
        self
    }

    /// JetStream waits so long before it delivers a task again (default 16 s, a day at most),
    /// whatever the workers' lease is. Workers believe in a claim for three quarters of that, which
    /// should be longer than an election.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the function that makes the client's options: credentials, encryption. It is called
    /// once.
    #[must_use]
    pub fn options(mut self, options: impl Fn() -> ConnectOptions + Send + Sync + 'static) -> Self {
        self.options = Some(Arc::new(options));
        self
    }

    /// Connects, and makes the stream and its consumers unless they are there. The client runs on
    /// the current tokio runtime.
    ///
    /// # Errors
    ///
    /// When no server can be reached, or the stream cannot be made.
    pub async fn connect(mut self, servers: impl ToServerAddrs) -> Result<NatsStore, StoreError> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.space.is_empty() || !self.space.chars().all(is_name) {
            return Err(StoreError::refused("a space has letters, digits, - and _"));
        }
        if self.space.len() > NAME_MAX {
            return Err(StoreError::refused("a space's name has 200 bytes at most"));
        }
        if self.lease > LEASE_MAX {
            return Err(StoreError::refused("a lease lasts a day at most"));
        }
        let options = self
            .options
            .as_ref()
            .map_or_else(ConnectOptions::new, |make| make());
        let options = options
            .request_timeout(Some(PATIENCE))
            .ping_interval(PING)
            .reconnect_delay_callback(|tries| {
                RECONNECT.min(Duration::from_millis(10) * u32::try_from(tries).unwrap_or(u32::MAX))
            });
        let client = options.connect(servers).await.map_err(StoreError::engine)?;
        let stream = format!("TW_{}", self.space);
        if self.only_there {
            let wire = Wire::new(client.clone(), stream.clone(), false);
            self.learn(&wire).await?;
        }
        let inner = self.inner(Wire::new(client, stream, self.replicas == 1));
        if !self.only_there {
            inner.make(self.replicas).await?;
        }
        let runtime = Handle::current();
        Ok(NatsStore {
            runtime,
            inner: Arc::new(inner),
        })
    }

    /// Takes over what the stream was made with, and its consumers: a queue's first task makes
    /// some.
    async fn learn(&mut self, wire: &Wire) -> Result<(), StoreError> {
        let stream = &wire.stream;
        let info = wire
            .ask(&format!("STREAM.INFO.{stream}"), Value::Null)
            .await?;
        match info.get("error") {
            Some(error) if code(error) == NO_STREAM => {
                let why = format_args!("there is no stream {stream}");
                return Err(StoreError::refused(why));
            }
            Some(error) => return Err(StoreError::engine(error)),
            None => {}
        }
        let replicas = info["config"]["num_replicas"].as_u64().unwrap_or(1);
        self.replicas = usize::try_from(replicas).unwrap_or(1);
        let subjects = Subjects::of(&self.space);
        let consumer = Consumer::of(&subjects, "", Priority::Normal, self.lease).name;
        let what = format!("CONSUMER.INFO.{stream}.{consumer}");
        let info = wire.ask(&what, Value::Null).await?;
        let lease = info["config"]["ack_wait"].as_u64();
        self.lease = lease.map_or(self.lease, Duration::from_nanos);
        Ok(())
    }

    fn inner(&self, wire: Wire) -> Inner {
        Inner {
            wire,
            subjects: Subjects::of(&self.space),
            lookahead: self.lookahead,
            lease: self.lease,
            clock: Mutex::new(EngineClock::default()),
            lines: Lines::default(),
            rules: Rules::default(),
            wakes: Arc::new(Wakes::default()),
            claimed: Mutex::default(),
        }
    }
}

impl Inner {
    async fn make(&self, replicas: usize) -> Result<(), StoreError> {
        let stream = &self.wire.stream;
        let config = json!({
            "name": stream,
            "subjects": [self.subjects.all()],
            "retention": "workqueue",
            "storage": "file",
            "discard": "old",
            "num_replicas": replicas,
            "max_msgs_per_subject": 1,
            "allow_msg_schedules": true,
            "allow_msg_ttl": true,
            "allow_atomic": true,
            "allow_direct": true,
        });
        self.wire
            .call(&format!("STREAM.CREATE.{stream}"), config)
            .await?;
        self.make_line().await?;
        self.reach().await
    }

    /// Waits until the stream takes messages: the nodes may not have told each other yet that they
    /// have made it. It keeps none of these, for no subject has such a sequence.
    async fn reach(&self) -> Result<(), StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let letter = Letter::new(self.subjects.record("probe"));
            match self.wire.put(letter.expecting(i64::MAX as u64)).await {
                Ok(_) => return Ok(()),
                Err(error) if tries == TRIES => return Err(error),
                Err(_) => tokio::time::sleep(PATIENCE / 4).await,
            }
        }
    }

    /// Makes the default queue's line: nodes that have just started may take some seconds to agree.
    async fn make_line(&self) -> Result<(), StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.line("").await {
                Ok(_) => return Ok(()),
                Err(error) if tries == TRIES => return Err(error),
                Err(_) => tokio::time::sleep(PATIENCE / 4).await,
            }
        }
    }
}
