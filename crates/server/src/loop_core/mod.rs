//! One loop without its shell: the turn over its connections, and expiry.
//!
//! It owns no poller, alarm, listener or thread. Its caller says which sockets are ready, and what time
//! it is comes from the server's clock; so a test can drive it over streams in memory, in virtual time.
//!
//! A turn has five steps, in this order:
//! 1. [`prepare_sleep`](LoopCore::prepare_sleep) says until when nothing is to be done;
//! 2. the caller sleeps so long, or until a socket or the loop's bell wakes it;
//! 3. [`wake`](LoopCore::wake) looks at the clock;
//! 4. [`note`](LoopCore::note) takes each socket that has become ready, and
//!    [`take_parcels`](LoopCore::take_parcels) what other threads have sent; new connections are for
//!    the caller to [`adopt`](LoopCore::adopt);
//! 5. [`work`](LoopCore::work) gives each connection and expiry its share.

mod arrivals;
mod attend;
mod crowd;
mod fan_out;
mod leaving;
mod shrink;
mod table;

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::config::Settings;
use crate::desk::Desk;
use crate::driver::Driver;
use crate::inbox::Parcel;
use crate::listener::Accepted;
use crate::loop_handle::LoopHandle;
use crate::server::Server;
use crate::worker::Worker;

use crowd::Watch;
use fan_out::Copied;
use leaving::Leaving;
#[cfg(test)]
pub(crate) use leaving::PER_TURN;
use shrink::Shrinking;
use table::Table;

/// How long a stopping loop waits for its clients to take their last replies.
const FAREWELL_MS: u64 = 1_000;

/// What a loop asks of whoever knows its sockets.
pub(crate) trait Sockets {
    /// A socket that never blocks.
    type Stream: Read + Write;

    /// Has the socket's changes reported under `slot` from now on.
    fn take_in(&self, stream: &mut Self::Stream, slot: u32, settings: &Settings) -> io::Result<()>;

    /// Ends the reports.
    fn let_go(&self, stream: &mut Self::Stream);

    /// The number that CLIENT LIST shows.
    fn descriptor(&self, stream: &Self::Stream) -> i64;
}

/// What has become of a socket since it was last looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Readiness {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer sends no more.
    pub(crate) read_closed: bool,
    /// Nothing moves any more, in either direction.
    pub(crate) broken: bool,
}

/// One loop's state.
#[derive(Debug)]
pub(crate) struct LoopCore<K: Sockets> {
    pub(crate) worker: Worker,
    desk: Desk,
    driver: Driver,
    table: Table<K::Stream>,
    sockets: K,
    leaving: Leaving,
    /// Connections that were dealt to this loop.
    arrivals: VecDeque<Box<Accepted>>,
    /// The settings for which connections were filed.
    filed_version: u64,
    shrinking: Shrinking,
    parcels: Vec<Parcel>,
    /// What the clients hold together is watched.
    watch: Watch,
    copied: Copied,
    /// The tick at which the wall clock was looked at, and counters were published.
    last_tick: u64,
    /// The tick at which a loop that stops lets its clients go.
    farewell_ends: Option<u64>,
}

impl<K: Sockets> LoopCore<K> {
    pub(crate) fn new(server: Arc<Server>, index: usize, sockets: K) -> Self {
        let driver = Driver::new(index, server.loops.len(), server.keyspace.shards());
        let worker = Worker::new(server, index);
        Self {
            filed_version: worker.settings_version,
            worker,
            desk: Desk::default(),
            driver,
            table: Table::default(),
            sockets,
            leaving: Leaving::default(),
            arrivals: VecDeque::new(),
            shrinking: Shrinking::default(),
            parcels: Vec::new(),
            watch: Watch::default(),
            copied: Copied::default(),
            last_tick: 0,
            farewell_ends: None,
        }
    }

    pub(crate) fn server(&self) -> &Server {
        &self.worker.server
    }

    pub(crate) fn handle(&self) -> &LoopHandle {
        &self.worker.server.loops[self.worker.index]
    }

    pub(crate) fn now(&self) -> u64 {
        self.worker.time.tick
    }

    /// Decides how long to sleep: `None` while there is work, otherwise until a tick (`u64::MAX`: until
    /// something happens). The loop counts as asleep until [`wake`](Self::wake).
    ///
    /// `also` is a tick at which the caller has something to do itself.
    pub(crate) fn prepare_sleep(&mut self, also: Option<u64>) -> Option<u64> {
        let expires = self.server().expires();
        if self.is_busy(expires) {
            return None;
        }
        // Counters are complete before the loop falls silent.
        self.publish_counters();
        let pause = &self.server().pause;
        let until = [
            Some(self.driver.wake_at(&self.worker, expires)),
            self.table.first_time_out(),
            also,
            // Its end is looked for when the tick changes.
            pause.is_on().then(|| pause.until().max(self.now() + 1)),
            self.watch.is_due().then(|| self.now() + 1),
            self.shrinking.next_attempt(),
        ];
        let until = until.into_iter().flatten().min().unwrap_or(u64::MAX);
        let asleep = until > self.now() && self.handle().fall_asleep(until, expires);
        asleep.then_some(until)
    }

    fn is_busy(&self, expires: bool) -> bool {
        self.table.runnable() > 0
            || self.shrinking.goes_on()
            || !self.arrivals.is_empty()
            || !self.leaving.is_empty()
            || self.driver.has_work(&self.worker, expires)
    }

