//! Transactions: several commands run as one. Nobody sees the data between them, and time stands
//! still.
//!
//! 1. [`Keyspace::transaction`] makes room for all that the commands add, and locks the shards of
//!    all their keys, and of those that are watched. If a command needs the whole keyspace, the
//!    gate is taken instead.
//! 2. [`Transaction::run`] runs each command over these locks.
//! 3. [`Transaction::end`] unlocks, and then does what must not be done under a lock.

use std::sync::atomic::Ordering::SeqCst;

use tidewheel_resp::{Args, Writer};

use crate::claims::{Blocked, ShardSet};
use crate::commands::handlers::{Handler, handler};
use crate::context::{Context, HOLDS_PER_SAMPLE, LargeValues};
use crate::demand::Demand;
use crate::error::CommandError;
use crate::gate::Seat;
use crate::incremental::IncrementalCommand;
use crate::keyspace::Keyspace;
use crate::parking::NoLongCommands;
use crate::records::Encoder;
use crate::rows::Command;
use crate::rows::Flags;
use crate::session::{Session, Waiter};
use crate::shard::{Hold, Shard, meet_all};
use crate::time::{Now, Time};
use crate::watch::Watching;

/// Several commands that run as one.
#[derive(Debug)]
pub struct Transaction<'a> {
    keyspace: &'a Keyspace,
    now: Now,
    /// The shards of all keys, in their order; empty if the gate is taken.
    locks: Vec<(usize, Hold<'a>)>,
    /// True while the gate is taken.
    whole: bool,
    /// True if it has taken the gate itself, and is not within another one that has.
    takes_gate: bool,
    /// What its commands have changed, if that is recorded and it has not the whole keyspace.
    group: Option<Box<Encoder>>,
    /// True if it has the whole keyspace and has opened the group to which all that runs adds.
    opened: bool,
    /// Work that is left for after unlocking.
    large: Option<Box<LargeValues>>,
    /// A script that has run for so long that others are refused.
    long: bool,
    /// The time at which it began, if its hold is measured.
    since_ns: Option<u64>,
    /// The client whose commands run.
    author: Option<Waiter>,
    /// While the gate is taken.
    alone: Option<NoLongCommands<'a>>,
}

/// The outcome of beginning a transaction.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "it is taken apart where it is made"
)]
pub enum Begun<'a> {
    /// Its commands may run.
    Runs(Transaction<'a>),
    /// A watched key has changed: none runs.
    Changed,
    /// Others have shards for long that it needs: it may begin later.
    Blocked(Blocked),
}

/// The part of the keyspace that a script may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The keys that its caller named, and those that share a shard with them.
    Keys,
    /// All keys that its commands name.
    Shards,
    /// Everything: it may look for keys, and run alone.
    Whole,
}

