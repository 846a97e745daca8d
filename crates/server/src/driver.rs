//! Expiry within a turn: which shards, how many keys at a time, for how long, and who helps.
//!
//! Shard `i` belongs to loop `i mod N`. A pass goes over the loop's own shards in rotation, a bounded
//! number of keys per hold of a shard's lock, and publishes the events of each hold before the next.
//! It ends when nothing is due or its microseconds are spent; then sockets are looked at, and the
//! next pass goes on where this one stopped. So a backlog never starves, and a request never waits
//! for more than one pass.
//!
//! While deadlines are met nearly in time a pass may take `expiry-turn-us`. The further the loop is
//! behind, the more it may take, up to as long as has been spent on clients since the pass before: a
//! saturated loop gives expiry half of its time when it is fifty milliseconds behind.
//!
//! A loop that is behind wakes one that sleeps, and a loop that has nothing to do helps those that
//! are behind, from the other end of their shards. It then writes down what is left, since a loop
//! that is stuck in a long command cannot do so itself.
//!
//! Nobody hears from a loop that is stuck. So a loop that goes to sleep sets its alarm for a little after the
//! deadlines of those that run, and a loop that may get stuck wakes one that sleeps and has not done so.
//!
//! A loop may have no shards at all, when there are more loops than shards. It serves and helps.

use crate::clock;
use crate::loop_handle::LoopHandle;
use crate::worker::Worker;

/// The most that a pass may take.
const PASS_MAX_US: u64 = 500;

/// Ticks behind at which a pass may take its greatest share; a few ticks are no reason to make
/// requests wait, since a thread that is preempted is as late at once.
const BEHIND_FULL: u64 = 50;

/// Ticks behind at which others should help.
const HELP_AFTER: u64 = 2;

/// Ticks after its next deadline at which a loop that runs is looked at by those that sleep: it may be
/// stuck in a long command, and then it calls nobody.
const GUARD_AFTER: u64 = 10;

/// How long after the first change shards are tidied.
const TIDY_AFTER_MS: u64 = 100;

/// Tidying waits until nothing has expired for so long: what is about to die is not worth moving.
const CALM_MS: u64 = 300;

/// How long tidying waits for that at most.
const TIDY_WAIT_MAX_MS: u64 = 2_000;

/// Units of tidying in one hold of a shard's lock.
const TIDY_BUDGET: u32 = 64;

/// Tidying between two looks at the sockets when there is nothing else to do.
const TIDY_US: u64 = 100;

/// One loop's part in expiry and tidying.
#[derive(Debug)]
pub(crate) struct Driver {
    own: Shards,
    /// Where the next pass begins.
    at: usize,
    /// Engine microseconds at which the last pass ended.
    last_pass: u64,
    /// Keys expired so far.
    expired: u64,
    /// When the next round of tidying begins; `u64::MAX` when nothing has changed.
    tidy_at: u64,
    /// When that round was asked for.
    untidy_since: u64,
    /// When a key last expired.
    expired_at: u64,
    tidy_next: usize,
    /// Shards in a row that had nothing to tidy.
    tidied: usize,
    /// Commands or expiry have run since the other loops were told.
    active: bool,
    /// When they may be told again.
    tell_at: u64,
}

/// The shards of one loop, in their order.
#[derive(Debug, Clone, Copy)]
struct Shards {
    owner: usize,
    loops: usize,
    count: usize,
}

impl Shards {
    fn of(owner: usize, loops: usize, shards: usize) -> Self {
        let count = shards.saturating_sub(owner).div_ceil(loops);
        Self {
            owner,
            loops,
            count,
        }
    }

    fn get(self, at: usize) -> usize {
        self.owner + (at % self.count) * self.loops
    }
}

/// How a shard's part of a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Nothing is due any more.
    Done,
    /// Something is due, but there was nothing to do: not to be asked again within this tick.
    Idle,
    /// The time was spent first.
    Spent,
}

impl Driver {
    pub(crate) fn new(index: usize, loops: usize, shards: usize) -> Self {
        Self {
            own: Shards::of(index, loops, shards),
            at: 0,
            last_pass: 0,
            expired: 0,
            tidy_at: u64::MAX,
            untidy_since: 0,
            expired_at: 0,
            tidy_next: 0,
            tidied: 0,
            active: false,
            tell_at: 0,
        }
    }