    /// The connections, for tests to look at.
    #[cfg(test)]
    pub(crate) fn connections(
        &mut self,
    ) -> impl Iterator<Item = &mut crate::connection::Connection> {
        self.table.iter_mut().map(|link| &mut link.conn)
    }

    /// What keeps the loop from sleeping, for tests to say.
    #[cfg(test)]
    pub(crate) fn why_busy(&self) -> String {
        let (runnable, soonest) = (self.table.runnable(), self.handle().soonest());
        let (now, driver) = (self.now(), &self.driver);
        format!("at {now}: {runnable} to serve, deadline {soonest}, {driver:?}")
    }

    /// The sleep is over.
    pub(crate) fn wake(&mut self) {
        self.handle().awake();
        self.worker.refresh_time();
        self.worker.tally.turns += 1;
        if self.now() != self.last_tick {
            self.new_tick();
        }
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
    }

    fn publish_counters(&mut self) {
        if self.worker.tally.commands > 0 {
            self.driver.note_activity();
        }
        self.worker.publish_counters();
        let paused = self.table.paused.len();
        self.handle().paused.store(paused, Ordering::Relaxed);
    }

    /// A socket is ready, or broken.
    pub(crate) fn note(&mut self, slot: u32, readiness: Readiness) {
        let Some(conn) = self.table.get(slot) else {
            return;
        };
        if readiness.broken {
            if conn.paused {
                return self.close(slot);
            }
            // Whatever it has sent before is read, then the error is met.
            conn.ending = true;
            conn.readable = true;
        }
        conn.readable |= readiness.readable;
        conn.ending |= readiness.read_closed;
        conn.jammed &= !readiness.writable;
        self.table.enqueue(slot);
    }

    /// Takes in what other threads have sent.
    pub(crate) fn take_parcels(&mut self) {
        let mut parcels = std::mem::take(&mut self.parcels);
        self.handle().collect(&mut parcels);
        for parcel in parcels.drain(..) {
            match parcel {
                Parcel::Connection(accepted) => self.arrivals.push_back(accepted),
                Parcel::Close(target) => self.close_target(target),
                Parcel::Messages(run) => self.append(&run),
            }
        }
        self.parcels = parcels;
        self.handle().has_taken_in();
        self.follow_settings();
        if !self.table.paused.is_empty() && !self.server().pause.is_on() {
            self.resume();
        }
    }

    fn follow_settings(&mut self) {
        self.worker.follow_settings();
        if self.filed_version != self.worker.settings_version {
            self.filed_version = self.worker.settings_version;
            self.shrinking.limit_changed();
            self.watch.alert();
            self.apply_limits();
            self.table.file_all(&self.worker.settings);
        }
    }

    /// The turn itself. `idle`: nothing had become ready.
    pub(crate) fn work(&mut self, idle: bool) {
        self.worker.seat.enter();
        self.serve_ready();
        self.driver.expire(&mut self.worker);
        self.take_parcels();
        self.send_fresh();
        self.handle_time_outs();
        self.shrink();
        self.end_subscriptions();
        let idle = idle && self.table.runnable() == 0;
        self.driver.tidy(&mut self.worker, idle);
        self.watch_clients(idle);
        self.table.end_turn();
        self.publish_events();
        self.worker.seat.leave();
    }

    /// Ends some of the subscriptions of those who are gone.
    fn end_subscriptions(&mut self) {
        let begun = std::mem::take(&mut self.worker.subscriptions_begun);
        let (hub, owner) = (&self.worker.server.hub, self.worker.index);
        self.leaving.end_some(hub, owner);
        self.leaving.next_turn(begun);
    }

    /// Evicts a little if `maxmemory` is exceeded.
    fn shrink(&mut self) {
        let (server, now) = (&self.worker.server, self.worker.time);
        if !self
            .shrinking
            .is_due(server.keyspace.exceeds_limit(), now.tick)
        {
            return;
        }
        let seat = &mut self.worker.seat;
        let goes_on = !server.pause.is_on() && server.keyspace.shrink(seat, now);
        self.shrinking.attempted(goes_on, now.tick);
    }

    /// Publishes what this loop has caused and not published yet, by commands of a connection that is gone
    /// for example: nobody else would.
    fn publish_events(&self) {
        let server = self.server();
        if server.keyspace.events_pending() {
            server.hub.flush(&server.keyspace);
        }
    }

    /// Sends what is left before the loop ends. Returns for how many milliseconds to wait for sockets
    /// that take more, `None` when it is done or has lasted long enough.
    pub(crate) fn farewell(&mut self) -> Option<u64> {
        if self.farewell_ends.is_none() {
            self.take_parcels();
            self.send_fresh();
        }
        let ends = *self
            .farewell_ends
            .get_or_insert(self.worker.time.tick + FAREWELL_MS);
        let (mut left, mut at_once) = (false, false);
        for link in self.table.iter_mut() {
            if self.worker.send_output(link).is_err() {
                let unsent = link.output.discard();
                self.worker.server.reclaimer.drop_buffer(unsent);
            }
            left |= !link.output.is_empty();
            at_once |= link.can_send();
        }
        self.worker.refresh_time();
        let wait = ends.saturating_sub(self.now());
        (left && wait > 0).then_some(if at_once { 0 } else { wait })
    }
}