impl Keyspace {
    /// Begins a transaction of these commands.
    ///
    /// The seat is inside, and nothing is locked. A command that the server around the keyspace
    /// runs itself between two others takes no lock that is left of the shards in the
    /// [order](crate::order), unless `whole` is set: then no shard is locked, and no other thread
    /// is inside.
    ///
    /// # Errors
    ///
    /// If there is no room for what the commands add.
    pub fn transaction<'a, 'b>(
        &'a self,
        seat: &mut Seat,
        time: Time,
        db: u32,
        calls: impl Iterator<Item = (&'static Command, Args<'b>)> + Clone,
        watching: &Watching,
        whole: bool,
    ) -> Result<Begun<'a>, CommandError> {
        debug_assert!(seat.is_inside(), "the caller has entered");
        let mut now = Now::of(&self.timeline, time);
        if self.is_limited() {
            now = self.make_room_for_all(seat, db, calls.clone(), &now)?;
        }
        let whole = whole || calls.clone().any(|(row, _)| needs_whole(row));
        let keys = calls
            .filter(|_| !whole)
            .flat_map(|(row, args)| row.keys.positions(args).map(move |at| (args, at)))
            .filter_map(|(args, at)| args.get(at));
        let shards = self.shards_of(keys.chain(watching.keys()));
        let is_changed = |begun: &Begun<'_>| matches!(begun, Begun::Runs(of) if self.is_changed(watching, &of.locks, &of.now));
        let mut begun = self.lock_transaction(seat, now, shards, whole);
        let mut changed = is_changed(&begun);
        if changed
            && !watching.is_changed()
            && let Begun::Runs(transaction) = begun
        {
            // The deadline of a collection may be earlier than that of each of its members. If it
            // is, removing what is due removes nothing, and it has a later one.
            transaction.end(seat, time, &mut Writer::default());
            if let Err(blocked) = self.remove_watched_dead(seat, time, watching) {
                return Ok(Begun::Blocked(blocked));
            }
            begun = self.lock_transaction(seat, now, shards, whole);
            changed = is_changed(&begun);
        }
        let Begun::Runs(mut transaction) = begun else {
            return Ok(begun);
        };
        if changed {
            transaction.end(seat, time, &mut Writer::default());
            return Ok(Begun::Changed);
        }
        if whole {
            self.unlock_shards(std::mem::take(&mut transaction.locks), None);
        }
        Ok(Begun::Runs(transaction))
    }

    /// Begins a script, whose commands are not known beforehand. It runs them with
    /// [`Transaction::call`]. The seat is inside, and nothing is locked. [`Begun::Changed`] does
    /// not come back.
    pub fn script<'a, 'k>(
        &'a self,
        seat: &mut Seat,
        time: Time,
        reach: Reach,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Begun<'a> {
        debug_assert!(seat.is_inside(), "the caller has entered");
        let shards = match reach {
            Reach::Keys => self.shards_of(keys),
            Reach::Shards => ShardSet::of(0..self.shards()),
            Reach::Whole => ShardSet::NONE,
        };
        let now = Now::of(&self.timeline, time);
        self.lock_transaction(seat, now, shards, reach == Reach::Whole)
    }

    /// Locks these shards for a transaction. Takes the gate before, if it needs the `whole`
    /// keyspace.
    fn lock_transaction<'a>(
        &'a self,
        seat: &mut Seat,
        mut now: Now,
        shards: ShardSet,
        whole: bool,
    ) -> Begun<'a> {
        let mut alone = None;
        let takes_gate = whole && !seat.has_whole();
        if whole {
            match self.without_long_commands() {
                Ok(permission) => alone = Some(permission),
                Err(blocked) => return Begun::Blocked(blocked),
            }
            if !seat.take_whole() {
                return Begun::Blocked(Blocked::on(ShardSet::ALL));
            }
        }
        let mut locks = match self.lock_set(shards, true) {
            Ok(locks) => locks,
            Err(blocked) => {
                if takes_gate {
                    seat.give_back();
                }
                return Begun::Blocked(blocked);
            }
        };
        meet_all(&mut locks, &mut now);
        if whole {
            // Nobody else is inside. Its time must stand still in all shards that it may act in.
            let free = self.shards.iter().filter_map(Shard::try_lock);
            free.for_each(|mut hold| hold.meet(&mut now));
        }
        // Others are told that a transaction has them.
        for (shard, _) in locks.iter().filter(|_| !whole) {
            self.shards[*shard].begin_transaction();
        }
        let is_measured = match &mut locks[..] {
            [] => false,
            [(_, hold)] => {
                hold.holds = hold.holds.wrapping_add(1);
                hold.holds.is_multiple_of(HOLDS_PER_SAMPLE)
            }
            _ => true,
        };
        let since_ns = is_measured.then(|| self.hooks.stopwatch_ns());
        let records = &self.shared.records;
        let is_recording = records.is_on();
        let opened = is_recording && whole && records.open_group();
        if opened {
            // Readers are told of each change as it happens. Nobody else records anything
            // meanwhile.
            records.promise();
        }
        Begun::Runs(Transaction {
            keyspace: self,
            now,
            locks,
            whole,
            takes_gate,
            group: (is_recording && !whole).then(Box::default),
            opened,
            large: None,
            long: false,
            since_ns,
            author: None,
            alone,
        })
    }

    fn make_room_for_all<'b>(
        &self,
        seat: &mut Seat,
        db: u32,
        calls: impl Iterator<Item = (&'static Command, Args<'b>)>,
        now: &Now,
    ) -> Result<Now, CommandError> {
        let adding = calls.filter(|(row, _)| row.flags.has(Flags::DENYOOM));
        let added: Vec<usize> = adding
            .map(|(row, args)| Demand::of_call(self, row, db, args).added)
            .collect();
        let sum = added.iter().fold(0, |sum: usize, n| sum.saturating_add(*n));
        if added.is_empty() || !self.lacks(sum) {
            return Ok(*now);
        }
        self.make_room_for_bytes(seat, sum, now)
    }
}

