//! One thread's loop: it owns connections, serves what is ready, expires what is due, and sleeps
//! until the next of both.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mio::event::Event;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use parking_lot::Mutex;
use tidewheel_resp::Protocol;

use crate::alarm::Alarm;
use crate::clients::{Client, Facts};
use crate::clock;
use crate::connection::{Connection, gate};
use crate::driver::Driver;
use crate::hub::Kind;
use crate::listener::{self, Accepted};
use crate::loop_handle::{LoopHandle, Messages, Parcel, Target};
use crate::server::Server;
use crate::worker::{Fate, Worker};

/// The token of each loop's waker.
pub(crate) const WAKER: Token = Token(usize::MAX);
const ALARM: Token = Token(usize::MAX - 1);
/// Listeners count down from here; connections count up from zero.
const LISTENERS: usize = usize::MAX - 2;

/// Events taken from the poller at a time.
const EVENTS: usize = 1024;

/// Connections accepted in a turn.
const ACCEPTS_PER_TURN: usize = 64;

/// How long to wait before accepting again when the process or the system is out of descriptors.
const ACCEPT_RETRY_MS: u64 = 100;

/// Serving that may pass before expiry gets its share of the turn.
const SERVE_US: u64 = 500;

/// How long a stopping loop waits for its clients to take their last replies.
const FAREWELL_MS: u64 = 1_000;

/// One event loop.
#[derive(Debug)]
pub(crate) struct EventLoop {
    pub(crate) worker: Worker,
    pub(crate) driver: Driver,
    poll: Poll,
    alarm: Alarm,
    listeners: Vec<TcpListener>,
    /// Listeners may have somebody waiting.
    accepting: bool,
    /// Accept again at this tick.
    accept_retry: Option<u64>,
    connections: Vec<Option<Box<Connection>>>,
    free: Vec<u32>,
    /// Places vacated in this turn: events of this turn may still name them.
    vacated: Vec<u32>,
    runnable: VecDeque<u32>,
    /// Connections with messages that were not sent yet.
    fresh: Vec<u32>,
    paused: Vec<u32>,
    /// When to look at connections that do nothing: at most one entry for each.
    time_outs: BTreeSet<(u64, u32)>,
    settings_version: u64,
    /// `maxmemory` may have been lowered below what is used.
    shrinking: bool,
    parcels: Vec<Parcel>,
    /// The tick at which the wall clock was looked at, and counters were published.
    last_tick: u64,
}

impl EventLoop {
    pub(crate) fn new(
        server: Arc<Server>,
        index: usize,
        poll: Poll,
        mut listeners: Vec<TcpListener>,
    ) -> io::Result<Self> {
        let alarm = Alarm::new(poll.registry(), ALARM)?;
        for (i, listener) in listeners.iter_mut().enumerate() {
            poll.registry()
                .register(listener, Token(LISTENERS - i), Interest::READABLE)?;
        }
        let driver = Driver::new(index, server.loops.len(), server.keyspace.shards());
        let settings_version = server.config.version();
        Ok(Self {
            worker: Worker::new(server, index),
            driver,
            poll,
            alarm,
            listeners,
            accepting: false,
            accept_retry: None,
            connections: Vec::new(),
            free: Vec::new(),
            vacated: Vec::new(),
            runnable: VecDeque::new(),
            fresh: Vec::new(),
            paused: Vec::new(),
            time_outs: BTreeSet::new(),
            settings_version,
            shrinking: false,
            parcels: Vec::new(),
            last_tick: 0,
        })
    }

