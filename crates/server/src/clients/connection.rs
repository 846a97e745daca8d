//! One connection: its socket, its buffers, and the state that its commands have set.
//!
//! The socket is separate, because only serving needs it: commands see [`Connection`], and the loop
//! sees a [`Link`], whose socket may be a simulated one.
//!
//! The methods are called in this order:
//!
//! 1. [`Connection::new`], when the loop adopts the connection.
//! 2. The poller reports the socket: the loop sets `readable` or `ending`, or clears `blocked`.
//!    Then the connection waits for its turn.
//! 3. A turn begins with output that is left over: [`Link::send_output`].
//! 4. As long as it [has work](Connection::has_work), the connection is served: it takes the next
//!    step of its `walk`, runs its `pending` input, or reads. It stops when it [takes no
//!    input](Connection::takes_input): it is paused or about to close, or its output is not read.
//! 5. A read that meets the end of the input calls [`at_end`](Connection::at_end). The commands
//!    that arrived whole are still run. Then the connection is `closing`, and closed once its
//!    output has left.
//! 6. A turn ends with the limits: [`exceeds_output_limit`](Connection::exceeds_output_limit). Then
//!    [`account`](Connection::account) publishes what the connection holds, and
//!    [`time_out`](Connection::time_out) says when the loop must look at it although nothing
//!    happens.
//! 7. Between its turns, messages are copied into its output: [`Link::copy_messages`].

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidewheel_keyspace::{Command, IncrementalCommand, Parked, Session, Ticket, Waiter, Watching};
use tidewheel_resp::{Parser, Protocol};

use crate::clients::checks;
use crate::clients::queue::QueuedCommands;
use crate::clients::registry::{Client, ClientMemory, ClientTraffic};
use crate::clients::tracking::Tracking;
use crate::config::{ClientAccess, Live, OutputLimit, Settings};
use crate::counters::slow_log::UnfinishedCall;
use crate::loop_handle::inbox::Target;
use crate::net::output::Output;
use crate::process::reclaim::BUFFER_MIN;
use crate::pubsub::hub::FoundChannels;
use crate::pubsub::subscriptions::{SubscriptionKind, Subscriptions};
use crate::users::{User, Users};

/// Output above which a connection's commands wait until it has been read.
pub(crate) const OUTPUT_SOFT_MARK: usize = 1 << 20;

/// The mode that CLIENT REPLY has set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replies {
    On,
    Off,
    /// Off for the command that said so and for the next.
    SkipThisAndNext,
    SkipThis,
}

/// A connection with its socket, owned by one loop.
#[derive(Debug)]
pub(crate) struct Link<S> {
    pub(crate) stream: S,
    pub(crate) conn: Connection,
}

/// A connection without its socket.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: Arc<Client>,
    pub(crate) session: Session,
    pub(crate) protocol: Protocol,
    /// Who it is.
    pub(crate) user: Arc<User>,
    /// The version of the table in which that was looked up.
    pub(crate) users_version: u64,
    /// Bits of [`checks`].
    pub(crate) checks: u16,
    pub(crate) replies: Replies,
    pub(crate) output: Output,
    /// Input that waits: a command that has not arrived whole, or commands that may not run yet.
    pub(crate) pending: Option<Box<PendingInput>>,
    /// A command over all keys that has not ended: it goes on before the next one is run.
    pub(crate) walk: Option<Box<IncrementalCommand>>,
    /// The command at the start of `pending` has begun, and is not done.
    pub(crate) begun: Option<PartialCommand>,
    /// A command that waits for a key: no other is run meanwhile.
    pub(crate) waiting: Option<Box<WaitingCommand>>,
    /// The next command, or the next step of `walk`, waits for shards that others have locked for
    /// long.
    pub(crate) parked: Option<Parked>,
    /// The claim of a parked connection that runs again, until its turn ends.
    pub(crate) resumed: Option<Parked>,
    /// A command that had waited was answered: the events that it caused follow its reply.
    pub(crate) events_follow: bool,
    /// The time that the unfinished command has taken so far.
    pub(crate) unfinished: Option<Box<UnfinishedCall>>,
    /// The commands that are queued since MULTI.
    pub(crate) queue: Option<Box<QueuedCommands>>,
    /// The keys that it watches.
    pub(crate) watching: Option<Box<Watching>>,
    pub(crate) subscriptions: Option<Box<Subscriptions>>,
    /// What it wants to be told of that it has read.
    pub(crate) tracking: Option<Box<Tracking>>,
    /// The number of the inbox's next message that was not read yet. A subscriber reads its own
    /// messages before the loop copies them.
    pub(crate) messages_seen: u64,
    /// The name of the last command.
    pub(crate) command: &'static str,
    pub(crate) traffic: ClientTraffic,
    /// The tick at which a byte last moved, in either direction.
    pub(crate) last_active: u64,
    /// The tick since which the output has been above its soft limit.
    pub(crate) above_soft_since: Option<u64>,
    /// The part of this connection's memory that the loop's sum includes, in bytes.
    pub(crate) accounted: usize,
    /// Bytes that its stream holds itself, when it was looked at.
    stream_bytes: usize,
    /// The memory that the registry was told before the last reply left.
    announced: Option<ClientMemory>,
    /// The tick under which the connection is filed in the loop's time-outs.
    pub(crate) filed: Option<u64>,
    /// The socket may have input.
    pub(crate) readable: bool,
    /// The peer has closed its side: read until the end is seen.
    pub(crate) ending: bool,
    /// A read has met the end of the input: the commands that are whole are still run.
    pub(crate) ended: bool,
    /// The socket takes no output for now.
    pub(crate) blocked: bool,
    /// The output waits for the log.
    pub(crate) withheld: bool,
    /// WAITAOF waits for the log.
    pub(crate) log_wait: Option<LogWait>,
    /// A command waits for the end of CLIENT PAUSE.
    pub(crate) paused: bool,
    /// The connection is closed as soon as the output has left.
    pub(crate) closing: bool,
    /// The connection is in the loop's queue of those to serve.
    pub(crate) queued: bool,
    /// The connection is in the loop's list of those with fresh messages.
    pub(crate) fresh: bool,
}

