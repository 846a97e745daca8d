//! Threads for handshakes of TLS.
//!
//! A handshake takes up to a millisecond of the processor, as long as a whole turn of a loop. So
//! threads of their own accept at the port for TLS, and a loop gets the connection when its
//! handshake is over.
//!
//! # Half-open connections
//!
//! A connection whose handshake is not over is half-open. There is a limit to their number and to
//! their age. Where the limit is reached, the one for whose message we have waited longest makes
//! room for a new one, if that was long enough for a client that is there. Otherwise new ones wait
//! at the listener: then all who are half-open are busy, and it is the processor that is too slow.
//! Bytes are no message: who sends one now and then would stay for ever.
//!
//! So many silent connections keep nobody out, and when all clients come again at once they are
//! served as fast as the processor can.

mod failure_lines;
mod half_open;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use self::failure_lines::FailureLines;
use self::half_open::{HalfOpen, HalfOpens};
use super::assign;
use crate::config::Settings;
use crate::counters::tls::TlsCounts;
use crate::net::listener::{self, Accepted};
use crate::net::stream::Stream;
use crate::net::tls::certificate::advice;
use crate::net::tls::stream::{NotTls, TlsStream};
use crate::state::server::Server;

/// The number of threads.
pub(crate) const THREADS: usize = 2;

/// Descriptors of each thread: its poller and its waker.
pub(crate) const FILES: usize = 2;

/// Half-open connections of a thread.
const HALF_OPEN_MAX: usize = 1_024;

/// And the part of `maxclients` that they may be, since they count there: those who are served need
/// the rest.
const PART_OF_CLIENTS: usize = 8;

/// The time in which a handshake must be over.
const HANDSHAKE_MS: u64 = 10_000;

/// The wait for a whole message after which a half-open connection may have to make room for
/// another.
const SILENCE_MS: u64 = 100;

/// How often old ones are looked for.
const LOOK_MS: u64 = 100;

/// The time until room, or a free descriptor, is looked for again.
const RETRY_MS: u64 = 20;

/// Connections accepted in a turn.
const ACCEPTS_PER_TURN: usize = 64;

/// Events taken from the poller in a turn: one of each connection, of each listener and the
/// waker's. So after a look, all that had come before it has been read.
const EVENTS: usize = HALF_OPEN_MAX + 64;

const WAKER: Token = Token(usize::MAX);
const LISTENERS: usize = usize::MAX - 1;

/// One thread's handshakes.
#[derive(Debug)]
pub(crate) struct Handshakes {
    server: Arc<Server>,
    poll: Poll,
    listeners: Vec<TcpListener>,
    /// Connections may wait at the listeners.
    accepting: bool,
    /// But there was no room for them.
    full: bool,
    half_open: HalfOpens,
    lines: FailureLines,
    /// The tick at which old ones were looked for.
    looked_at: u64,
    /// The tick of the last look at the poller. What came before it has been read.
    polled_at: u64,
}

/// What became of an attempt to accept.
enum Accepting {
    One,
    /// Nobody waits.
    Nobody,
    /// There is no room now.
    Later,
}

