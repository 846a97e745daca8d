//! One thread's loop: it owns connections, serves what is ready, expires what is due, and sleeps
//! until the next of both.

mod attend;
mod lobby;
mod table;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mio::event::Event;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};

use crate::alarm::Alarm;
use crate::driver::Driver;
use crate::loop_handle::{LoopHandle, Parcel};
use crate::server::Server;
use crate::worker::Worker;

use table::Table;

/// The token of each loop's waker.
pub(crate) const WAKER: Token = Token(usize::MAX);
const ALARM: Token = Token(usize::MAX - 1);
/// Listeners count down from here; connections count up from zero.
const LISTENERS: usize = usize::MAX - 2;

/// Events taken from the poller at a time.
const EVENTS: usize = 1024;

/// How long a stopping loop waits for its clients to take their last replies.
const FAREWELL_MS: u64 = 1_000;

/// One event loop.
#[derive(Debug)]
pub(crate) struct EventLoop {
    worker: Worker,
    driver: Driver,
    table: Table,
    poll: Poll,
    alarm: Alarm,
    listeners: Vec<TcpListener>,
    /// Listeners may have somebody waiting.
    accepting: bool,
    /// Accept again at this tick.
    accept_retry: Option<u64>,
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
            table: Table::default(),
            poll,
            alarm,
            listeners,
            accepting: false,
            accept_retry: None,
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
        let idle = self.table.runnable() == 0 && events.is_empty();
        self.driver.tidy(&mut self.worker, idle);
        self.table.end_turn();
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
        self.accepting |= self.accept_retry.is_some_and(|tick| tick <= now);
        self.evict_clients();
    }

    fn publish_counters(&mut self) {
        if self.worker.tally.commands > 0 {
            self.driver.note_activity();
        }
        self.worker.publish_counters();
        let paused = self.table.paused.len();
        self.handle().paused.store(paused, Ordering::Relaxed);
    }

    /// Decides how long to sleep: zero while there is work, otherwise until the alarm, which is set.
    fn prepare_sleep(&mut self) -> io::Result<Option<Duration>> {
        let expires = self.server().expires();
        let busy = self.table.runnable() > 0
            || self.accepting
            || self.shrinking
            || self.driver.has_work(&self.worker, expires);
        if busy {
            return Ok(Some(Duration::ZERO));
        }
        // Counters are complete before the loop falls silent.
        self.publish_counters();
        let pause = &self.server().pause;
        let until = [
            Some(self.driver.wake_at(&self.worker, expires)),
            self.table.first_time_out(),
            self.accept_retry,
            pause.is_on().then(|| pause.until()),
        ];
        let until = until.into_iter().flatten().min().unwrap_or(u64::MAX);
        if until <= self.now() || !self.handle().fall_asleep(until, expires) {
            return Ok(Some(Duration::ZERO));
        }
        let now = self.now();
        self.alarm.set(&self.worker.server.clock, now, until)
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
        let Some(conn) = self.table.get(slot) else {
            return;
        };
        if event.is_error() || (event.is_write_closed() && event.is_read_closed()) {
            if conn.paused {
                return self.close(slot);
            }
            // Whatever it has sent before is read, then the error is met.
            conn.ending = true;
            conn.readable = true;
        }
        conn.readable |= event.is_readable();
        conn.ending |= event.is_read_closed();
        conn.jammed &= !event.is_writable();
        self.table.enqueue(slot);
    }

    fn take_parcels(&mut self) {
        let mut parcels = std::mem::take(&mut self.parcels);
        self.handle().collect(&mut parcels);
        for parcel in parcels.drain(..) {
            match parcel {
                Parcel::Connection(accepted) => self.adopt(*accepted),
                Parcel::Close(target) => {
                    if self.table.find(target).is_some() {
                        self.close(target.slot);
                    }
                }
                Parcel::Messages(run) => self.append(&run),
            }
        }
        self.parcels = parcels;
        self.follow_settings();
        if !self.table.paused.is_empty() && !self.server().pause.is_on() {
            self.resume();
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
        self.table.file_all(&settings);
        self.worker.adopt(settings);
    }

    /// Evicts a little in each turn until a lowered `maxmemory` is met.
    fn shrink(&mut self) {
        let server = &self.worker.server;
        self.shrinking = !server.pause.is_on() && server.keyspace.shrink(self.worker.time);
        if server.keyspace.events_pending() {
            server.hub.flush(&server.keyspace);
        }
    }

    /// Sends what is left, for a moment, and lets the clients go.
    fn farewell(&mut self, events: &mut Events) {
        self.listeners.clear();
        self.take_parcels();
        self.send_fresh();
        let deadline = self.now() + FAREWELL_MS;
        loop {
            let (mut left, mut at_once) = (false, false);
            for conn in self.table.iter_mut() {
                if self.worker.send_output(conn).is_err() {
                    let unsent = conn.output.discard();
                    self.worker.server.reclaimer.drop_buffer(unsent);
                }
                left |= !conn.output.is_empty();
                at_once |= conn.can_send();
            }
            self.worker.refresh_time();
            if !left || self.now() >= deadline {
                return;
            }
            let timeout = if at_once { 0 } else { deadline - self.now() };
            let timeout = Duration::from_millis(timeout);
            if self.poll.poll(events, Some(timeout)).is_err() {
                return;
            }
            for event in events.iter().filter(|event| event.is_writable()) {
                let slot = u32::try_from(event.token().0);
                if let Some(conn) = slot.ok().and_then(|slot| self.table.get(slot)) {
                    conn.jammed = false;
                }
            }
        }
    }
}