/// A command that is run in parts, and has begun. Its arguments stay where they have arrived.
#[derive(Debug)]
pub(crate) struct PartialCommand {
    /// The number of names that are done.
    pub(crate) done: usize,
    /// The channels that the done parts have found, if the reply is written at the end.
    pub(crate) found: FoundChannels,
    /// Its length in the input.
    pub(crate) bytes: usize,
}

/// WAITAOF, which waits until changes are on disk. It has not run: it stays at the start of the
/// input, and is tried again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogWait {
    /// So many records.
    pub(crate) records: u64,
    /// The tick at which its time is over.
    pub(crate) until: Option<u64>,
    /// It is to be tried again.
    pub(crate) is_due: bool,
}

/// A command that waits for a key.
#[derive(Debug)]
pub(crate) struct WaitingCommand {
    pub(crate) row: &'static Command,
    pub(crate) ticket: Arc<Ticket>,
    /// The tick at which its time is over.
    pub(crate) until: Option<u64>,
    /// The wait's time is over, but CLIENT PAUSE holds back its end.
    pub(crate) held: bool,
}

/// Input that waits: it is not whole, or may not run yet.
#[derive(Debug, Default)]
pub(crate) struct PendingInput {
    pub(crate) bytes: Vec<u8>,
    /// The most bytes that were ever in the buffer. Memory that is reserved beyond them was never
    /// touched.
    pub(crate) most: usize,
    /// The position of the first byte that has not been consumed.
    pub(crate) at: usize,
    pub(crate) parser: Parser,
    /// The number of bytes that the parser still needs; 0 when commands can be run without more.
    pub(crate) wanted: usize,
}

impl PendingInput {
    /// Returns the memory that its bytes take.
    fn touched(&self) -> usize {
        self.most.max(self.bytes.len())
    }

    /// Forgets what was run. Returns a buffer that has become far too big for what is to come.
    pub(crate) fn forget_run(&mut self) -> Option<Vec<u8>> {
        let rest = self.bytes.len() - self.at;
        self.most = self.touched();
        let too_big = self.most >= BUFFER_MIN && self.most / 4 > rest.saturating_add(self.wanted);
        let start = std::mem::take(&mut self.at);
        if !too_big {
            self.bytes.drain(..start);
            return None;
        }
        let bytes = self.bytes[start..].to_vec();
        self.most = bytes.len();
        Some(std::mem::replace(&mut self.bytes, bytes))
    }
}

