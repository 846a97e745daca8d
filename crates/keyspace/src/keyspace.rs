//! The shards, and how a command reaches them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use tidewheel_resp::{Args, Writer};
use tidewheel_store::KeyHasher;
use tidewheel_time::{Histogram, Timeline};

use crate::command::{Command, CommandError, Flags, Handler, HandlerFn};
use crate::context::Context;
use crate::events::{Event, NotifyFlags};
use crate::gate::{Gate, KEEP_DEAD, Seat};
use crate::hooks::Hooks;
use crate::settings::Settings;
use crate::shard::{Key, NEVER, Shard, Shared};
use crate::time::{Now, Time};
use crate::walk::Walk;

/// The most shards.
pub(crate) const SHARDS_MAX: usize = 1024;

/// The most databases.
const DATABASES_MAX: usize = 1 << 16;

/// How a keyspace is laid out.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Locks; a power of two up to 1024 (others are rounded up and capped).
    pub shards: usize,
    /// Databases that SELECT can choose, at least 1.
    pub databases: usize,
    /// The secret under which keys are hashed; take it from the system's entropy where keys are not to be
    /// trusted.
    pub seed: u128,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            shards: 64,
            databases: 16,
            seed: 0,
        }
    }
}

/// What commands of the keyspace know and change about one connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    /// The selected database, below [`Keyspace::databases`].
    pub db: u32,
    /// CLIENT NO-TOUCH: reads leave no trace in the access history.
    pub no_touch: bool,
}

/// All data: shards over databases over keys.
pub struct Keyspace {
    gate: Arc<Gate>,
    pub(crate) shards: Box<[Shard]>,
    pub(crate) hooks: Box<dyn Hooks>,
    pub(crate) timeline: Timeline,
    pub(crate) lateness_us: Histogram,
    pub(crate) lock_hold_ns: Histogram,
    pub(crate) shared: Arc<Shared>,
    /// Where the next search for a victim starts.
    pub(crate) eviction_turn: AtomicU64,
    settings: Settings,
    pub(crate) hasher: KeyHasher,
    databases: usize,
    shard_shift: u32,
}