    /// Runs until the server stops.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        while !self.server().stopping.load(Ordering::Acquire) {
            if let Err(why) = self.turn(&mut events) {
                tracing::error!(%why, "an event loop cannot go on");
                return;
            }
        }
        self.farewell(&mut events);
    }

    fn server(&self) -> &Server {
        &self.worker.server
    }

    fn handle(&self) -> &LoopHandle {
        &self.worker.server.loops[self.worker.index]
    }

    fn now(&self) -> u64 {
        self.worker.time.tick
    }

    fn turn(&mut self, events: &mut Events) -> io::Result<()> {
        let timeout = self.prepare_sleep()?;
        match self.poll.poll(events, timeout) {
            Err(why) if why.kind() != io::ErrorKind::Interrupted => return Err(why),
            _ => {}
        }
        self.handle().awake();
        self.worker.refresh_time();
        self.worker.tally.turns += 1;
        if self.now() != self.last_tick {
            self.new_tick();
        }
        for event in events.iter() {
            self.note(event);
        }
        self.take_parcels();
        if self.accepting {
            self.accept();
        }
        self.serve_ready();
        self.driver.expire(&mut self.worker);
        self.take_parcels();
        self.send_fresh();
        self.handle_time_outs();
        if self.shrinking {
            self.shrink();
        }
        let idle = self.runnable.is_empty() && events.is_empty();
        self.driver.tidy(&mut self.worker, idle);
        self.free.append(&mut self.vacated);
        Ok(())
    }

    /// What is looked at only when the clock has moved on.
    fn new_tick(&mut self) {
        let now = self.now();
        self.last_tick = now;
        self.server().clock.follow_wall();
        self.publish_counters();
        let server = self.server();
        if server.pause.end_if_due(now) {
            server.pause_changed();
        }
        self.evict_clients();
    }

    /// Closes the client of this loop that holds most, once in a tick, while all clients together hold
    /// more than `maxmemory-clients`.
    fn evict_clients(&mut self) {
        let limit = self.worker.settings.max_memory_clients;
        if limit == 0 {
            return;
        }
        let loops = self.server().loops.iter();
        let held: usize = loops
            .map(|handle| handle.client_memory.load(Ordering::Relaxed))
            .sum();
        if held as u64 <= limit {
            return;
        }
        let candidates = self
            .connections
            .iter()
            .flatten()
            .filter(|conn| conn.accounted > 0);
        let biggest = candidates
            .filter(|conn| !conn.client.facts.lock().no_evict)
            .max_by_key(|conn| conn.accounted);
        let Some(conn) = biggest else { return };
        let slot = conn.client.slot;
        tracing::warn!(
            client = conn.client.id,
            "closed: clients hold too much memory"
        );
        self.worker.tally.evicted_clients += 1;
        self.close(slot);
    }

    fn publish_counters(&mut self) {
        if self.worker.tally.commands > 0 {
            self.driver.note_activity();
        }
        self.worker.publish_counters();
        self.handle()
            .paused
            .store(self.paused.len(), Ordering::Relaxed);
    }

    /// Decides how long to sleep: zero while there is work, otherwise until the alarm, which is set.
    fn prepare_sleep(&mut self) -> io::Result<Option<Duration>> {
        let expires = self.server().expires();
        let busy = !self.runnable.is_empty()
            || self.accepting
            || self.shrinking
            || self.driver.has_work(&self.worker, expires);
        if busy {
            return Ok(Some(Duration::ZERO));
        }
        // Counters are complete before the loop falls silent.
        self.publish_counters();
        let mut until = self.driver.wake_at(&self.worker, expires);
        if let Some((tick, _)) = self.time_outs.first() {
            until = until.min(*tick);
        }
        if let Some(tick) = self.accept_retry {
            until = until.min(tick);
        }
        if self.server().pause.is_on() {
            until = until.min(self.server().pause.until());
        }
        if until <= self.now() || !self.handle().fall_asleep(until, expires) {
            return Ok(Some(Duration::ZERO));
        }
        self.alarm
            .set(&self.worker.server.clock, self.worker.time.tick, until)
    }

    fn note(&mut self, event: &Event) {
        let token = event.token();
        if token == WAKER || token == ALARM {
            return;
        }
        if token.0 > LISTENERS - self.listeners.len() && token.0 <= LISTENERS {
            self.accepting = true;
            return;
        }
        let Ok(slot) = u32::try_from(token.0) else {
            return;
        };
        let Some(conn) = self
            .connections
            .get_mut(slot as usize)
            .and_then(Option::as_mut)
        else {
            return;
        };
        if event.is_error() || (event.is_write_closed() && event.is_read_closed()) {
            // Whatever it has sent before is read, then the error is met.
            conn.ending = true;
            conn.readable = true;
            if conn.paused {
                self.close(slot);
                return;
            }
        }
        conn.readable |= event.is_readable();
        conn.ending |= event.is_read_closed();
        if event.is_writable() {
            conn.jammed = false;
        }
        self.enqueue(slot);
    }

    fn enqueue(&mut self, slot: u32) {
        if let Some(conn) = self
            .connections
            .get_mut(slot as usize)
            .and_then(Option::as_mut)
            && !conn.queued
        {
            conn.queued = true;
            self.runnable.push_back(slot);
        }
    }

    /// Gives each connection that is ready its share, and expiry its own in between.
    fn serve_ready(&mut self) {
        let mut next_expiry = clock::micros(self.worker.time) + SERVE_US;
        for _ in 0..self.runnable.len() {
            let Some(slot) = self.runnable.pop_front() else {
                break;
            };
            self.serve(slot);
            if clock::micros(self.worker.time) >= next_expiry {
                self.driver.expire(&mut self.worker);
                next_expiry = clock::micros(self.worker.time) + SERVE_US;
            }
        }
    }

    fn serve(&mut self, slot: u32) {
        let Some(conn) = self
            .connections
            .get_mut(slot as usize)
            .and_then(Option::as_mut)
        else {
            return;
        };
        conn.queued = false;
        if conn.client.killed.load(Ordering::Relaxed) {
            return self.close(slot);
        }
        if self.worker.send_output(conn).is_err() || (conn.closing && conn.output.is_empty()) {
            return self.close(slot);
        }
        if !conn.has_work() {
            return;
        }
        match self.worker.serve(conn) {
            Fate::Close => return self.close(slot),
            Fate::Again => self.enqueue(slot),
            Fate::Rest => {
                if conn.paused {
                    self.paused.push(slot);
                }
            }
        }
        self.file(slot);
    }

    /// Files the connection under the tick at which its next time-out may fall due, if it is not
    /// filed for an earlier one already.
    fn file(&mut self, slot: u32) {
        let Some(conn) = self
            .connections
            .get_mut(slot as usize)
            .and_then(Option::as_mut)
        else {
            return;
        };
        let Some(tick) = conn.time_out(&self.worker.settings) else {
            return;
        };
        if let Some(filed) = conn.filed {
            if filed <= tick {
                return;
            }
            self.time_outs.remove(&(filed, slot));
        }
        conn.filed = Some(tick);
        self.time_outs.insert((tick, slot));
    }

    /// Closes who has been silent, or above the soft output limit, for too long. Others whose time has
    /// moved on are filed again.
    fn handle_time_outs(&mut self) {
        let now = self.now();
        while let Some(&(tick, slot)) = self.time_outs.first() {
            if tick > now {
                break;
            }
            self.time_outs.pop_first();
            let Some(conn) = self
                .connections
                .get_mut(slot as usize)
                .and_then(Option::as_mut)
            else {
                continue;
            };
            conn.filed = None;
            if conn.exceeds_output_limit(&self.worker.settings, now) {
                tracing::warn!(
                    client = conn.client.id,
                    "closed: it does not read its replies"
                );
                self.worker.tally.output_limit_closes += 1;
                self.close(slot);
            } else if conn
                .time_out(&self.worker.settings)
                .is_some_and(|tick| tick <= now)
            {
                tracing::debug!(client = conn.client.id, "closed: silent for too long");
                self.worker.tally.idle_closes += 1;
                self.close(slot);
            } else {
                self.file(slot);
            }
        }
    }

    fn take_parcels(&mut self) {
        let mut parcels = std::mem::take(&mut self.parcels);
        self.handle().collect(&mut parcels);
        for parcel in parcels.drain(..) {
            match parcel {
                Parcel::Connection(accepted) => self.adopt(*accepted),
                Parcel::Close(target) => {
                    if self.find(target).is_some() {
                        self.close(target.slot);
                    }
                }
                Parcel::Messages(run) => self.append(&run),
            }
        }
        self.parcels = parcels;
        self.follow_settings();
        if !self.paused.is_empty() && !self.server().pause.is_on() {
            self.resume();
        }
    }

    /// Lets the connections go on that a pause held back.
    fn resume(&mut self) {
        for slot in std::mem::take(&mut self.paused) {
            if let Some(conn) = self
                .connections
                .get_mut(slot as usize)
                .and_then(Option::as_mut)
                && conn.paused
            {
                conn.paused = false;
                self.enqueue(slot);
            }
        }
    }

    fn follow_settings(&mut self) {
        let version = self.server().config.version();
        if version == self.settings_version {
            return;
        }
        self.settings_version = version;
        self.shrinking = true;
        let settings = self.server().config.current();
        self.worker.adopt(settings);
        // Time-outs may have become shorter.
        for slot in 0..self.connections.len() {
            self.file(slot as u32);
        }
    }

    /// Evicts a little in each turn until a lowered `maxmemory` is met.
    fn shrink(&mut self) {
        let server = &self.worker.server;
        self.shrinking = !server.pause.is_on() && server.keyspace.shrink(self.worker.time);
        if server.keyspace.events_pending() {
            server.hub.flush(&server.keyspace);
        }
    }

    fn find(&mut self, target: Target) -> Option<&mut Connection> {
        let conn = self
            .connections
            .get_mut(target.slot as usize)?
            .as_deref_mut()?;
        (conn.client.id == target.id).then_some(conn)
    }

    fn append(&mut self, run: &Messages) {
        let now = self.now();
        for target in run.targets.iter() {
            let Some(conn) = self
                .connections
                .get_mut(target.slot as usize)
                .and_then(Option::as_mut)
            else {
                continue;
            };
            if conn.client.id != target.id || conn.closing {
                continue;
            }
            conn.output
                .append_messages(&run.bytes, &run.starts, conn.protocol == Protocol::Resp3);
            if conn.exceeds_output_limit(&self.worker.settings, now) {
                // The socket may take it yet.
                if self.worker.send_output(conn).is_err()
                    || conn.exceeds_output_limit(&self.worker.settings, now)
                {
                    tracing::warn!(client = target.id, "closed: it does not read its messages");
                    self.worker.tally.output_limit_closes += 1;
                    self.close(target.slot);
                    continue;
                }
            }
            if !conn.fresh {
                conn.fresh = true;
                self.fresh.push(target.slot);
            }
        }
    }

    fn send_fresh(&mut self) {
        let mut fresh = std::mem::take(&mut self.fresh);
        for slot in fresh.drain(..) {
            let Some(conn) = self
                .connections
                .get_mut(slot as usize)
                .and_then(Option::as_mut)
            else {
                continue;
            };
            conn.fresh = false;
            if self.worker.send_output(conn).is_err() {
                self.close(slot);
                continue;
            }
            conn.publish_facts();
            conn.account(&self.worker.server.loops[self.worker.index].client_memory);
            self.file(slot);
        }
        self.fresh = fresh;
    }

    /// Accepts what is waiting, within the turn's share, and deals it to the emptiest loop.
    fn accept(&mut self) {
        if self.accept_retry.is_some_and(|tick| tick > self.now()) {
            self.accepting = false;
            return;
        }
        self.accept_retry = None;
        let mut left = ACCEPTS_PER_TURN;
        let mut next = 0;
        while left > 0 && next < self.listeners.len() {
            match listener::accept(&self.listeners[next]) {
                Ok(Some(accepted)) => {
                    left -= 1;
                    self.deal(accepted);
                }
                Ok(None) => next += 1,
                Err(why) => {
                    tracing::error!(%why, "cannot accept a connection");
                    self.accept_retry = Some(self.now() + ACCEPT_RETRY_MS);
                    return;
                }
            }
        }
        self.accepting = next < self.listeners.len();
    }

    fn deal(&mut self, accepted: Accepted) {
        let settings = Arc::clone(&self.worker.settings);
        let server = Arc::clone(&self.worker.server);
        if server.connected.load(Ordering::Relaxed) >= settings.max_clients {
            self.worker.tally.rejected += 1;
            let mut stream = accepted.stream;
            let refusal = b"-ERR max number of clients reached\r\n";
            // The socket is fresh, so this fits; if the peer is gone already, nobody misses it.
            drop(crate::output::write_some(&mut stream, refusal));
            return;
        }
        server.connected.fetch_add(1, Ordering::Relaxed);
        self.worker.tally.connections += 1;
        let loads = server
            .loops
            .iter()
            .map(|handle| handle.connections.load(Ordering::Relaxed));
        let emptiest = loads
            .enumerate()
            .min_by_key(|(_, load)| *load)
            .map_or(0, |(i, _)| i);
        server.loops[emptiest]
            .connections
            .fetch_add(1, Ordering::Relaxed);
        if emptiest == self.worker.index {
            self.adopt(accepted);
        } else {
            server.loops[emptiest].post(Parcel::Connection(Box::new(accepted)));
        }
    }

    /// Makes a connection this loop's own.
    fn adopt(&mut self, accepted: Accepted) {
        let Accepted {
            mut stream,
            peer,
            local,
        } = accepted;
        let now = self.now();
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.connections.push(None);
                (self.connections.len() - 1) as u32
            }
        };
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered =
            listener::tune(&stream, self.worker.settings.tcp_keepalive_s).and_then(|()| {
                self.poll
                    .registry()
                    .register(&mut stream, Token(slot as usize), interest)
            });
        if let Err(why) = registered {
            tracing::debug!(%why, "a connection was lost before it was served");
            self.free.push(slot);
            self.forget_one();
            return;
        }
        let client = Arc::new(Client {
            id: self.server().clients.next_id(),
            peer,
            local,
            descriptor: descriptor(&stream),
            since: now,
            owner: self.worker.index,
            slot,
            killed: std::sync::atomic::AtomicBool::new(false),
            facts: Mutex::new(Facts::new(now)),
        });
        self.server().clients.add(Arc::clone(&client));
        let mut conn = Connection::new(stream, client, now);
        conn.set(
            gate::UNAUTHENTICATED,
            !self.worker.settings.password.is_empty(),
        );
        self.connections[slot as usize] = Some(Box::new(conn));
        self.file(slot);
        self.enqueue(slot);
    }

    fn forget_one(&self) {
        self.handle().connections.fetch_sub(1, Ordering::Relaxed);
        self.server().connected.fetch_sub(1, Ordering::Relaxed);
    }

    fn close(&mut self, slot: u32) {
        let Some(mut conn) = self
            .connections
            .get_mut(slot as usize)
            .and_then(Option::take)
        else {
            return;
        };
        if let Err(why) = self.poll.registry().deregister(&mut conn.stream) {
            tracing::debug!(%why, "cannot deregister a connection");
        }
        if let Some(filed) = conn.filed {
            self.time_outs.remove(&(filed, slot));
        }
        let server = &self.worker.server;
        let target = conn.client.target();
        if let Some(subscriptions) = conn.subscriptions.take() {
            for channel in &subscriptions.channels {
                server
                    .hub
                    .unsubscribe(Kind::Channel, channel, self.worker.index, target);
            }
            for pattern in &subscriptions.patterns {
                server
                    .hub
                    .unsubscribe(Kind::Pattern, pattern, self.worker.index, target);
            }
        }
        server.clients.remove(target.id);
        let client_memory = &server.loops[self.worker.index].client_memory;
        client_memory.fetch_sub(conn.accounted, Ordering::Relaxed);
        server.reclaimer.drop_buffer(conn.output.discard());
        if let Some(held) = conn.held.take() {
            server.reclaimer.drop_buffer(held.bytes);
        }
        if conn.paused {
            self.paused.retain(|paused| *paused != slot);
        }
        self.vacated.push(slot);
        self.forget_one();
    }

    /// Sends what is left, for a moment, and lets the clients go.
    fn farewell(&mut self, events: &mut Events) {
        self.listeners.clear();
        self.take_parcels();
        self.send_fresh();
        let deadline = self.now() + FAREWELL_MS;
        loop {
            let mut left = false;
            for conn in self.connections.iter_mut().flatten() {
                if self.worker.send_output(conn).is_err() {
                    self.worker
                        .server
                        .reclaimer
                        .drop_buffer(conn.output.discard());
                }
                left |= !conn.output.is_empty();
            }
            self.worker.refresh_time();
            if !left || self.now() >= deadline {
                return;
            }
            let timeout = Duration::from_millis(deadline - self.now());
            if self.poll.poll(events, Some(timeout)).is_err() {
                return;
            }
            for event in events.iter().filter(|event| event.is_writable()) {
                if let Some(Some(conn)) = self.connections.get_mut(event.token().0) {
                    conn.jammed = false;
                }
            }
        }
    }
}

#[cfg(unix)]
fn descriptor(stream: &mio::net::TcpStream) -> i64 {
    use std::os::fd::AsRawFd as _;
    i64::from(stream.as_raw_fd())
}

#[cfg(not(unix))]
fn descriptor(_: &mio::net::TcpStream) -> i64 {
    -1
}
