//! One loop without its shell: the turn over its connections, and expiry.
//!
//! It owns no poller, alarm, listener or thread. Its caller says which sockets are ready, and the
//! server's clock says what time it is. So a test can run it over streams in memory, in virtual
//! time.
//!
//! A turn has five steps, in this order:
//!
//! 1. [`prepare_sleep`](LoopCore::prepare_sleep) says until when there is nothing to do.
//! 2. The caller sleeps until then, or until a socket or another thread wakes it.
//! 3. [`wake`](LoopCore::wake) looks at the clock.
//! 4. [`note`](LoopCore::note) takes each socket that has become ready, and
//!    [`take_inbox`](LoopCore::take_inbox) what other threads have sent. The caller
//!    [adopts](LoopCore::adopt) new connections.
//! 5. [`work`](LoopCore::work) gives each connection and expiry its share.

mod adopt;
mod arrivals;
mod attend;
mod beside_script;
mod client_memory;
mod ending_subscriptions;
mod fan_out;
mod invalidate;
mod memory_check;
mod parts;
mod shrink;
mod sockets;
mod table;
mod uncounted_copies;
mod waiting;

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidewheel_time::NEVER;

use self::table::Answer;
use self::waiting::ANSWERS;
use crate::loop_handle::inbox::{InboxItem, Target};
use crate::net::byte_stream::ByteStream as _;
use crate::scripts;
use crate::state::log::Trouble;
use crate::time::clock;
use crate::upkeep::expired;
use crate::upkeep::expiry::LoopExpiry;

#[cfg(test)]
pub(crate) use ending_subscriptions::PER_TURN;
pub(crate) use parts::LoopCore;
pub(crate) use sockets::{Readiness, Shell, Sockets};
#[cfg(test)]
pub(crate) use waiting::INVALID_MAX;

/// Bytes of records that may wait for the thread that writes the log. Beyond that loops wait, in
/// each turn for at most so many times so long.
const RECORD_BYTES_MAX: usize = 64 << 20;
const LOG_WAITS: u32 = 100;
const LOG_WAIT: Duration = Duration::from_millis(1);

/// The time that a stopping loop gives its clients to take their last replies.
const DRAIN_MS: u64 = 1_000;

impl<K: Sockets> LoopCore<K> {
    /// Decides how long to sleep: `None` while there is work, otherwise until a tick ([`NEVER`]:
    /// until something happens). The loop counts as asleep until [`wake`](Self::wake).
    ///
    /// `also` is a tick at which the caller has something to do itself.
    pub(crate) fn prepare_sleep(&mut self, also: Option<u64>) -> Option<u64> {
        let expires = self.server().expires();
        if self.is_busy(expires) {
            return None;
        }
        // A loop that sleeps publishes nothing: its counters are completed first.
        self.publish_counters();
        let pause = &self.server().pause;
        let until = [
            Some(self.tidying.wake_at()),
            expires.then(|| LoopExpiry::wake_at(&self.state)),
            self.table.first_time_out(),
            also,
            // Its end is looked for when the tick changes.
            pause.is_on().then(|| pause.until().max(self.now() + 1)),
            self.memory_check.is_due().then(|| self.now() + 1),
            self.shrinking.next_attempt(),
            expired::wake_at(&self.state),
            Some(self.forgetting.wake_at(&self.state)),
            Some(self.snapshot.wake_at(&self.state)),
        ];
        let until = until.into_iter().flatten().min().unwrap_or(NEVER);
        let asleep = until > self.now() && self.handle().fall_asleep(until, expires);
        asleep.then_some(until)
    }

    fn is_busy(&self, expires: bool) -> bool {
        self.table.runnable() > 0
            || !self.table.going_on.is_empty()
            || !self.table.answers.is_empty()
            || self.shrinking.goes_on()
            || self.forgetting.wake_at(&self.state) <= self.now()
            || self.snapshot.wake_at(&self.state) <= self.now()
            || !self.arrivals.is_empty()
            || !self.ending.is_empty()
            || self.tidying.wake_at() <= self.now()
            || expired::wake_at(&self.state).is_some_and(|tick| tick <= self.now())
            || (expires && self.expiry.has_work(&self.state))
    }

    /// Returns true if only expiry has work, and is in time.
    pub(crate) fn only_expires(&self) -> bool {
        let others = self.table.runnable() > 0 || !self.arrivals.is_empty();
        !others && self.expiry.is_in_time(&self.state)
    }