impl std::fmt::Debug for Keyspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keyspace")
            .field("shards", &self.shards.len())
            .field("databases", &self.databases)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Keyspace {
    /// An empty keyspace.
    #[must_use]
    pub fn new(options: Options, hooks: Box<dyn Hooks>) -> Self {
        let shards = options.shards.clamp(1, SHARDS_MAX).next_power_of_two();
        let databases = options.databases.clamp(1, DATABASES_MAX);
        let hasher = KeyHasher::new(options.seed);
        let shared = Arc::new(Shared::default());
        Self {
            gate: Arc::default(),
            shards: (0..shards)
                .map(|number| Shard::new(number, databases, &hasher, Arc::clone(&shared)))
                .collect(),
            shared,
            hooks,
            timeline: Timeline::new(),
            lateness_us: Histogram::default(),
            lock_hold_ns: Histogram::default(),
            eviction_turn: AtomicU64::new(0),
            settings: Settings::default(),
            hasher,
            databases,
            shard_shift: 32 - shards.trailing_zeros(),
        }
    }

    /// What may be changed while it runs.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Number of shards.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Number of databases.
    #[must_use]
    pub fn databases(&self) -> usize {
        self.databases
    }

    /// What every user of the keyspace looks at between two commands.
    #[must_use]
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// A seat for one more thread. Whatever reads or changes keys wants one.
    #[must_use]
    pub fn seat(&self) -> Seat {
        self.gate.seat()
    }

    /// Runs one command to its end and appends its reply: [`begin`](Self::begin), and
    /// [`go_on`](Self::go_on) as often as it takes.
    pub fn execute(
        &self,
        seat: &mut Seat,
        row: &'static Command,
        session: &mut Session,
        time: Time,
        args: Args<'_>,
        out: &mut Writer,
    ) {
        let mut walk = self.begin(seat, row, session, time, args, out);
        while let Some(unfinished) = walk {
            walk = self.go_on(seat, unfinished, time, out);
        }
    }

    /// Runs one command and appends its reply, or takes the first step of one that walks over everything: if
    /// a [`Walk`] comes back, the reply is still to come.
    ///
    /// A seat that is empty is entered for this command. Whoever [enters](Seat::enter) for a batch
    /// [gives way](Seat::give_way) before each command.
    ///
    /// Rows that the server runs itself ([`Handler::Host`]) and wrong numbers of arguments are answered
    /// with an error.
    #[must_use = "a walk that is dropped is never answered"]
    pub fn begin(
        &self,
        seat: &mut Seat,
        row: &'static Command,
        session: &mut Session,
        time: Time,
        args: Args<'_>,
        out: &mut Writer,
    ) -> Option<Box<Walk>> {
        if !row.check_arity(args.len()) {
            CommandError::wrong_arity(row).write(out);
            return None;
        }
        let Handler::Keys(handler) = row.handler else {
            return self.begin_specially(seat, row, session, time, args, out);
        };
        if !seat.is_inside() {
            return self.begin_visiting(seat, row, session, time, args, out);
        }
        let mut now = Now::of(&self.timeline, time);
        if row.flags.has(Flags::DENYOOM)
            && self.is_limited()
            && self.lacks(self.at_most_added(row, args))
        {
            match self.make_room_for(seat, row, session.db, args, &now) {
                Ok(later) => now = later,
                Err(error) => {
                    error.write(out);
                    return None;
                }
            }
        }
        let mark = out.mark();
        let writes = row.flags.has(Flags::WRITE);
        let mut context = Context::new(self, session, now, args, out, writes);
        context.seat = Some(seat);
        context.lock_keys(row);
        let result = handler(&mut context);
        if let Err(error) = result {
            context.discard_reply(mark);
            error.write(context.out);
        }
        context.finish();
        // Its locks are free and its lists are given back: dropping it would only look for them once more.
        debug_assert!(context.is_finished());
        std::mem::forget(context);
        None
    }

    /// As [`begin`](Self::begin), on a seat that is empty.
    #[cold]
    fn begin_visiting(
        &self,
        seat: &mut Seat,
        row: &'static Command,
        session: &mut Session,
        time: Time,
        args: Args<'_>,
        out: &mut Writer,
    ) -> Option<Box<Walk>> {
        let visit = seat.visit();
        self.begin(visit.seat, row, session, time, args, out)
    }

    /// As [`begin`](Self::begin), for rows that do not lock the shards of their keys.
    #[cold]
    fn begin_specially(
        &self,
        seat: &mut Seat,
        row: &'static Command,
        session: &mut Session,
        time: Time,
        args: Args<'_>,
        out: &mut Writer,
    ) -> Option<Box<Walk>> {
        let now = Now::of(&self.timeline, time);
        let writes = row.flags.has(Flags::WRITE);
        let mut context = Context::new(self, session, now, args, out, writes);
        match row.handler {
            Handler::Whole(handler) => execute_alone(seat, &mut context, handler),
            Handler::Walk(walk) => return self.set_out(seat, row, walk, &mut context),
            _ => CommandError::NOT_HERE.write(context.out),
        }
        None
    }

    /// Lower bound of a shard's earliest deadline, in clock ticks; `u64::MAX` if nothing is to be done:
    /// no deadlines, time stands still, or active expiry is off. Lock-free.
    #[must_use]
    pub fn next_deadline(&self, shard: usize) -> u64 {
        if !self.settings.active_expire() {
            return NEVER;
        }
        let deadline = self.shards[shard].next_deadline();
        if deadline == NEVER {
            NEVER
        } else {
            self.timeline.clock_of(deadline)
        }
    }

    /// Which keyspace events are wanted.
    #[must_use]
    pub fn notify_flags(&self) -> NotifyFlags {
        self.shared.notify_flags()
    }

    /// Changes which keyspace events are wanted. Locks shard after shard.
    pub fn set_notify_flags(&self, flags: NotifyFlags) {
        self.shared.set_notify_flags(flags);
        for shard in &self.shards {
            shard.lock().observe_events();
        }
    }

    /// Whether events wait to be drained, or are being drained by another thread. Whoever finds none after
    /// a command knows that all that the command caused is published. Lock-free.
    #[must_use]
    #[inline]
    pub fn events_pending(&self) -> bool {
        self.shared.events.pending()
    }

    /// Hands over all events that wait: those of one key, and those of one thread, in the order in which
    /// they happened, provided that no two threads drain at once: the caller holds its own lock around the
    /// call. Locks no shard.
    pub fn drain_events(&self, publish: &mut dyn FnMut(Event)) {
        self.shared.events.drain(publish);
    }

    /// Switches the active side of expiry (DEBUG SET-ACTIVE-EXPIRE). Reads see dead keys as gone either
    /// way.
    pub fn set_active_expire(&self, enabled: bool) {
        self.settings.active_expire.store(enabled, Relaxed);
        if enabled {
            self.wake_all();
        }
    }

    /// Whether a shell's pause holds back everything that changes data.
    pub(crate) fn keeps_dead(&self) -> bool {
        self.gate.bits() & KEEP_DEAD != 0
    }

    #[inline(always)]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash(key)
    }

    /// The top bits choose the shard; the store uses the low 32.
    #[inline]
    pub(crate) fn shard_of(&self, hash: u64) -> usize {
        ((hash >> 32) >> self.shard_shift) as usize
    }

    #[inline]
    pub(crate) fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        let hash = self.hash(bytes);
        Key {
            bytes,
            hash,
            shard: self.shard_of(hash),
        }
    }

    pub(crate) fn database_index(&self, index: i64) -> Option<u32> {
        let index = u32::try_from(index).ok()?;
        ((index as usize) < self.databases).then_some(index)
    }

    pub(crate) fn wake(&self, shard: usize) {
        let deadline = self.next_deadline(shard);
        if deadline != NEVER {
            self.hooks.wake(shard, deadline);
        }
    }

    pub(crate) fn wake_all(&self) {
        (0..self.shards.len()).for_each(|shard| self.wake(shard));
    }

    pub(crate) fn record_hold(&self, since_ns: u64) {
        let held = self.hooks.stopwatch_ns().saturating_sub(since_ns);
        self.lock_hold_ns.record(held, 1);
    }

    /// Reports what shards have kept back, so that the total is exact. Locks shard after shard.
    pub(crate) fn flush_bytes(&self) {
        for shard in &self.shards {
            shard.lock().flush_bytes();
        }
    }

    /// Bytes held by stores and objects, to within 4 KiB a shard. Lock-free.
    #[must_use]
    pub fn used_memory(&self) -> u64 {
        self.shared.used_bytes.load(Relaxed).max(0) as u64
    }
}

/// Runs a command that needs the whole keyspace for itself.
#[cold]
fn execute_alone(seat: &mut Seat, context: &mut Context<'_, '_>, handler: HandlerFn) {
    let mark = context.out.mark();
    let alone = seat.exclusive();
    let result = handler(context);
    drop(alone);
    if let Err(error) = result {
        context.discard_reply(mark);
        error.write(context.out);
    }
    context.finish();
}