impl Connection {
    pub(crate) fn new(client: Arc<Client>, now: u64) -> Self {
        let waiter = Waiter {
            owner: client.owner,
            slot: client.slot,
            id: client.id,
        };
        Self {
            client,
            session: Session {
                waiter: Some(waiter),
                ..Session::default()
            },
            protocol: Protocol::Resp2,
            user: Users::alone(),
            users_version: 0,
            checks: 0,
            replies: Replies::On,
            output: Output::default(),
            pending: None,
            walk: None,
            begun: None,
            waiting: None,
            parked: None,
            resumed: None,
            events_follow: false,
            unfinished: None,
            queue: None,
            watching: None,
            subscriptions: None,
            tracking: None,
            messages_seen: 0,
            command: "NULL",
            traffic: ClientTraffic::default(),
            last_active: now,
            above_soft_since: None,
            accounted: 0,
            stream_bytes: 0,
            announced: None,
            filed: None,
            readable: true,
            ending: false,
            ended: false,
            blocked: false,
            withheld: false,
            log_wait: None,
            paused: false,
            closing: false,
            queued: false,
            fresh: false,
        }
    }

    /// From now on the client is this user.
    pub(crate) fn become_user(&mut self, user: Arc<User>) {
        self.set(checks::LIMITED, !user.is_unlimited());
        self.client.facts.lock().user = Arc::clone(&user.name);
        self.user = user;
    }

    /// Looks its user up, if the table is another one than the last time.
    #[inline]
    pub(crate) fn follow_users(&mut self, users: &Users) {
        if self.users_version != users.version() {
            self.look_up_user(users);
        }
    }

    #[cold]
    fn look_up_user(&mut self, users: &Users) {
        self.users_version = users.version();
        // Who removes a user closes its clients.
        let user = users.get(&self.user.name).cloned();
        self.become_user(user.unwrap_or_else(Users::nobody));
    }

    /// Returns true if its user may hear all that it listens to.
    pub(crate) fn may_listen_on(&self) -> bool {
        self.subscriptions.as_ref().is_none_or(|subscriptions| {
            SubscriptionKind::ALL.into_iter().all(|kind| {
                let is_pattern = kind == SubscriptionKind::Pattern;
                let mut names = subscriptions.of(kind).iter();
                names.all(|name| self.user.may_listen(name, is_pattern))
            })
        })
    }

    /// Returns true if the client must give the password first, or may not be served at all. A
    /// client that connected while no password was set need not give it. A client of this machine
    /// needs none while none is set.
    #[inline]
    pub(crate) fn lacks_password(&self, config: &Live) -> bool {
        self.access(config) != ClientAccess::Free
    }

    /// Returns the client's access at this moment.
    #[inline]
    pub(crate) fn access(&self, config: &Live) -> ClientAccess {
        match self.checks & checks::UNAUTHENTICATED {
            0 => ClientAccess::Free,
            _ => config.access(&self.client.peer),
        }
    }

    /// Returns true if somebody has asked to close it: it will be closed soon.
    pub(crate) fn is_killed(&self) -> bool {
        self.client.killed.load(Ordering::Relaxed)
    }

    pub(crate) fn subscribed(&self) -> usize {
        self.subscriptions
            .as_ref()
            .map_or(0, |subscriptions| subscriptions.len())
    }

    /// Returns the number that confirms the end of a subscription.
    pub(crate) fn subscribed_with(&self, kind: SubscriptionKind) -> usize {
        self.subscriptions
            .as_ref()
            .map_or(0, |subscriptions| subscriptions.counted_with(kind))
    }

    /// Returns true if more input may be read or run. That is not so while the connection is
    /// paused, waits for a key, for shards or for the log, is about to close, or has much output
    /// that nobody reads.
    pub(crate) fn takes_input(&self) -> bool {
        !self.paused
            && !self.closing
            && self.waiting.is_none()
            && !self.waits_for_log()
            && self.parked.is_none()
            && self.output.len() < OUTPUT_SOFT_MARK
    }

    /// Returns true if a command is unfinished, or may not run now.
    pub(crate) fn is_held_up(&self) -> bool {
        self.paused
            || self.walk.is_some()
            || self.begun.is_some()
            || self.waiting.is_some()
            || self.waits_for_log()
            || self.parked.is_some()
            || self.resumed.is_some()
            || self.events_follow
    }

    /// Returns true if the loop can do something for it now.
    pub(crate) fn has_work(&self) -> bool {
        self.takes_input() && (self.readable || self.has_runnable()) || self.reads_ahead()
    }

    /// Returns true if the connection reads although its command waits for a key. Only a read finds
    /// the end of the input, and the end arrives only when there is room for the bytes before it. A
    /// long command is run in any case, so its client's input may wait.
    pub(crate) fn reads_ahead(&self) -> bool {
        let waiting = self.waiting.as_ref();
        let may_end = waiting.is_some_and(|waiting| !waiting.ticket.is_long());
        may_end && self.readable && !self.closing
    }

