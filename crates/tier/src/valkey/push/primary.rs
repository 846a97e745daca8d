//! One primary's connection: tracking, heartbeats, invalidation messages.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tidewheel_resp::Reply;
use tidewheel_time::Moment;
use tokio::time::{sleep, timeout};

use super::connection::Connection;
use crate::core::invalidation_stream::{InvalidationStream, Source};
use crate::core::server::ServerId;
use crate::valkey::data::Data;
use crate::valkey::identity::{INFO, run_id};
use crate::valkey::open::{Address, Login};

/// Between two attempts to connect, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Heartbeats that fit into the bound. What is heard counts from the heartbeat before the one that
/// is answered.
const BEATS: u32 = 4;

/// The questions of a heartbeat, and the use of the answers.
pub(super) trait Beat: Send {
    /// Asks the server what it calls itself.
    fn who(&self) -> [&'static [u8]; 2] {
        INFO
    }

    /// Reads the server's name from that answer.
    fn identity(&self, answer: &[u8]) -> Option<ServerId> {
        run_id(answer)
    }

    /// The commands. Each has one reply.
    fn commands(&self) -> &'static [&'static [&'static [u8]]];

    /// The proof that this server is the primary of what it is taken for: if the answers give it,
    /// the earliest time since which that holds. `sent`: when the commands were sent.
    fn judge(&mut self, sent: Moment, replies: &[Reply]) -> io::Result<Option<Moment>>;
}

/// A primary that is watched.
#[derive(Clone)]
pub(super) struct Primary {
    pub(super) address: Address,
    pub(super) login: Login,
    pub(super) source: Source,
    pub(super) stream: Arc<InvalidationStream>,
    /// The data connections, which are to ask nobody else.
    pub(super) data: Arc<Data>,
}

impl Primary {
    /// Watches it for ever: connects again whenever the connection breaks.
    pub(super) async fn watch(self, mut beat: impl Beat) {
        let mut pause = FIRST_PAUSE;
        loop {
            let mut was_heard = false;
            // Why it has ended makes no difference.
            let _ = self.watch_once(&mut beat, &mut was_heard).await;
            self.stream.lost(self.source);
            pause = if was_heard {
                FIRST_PAUSE
            } else {
                (pause * 2).min(LONGEST_PAUSE)
            };
            sleep(pause).await;
        }
    }

    /// Watches until the connection breaks, or is silent for too long.
    async fn watch_once(&self, beat: &mut impl Beat, was_heard: &mut bool) -> io::Result<()> {
        let limit = self.stream.bound() / 2;
        let mut connection = Connection::open(&self.address, &self.login, limit).await?;
        let server = match connection.call(&beat.who(), limit).await? {
            Reply::Bulk(answer) | Reply::Verbatim(_, answer) => beat.identity(&answer),
            _ => None,
        };
        let server = server.ok_or_else(|| io::Error::other("it does not say who it is"))?;
        let names = self.stream.names();
        let [values, tags] = names.watched();
        let tracking: [&[u8]; 8] = [
            b"CLIENT",
            b"TRACKING",
            b"ON",
            b"BCAST",
            b"PREFIX",
            values,
            b"PREFIX",
            tags,
        ];
        connection.call(&tracking, limit).await?;
        self.data.watched(server);
        self.stream.connected(self.source, server);
        let mut pause = Duration::ZERO;
        loop {
            self.beat(&mut connection, beat).await?;
            // The second heartbeat follows at once: only then is anything proven.
            *was_heard = !pause.is_zero();
            self.listen(&mut connection, pause).await?;
            pause = self.stream.bound() / BEATS;
        }
    }

    /// Sends a heartbeat, and hears whatever comes until all of it is answered.
    async fn beat(&self, connection: &mut Connection, beat: &mut impl Beat) -> io::Result<()> {
        let limit = self.stream.bound() / 2;
        let (sent, commands) = (self.stream.now(), beat.commands());
        connection.send(commands, limit).await?;
        let mut replies = Vec::with_capacity(commands.len());
        while replies.len() < commands.len() {
            match timeout(limit, connection.next()).await {
                Ok(message) => replies.extend(self.hear(message?)),
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        if let Some(since) = beat.judge(sent, &replies)? {
            self.stream.heard(self.source, since);
        }
        Ok(())
    }

    /// Hears whatever comes for a while.
    async fn listen(&self, connection: &mut Connection, time: Duration) -> io::Result<()> {
        let hear_all = async {
            loop {
                let message = connection.next().await?;
                // There is no question that this could be the answer to.
                drop(self.hear(message));
            }
        };
        match timeout(time, hear_all).await {
            Ok(ended) => ended,
            Err(_) => Ok(()),
        }
    }

    /// Takes invalidation messages in, and returns replies.
    fn hear(&self, message: Reply) -> Option<Reply> {
        let Reply::Push(parts) = message else {
            return Some(message);
        };
        if parts.first() != Some(&Reply::Bulk(b"invalidate".to_vec())) {
            return None;
        }
        match parts.get(1) {
            Some(Reply::Array(keys)) => {
                let keys = keys.iter().filter_map(|key| match key {
                    Reply::Bulk(key) => Some(key.as_slice()),
                    _ => None,
                });
                self.stream.changed(keys);
            }
            // Null: everything is gone. What is not understood counts as that.
            _ => self.stream.flushed(self.source),
        }
        None
    }
}