impl Handshakes {
    /// Makes one with listeners of its own, and what wakes it when the server stops.
    pub(crate) fn new(
        server: Arc<Server>,
        mut listeners: Vec<TcpListener>,
    ) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        for (i, listener) in listeners.iter_mut().enumerate() {
            let token = Token(LISTENERS - i);
            poll.registry()
                .register(listener, token, Interest::READABLE)?;
        }
        let waker = Waker::new(poll.registry(), WAKER)?;
        let handshakes = Self {
            server,
            poll,
            listeners,
            accepting: false,
            full: false,
            half_open: HalfOpens::default(),
            lines: FailureLines::default(),
            looked_at: 0,
            polled_at: 0,
        };
        Ok((handshakes, waker))
    }

    /// Runs until the server stops.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        while !self.server.stopping.load(Ordering::Acquire) {
            if let Err(why) = self.turn(&mut events) {
                tracing::error!(%why, "a thread for handshakes cannot go on");
                return;
            }
        }
    }

    fn turn(&mut self, events: &mut Events) -> io::Result<()> {
        let before = self.now();
        match self.poll.poll(events, self.sleep()) {
            Err(why) if why.kind() != io::ErrorKind::Interrupted => return Err(why),
            _ => {}
        }
        for event in events.iter() {
            match event.token() {
                WAKER => {}
                Token(token) if token > LISTENERS - self.listeners.len() => self.accepting = true,
                Token(slot) => self.go_on(slot),
            }
        }
        self.polled_at = before;
        let now = self.now();
        if now.saturating_sub(self.looked_at) >= LOOK_MS {
            self.looked_at = now;
            self.end_old(now);
        }
        if self.accepting {
            self.accept();
        }
        let counts = &self.server.tls_counts;
        let (half_open, known) = (self.half_open.len(), self.half_open.published);
        // Wrapping: a negative change is a big positive one.
        let change = half_open.wrapping_sub(known);
        counts.half_open.fetch_add(change, Ordering::Relaxed);
        self.half_open.published = half_open;
        Ok(())
    }

    fn now(&self) -> u64 {
        self.server.clock.now().tick
    }

    /// Returns how long to sleep; `None`: until something happens.
    fn sleep(&self) -> Option<Duration> {
        let ms = match self.accepting {
            true if self.full => RETRY_MS,
            true => 0,
            false if self.half_open.is_empty() => return None,
            false => LOOK_MS,
        };
        Some(Duration::from_millis(ms))
    }

    /// Accepts what waits, within the turn's share.
    fn accept(&mut self) {
        let settings = self.server.config.current();
        let mut left = ACCEPTS_PER_TURN;
        let mut next = 0;
        self.full = false;
        while left > 0 && next < self.listeners.len() {
            match self.accept_one(next, &settings) {
                Accepting::One => left -= 1,
                Accepting::Nobody => next += 1,
                Accepting::Later => {
                    self.full = true;
                    return;
                }
            }
        }
        self.accepting = next < self.listeners.len();
    }

    fn accept_one(&mut self, listener: usize, settings: &Settings) -> Accepting {
        let now = self.now();
        let part = (settings.max_clients / PART_OF_CLIENTS).max(1);
        if self.half_open.len() >= HALF_OPEN_MAX.min(part) {
            // A message that came since the last look has not been read. It is no silence.
            let waited = self.polled_at.saturating_sub(SILENCE_MS);
            let Some(silent) = self.half_open.longest_awaited(waited) else {
                return Accepting::Later;
            };
            self.end(silent, "closed: newer connections need its place");
            self.count(|counts| &counts.crowded_out);
        }
        match listener::accept(&self.listeners[listener]) {
            Ok(Some(accepted)) => {
                self.begin(accepted, settings, now);
                Accepting::One
            }
            Ok(None) => Accepting::Nobody,
            Err(why) => {
                tracing::error!(%why, "cannot accept a connection");
                Accepting::Later
            }
        }
    }

    /// Begins a handshake.
    fn begin(&mut self, accepted: Accepted<TcpStream>, settings: &Settings, now: u64) {
        let peer = accepted.peer;
        if !assign::lets_in(&self.server, settings) {
            tracing::debug!(address = %peer, "refused: there are as many clients as may be");
            return self.count(|counts| &counts.rejected);
        }
        let slot = self.half_open.next_slot();
        let begun = self.stream(accepted.stream, slot);
        match begun {
            Ok(stream) => self.half_open.put(
                slot,
                HalfOpen {
                    stream: Box::new(stream),
                    peer,
                    local: accepted.local,
                    since: now,
                    awaited_since: now,
                    is_answered: false,
                },
            ),
            Err(why) => {
                tracing::warn!(address = %peer, %why, "closed: no handshake can begin");
                self.half_open.unused(slot);
                self.gone();
            }
        }
    }

    /// Makes a stream of a socket, and watches it.
    fn stream(&self, mut socket: TcpStream, slot: usize) -> anyhow::Result<TlsStream<TcpStream>> {
        let terms = self.server.tls_terms.current();
        let terms = terms.ok_or_else(|| anyhow::anyhow!("there is no certificate"))?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll
            .registry()
            .register(&mut socket, Token(slot), interest)?;
        Ok(TlsStream::new(socket, terms)?)
    }

    /// Goes on with a handshake. A connection whose handshake is over goes to a loop.
    fn go_on(&mut self, slot: usize) {
        let Some(half) = self.half_open.get(slot) else {
            return;
        };
        let step = catch_unwind(AssertUnwindSafe(|| half.stream.handshake()));
        match step {
            Ok(Ok(true)) => self.hand_over(slot),
            Ok(Ok(false)) => {
                let now = self.now();
                if let Some(half) = self.half_open.get(slot)
                    && !half.is_answered
                    && half.stream.has_answered()
                {
                    half.is_answered = true;
                    half.awaited_since = now;
                }
            }
            Ok(Err(why)) => self.fail(slot, &why),
            Err(_) => {
                tracing::error!("a handshake panicked");
                self.end(slot, "closed: its handshake panicked");
                self.count(|counts| &counts.failed);
            }
        }
    }

    fn hand_over(&mut self, slot: usize) {
        let Some(mut half) = self.half_open.take(slot) else {
            return;
        };
        if let Err(why) = self.poll.registry().deregister(half.stream.socket_mut()) {
            tracing::debug!(address = %half.peer, %why, "lost after its handshake");
            return self.gone();
        }
        self.count(|counts| &counts.done);
        let accepted = Accepted {
            stream: Stream::Tls(half.stream),
            peer: half.peer,
            local: half.local,
        };
        assign::to_emptiest(&self.server, accepted, None);
    }

    /// Ends a handshake that has failed, and says why.
    fn fail(&mut self, slot: usize, why: &io::Error) {
        self.count(|counts| &counts.failed);
        let now = self.now();
        let Some(half) = self.half_open.get(slot) else {
            return;
        };
        let address = &half.peer;
        // Without a cause it is the client who has gone.
        if let Some(cause) = why.get_ref() {
            let is_plain = cause.is::<NotTls>();
            let line = match is_plain {
                true => "closed: it speaks without TLS at the port for TLS (tls-port)",
                false => "closed: its TLS handshake has failed",
            };
            if let Some(left_out) = self.lines.next(now) {
                let why = why.to_string();
                let why = (!is_plain).then(|| format!("{why}{}", advice(&why)));
                let why = why.as_ref().map(tracing::field::display);
                let failures_without_a_line = (left_out > 0).then_some(left_out);
                tracing::warn!(%address, why, failures_without_a_line, "{line}");
            }
            if is_plain {
                half.stream.answer_plainly(
                    "-ERR this port is for TLS: connect with TLS, or to another port\r\n",
                );
            }
        }
        self.end(slot, "closed: its handshake has ended");
    }

    /// Ends handshakes that have taken too long.
    fn end_old(&mut self, now: u64) {
        while let Some(slot) = self.half_open.oldest(now.saturating_sub(HANDSHAKE_MS)) {
            self.count(|counts| &counts.timed_out);
            self.end(slot, "closed: its TLS handshake takes too long");
        }
    }

    /// Closes a half-open connection.
    fn end(&mut self, slot: usize, why: &'static str) {
        if let Some(half) = self.half_open.take(slot) {
            tracing::debug!(address = %half.peer, "{why}");
            self.gone();
        }
    }

    /// Counts a connection that is gone before it was a loop's.
    fn gone(&self) {
        self.server.connected.fetch_sub(1, Ordering::Relaxed);
    }

    fn count(&self, of: impl Fn(&TlsCounts) -> &AtomicU64) {
        of(&self.server.tls_counts).fetch_add(1, Ordering::Relaxed);
    }
}