    /// Returns true if a command is unfinished, or if input waits that can be run without more.
    pub(crate) fn has_runnable(&self) -> bool {
        self.walk.is_some()
            || self
                .pending
                .as_ref()
                .is_some_and(|pending| pending.wanted == 0)
    }

    /// Returns true if WAITAOF waits, and nothing has happened that might end that.
    pub(crate) fn waits_for_log(&self) -> bool {
        self.log_wait.is_some_and(|wait| !wait.is_due)
    }

    /// Ends the wait of a client that has closed its side while its command waits for a key or for
    /// the log: then it is gone, as for the public server. Returns false if the command was served
    /// already, and its reply is on the way.
    pub(crate) fn leaves_while_waiting(&self) -> bool {
        let waiting = self.waiting.as_ref();
        self.waits_for_log() || waiting.is_some_and(|waiting| waiting.ticket.end())
    }

    /// Notes that a read has met the end of the input, if `ended`.
    pub(crate) fn at_end(&mut self, ended: bool) {
        if ended {
            self.readable = false;
            self.ended = true;
        }
    }

    pub(crate) fn target(&self) -> Target {
        self.client.target()
    }

    /// Returns true if it has output that the socket may take.
    pub(crate) fn can_send(&self) -> bool {
        !self.blocked && !self.withheld && !self.output.is_empty()
    }

    pub(crate) fn set(&mut self, bit: u16, on: bool) {
        if on {
            self.checks |= bit;
        } else {
            self.checks &= !bit;
        }
    }

