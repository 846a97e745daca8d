//! A loop's handle, through which other threads wake the loop and hand over work.
//!
//! A key's deadline is known at five levels, from the key to the kernel. Each level bounds the one
//! before it:
//!
//! 1. The shard's wheel, under the shard's lock.
//! 2. The shard's published deadline, for threads that do not hold the lock.
//! 3. The loop's [`soonest`](LoopHandle::soonest): the least deadline of its shards. A loop may
//!    have a thousand shards, too many to read in each turn.
//! 4. The loop's alarm: the tick until which it sleeps. Others wake the loop only if a deadline is
//!    earlier.
//! 5. The kernel's timer. It may be set for earlier, because setting it costs a system call.

pub(crate) mod inbox;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use tidewheel_keyspace::order::{Rank, Ranked};
use tidewheel_time::{Alarm, NEVER, Soonest};

use self::inbox::{Inbox, InboxItem, Invalidations, Messages, Target};
use crate::counters::command_counts::SharedCounts;
use crate::counters::metrics::LoopCounters;
use crate::net::listener::Accepted;
use crate::scripts::running::Running;

/// Ends a loop's sleep through its poller. It is called at most once for a sleep, so it need not be
/// fast.
struct PollerWaker(mio::Waker);

impl Wake for PollerWaker {
    fn wake(self: Arc<Self>) {
        if let Err(why) = self.0.wake() {
            tracing::error!(%why, "cannot wake an event loop");
        }
    }
}

/// The part of a loop that other threads see.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct LoopHandle {
    /// The next deadline among the loop's shards.
    soonest: Soonest,
    /// The alarm: until which tick the loop sleeps, and whether it was asked for attention. It is
    /// asked when the inbox holds something, or when shared state has changed.
    alarm: Alarm,
    inbox: Ranked<Inbox>,
    /// Bytes of messages that the loop has collected and not yet copied to all their receivers.
    taken: AtomicUsize,
    /// Replies of this loop wait for the log.
    awaits_log: AtomicBool,
    /// Shards of this loop may have something to tidy.
    untidy: AtomicBool,
    /// Connections owned or on their way.
    pub(crate) connections: AtomicUsize,
    /// Bytes in the buffers of the connections.
    pub(crate) client_memory: AtomicUsize,
    /// Connections that CLIENT PAUSE holds back.
    pub(crate) paused: AtomicUsize,
    /// Bytes of the Lua state, if there is one.
    pub(crate) lua_bytes: AtomicUsize,
    pub(crate) counters: LoopCounters,
    pub(crate) command_counts: SharedCounts,
    /// The script that runs on the loop.
    pub(crate) script: Running,
}

impl LoopHandle {
    /// Returns the handle of a loop that sleeps in a poller.
    pub(crate) fn new(poller: mio::Waker) -> Self {
        Self::woken_by(&Waker::from(Arc::new(PollerWaker(poller))))
    }

    pub(crate) fn woken_by(waker: &Waker) -> Self {
        let alarm = Alarm::new();
        alarm.set_sleeper(waker);
        Self {
            soonest: Soonest::new(),
            alarm,
            inbox: Ranked::new(Rank::Inbox, Inbox::default()),
            taken: AtomicUsize::new(0),
            awaits_log: AtomicBool::new(false),
            untidy: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            client_memory: AtomicUsize::new(0),
            paused: AtomicUsize::new(0),
            lua_bytes: AtomicUsize::new(0),
            counters: LoopCounters::default(),
            command_counts: SharedCounts::default(),
            script: Running::default(),
        }
    }

    /// Lowers the loop's earliest deadline, and wakes it if it would sleep too long.
    pub(crate) fn deadline_lowered(&self, deadline: u64) {
        if self.soonest.lower(deadline) {
            self.alarm.lowered(deadline);
        }
    }

    /// Returns the earliest deadline that is known.
    pub(crate) fn soonest(&self) -> u64 {
        self.soonest.get()
    }

    /// Forgets the earliest deadline, before the shards' own are read again.
    pub(crate) fn forget_soonest(&self) {
        self.soonest.forget();
    }

    /// Puts back what the shards said.
    pub(crate) fn remember_soonest(&self, deadline: u64) {
        self.soonest.lower(deadline);
    }

    /// Corrects the earliest deadline after another thread has expired keys in the loop's shards.
    /// `read` returns the earliest deadline that is left. If the loop has gone to sleep in between,
    /// when nothing was known, it is woken.
    pub(crate) fn correct_soonest(&self, read: impl FnOnce() -> u64) {
        self.forget_soonest();
        self.deadline_lowered(read());
    }

    /// Announces a sleep until `until` (deadlines included only if `deadlines`). False when
    /// something has come up: do not sleep.
    pub(crate) fn fall_asleep(&self, until: u64, deadlines: bool) -> bool {
        let next = || if deadlines { self.soonest() } else { NEVER };
        self.alarm.fall_asleep(until, next)
    }

    /// Notes that the loop runs again.
    pub(crate) fn awake(&self) {
        self.alarm.woke();
    }

    /// Returns true if the loop sleeps.
    pub(crate) fn sleeps(&self) -> bool {
        self.alarm.sleeps()
    }

    /// Returns true if the loop sleeps, but no longer than until `tick`.
    pub(crate) fn sleeps_until(&self, tick: u64) -> bool {
        self.alarm.sleeps_until(tick)
    }

