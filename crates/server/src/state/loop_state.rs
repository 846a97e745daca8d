//! One loop's state: the server, the settings that it follows, the time and the counters.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidewheel_keyspace::{Blocked, Seat, Time};

use crate::clients::pause::Pause;
use crate::config::Settings;
use crate::counters::metrics::LoopTally;
use crate::loop_handle::LoopHandle;
use crate::loop_handle::inbox::Target;
use crate::scripts::Scripts;
use crate::state::server::Server;

/// Work that may share one reading of the clock, in units of about a hundred nanoseconds: a command
/// counts one for each argument and for each 64 bytes that it takes in or answers. So sixty-four
/// GETs or one MSET of as many keys share a reading, and it is never older than some tens of
/// microseconds.
const WORK_PER_TIME: usize = 192;

/// One loop's share of the server.
#[derive(Debug)]
pub(crate) struct LoopState {
    pub(crate) server: Arc<Server>,
    /// The loop's number.
    pub(crate) index: usize,
    pub(crate) settings: Arc<Settings>,
    /// The version of the settings that this loop has followed.
    pub(crate) settings_version: u64,
    pub(crate) time: Time,
    /// Work done since the clock was read.
    since_time: usize,
    /// The loop's seat in the keyspace: occupied while the loop works, empty while it sleeps.
    pub(crate) seat: Seat,
    /// The tick from which on it appends to streams of expired keys: another has had one's shard.
    pub(crate) append_expired_at: u64,
    pub(crate) tally: LoopTally,
    pub(crate) scripts: Scripts,
    /// Connections whose output waits for the log.
    pub(crate) withheld: Vec<Target>,
    /// Connections whose WAITAOF waits for the log.
    pub(crate) log_waits: BTreeSet<Target>,
    /// Commands run beside a script of this loop, which has locked shards.
    pub(crate) beside_script: bool,
}

impl LoopState {
    pub(crate) fn new(server: Arc<Server>, index: usize) -> Self {
        Self {
            // The version first: settings that are newer than it are followed once more.
            settings_version: server.config.version(),
            settings: server.config.current(),
            time: server.clock.now(),
            since_time: 0,
            seat: server.keyspace.seat(),
            append_expired_at: 0,
            tally: LoopTally::default(),
            scripts: Scripts::default(),
            withheld: Vec::new(),
            log_waits: BTreeSet::new(),
            beside_script: false,
            index,
            server,
        }
    }

    /// Returns the part of this loop that other threads see.
    #[inline]
    pub(crate) fn handle(&self) -> &LoopHandle {
        &self.server.loops[self.index]
    }

    /// Puts settings into force that were changed since the last call.
    #[inline]
    pub(crate) fn follow_settings(&mut self) {
        let version = self.server.config.version();
        if version != self.settings_version {
            self.settings_version = version;
            self.settings = self.server.config.current();
        }
    }

    /// Reads the clock.
    pub(crate) fn refresh_time(&mut self) {
        self.time = self.server.clock.now();
        self.since_time = 0;
    }

    /// Notes that a command has run. The more arguments it had and the more bytes it moved, the
    /// longer it took. Returns true if it may have taken long.
    #[inline]
    pub(crate) fn note_work(&mut self, arguments: usize, bytes: usize) -> bool {
        let work = arguments + bytes / 64;
        self.since_time += work;
        work >= WORK_PER_TIME
    }

    /// Notes that a command has run whose size says nothing about its time.
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

    /// Ends CLIENT PAUSE if `ends` says so while no other thread is in the keyspace. Clients that
    /// it has held back are served first.
    ///
    /// # Errors
    ///
    /// If a long command runs. Then the pause goes on.
    pub(crate) fn end_pause(&mut self, ends: impl FnOnce(&Pause) -> bool) -> Result<(), Blocked> {
        let server = &self.server;
        let no_long = server.keyspace.without_long_commands()?;
        let alone = no_long.alone(&mut self.seat)?;
        if ends(&server.pause) {
            server.keyspace.serve_held_back(&alone, self.time);
            server.pause.end();
            server.pause_changed();
        }
        Ok(())
    }

    /// Makes the loop's counters visible to others.
    pub(crate) fn publish_tally(&mut self) {
        let counters = &self.server.loops[self.index].counters;
        counters.publish(&mut self.tally, self.time);
    }
}
