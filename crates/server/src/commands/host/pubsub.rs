//! SUBSCRIBE and UNSUBSCRIBE, of each kind, PUBLISH, SPUBLISH and PUBSUB.

use tidewheel_keyspace::CommandError;
use tidewheel_resp::{Args, Protocol};

use super::HandlerResult;
use super::parts::CommandPart;
use crate::clients::checks;
use crate::clients::connection::Connection;
use crate::commands::turn::{CommandStep, Turn};
use crate::pubsub::subscriptions::{Subscribing, SubscriptionKind};

/// The error reply to a client with too many subscriptions. Those that the command named before
/// stay.
const TOO_MANY: &str =
    "ERR too many subscriptions for one client: at most 10000 patterns, and 256 MiB in all";

/// Channels after which others have their turn: some 0.3 ms.
const PART_CHANNELS: usize = 4096;

impl SubscriptionKind {
    fn word(self, joining: bool) -> &'static [u8] {
        match (self, joining) {
            (Self::Channel, true) => b"subscribe",
            (Self::Channel, false) => b"unsubscribe",
            (Self::Pattern, true) => b"psubscribe",
            (Self::Pattern, false) => b"punsubscribe",
            (Self::Shard, true) => b"ssubscribe",
            (Self::Shard, false) => b"sunsubscribe",
        }
    }
}