    /// Makes the loop look at shared state (configuration, pauses, shutdown) soon.
    pub(crate) fn nudge(&self) {
        self.alarm.ask();
    }

    /// The loop looks next how much of the log is on disk, and is told when it is more.
    pub(crate) fn await_log(&self) {
        self.awaits_log.store(true, Ordering::SeqCst);
    }

    /// More of the log is on disk.
    pub(crate) fn log_moved(&self) {
        if self.awaits_log.swap(false, Ordering::SeqCst) {
            self.nudge();
        }
    }

    /// Notes that something may have changed in the loop's shards.
    pub(crate) fn becomes_untidy(&self) {
        if !self.untidy.swap(true, Ordering::Relaxed) {
            self.nudge();
        }
    }

    /// Returns true if the loop's shards may have changed since the last call.
    pub(crate) fn was_untidy(&self) -> bool {
        self.untidy.load(Ordering::Relaxed) && self.untidy.swap(false, Ordering::Relaxed)
    }

    /// Hands over a connection or a request to close one. Both are bounded by `maxclients`.
    pub(crate) fn post(&self, item: InboxItem) {
        self.inbox.lock().push(item);
        self.nudge();
    }

    /// Hands over one message. When the inbox is full the message is dropped and its audience will
    /// be closed, as subscribers that lag too far behind are: nobody misses a message unnoticed.
    pub(crate) fn deliver(&self, targets: &Arc<Vec<Target>>, message: &[u8]) {
        let mut inbox = self.inbox.lock();
        inbox.add(targets, message, self.taken.load(Ordering::Relaxed));
        drop(inbox);
        self.nudge();
    }

    /// Hands over keys that are invalid for some of the loop's clients.
    pub(crate) fn invalidate(&self, invalid: Invalidations) {
        let mut inbox = self.inbox.lock();
        inbox.add_invalid(invalid, self.taken.load(Ordering::Relaxed));
        drop(inbox);
        self.nudge();
    }

    /// Takes everything that waits, into `items`, which must be empty.
    pub(crate) fn collect(&self, items: &mut Vec<InboxItem>) {
        if !self.alarm.take_request() {
            return;
        }
        let mut inbox = self.inbox.lock();
        self.taken.store(inbox.message_bytes(), Ordering::Relaxed);
        inbox.collect(items);
    }

    /// Takes just the new connections.
    pub(crate) fn take_connections(&self, into: &mut Vec<Accepted>) {
        if self.alarm.is_requested() {
            self.inbox.lock().take_connections(into);
        }
    }

    /// Notes that the loop has dropped everything that it collected, so its memory is free.
    pub(crate) fn release_collected(&self) {
        self.taken.store(0, Ordering::Relaxed);
    }

    /// Shows one client the messages that wait for it, from a number on, ahead of everybody else's.
    /// Returns the number to go on with.
    pub(crate) fn read(&self, who: Target, since: u64, take: impl FnMut(&Messages)) -> u64 {
        if !self.alarm.is_requested() {
            return since;
        }
        self.inbox.lock().read(who, since, take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle() -> (mio::Poll, LoopHandle) {
        let poll = mio::Poll::new().unwrap();
        let waker = mio::Waker::new(poll.registry(), mio::Token(0)).unwrap();
        (poll, LoopHandle::new(waker))
    }

    fn rings(poll: &mut mio::Poll) -> bool {
        let mut events = mio::Events::with_capacity(4);
        poll.poll(&mut events, Some(std::time::Duration::ZERO))
            .unwrap();
        !events.is_empty()
    }

    #[test]
    fn only_an_earlier_deadline_wakes_a_sleeping_loop() {
        let (mut poll, handle) = handle();
        handle.deadline_lowered(100);
        assert!(!rings(&mut poll), "the loop is awake");
        assert!(
            !handle.fall_asleep(200, true),
            "a deadline came up before the sleep"
        );
        assert!(handle.fall_asleep(100, true));
        handle.deadline_lowered(100);
        handle.deadline_lowered(150);
        assert!(!rings(&mut poll), "the loop wakes in time by itself");
        handle.deadline_lowered(99);
        assert!(rings(&mut poll));
        handle.deadline_lowered(98);
        assert!(!rings(&mut poll), "one ring for one sleep");
    }

    #[test]
    fn a_loop_that_falls_asleep_while_another_reads_its_deadlines_is_woken() {
        let (mut poll, handle) = handle();
        handle.deadline_lowered(50);
        handle.correct_soonest(|| {
            assert!(handle.fall_asleep(u64::MAX, true), "nothing is known");
            70
        });
        assert!(rings(&mut poll));
        assert_eq!(handle.soonest(), 70);
        handle.correct_soonest(|| {
            handle.deadline_lowered(20);
            90
        });
        assert_eq!(handle.soonest(), 20, "what came up meanwhile is kept");
    }

    #[test]
    fn an_item_in_the_inbox_prevents_or_ends_a_sleep() {
        let (mut poll, handle) = handle();
        let target = Target { id: 1, slot: 0 };
        handle.post(InboxItem::Close(target));
        assert!(!handle.fall_asleep(u64::MAX, true));
        let mut items = Vec::new();
        handle.collect(&mut items);
        assert_eq!(items.len(), 1);
        assert!(handle.fall_asleep(u64::MAX, true));
        handle.post(InboxItem::Close(target));
        assert!(rings(&mut poll));
    }
}
