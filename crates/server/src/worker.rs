//! What a loop needs to run commands, whoever has sent them.

use std::io::{self, Write};
use std::sync::Arc;

use tidewheel_keyspace::{Seat, Time};
use tidewheel_resp::{Limits, Protocol};

use crate::command_counts::CommandCounts;
use crate::config::Settings;
use crate::connection::{Connection, Link, gate};
use crate::inbox::Messages;
use crate::metrics::Tally;
use crate::server::Server;

/// Work that may share one reading of the clock, in units of about a hundred nanoseconds: a command
/// counts one for each argument and for each 64 bytes that it takes in or answers. So sixty-four GETs
/// or one MSET of as many keys share a reading, and it is never older than some tens of microseconds.
const WORK_PER_TIME: usize = 192;

/// One loop's share of the server.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) server: Arc<Server>,
    /// The loop's number.
    pub(crate) index: usize,
    pub(crate) settings: Arc<Settings>,
    /// Which change of the settings this loop has followed.
    pub(crate) settings_version: u64,
    pub(crate) time: Time,
    /// Inside while the loop works, empty while it sleeps.
    pub(crate) seat: Seat,
    pub(crate) tally: Tally,
    pub(crate) counts: CommandCounts,
    pub(crate) limits: Limits,
    /// Subscriptions that have begun in this turn.
    pub(crate) subscriptions_begun: usize,
    /// Work done since the clock was read.
    since_time: usize,
    /// When another loop was last asked to look after this one, and this one's next deadline then.
    pub(crate) guard_asked: (u64, u64),
}

impl Worker {
    pub(crate) fn new(server: Arc<Server>, index: usize) -> Self {
        // The version first: settings that are newer than it are followed once more.
        let settings_version = server.config.version();
        let settings = server.config.current();
        let mut worker = Self {
            time: server.clock.now(),
            seat: server.keyspace.seat(),
            index,
            tally: Tally::default(),
            counts: CommandCounts::default(),
            limits: Limits::DEFAULT,
            subscriptions_begun: 0,
            since_time: 0,
            guard_asked: (0, 0),
            settings: Arc::clone(&settings),
            settings_version,
            server,
        };
        worker.adopt(settings);
        worker
    }

    /// Puts settings into force that were changed since the last call.
    #[inline]
    pub(crate) fn follow_settings(&mut self) {
        let version = self.server.config.version();
        if version != self.settings_version {
            self.settings_version = version;
            self.adopt(self.server.config.current());
        }
    }

    #[cold]
    fn adopt(&mut self, settings: Arc<Settings>) {
        self.limits = Limits {
            bulk: usize::try_from(settings.bulk_max).unwrap_or(usize::MAX),
            ..Limits::DEFAULT
        };
        self.settings = settings;
    }

    /// Whether a connection has yet to give the password. One that came while none was asked need not, and
    /// nobody needs to while none is asked.
    #[inline]
    pub(crate) fn is_stranger(&self, conn: &Connection) -> bool {
        conn.gate & gate::UNAUTHENTICATED != 0 && self.server.config.asks_password()
    }

    /// Reads the clock.
    pub(crate) fn refresh_time(&mut self) {
        self.time = self.server.clock.now();
        self.since_time = 0;
    }

    /// A command has run that had so many arguments and moved so many bytes.
    #[inline]
    pub(crate) fn note_work(&mut self, arguments: usize, bytes: usize) {
        self.since_time += arguments + bytes / 64;
    }

    /// A command has run whose size says nothing about how long it took.
    #[inline]
    pub(crate) fn note_slow(&mut self) {
        self.since_time = WORK_PER_TIME;
    }

    /// Reads the clock if enough has been done since it was read. True if it did.
    #[inline]
    pub(crate) fn renew_time(&mut self) -> bool {
        let stale = self.since_time >= WORK_PER_TIME;
        if stale {
            self.refresh_time();
        }
        stale
    }

    /// Makes the loop's counters visible to others.
    pub(crate) fn publish_counters(&mut self) {
        let handle = &self.server.loops[self.index];
        handle.counters.publish(&mut self.tally, self.time);
        self.counts.end_run(&handle.command_counts);
    }

    /// Sends what waits in a connection's output.
    pub(crate) fn send_output<S: Write>(&mut self, link: &mut Link<S>) -> io::Result<()> {
        if link.jammed || link.output.is_empty() {
            return Ok(());
        }
        let (sent, full, buffer) = link.conn.output.send(&mut link.stream)?;
        link.conn.jammed = full;
        self.note_sent(link, sent);
        if let Some(buffer) = buffer {
            self.server.reclaimer.drop_buffer(buffer);
        }
        Ok(())
    }

    /// Sends as much as the socket takes.
    pub(crate) fn send_all<S: Write>(&mut self, link: &mut Link<S>) -> io::Result<()> {
        while link.can_send() {
            self.send_output(link)?;
        }
        Ok(())
    }

    /// Whether a connection's output is within its limits, if need be after asking the socket once more.
    pub(crate) fn keeps_up<S: Write>(&mut self, link: &mut Link<S>) -> bool {
        let now = self.time.tick;
        !link.exceeds_output_limit(&self.settings, now)
            || (self.send_all(link).is_ok() && !link.exceeds_output_limit(&self.settings, now))
    }

    /// Copies messages into a receiver's output, but no more than it may hold at a time: what is more leaves
    /// before the next is copied. False when the receiver does not keep up.
    pub(crate) fn copy_messages<S: Write>(&mut self, link: &mut Link<S>, run: &Messages) -> bool {
        let resp3 = link.protocol == Protocol::Resp3;
        let most = link.conn.output_room(&self.settings);
        let Some((bytes, starts)) = run.since(link.heard) else {
            return true;
        };
        if link.output.len().saturating_add(bytes.len()) <= most {
            link.output.append_messages(bytes, starts, resp3);
            return self.keeps_up(link);
        }
        for message in run.each_since(link.heard) {
            let start = std::iter::once(0);
            link.conn.output.append_messages(message, start, resp3);
            let behind = link.output.len() > most && self.send_all(link).is_err();
            if behind || !self.keeps_up(link) {
                return false;
            }
        }
        true
    }

    /// Bytes have left.
    pub(crate) fn note_sent<S>(&mut self, link: &mut Link<S>, sent: usize) {
        self.tally.writes += 1;
        self.tally.output_bytes += sent as u64;
        if sent > 0 {
            link.conn.last_active = self.time.tick;
        }
    }
}