impl Turn<'_> {
    pub(super) fn subscribe(
        &mut self,
        conn: &mut Connection,
        kind: SubscriptionKind,
        args: Args<'_>,
    ) -> HandlerResult {
        let mut part = self.begin_part(conn);
        let mut refused = false;
        for name in args.from(1 + part.done) {
            if !part.takes(name) {
                break;
            }
            let subscriptions = conn.subscriptions.get_or_insert_default();
            let joined = subscriptions.join(kind, name);
            let count = subscriptions.counted_with(kind);
            match joined {
                Subscribing::Now => {
                    let (owner, target) = (self.state.index, conn.client.target());
                    self.state.server.hub.subscribe(kind, name, owner, target);
                    self.notes.subscriptions_begun += 1;
                }
                Subscribing::Already => {}
                Subscribing::Refused => {
                    self.out.error(TOO_MANY);
                    refused = true;
                    break;
                }
            }
            self.confirm(kind.word(true), Some(name), count);
            if self.out.is_over() {
                // The client will be closed for that: more subscriptions would only take memory.
                break;
            }
        }
        conn.subscriptions_changed();
        conn.publish_facts();
        let all = refused || part.done == args.len() - 1;
        Ok(self.end_part(conn, part, all, CommandStep::Pushed))
    }

    /// Stops when the reply is longer than its client may hold: then the client is closed.
    pub(super) fn unsubscribe(
        &mut self,
        conn: &mut Connection,
        kind: SubscriptionKind,
        args: Args<'_>,
    ) -> HandlerResult {
        let mut part = self.begin_part(conn);
        let all = if args.len() > 1 {
            for name in args.from(1 + part.done) {
                if !part.takes(name) {
                    break;
                }
                let left = conn
                    .subscriptions
                    .as_mut()
                    .is_some_and(|subscriptions| subscriptions.leave(kind, name));
                self.unsubscribe_and_confirm(conn, kind, name, left);
                if self.out.is_over() {
                    break;
                }
            }
            part.done == args.len() - 1
        } else {
            self.unsubscribe_all(conn, kind, &mut part)
        };
        if all && part.done == 0 {
            self.confirm(kind.word(false), None, conn.subscribed_with(kind));
        }
        conn.subscriptions_changed();
        conn.publish_facts();
        Ok(self.end_part(conn, part, all, CommandStep::Pushed))
    }

    /// Ends subscriptions of a kind, in order. Returns whether none is left.
    fn unsubscribe_all(
        &mut self,
        conn: &mut Connection,
        kind: SubscriptionKind,
        part: &mut CommandPart,
    ) -> bool {
        while !self.out.is_over()
            && let Some(subscriptions) = conn.subscriptions.as_mut()
            && let Some(first) = subscriptions.of(kind).first()
        {
            if !part.takes(first) {
                return false;
            }
            if let Some(name) = subscriptions.pop_first(kind) {
                self.unsubscribe_and_confirm(conn, kind, &name, true);
            }
        }
        true
    }

    /// Confirms that a client no longer listens to a name; `left`: it did before.
    fn unsubscribe_and_confirm(
        &mut self,
        conn: &mut Connection,
        kind: SubscriptionKind,
        name: &[u8],
        left: bool,
    ) {
        if left {
            let target = conn.client.target();
            self.state
                .server
                .hub
                .unsubscribe(kind, name, self.state.index, target);
        }
        // What was published before this point arrives before it is confirmed.
        self.append_waiting_messages(conn);
        self.confirm(kind.word(false), Some(name), conn.subscribed_with(kind));
    }

    /// Ends subscriptions without a reply, as many as one part of a command may.
    /// [`CommandStep::Done`]: none is left.
    pub(super) fn unsubscribe_part(&mut self, conn: &mut Connection) -> CommandStep {
        if conn.subscriptions.is_none() {
            return CommandStep::Done;
        }
        let mut part = self.begin_part(conn);
        let target = conn.client.target();
        while let Some(subscriptions) = conn.subscriptions.as_mut()
            && let Some((kind, name)) = subscriptions.pop()
        {
            self.state
                .server
                .hub
                .unsubscribe(kind, &name, self.state.index, target);
            if !part.takes(&name) {
                break;
            }
        }
        self.append_waiting_messages(conn);
        conn.subscriptions_changed();
        self.end_part(conn, part, conn.subscriptions.is_none(), CommandStep::Done)
    }

    pub(super) fn publish(&mut self, conn: &mut Connection, args: Args<'_>) -> HandlerResult {
        self.tells();
        let receivers = self.state.server.hub.publish(&args[1], &args[2]);
        self.answer_publisher(conn, receivers)
    }

    pub(super) fn publish_to_shard(
        &mut self,
        conn: &mut Connection,
        args: Args<'_>,
    ) -> HandlerResult {
        self.tells();
        let hub = &self.state.server.hub;
        let receivers = hub.publish_to_shard(&args[1], &args[2]);
        self.answer_publisher(conn, receivers)
    }

    /// Others are about to be told of something. Within a transaction or a script, that waits for
    /// its record.
    pub(super) fn tells(&self) {
        if self.in_transaction {
            self.state.server.keyspace.promise_record();
        }
    }

    fn answer_publisher(&mut self, conn: &mut Connection, receivers: usize) -> HandlerResult {
        self.out
            .integer(i64::try_from(receivers).unwrap_or(i64::MAX));
        if conn.subscriptions.is_some() && conn.checks & checks::MUTED == 0 {
            // Its own message follows the reply at once, as in Redis.
            self.append_waiting_messages(conn);
        }
        Ok(CommandStep::Done)
    }

    /// Appends the events that a subscriber's own command has caused right after its reply, as
    /// Redis does.
    #[inline]
    pub(crate) fn append_own_events(&mut self, conn: &mut Connection) {
        if conn.subscriptions.is_some() && self.state.server.keyspace.events_pending() {
            self.publish_and_append_messages(conn);
        }
    }

    /// Publishes all events, and copies what waits for this connection behind its replies so far.
    #[cold]
    pub(crate) fn publish_and_append_messages(&mut self, conn: &mut Connection) {
        self.state.server.publish_events();
        self.append_waiting_messages(conn);
    }

    /// Copies the messages that wait for this connection behind its replies so far.
    pub(super) fn append_waiting_messages(&mut self, conn: &mut Connection) {
        if self.in_transaction {
            return;
        }
        let kind: &[u8] = match conn.protocol {
            Protocol::Resp3 => b">",
            Protocol::Resp2 => b"*",
        };
        let (since, who) = (conn.messages_seen, conn.client.target());
        let out = &mut *self.out;
        let handle = self.state.handle();
        conn.messages_seen = handle.read(who, since, |run| {
            for message in run.each_since(since) {
                if let Some(push) = message.strip_prefix(b">") {
                    out.raw(kind);
                    out.raw(push);
                } else {
                    out.raw(message);
                }
            }
        });
    }

    pub(super) fn pubsub_channels(
        &mut self,
        conn: &mut Connection,
        kind: SubscriptionKind,
        args: Args<'_>,
    ) -> HandlerResult {
        if args.len() > 3 {
            let name = String::from_utf8_lossy(&args[1]);
            return Err(CommandError::quoting(format!(
                "ERR unknown subcommand or wrong number of arguments for '{name}'. Try PUBSUB HELP."
            )));
        }
        let most = self.out.limit().saturating_sub(self.out.len());
        let mut part = self.begin_part(conn);
        let mut seen = 0;
        let mut all = false;
        while !all && (self.in_transaction || seen < PART_CHANNELS) {
            let (table, found) = (part.done, &mut part.found);
            let Some(more) = self
                .state
                .server
                .hub
                .channels(kind, table, args.get(2), found)
            else {
                all = true;
                break;
            };
            (part.done, seen) = (table + 1, seen + more);
            if part.found.replies.len() > most {
                self.out.refuse();
                return Ok(CommandStep::Done);
            }
        }
        if all {
            self.out.array(part.found.count);
            self.out.raw(part.found.replies.as_bytes());
        }
        Ok(self.end_part(conn, part, all, CommandStep::Done))
    }

    pub(super) fn pubsub_num_sub(
        &mut self,
        kind: SubscriptionKind,
        args: Args<'_>,
    ) -> HandlerResult {
        self.out.array((args.len() - 2) * 2);
        for channel in args.iter().skip(2) {
            let count = self.state.server.hub.subscribers(kind, channel);
            self.out.bulk(channel);
            self.out.integer(i64::try_from(count).unwrap_or(i64::MAX));
        }
        Ok(CommandStep::Done)
    }

    pub(super) fn pubsub_num_pat(&mut self) -> HandlerResult {
        let patterns = self.state.server.hub.count(SubscriptionKind::Pattern);
        self.out
            .integer(i64::try_from(patterns).unwrap_or(i64::MAX));
        Ok(CommandStep::Done)
    }

    fn confirm(&mut self, word: &[u8], name: Option<&[u8]>, count: usize) {
        self.out.push(3);
        self.out.bulk(word);
        match name {
            Some(name) => self.out.bulk(name),
            None => self.out.null(),
        }
        self.out.integer(i64::try_from(count).unwrap_or(i64::MAX));
    }
}
