//! Serves a loop's connections, and closes those that time out or end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::beside_script::Attendance;
use super::parts::LoopCore;
use super::sockets::{Shell, Sockets};
use crate::clients::connection::Link;
use crate::commands::turn::Others as _;
use crate::loop_handle::inbox::Target;
use crate::loops::worker::NextAction;
use crate::net::byte_stream::ByteStream as _;
use crate::state::observer::Observe as _;
use crate::time::clock;

/// The microseconds of serving after which expiry gets its share of the turn.
const SERVE_US: u64 = 500;

impl<K: Sockets> LoopCore<K> {
    /// Gives each connection that is ready its share, and expiry its own in between.
    pub(super) fn serve_ready(&mut self, shell: &mut dyn Shell<K::Stream>) {
        let mut next_expiry = clock::micros(self.state.time) + SERVE_US;
        for _ in 0..self.table.runnable() {
            if !self.state.seat.try_enter() {
                return;
            }
            let Some(slot) = self.table.dequeue() else {
                break;
            };
            self.serve(slot, shell);
            self.end_parking(slot);
            if clock::micros(self.state.time) >= next_expiry && !self.is_shut_out() {
                self.expiry.expire(&mut self.state);
                next_expiry = clock::micros(self.state.time) + SERVE_US;
            }
        }
    }

    fn serve(&mut self, slot: u32, shell: &mut dyn Shell<K::Stream>) {
        let Some(link) = self.table.get(slot) else {
            return;
        };
        let had_output = !link.conn.output.is_empty();
        if link.conn.is_killed()
            || link.send_output(&mut self.state).is_err()
            || (link.conn.closing && link.conn.output.is_empty())
        {
            return self.close(slot);
        }
        if had_output {
            // A turn looks at the soft limit only when it ends, and there may be no turn.
            link.conn.forget_soft_limit_below(&self.state.settings);
        }
        if !link.conn.has_work() {
            if had_output {
                self.has_sent(slot);
            }
            return;
        }
        let Some(mut link) = self.table.lend(slot) else {
            return;
        };
        let mut others = Attendance {
            table: &mut self.table,
            sockets: &self.sockets,
            expiry: &mut self.expiry,
            beside: &mut self.beside,
            shell,
        };
        let next = self.worker.serve(&mut self.state, &mut link, &mut others);
        // A paused connection is not served, so it is in this list only once.
        let paused = link.conn.paused;
        self.table.give_back(slot, link);
        self.after_script();
        match next {
            NextAction::Close => return self.close(slot),
            NextAction::Again => self.table.enqueue(slot),
            NextAction::Rest => {}
        }
        if paused {
            self.table.paused.push(slot);
        }
        self.table.file(slot, &self.state.settings);
    }

    /// Serves the clients while a script of another loop has the whole keyspace for long.
    pub(super) fn attend_outside(&mut self, shell: &mut dyn Shell<K::Stream>) {
        let mut attendance = Attendance {
            table: &mut self.table,
            sockets: &self.sockets,
            expiry: &mut self.expiry,
            beside: &mut self.beside,
            shell,
        };
        let server = Arc::clone(&self.state.server);
        // Commands are refused also if that script ends meanwhile.
        let refusing = server.long_scripts.refuse(&server.keyspace);
        attendance.attend(&mut self.state);
        drop(refusing);
    }

    /// Does what was put off while a script ran.
    pub(super) fn after_script(&mut self) {
        while let Some((slot, readiness)) = self.beside.notes.pop_first() {
            self.note(slot, readiness);
        }
        while let Some(slot) = self.beside.closing.pop_first() {
            self.close(slot);
        }
    }

    /// Lets other parked clients go on after one has had its turn, with whatever result.
    fn end_parking(&mut self, slot: u32) {
        let parked = self
            .table
            .get(slot)
            .and_then(|link| link.conn.resumed.take());
        self.table.unparked.extend(parked);
    }

    /// Lets the connections go on that a pause has held back.
    pub(super) fn resume(&mut self) {
        for slot in std::mem::take(&mut self.table.paused) {
            if let Some(link) = self.table.get(slot) {
                link.conn.paused = false;
                self.table.enqueue(slot);
            }
        }
        let now = self.now();
        for slot in std::mem::take(&mut self.table.held) {
            if let Some(link) = self.table.get(slot)
                && let Some(waiting) = &mut link.conn.waiting
                && std::mem::take(&mut waiting.held)
            {
                waiting.until = Some(now);
                self.table.file(slot, &self.state.settings);
            }
        }
    }