    /// Whether there is something to do at once.
    pub(crate) fn has_work(&self, worker: &Worker, expires: bool) -> bool {
        let now = worker.time.tick;
        let handle = &worker.server.loops[worker.index];
        (expires && (handle.soonest() <= now || Self::someone_behind(worker).is_some()))
            || self.tidy_at <= now
    }

    /// The tick at which there will be.
    pub(crate) fn wake_at(&self, worker: &Worker, expires: bool) -> u64 {
        if !expires {
            return self.tidy_at;
        }
        let soonest = worker.server.loops[worker.index].soonest();
        let others = Self::others(worker);
        self.tidy_at.min(soonest).min(Self::guard_at(others))
    }

    /// The tick at which to see whether those of `loops` that run now have met their deadlines.
    fn guard_at<'a>(loops: impl Iterator<Item = &'a LoopHandle>) -> u64 {
        let running = loops.filter(|handle| !handle.sleeps());
        let soonest = running.map(LoopHandle::soonest).min();
        soonest.map_or(u64::MAX, |tick| tick.saturating_add(GUARD_AFTER))
    }

    fn others(worker: &Worker) -> impl Iterator<Item = &LoopHandle> {
        let loops = worker.server.loops.iter().enumerate();
        loops.filter_map(|(i, other)| (i != worker.index).then_some(other))
    }

    /// A command comes that may take long: sees to it that a loop will look after those that run. Those that
    /// run do so when they go to sleep, unless they get stuck as well.
    #[cold]
    pub(crate) fn ask_for_guard(worker: &mut Worker) {
        let soonest = worker.server.loops[worker.index].soonest();
        let asked = std::mem::replace(&mut worker.guard_asked, (worker.time.tick, soonest));
        if asked == worker.guard_asked {
            // Small commands of this kind come by the thousand.
            return;
        }
        let at = Self::guard_at(worker.server.loops.iter());
        let guarded = Self::others(worker).any(|other| other.sleeps_until(at));
        if at == u64::MAX || guarded || !worker.server.expires() {
            return;
        }
        // One that runs may be about to sleep, and have looked at this loop before it woke.
        let guard = Self::others(worker).find(|other| other.sleeps());
        if let Some(guard) = guard.or_else(|| Self::others(worker).next()) {
            guard.nudge();
        }
    }

    /// One pass over what is due.
    pub(crate) fn expire(&mut self, worker: &mut Worker) {
        let handle = &worker.server.loops[worker.index];
        let now = worker.time.tick;
        let soonest = handle.soonest();
        if soonest > now {
            if Self::someone_behind(worker).is_some() && worker.server.expires() {
                self.help(worker);
            }
            return;
        }
        if !worker.server.expires() {
            return;
        }
        let behind = now - soonest;
        let began = clock::micros(worker.time);
        let served = began.saturating_sub(self.last_pass).min(PASS_MAX_US);
        let share = served * behind.min(BEHIND_FULL) / BEHIND_FULL;
        let end = began + share.max(worker.settings.expiry_turn_us);
        handle.forget_soonest();
        let (own, first) = (self.own, self.at);
        let shards = (0..own.count).map(|step| own.get(first + step));
        let (next, spent) = self.pass(worker, shards, end);
        if let Some(steps) = spent {
            self.at = (first + steps) % own.count;
            worker.tally.budget_hits += 1;
        }
        worker.server.loops[worker.index].remember_soonest(next);
        self.last_pass = clock::micros(worker.time);
        if spent.is_some() && worker.time.tick.saturating_sub(next) >= HELP_AFTER {
            Self::call_for_help(worker);
        }
    }

    /// Expires what is due in `shards`, one after the other, until `end`. Returns the earliest deadline
    /// that is left, and at which of the shards the time was spent.
    fn pass(
        &mut self,
        worker: &mut Worker,
        shards: impl Iterator<Item = usize>,
        end: u64,
    ) -> (u64, Option<usize>) {
        let mut next = u64::MAX;
        let mut spent = None;
        for (step, shard) in shards.enumerate() {
            let mut deadline = worker.server.keyspace.next_deadline(shard);
            if spent.is_none() && deadline <= worker.time.tick {
                let pass = self.expire_shard(worker, shard, end);
                deadline = worker.server.keyspace.next_deadline(shard);
                match pass {
                    Pass::Done => {}
                    Pass::Idle => deadline = deadline.max(worker.time.tick + 1),
                    Pass::Spent => spent = Some(step),
                }
            }
            next = next.min(deadline);
        }
        (next, spent)
    }

    /// Expires what is due in one shard.
    fn expire_shard(&mut self, worker: &mut Worker, shard: usize, end: u64) -> Pass {
        let keyspace = &worker.server.keyspace;
        while keyspace.next_deadline(shard) <= worker.time.tick {
            let keys = worker.settings.expiry_hold_keys;
            let progress = keyspace.expire(&mut worker.seat, shard, worker.time, keys);
            self.expired += u64::from(progress.fired);
            if progress.fired > 0 {
                self.expired_at = worker.time.tick;
            }
            self.active = true;
            if keyspace.events_pending() {
                worker.server.hub.flush(keyspace);
            }
            worker.time = worker.server.clock.now();
            if clock::micros(worker.time) >= end {
                return Pass::Spent;
            }
            if progress.fired == 0 && progress.moved == 0 {
                return Pass::Idle;
            }
        }
        Pass::Done
    }

    /// A loop that is behind, other than this one.
    fn someone_behind(worker: &Worker) -> Option<usize> {
        let late = worker.time.tick - HELP_AFTER;
        let mut others = worker.server.loops.iter().enumerate();
        others
            .find(|(i, other)| *i != worker.index && other.soonest() <= late)
            .map(|(i, _)| i)
    }

    /// A pass over the shards of a loop that is behind, from their other end.
    fn help(&mut self, worker: &mut Worker) {
        let Some(whom) = Self::someone_behind(worker) else {
            return;
        };
        let end = clock::micros(worker.time) + worker.settings.expiry_turn_us;
        let loops = worker.server.loops.len();
        let theirs = Shards::of(whom, loops, worker.server.keyspace.shards());
        let before = self.expired;
        let shards = (0..theirs.count).rev().map(|at| theirs.get(at));
        let (_, spent) = self.pass(worker, shards, end);
        worker.tally.helped += self.expired - before;
        // What is due and was not removed by a whole pass is not asked for again within this tick.
        let floor = match spent {
            Some(_) => 0,
            None => worker.time.tick + 1,
        };
        let keyspace = &worker.server.keyspace;
        worker.server.loops[whom].correct_soonest(|| {
            let deadlines = (0..theirs.count).map(|at| keyspace.next_deadline(theirs.get(at)));
            deadlines.min().unwrap_or(u64::MAX).max(floor)
        });
    }

    fn call_for_help(worker: &Worker) {
        if let Some(sleeper) = Self::others(worker).find(|other| other.sleeps()) {
            sleeper.nudge();
        }
    }

    /// Commands have run, on shards of any loop.
    pub(crate) fn note_activity(&mut self) {
        self.active = true;
    }

    /// Tidies shards some time after something may have changed in them: a slice in each turn, more
    /// when the loop is idle.
    pub(crate) fn tidy(&mut self, worker: &mut Worker, idle: bool) {
        let now = worker.time.tick;
        if self.active && now >= self.tell_at {
            self.active = false;
            self.tell_at = now + TIDY_AFTER_MS;
            let shards = worker.server.keyspace.shards();
            for handle in worker.server.loops.iter().take(shards) {
                handle.becomes_untidy();
            }
        }
        if self.tidy_at == u64::MAX && worker.server.loops[worker.index].was_untidy() {
            self.untidy_since = now;
            self.tidy_at = now + TIDY_AFTER_MS;
        }
        if self.tidy_at > now {
            return;
        }
        let patient = now < self.untidy_since + TIDY_WAIT_MAX_MS;
        if patient && now < self.expired_at + CALM_MS {
            self.tidy_at = self.expired_at + CALM_MS;
            return;
        }
        let end = clock::micros(worker.time) + TIDY_US;
        loop {
            let shard = self.own.get(self.tidy_next);
            let (keyspace, seat) = (&worker.server.keyspace, &mut worker.seat);
            let more = keyspace.maintain(seat, shard, TIDY_BUDGET);
            self.tidied = if more { 0 } else { self.tidied + 1 };
            self.tidy_next = (self.tidy_next + 1) % self.own.count;
            if self.tidied >= self.own.count {
                self.tidied = 0;
                self.tidy_at = u64::MAX;
                return;
            }
            worker.time = worker.server.clock.now();
            if !idle || clock::micros(worker.time) >= end {
                return;
            }
        }
    }
}