/// True if a command needs more than the shards of its keys.
fn needs_whole(row: &Command) -> bool {
    match handler(row) {
        Handler::Whole(_) | Handler::Incremental(_) => true,
        Handler::Keys(_) => row.reaches || row.keys.first == 0 && !row.flags.has(Flags::FAST),
        Handler::Unlocked(_) | Handler::Host => false,
    }
}

impl<'a> Transaction<'a> {
    /// The locks, to be unlocked next, and those of the shards for which somebody waits.
    fn take_locks(&mut self) -> (ShardSet, Vec<(usize, Hold<'a>)>) {
        let records = &self.keyspace.shared.records;
        let open = std::mem::take(&mut self.opened).then(|| records.take_open());
        if let Some(group) = open.flatten().or_else(|| self.group.take()) {
            records.push_group(&group);
        }
        let locks = std::mem::take(&mut self.locks);
        let was_long = std::mem::take(&mut self.long);
        if was_long {
            self.keyspace.long_scripts.fetch_sub(1, SeqCst);
        }
        let mut awaited = ShardSet::NONE;
        for (shard, _) in locks.iter().filter(|_| !self.whole) {
            if was_long {
                self.keyspace.shards[*shard].set_scripted(false);
            }
            if self.keyspace.shards[*shard].end_transaction() {
                awaited.insert(*shard);
            }
        }
        (awaited, locks)
    }

    /// The part of the keyspace that a script must have for a call, if it has not; `None` if the
    /// call may run.
    #[must_use]
    pub fn lacks(&self, row: &Command, args: Args<'_>) -> Option<Reach> {
        if self.whole {
            return None;
        }
        if needs_whole(row) && !row.reaches {
            return Some(Reach::Whole);
        }
        let has_all = self.locks.len() == self.keyspace.shards();
        if has_all || !row.reaches && self.missing(row, args).next().is_none() {
            return None;
        }
        Some(Reach::Shards)
    }

    /// The shards of a call's keys that are not locked.
    fn missing(&self, row: &Command, args: Args<'_>) -> impl Iterator<Item = usize> {
        let keys = row.keys.positions(args).filter_map(move |at| args.get(at));
        let shards = keys.map(|key| self.keyspace.shard_of(self.keyspace.hash(key)));
        shards.filter(|shard| self.place_of(*shard).is_err())
    }

    fn place_of(&self, shard: usize) -> Result<usize, usize> {
        self.locks.binary_search_by_key(&shard, |(at, _)| *at)
    }

    /// Locks the shards of a call's keys too, for a script that cannot begin again. False if
    /// another has one of them: waiting for it could be a circle.
    pub fn lock_more(&mut self, row: &Command, args: Args<'_>) -> bool {
        let missing: Vec<usize> = self.missing(row, args).collect();
        for shard in missing {
            let Err(at) = self.place_of(shard) else {
                continue;
            };
            let Some(mut hold) = self.keyspace.shards[shard].try_lock() else {
                return false;
            };
            hold.meet(&mut self.now);
            self.keyspace.shards[shard].begin_transaction();
            self.keyspace.shards[shard].set_scripted(self.long);
            self.locks.insert(at, (shard, hold));
        }
        true
    }

    fn shards(&self) -> ShardSet {
        ShardSet::of(self.locks.iter().map(|(shard, _)| *shard))
    }

    /// A script runs for longer than a moment: others park at once if they need its shards, and
    /// nobody gets the whole keyspace. The seat stays inside until [`end`](Self::end).
    pub fn lasts(&self, seat: &mut Seat) {
        self.keyspace.keep_for_script(self.shards());
        seat.stay();
    }

    /// A script has run for so long that others are refused if they need its shards
    /// ([`Keyspace::is_busy_with_script`]), also those who are parked.
    pub fn lasts_long(&mut self, seat: &mut Seat) {
        self.long = true;
        seat.shut();
        self.keyspace.refuse_for_script(self.shards());
    }

    /// Runs one command of a script, and appends its whole reply. It [lacks](Self::lacks) nothing.
    pub fn call(
        &mut self,
        row: &'static Command,
        session: &mut Session,
        args: Args<'_>,
        out: &mut Writer,
    ) {
        self.run(row, session, args, out);
        if self.large.is_some() {
            let now = self.now;
            let mut context = Context::new(self.keyspace, session, now, args, out, Some(row));
            context.carry(self.large.take());
            context.answer_large();
            self.large = context.carry_on();
        }
    }

    /// Runs one of the commands, and appends its reply.
    pub fn run(
        &mut self,
        row: &'static Command,
        session: &mut Session,
        args: Args<'_>,
        out: &mut Writer,
    ) {
        let mark = out.mark();
        self.author = session.waiter;
        let mut context = Context::new(self.keyspace, session, self.now, args, out, Some(row));
        context.carry(self.large.take());
        context.group = match self.adds_to_open() {
            true => self.keyspace.shared.records.take_open(),
            false => self.group.take(),
        };
        context.defers = true;
        let outcome = match handler(row) {
            Handler::Keys(handler) => {
                if !self.whole {
                    context.keep(std::mem::take(&mut self.locks));
                }
                let locked = context.lock_keys(&row.keys, row.stored_argument, &row.into());
                debug_assert!(locked.is_ok(), "they are locked, or nobody else is inside");
                context.note_reads(row);
                let outcome = handler(&mut context);
                if self.whole {
                    context.unlock();
                } else {
                    context.record();
                    self.locks = context.hand_back();
                }
                outcome
            }
            Handler::Whole(handler) if self.whole => handler(&mut context),
            Handler::Incremental(steps) if self.whole => {
                IncrementalCommand::new(row, steps, &context)
                    .map(|mut command| command.run(self.keyspace, self.now, context.out))
            }
            _ => self.keyspace.run_unlocked(row, &mut context),
        };
        if let Err(error) = outcome {
            context.refuse(mark, &error);
        }
        self.large = context.carry_on();
        let group = context.group.take();
        match self.adds_to_open() {
            true => self.keyspace.shared.records.put_open(group),
            false => self.group = group,
        }
    }

    /// True if what its commands change is added to the open group.
    fn adds_to_open(&self) -> bool {
        self.whole && self.keyspace.shared.records.is_on()
    }

    /// Ends it: others see what it has done, and those who wait for keys are served as of `time`.
    /// Fills `out` with the large values that its commands have replied with.
    pub fn end(mut self, seat: &mut Seat, time: Time, out: &mut Writer) {
        let keyspace = self.keyspace;
        let now = Now::of(&keyspace.timeline, time);
        seat.moves();
        if let Some(since_ns) = self.since_ns
            && !self.locks.is_empty()
        {
            keyspace.record_hold(since_ns);
        }
        let (awaited, locks) = self.take_locks();
        if locks.iter().any(|(_, hold)| hold.has_ready()) {
            keyspace.serve_and_unlock(now, locks);
        } else {
            keyspace.unlock_shards(locks, self.author);
        }
        if !awaited.is_empty() {
            keyspace.end_transactions(awaited, now);
        }
        // A script within another transaction leaves that to it: others come in when all is done.
        if self.takes_gate {
            keyspace.serve_everywhere(now);
            seat.give_back();
        }
        drop(self.alone.take());
        let Some(large) = self.large.take() else {
            return;
        };
        let mut session = Session::default();
        let args = Args::from_slices(&[]);
        let mut context = Context::new(keyspace, &mut session, now, args, out, None);
        context.carry(Some(large));
        context.finish();
    }
}

impl Drop for Transaction<'_> {
    /// A command of it has panicked: nobody must wait for ever.
    fn drop(&mut self) {
        let (awaited, locks) = self.take_locks();
        drop(locks);
        if !awaited.is_empty() {
            self.keyspace.end_transactions(awaited, self.now);
        }
    }
}