    /// Ends the sleep: reads the clock, and does the work of a new tick.
    pub(crate) fn wake(&mut self) {
        self.handle().awake();
        self.state.refresh_time();
        self.woken_us = clock::micros(self.state.time);
        self.state.tally.turns += 1;
        if self.now() != self.last_tick {
            self.new_tick();
        }
    }

    /// Does the work that is done once in a tick.
    fn new_tick(&mut self) {
        let now = self.now();
        self.last_tick = now;
        self.server().clock.follow_wall();
        self.publish_counters();
        if self.server().pause.is_due(now) {
            // If a long command runs, the next tick looks again.
            let _ = self.state.end_pause(|pause| pause.is_due(now));
        }
    }

    fn publish_counters(&mut self) {
        if self.state.tally.commands > 0 {
            self.tidying.note_activity();
        }
        self.worker.notes.publish_counters(&mut self.state);
        let paused = self.table.paused.len() + self.state.log_waits.len();
        self.handle().paused.store(paused, Ordering::Relaxed);
        if let Some(bytes) = scripts::lua_bytes() {
            self.handle().lua_bytes.store(bytes, Ordering::Relaxed);
        }
        let (server, time) = (self.server(), self.state.time);
        server.memory_marks.note(&server.keyspace, time);
    }

    /// Notes that a socket is ready, or broken.
    pub(crate) fn note(&mut self, slot: u32, readiness: Readiness) {
        let Some(link) = self.table.get(slot) else {
            return;
        };
        if (readiness.read_closed || readiness.broken) && link.conn.leaves_while_waiting() {
            return self.close(slot);
        }
        if readiness.broken {
            if link.conn.paused || link.conn.waiting.is_some() || link.conn.parked.is_some() {
                return self.close(slot);
            }
            // What it has sent before is read first. Then a read reports the error.
            link.conn.ending = true;
            link.conn.readable = true;
        }
        readiness.note(&mut link.conn);
        self.table.enqueue(slot);
    }

    /// Takes in what other threads have sent.
    pub(crate) fn take_inbox(&mut self) {
        self.release_withheld();
        if self.is_shut_out() {
            return;
        }
        let mut items = std::mem::take(&mut self.items);
        self.handle().collect(&mut items);
        for item in items.drain(..) {
            match item {
                InboxItem::Connection(accepted) => self.arrivals.push_back(accepted),
                InboxItem::Close(target) => self.close_target(target),
                InboxItem::UserChanged(target) => self.user_changed(target),
                InboxItem::Messages(run) => self.append(&run),
                InboxItem::Served(served) => self.table.answers.push_back(Answer::Served(served)),
                InboxItem::Invalid(invalid) => self.hear_invalid(invalid),
                InboxItem::Unblocked(target, how) => self.unblocked(target, &how),
                InboxItem::GoOn(target) => self.table.going_on.push_back(target),
            }
        }
        self.items = items;
        self.handle().release_collected();
        self.follow_settings();
        if self.table.holds_back() && !self.server().pause.is_on() {
            self.resume();
        }
    }

    /// Wakes the thread that writes the log, if there is something to write. If it is far behind,
    /// the loop waits for it.
    #[inline]
    fn mind_log(&self) {
        let server = self.server();
        if server.log.is_on() {
            if server.keyspace.has_records() {
                server.log.wake();
            }
            if server.keyspace.waiting_record_bytes() > RECORD_BYTES_MAX {
                self.wait_for_log();
            }
        }
    }

    #[cold]
    fn wait_for_log(&self) {
        let server = self.server();
        for _ in 0..LOG_WAITS {
            // While it cannot be written, changes are refused anyway.
            let is_behind = server.keyspace.waiting_record_bytes() > RECORD_BYTES_MAX;
            if !is_behind || server.log.trouble() != Trouble::None {
                return;
            }
            server.clock.sleep(LOG_WAIT);
        }
    }

    /// Looks at the connections again whose output or WAITAOF waits for the log, if more is on
    /// disk.
    fn release_withheld(&mut self) {
        if self.state.withheld.is_empty() && self.state.log_waits.is_empty() {
            return;
        }
        // Before the look: the word of what it finds may still come, and would be the last one.
        self.handle().await_log();
        let log = &self.server().log;
        let seen = (log.on_disk(), log.holds_replies());
        if std::mem::replace(&mut self.log_seen, seen) == seen {
            return;
        }
        for target in std::mem::take(&mut self.state.withheld) {
            if let Some(link) = self.table.find(target) {
                link.conn.withheld = false;
                self.table.enqueue(target.slot);
            }
        }
        while let Some(target) = self.state.log_waits.pop_first() {
            self.retry_log_wait(target);
        }
    }