    /// Notes that a command could not be queued.
    pub(crate) fn fail_queue(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.fail();
        }
    }

    /// Brings the bit for RESP2 subscribers in line.
    pub(crate) fn subscriptions_changed(&mut self) {
        if self.subscribed() == 0 {
            self.subscriptions = None;
        }
        let limited = self.subscriptions.is_some() && self.protocol == Protocol::Resp2;
        self.set(checks::SUBSCRIBER, limited);
    }

    /// Brings the session in line with what CLIENT TRACKING and CACHING have said.
    pub(crate) fn tracking_changed(&mut self) {
        let caching = self.checks & checks::CACHING != 0;
        let tracking = self.tracking.as_ref();
        self.session.tracks = tracking.is_some_and(|tracking| tracking.tracks(caching));
    }

    /// Returns true if the client is a monitor: it is shown every command.
    pub(crate) fn is_monitor(&self) -> bool {
        self.checks & checks::MONITOR != 0
    }

    /// Returns true if the client receives messages without asking for each of them.
    fn listens(&self) -> bool {
        self.subscriptions.is_some() || self.is_monitor()
    }

    /// Returns the output limits of its class.
    pub(crate) fn output_limit(&self, settings: &Settings) -> OutputLimit {
        if self.listens() {
            settings.output_limits.pubsub
        } else {
            settings.output_limits.normal
        }
    }

    /// Returns the limit of all clients together, or no limit if this client may not be closed for
    /// it.
    pub(crate) fn shared_limit(&self, settings: &Settings) -> u64 {
        match settings.max_memory_clients {
            0 => u64::MAX,
            _ if self.client.facts.lock().no_evict => u64::MAX,
            shared => shared,
        }
    }

    /// Returns the output above which it is closed at once, or above which all clients together
    /// hold too much.
    pub(crate) fn output_room(&self, settings: &Settings) -> usize {
        let hard = self.output_limit(settings).hard;
        let limits = [hard, settings.max_memory_clients].into_iter();
        let least = limits.filter(|limit| *limit > 0).min();
        least.map_or(usize::MAX, |bytes| {
            usize::try_from(bytes).unwrap_or(usize::MAX)
        })
    }

    /// Returns true if the output exceeds its limit. Keeps track of the time above the soft limit.
    pub(crate) fn exceeds_output_limit(&mut self, settings: &Settings, now: u64) -> bool {
        let held = self.output.len() as u64;
        if held == 0 {
            self.above_soft_since = None;
            return false;
        }
        let limit = self.output_limit(settings);
        if limit.hard > 0 && held > limit.hard {
            return true;
        }
        if limit.soft == 0 || held <= limit.soft {
            self.above_soft_since = None;
            return false;
        }
        let since = *self.above_soft_since.get_or_insert(now);
        now.saturating_sub(since) > limit.soft_ms()
    }

    /// Less than the soft limit is left to send: the time above it will start again from zero.
    pub(crate) fn forget_soft_limit_below(&mut self, settings: &Settings) {
        if self.output.len() as u64 <= self.output_limit(settings).soft {
            self.above_soft_since = None;
        }
    }

    /// Returns the tick at which the loop must look at it although nothing arrives.
    pub(crate) fn time_out(&self, settings: &Settings) -> Option<u64> {
        let silence = settings.timeout_s.saturating_mul(1000);
        let waits = self.waiting.is_some() || self.waits_for_log();
        let is_held = self.paused || self.walk.is_some() || waits || self.parked.is_some();
        let idles_out = silence > 0 && !self.listens() && !is_held;
        // Ticks are rounded down: one more, and nobody is closed a fraction too early.
        let idle = idles_out.then(|| self.last_active.saturating_add(silence + 1));
        let soft_ms = self.output_limit(settings).soft_ms();
        let soft = self
            .above_soft_since
            .map(|since| since.saturating_add(soft_ms + 1));
        let waited = self.waiting.as_ref().and_then(|waiting| waiting.until);
        let logged = self.log_wait.and_then(|wait| wait.until);
        [idle, soft, waited, logged].into_iter().flatten().min()
    }

    /// Returns the memory that is held for the client. Its names take `names` bytes.
    fn memory(&self, names: usize) -> ClientMemory {
        let input = |pending: &PendingInput| pending.touched() + pending.parser.heap_bytes();
        ClientMemory {
            input: self.pending.as_deref().map_or(0, input) + self.stream_bytes,
            output: self.output_memory(),
            subscriptions: self
                .subscriptions
                .as_deref()
                .map_or(0, Subscriptions::bytes),
            queue: self.queue.as_ref().map_or(0, |queue| queue.held_bytes())
                + self
                    .waiting
                    .as_ref()
                    .map_or(0, |waiting| waiting.ticket.bytes())
                + self
                    .watching
                    .as_ref()
                    .map_or(0, |watching| watching.bytes()),
            names,
        }
    }

    /// Returns the memory that is held for its replies, in bytes.
    fn output_memory(&self) -> usize {
        self.output.capacity()
            + self.walk.as_ref().map_or(0, |walk| walk.bytes())
            + self.unfinished.as_ref().map_or(0, |call| call.bytes())
            + (self.begun.as_ref()).map_or(0, |begun| begun.found.replies.len())
    }

    /// Publishes the connection's facts before a reply of so many bytes leaves, because a client
    /// that has seen the reply may ask for them.
    pub(crate) fn announce(&mut self, reply: usize) {
        self.traffic.output += reply as u64;
        self.announced = Some(self.publish_facts());
        self.traffic.output -= reply as u64;
    }

    /// Notes the bytes that its stream holds itself.
    #[inline]
    pub(crate) fn stream_holds(&mut self, bytes: usize) {
        if self.stream_bytes != bytes {
            self.stream_bytes = bytes;
            self.announced = None;
        }
    }

    /// Publishes the connection's facts, and updates the loop's sum of its clients' memory.
    pub(crate) fn account(&mut self, sum: &AtomicUsize) {
        let held = match self.announced.take() {
            Some(held) if held.output == self.output_memory() => held,
            _ => self.publish_facts(),
        };
        let held = held.total();
        if held != self.accounted {
            // Wrapping: a negative change is a big positive one.
            sum.fetch_add(held.wrapping_sub(self.accounted), Ordering::Relaxed);
            self.accounted = held;
        }
    }

    /// Publishes the connection's facts. Returns its memory.
    pub(crate) fn publish_facts(&self) -> ClientMemory {
        let mut facts = self.client.facts.lock();
        facts.db = self.session.db;
        facts.last_active = self.last_active;
        facts.command = self.command;
        facts.protocol = self.protocol;
        facts.queued = self.queue.as_ref().map(|queue| queue.len());
        facts.watched_changed = self.watching.as_ref().map(|watching| watching.mark());
        facts.watched = self.watching.as_ref().map_or(0, |watching| watching.len());
        facts.traffic = self.traffic;
        facts.paused = self.paused || self.waiting.is_some() || self.waits_for_log();
        facts.monitor = self.is_monitor();
        facts.no_touch = self.session.no_touch;
        facts.holds = self.memory(facts.names.bytes());
        let count = |kind| {
            let of = self.subscriptions.as_deref();
            of.map_or(0, |of| of.of(kind).len())
        };
        facts.channels = count(SubscriptionKind::Channel);
        facts.patterns = count(SubscriptionKind::Pattern);
        facts.tracking = self.tracking.as_ref().map(|tracking| tracking.facts());
        facts.shard_channels = count(SubscriptionKind::Shard);
        facts.holds
    }
}