    /// Closes connections that have been silent, or above the soft output limit, for too long.
    /// Others are filed again, for a later tick.
    pub(super) fn handle_time_outs(&mut self) {
        let now = self.now();
        while let Some(slot) = self.table.next_due(now) {
            let Some(link) = self.table.get(slot) else {
                continue;
            };
            if link.conn.exceeds_output_limit(&self.state.settings, now) {
                tracing::warn!(
                    client = link.conn.client.id,
                    address = %link.conn.client.peer,
                    "closed: it does not read its replies"
                );
                self.state.tally.output_limit_closes += 1;
                self.close(slot);
            } else if link.conn.waits_no_longer(now) {
                self.wait_is_over(slot);
            } else if let Some(wait) = &link.conn.log_wait
                && wait.until.is_some_and(|until| until <= now)
            {
                // It is tried again, and sees that its time is over.
                let target = link.conn.target();
                self.state.log_waits.remove(&target);
                self.retry_log_wait(target);
            } else if link
                .conn
                .time_out(&self.state.settings)
                .is_some_and(|tick| tick <= now)
            {
                let (client, address) = (link.conn.client.id, &link.conn.client.peer);
                tracing::debug!(client, %address, "closed: silent for too long");
                self.state.tally.idle_closes += 1;
                self.close(slot);
            } else {
                self.table.file(slot, &self.state.settings);
            }
        }
    }

    /// Publishes what a connection holds after its output has changed outside its turn, and files
    /// it.
    pub(super) fn has_sent(&mut self, slot: u32) {
        let Some(link) = self.table.get(slot) else {
            return;
        };
        link.conn.account(&self.state.handle().client_memory);
        if link.conn.can_send() {
            self.table.enqueue(slot);
        }
        self.table.file(slot, &self.state.settings);
    }

    /// Closes connections that exceed their limits, which may have been lowered.
    pub(super) fn apply_limits(&mut self) {
        for slot in 0..self.table.slots() {
            let Some(link) = self.table.get(slot) else {
                continue;
            };
            if !link.keeps_up(&mut self.state) {
                tracing::warn!(
                    client = link.conn.client.id,
                    address = %link.conn.client.peer,
                    "closed: it holds more than it may now"
                );
                self.state.tally.output_limit_closes += 1;
                self.close(slot);
            }
        }
    }

    /// Closes the connection that is meant, if it is still there.
    pub(super) fn close_target(&mut self, target: Target) {
        if self.table.find(target).is_some() {
            self.close(target.slot);
        }
    }

    /// A client's user has changed. The client is closed if it listens to what it may not hear any
    /// more.
    pub(super) fn user_changed(&mut self, target: Target) {
        let settings = self.state.server.config.current();
        let Some(link) = self.table.find(target) else {
            return;
        };
        link.conn.follow_users(&settings.users);
        if !link.conn.may_listen_on() {
            self.close(target.slot);
        }
    }

    /// Lets go of a connection and of everything that names it.
    pub(super) fn close(&mut self, slot: u32) {
        let waits = |link: &mut Link<K::Stream>| link.conn.waiting.is_some();
        if self.is_shut_out() && self.table.get(slot).is_some_and(waits) {
            // It cannot leave the keys that it waits for now.
            self.beside.closing.insert(slot);
            return;
        }
        let Some(mut link) = self.table.take(slot) else {
            return;
        };
        link.stream.say_goodbye();
        self.sockets.deregister(&mut link.stream);
        let (server, index) = (&self.state.server, self.state.index);
        let target = link.conn.client.target();
        tracing::debug!(client = target.id, address = %link.conn.client.peer, "disconnected");
        if let Some(subscriptions) = link.conn.subscriptions.take() {
            self.ending.add(target, subscriptions);
            // Most clients have left with this.
            self.ending.end_some(&server.hub, index);
        }
        self.state.log_waits.remove(&target);
        if let Some(waiting) = link.conn.waiting.take() {
            // If it was served already, what it got is gone with it.
            let _ = waiting.ticket.end();
            let (seat, time) = (&mut self.state.seat, self.state.time);
            server.keyspace.leave(seat, time, &waiting.ticket);
        }
        let parked = link.conn.parked.take().into_iter();
        self.table
            .unparked
            .extend(parked.chain(link.conn.resumed.take()));
        if let Some(watching) = link.conn.watching.take() {
            server.unwatch(watching);
        }
        if link.conn.tracking.is_some()
            && let Some(waiter) = link.conn.session.waiter
        {
            server.keyspace.untrack(waiter);
        }
        if link.conn.is_monitor() {
            server.monitors.remove(index, target);
        }
        server.clients.remove(target.id);
        server.observer.closed(target.id);
        server.loops[index]
            .client_memory
            .fetch_sub(link.conn.accounted, Ordering::Relaxed);
        server.reclaimer.drop_buffer(link.conn.output.discard());
        if let Some(pending) = link.conn.pending.take() {
            server.reclaimer.drop_buffer(pending.bytes);
        }
        if let Some(walk) = link.conn.walk.take() {
            server.reclaimer.drop_later(Box::new(walk));
        }
        self.note_closed();
    }
}