    /// Tries WAITAOF again.
    pub(super) fn retry_log_wait(&mut self, target: Target) {
        if let Some(link) = self.table.find(target)
            && let Some(wait) = &mut link.conn.log_wait
        {
            wait.is_due = true;
            self.table.enqueue(target.slot);
        }
    }

    fn follow_settings(&mut self) {
        self.state.follow_settings();
        if self.filed_version != self.state.settings_version {
            self.filed_version = self.state.settings_version;
            self.shrinking.limit_changed();
            self.memory_check.request();
            self.apply_limits();
            self.table.file_all(&self.state.settings);
        }
    }

    /// Runs the turn itself. `idle`: nothing had become ready.
    pub(crate) fn work(&mut self, idle: bool, shell: &mut dyn Shell<K::Stream>) {
        if self.state.seat.try_enter() {
            self.work_inside(idle, shell);
        }
        if self.is_shut_out() {
            self.attend_outside(shell);
        }
        self.table.end_turn();
        if !self.table.unparked.is_empty() {
            self.state
                .server
                .keyspace
                .unpark(self.table.unparked.drain(..));
        }
        // For example of commands of a connection that is gone. Nobody else would do it.
        self.server().publish_events();
        expired::append(&mut self.state);
        self.state.seat.leave();
        self.mind_log();
        self.state.refresh_time();
        let took_us = clock::micros(self.state.time).saturating_sub(self.woken_us);
        self.state.tally.busy_us += took_us;
    }

    /// Runs the turn, unless somebody takes the whole keyspace for long.
    fn work_inside(&mut self, idle: bool, shell: &mut dyn Shell<K::Stream>) {
        self.after_script();
        self.go_on();
        self.answer(ANSWERS);
        self.serve_ready(shell);
        if self.is_shut_out() {
            return;
        }
        self.expiry.expire(&mut self.state);
        if self.is_shut_out() {
            return;
        }
        self.take_inbox();
        self.answer(ANSWERS);
        self.send_fresh();
        self.handle_time_outs();
        self.shrink();
        self.forgetting.forget(&mut self.state);
        self.end_subscriptions();
        let idle = idle && self.table.runnable() == 0;
        self.tidy(idle);
        self.snapshot.work(&mut self.state, idle);
        self.check_client_memory(idle);
    }

    /// True while a script of another loop has the whole keyspace for long.
    pub(crate) fn is_shut_out(&self) -> bool {
        self.state.seat.is_shut_out()
    }

    fn tidy(&mut self, idle: bool) {
        if self.expiry.take_activity() {
            self.tidying.note_activity();
        }
        let expired_at = self.expiry.expired_at();
        self.tidying.tidy(&mut self.state, idle, expired_at);
    }

    /// Ends some of the subscriptions of clients that are gone.
    fn end_subscriptions(&mut self) {
        let begun = std::mem::take(&mut self.worker.notes.subscriptions_begun);
        let (hub, owner) = (&self.state.server.hub, self.state.index);
        self.ending.end_some(hub, owner);
        self.ending.next_turn(begun);
    }

    /// Evicts a little if `maxmemory` is exceeded.
    fn shrink(&mut self) {
        let (server, now) = (&self.state.server, self.state.time);
        if !self
            .shrinking
            .is_due(server.keyspace.exceeds_limit(), now.tick)
        {
            return;
        }
        let seat = &mut self.state.seat;
        let may = !server.pause.is_on() && !server.is_loading();
        let goes_on = may && server.keyspace.shrink(seat, now);
        self.shrinking.attempted(goes_on, now.tick);
    }

    /// Sends what is left before the loop ends. Returns for how many milliseconds to wait for
    /// sockets that take more, `None` when it is done or has lasted long enough.
    pub(crate) fn drain(&mut self) -> Option<u64> {
        self.release_withheld();
        if self.drain_ends.is_none() {
            self.take_inbox();
            self.answer(usize::MAX);
            self.send_fresh();
        }
        let ends = *self
            .drain_ends
            .get_or_insert(self.state.time.tick + DRAIN_MS);
        let (mut left, mut at_once) = (false, false);
        for link in self.table.iter_mut() {
            if link.send_output(&mut self.state).is_err() {
                let unsent = link.conn.output.discard();
                self.state.server.reclaimer.drop_buffer(unsent);
            }
            left |= !link.conn.output.is_empty();
            at_once |= link.conn.can_send();
        }
        self.state.refresh_time();
        let wait = ends.saturating_sub(self.now());
        if !left || wait == 0 {
            let all = self.table.iter_mut();
            all.for_each(|link| link.stream.say_goodbye());
            return None;
        }
        Some(if at_once { 0 } else { wait })
    }
}
