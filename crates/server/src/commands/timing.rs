//! Measures calls, for the counters, the slow log and LATENCY.
//!
//! Reading the clock twice costs more than a GET. So calls are timed as follows:
//!
//! 1. Commands without keys, and those whose time does not follow from their size, are timed every
//!    time.
//! 2. A call with many arguments or a long reply may have taken long. The clock is read after it,
//!    and the time is counted from the last reading before it, which is some tens of microseconds
//!    old at most.
//! 3. Of the other calls, which cannot take long, one in 64 is timed for the counters.
//!
//! If `slowlog-log-slower-than` is below a millisecond, every call is timed.

use tidewheel_keyspace::Command;
use tidewheel_keyspace::rows::Flags;
use tidewheel_resp::Args;

use crate::clients::connection::Connection;
use crate::commands::call;
use crate::commands::turn::{CommandNotes, CommandStep, Turn};
use crate::counters::latency::{LatencyEvent, LatencySample};
use crate::counters::slow_log::{SlowCall, UnfinishedCall};
use crate::state::loop_state::LoopState;
use crate::time::clock;

impl Turn<'_> {
    /// Notes the time of a call that was timed from its beginning on.
    #[cold]
    pub(super) fn note_time(
        &mut self,
        conn: &mut Connection,
        row: &'static Command,
        args: Args<'_>,
        began_ns: u64,
        step: CommandStep,
    ) {
        let ns = self
            .state
            .server
            .clock
            .monotonic_ns()
            .saturating_sub(began_ns);
        if matches!(
            step,
            CommandStep::Walking | CommandStep::Begun | CommandStep::Waiting
        ) {
            let watched = self.state.settings.diagnosis.logs_calls();
            let args = if watched {
                call::cut(row, args)
            } else {
                Vec::new()
            };
            conn.unfinished = Some(Box::new(UnfinishedCall { row, args, ns }));
            return;
        }
        let shared = &self.state.handle().command_counts;
        self.notes.counts.took(row, ns, shared);
        if self.notes.counts.times_always(row) {
            let state = &*self.state;
            state.log_if_slow(conn, row, ns / 1_000, || call::cut(row, args));
        }
    }

    /// Adds time to a call that goes on.
    pub(super) fn note_more_time(&mut self, conn: &mut Connection, ns: u64, ended: bool) {
        if let Some(unfinished) = conn.unfinished.as_mut() {
            unfinished.ns = unfinished.ns.saturating_add(ns);
        }
        if ended {
            self.notes.finish(self.state, conn);
        }
    }

    /// Logs a call that may have taken long because it had many arguments or a long reply.
    #[cold]
    pub(crate) fn note_big(&mut self, conn: &Connection, args: Args<'_>) {
        let Ok(row) = tidewheel_keyspace::resolve(args) else {
            return;
        };
        if !self.state.settings.diagnosis.logs_calls() || self.notes.counts.times_always(row) {
            return;
        }
        let now = clock::micros(self.state.server.clock.now());
        let took_us = now.saturating_sub(clock::micros(self.state.time));
        self.state
            .log_if_slow(conn, row, took_us, || call::cut(row, args));
    }
}

impl CommandNotes {
    /// Counts and logs a call that ran in several steps and has ended.
    pub(crate) fn finish(&mut self, state: &LoopState, conn: &mut Connection) {
        let Some(unfinished) = conn.unfinished.take() else {
            return;
        };
        let UnfinishedCall { row, args, ns } = *unfinished;
        self.counts.took(row, ns, &state.handle().command_counts);
        if self.counts.times_always(row) {
            state.log_if_slow(conn, row, ns / 1_000, || args);
        }
    }
}

impl LoopState {
    /// Logs a call if it took long.
    fn log_if_slow(
        &self,
        conn: &Connection,
        row: &Command,
        took_us: u64,
        args: impl FnOnce() -> Vec<Vec<u8>>,
    ) {
        let settings = &self.settings.diagnosis;
        if settings.is_slow(took_us) && !row.flags.has(Flags::SKIP_SLOWLOG) {
            let entry = SlowCall {
                at_s: self.time.wall_ms() / 1_000,
                took_us,
                args: args(),
                peer: conn.client.peer.to_string(),
                name: call::cut_argument(&conn.client.facts.lock().names.own),
            };
            let most = usize::try_from(settings.slow_log_len).unwrap_or(usize::MAX);
            self.server.slow_log.add(entry, most);
        }
        let event = if row.flags.has(Flags::FAST) {
            LatencyEvent::FastCommand
        } else {
            LatencyEvent::Command
        };
        self.note_event(event, took_us);
    }

    /// Notes an event for LATENCY if it took long.
    #[inline]
    pub(crate) fn note_event(&self, event: LatencyEvent, took_us: u64) {
        if self.settings.diagnosis.is_noted(took_us) {
            let (at_s, ms) = (self.time.wall_ms() / 1_000, took_us / 1_000);
            self.server.latency.note(event, LatencySample { at_s, ms });
        }
    }
}
