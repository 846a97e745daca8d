//! What is true: the disk, what the journal was told, who has run; and what must hold between them.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use tidewheel_scheduler::{Change, Clock, DurableRun, Journal, JournalError, ManualClock, Record};

use super::baton::{Random, yield_now};
use super::disk::{Disk, Entry};
use super::key::Key;

/// Keys of all worlds; some use fewer, so that threads meet.
pub(crate) const KEYS: u8 = 4;

/// A task in the journal's view: what was on disk at the start, and every change since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) key: u8,
    pub(crate) value: u64,
    pub(crate) due: Duration,
    /// Its place in the log's order.
    order: u64,
    /// Its handler was called in this life.
    pub(crate) started: bool,
}

/// What may go wrong in a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Plan {
    /// The point at which the process dies, counted over all lives.
    pub(crate) crash_at: Option<u64>,
    /// It also dies at random points, on average one in this many.
    pub(crate) crash_one_in: Option<u64>,
    /// Calls of the journal fail at random, on average one in this many.
    pub(crate) failure_one_in: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) disk: Disk,
    pub(crate) random: Random,
    plan: Plan,
    pub(crate) points: u64,
    /// The process has died: nothing that it does counts.
    pub(crate) dead: bool,
    /// The journal has failed in this life.
    pub(crate) failed: bool,
    /// Tasks may be on their way from the wheel to the handler.
    pub(crate) advancing: bool,
    pub(crate) view: BTreeMap<u64, Live>,
    orders: u64,
    last_token: u64,
    next_value: u64,
    /// Tasks whose set has returned `Ok`.
    pub(crate) set: BTreeSet<u64>,
    ran: BTreeSet<u64>,
    /// Tasks that a call has replaced or removed.
    ended: BTreeSet<u64>,
    /// The latest append that a call has returned for.
    acknowledged: u64,
    /// What was found wrong first.
    pub(crate) wrong: Option<String>,
}

thread_local! {
    /// This thread's last append, and the task that it ended without running it.
    static LAST: Cell<(u64, Option<u64>)> = const { Cell::new((0, None)) };
}

/// Shared by the simulation and by the journal of each life.
#[derive(Debug, Clone)]
pub(crate) struct World {
    truth: Arc<Mutex<Truth>>,
    pub(crate) clock: ManualClock,
    keys: u64,
}

impl Truth {
    pub(crate) fn wrong(&mut self, what: impl FnOnce() -> String) {
        if self.wrong.is_none() && !self.dead {
            self.wrong = Some(what());
        }
    }

    /// A moment at which the process may die. Tells whether it is dead.
    fn point(&mut self) -> bool {
        if self.dead {
            return true;
        }
        self.points += 1;
        self.dead = self.plan.crash_at == Some(self.points)
            || self
                .plan
                .crash_one_in
                .is_some_and(|n| self.random.one_in(n));
        self.dead
    }

    fn fails(&mut self) -> bool {
        let fails = self
            .plan
            .failure_one_in
            .is_some_and(|n| self.random.one_in(n));
        self.failed |= fails;
        fails
    }

    fn apply(&mut self, entry: Entry) -> Option<Live> {
        match entry {
            Entry::Set {
                id,
                key,
                value,
                due,
            } => {
                self.orders += 1;
                let live = Live {
                    key,
                    value,
                    due,
                    order: self.orders,
                    started: false,
                };
                let before = self.view.insert(id, live);
                if before.is_some() {
                    self.wrong(|| format!("id {id} was given twice"));
                }
                None
            }
            Entry::Move { id, due } => {
                if let Some(live) = self.view.get_mut(&id) {
                    live.due = due;
                }
                None
            }
            Entry::End { id } => self.view.remove(&id),
        }
    }

    /// The task that was set last of those that live.
    pub(crate) fn newest(&self, key: u8) -> Option<&Live> {
        let of_key = self.view.values().filter(|live| live.key == key);
        of_key.max_by_key(|live| live.order)
    }

    /// The power fails, and the next life reads what is left.
    pub(crate) fn restart(&mut self) {
        self.disk.lose_power(&mut self.random);
        let log = self.disk.open();
        self.dead = false;
        self.failed = false;
        self.advancing = false;
        let (length, acknowledged) = (log.len() as u64, self.acknowledged);
        if length < acknowledged {
            self.wrong(|| format!("{acknowledged} appends were acknowledged, {length} survived"));
        }
        self.acknowledged = length;
        self.view.clear();
        for entry in log.into_iter().flatten() {
            self.apply(entry);
        }
    }

    /// What a power failure now would leave at worst.
    pub(crate) fn certain(&self) -> BTreeSet<u64> {
        let mut ids = BTreeSet::new();
        for entry in self.disk.read().into_iter().flatten() {
            match entry {
                Entry::Set { id, .. } => {
                    ids.insert(id);
                }
                Entry::Move { .. } => {}
                Entry::End { id } => {
                    ids.remove(&id);
                }
            }
        }
        ids
    }

    /// At the end of all lives: whatever was acknowledged has run, or was ended by a call.
    pub(crate) fn nothing_is_lost(&mut self) {
        let ended = |value: &&u64| self.ran.contains(value) || self.ended.contains(value);
        let lost = self.set.iter().find(|value| !ended(value)).copied();
        if let Some(lost) = lost {
            self.wrong(|| format!("task {lost} was acknowledged and never ran"));
        }
    }
}

impl World {
    pub(crate) fn new(seed: u64, plan: Plan) -> Self {
        let truth = Truth {
            disk: Disk::default(),
            random: Random::new(seed),
            plan,
            points: 0,
            dead: false,
            failed: false,
            advancing: false,
            view: BTreeMap::new(),
            orders: 0,
            last_token: 0,
            next_value: 0,
            set: BTreeSet::new(),
            ran: BTreeSet::new(),
            ended: BTreeSet::new(),
            acknowledged: 0,
            wrong: None,
        };
        Self {
            truth: Arc::new(Mutex::new(truth)),
            clock: ManualClock::new(),
            keys: 1 + seed % u64::from(KEYS),
        }
    }

    /// Nothing goes wrong from now on.
    pub(crate) fn calm(&self) {
        self.truth().plan = Plan::default();
    }

    pub(crate) fn truth(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock().expect("unpoisoned")
    }

    pub(crate) fn below(&self, end: u64) -> u64 {
        self.truth().random.below(end)
    }

    pub(crate) fn key(&self) -> Key {
        Key(self.below(self.keys) as u8)
    }

    pub(crate) fn is_over(&self) -> bool {
        let truth = self.truth();
        truth.dead || truth.wrong.is_some()
    }

    pub(crate) fn next_value(&self) -> u64 {
        let mut truth = self.truth();
        truth.next_value += 1;
        truth.next_value
    }

    /// A call has returned `Ok`, having changed something, and `old` was ended by it.
    pub(crate) fn acknowledge(&self, old: Option<u64>) {
        let (append, ended) = LAST.get();
        let mut truth = self.truth();
        if truth.dead {
            return;
        }
        let synced = truth.disk.synced;
        if synced < append {
            truth.wrong(|| format!("append {append} was acknowledged, {synced} are on disk"));
        }
        if append == 0 {
            truth.wrong(|| "a change that was not written was acknowledged".to_owned());
        }
        if old != ended {
            truth.wrong(|| format!("the journal ended {ended:?}, memory {old:?}"));
        }
        truth.acknowledged = truth.acknowledged.max(append);
    }

    /// To be called before each call: what its append will be is not known yet.
    pub(crate) fn forget_last(&self) {
        LAST.set((0, None));
    }

    /// A handler begins. `false` if the process is dead.
    pub(crate) fn begin(&self, run: &DurableRun<Key, u64>) -> bool {
        let now = self.clock.now();
        let mut truth = self.truth();
        if truth.dead {
            return false;
        }
        let value = run.value;
        if run.token <= truth.last_token {
            truth.wrong(|| format!("the token of task {value} is not greater than all before"));
        }
        truth.last_token = run.token;
        truth.ran.insert(value);
        if truth.failed {
            return true;
        }
        let live = truth.view.values_mut().find(|live| live.value == value);
        let (twice, early) = match live {
            Some(live) => (std::mem::replace(&mut live.started, true), now < live.due),
            None => (true, false),
        };
        if twice {
            truth.wrong(|| format!("task {value} ran twice, or after its end"));
        }
        if early {
            truth.wrong(|| format!("task {value} ran early"));
        }
        true
    }
}

impl Journal<Key, u64> for World {
    fn append(&self, changes: &[Change<'_, Key, u64>]) -> Result<u64, JournalError> {
        let mut truth = self.truth();
        if truth.point() {
            return Err(JournalError::new("dead"));
        }
        let entries: Vec<Entry> = changes.iter().map(entry).collect();
        if truth.fails() {
            // A write that failed may have come through all the same, and so what it ends is ended.
            if truth.random.one_in(2) {
                truth.disk.append(&entries);
                for entry in entries {
                    let gone = match entry {
                        Entry::End { id } => truth.view.get(&id).map(|live| live.value),
                        _ => None,
                    };
                    truth.ended.extend(gone);
                }
            }
            return Err(JournalError::new("no space, say"));
        }
        let append = truth.disk.append(&entries);
        let mut ended = None;
        for entry in entries {
            let gone = truth.apply(entry).filter(|live| !live.started);
            truth.ended.extend(gone.map(|live| live.value));
            ended = ended.or(gone.map(|live| live.value));
        }
        LAST.set((append, ended));
        if truth.random.one_in(4) {
            truth.disk.sync();
        }
        if truth.point() {
            return Err(JournalError::new("dead"));
        }
        Ok(append)
    }

    fn wait(&self, appended: u64) -> Result<(), JournalError> {
        yield_now();
        let mut truth = self.truth();
        if truth.point() {
            return Err(JournalError::new("dead"));
        }
        if truth.fails() {
            return Err(JournalError::new("the disk is gone"));
        }
        if truth.disk.synced < appended {
            truth.disk.sync();
        }
        if truth.point() {
            return Err(JournalError::new("dead"));
        }
        drop(truth);
        yield_now();
        Ok(())
    }

    fn load(&self) -> Result<Vec<Record<Key, u64>>, JournalError> {
        let mut truth = self.truth();
        if truth.point() {
            return Err(JournalError::new("dead"));
        }
        let record = |(id, live): (&u64, &Live)| Record {
            id: *id,
            key: Key(live.key),
            value: live.value,
            due: SystemTime::UNIX_EPOCH + live.due,
        };
        let mut records: Vec<_> = truth.view.iter().map(record).collect();
        // In any order.
        for at in 1..records.len() {
            let other = truth.random.below(at as u64 + 1) as usize;
            records.swap(at, other);
        }
        Ok(records)
    }

    fn epoch(&self) -> u64 {
        self.truth().disk.openings
    }
}

fn entry(change: &Change<'_, Key, u64>) -> Entry {
    let since_1970 = |due: SystemTime| due.duration_since(SystemTime::UNIX_EPOCH);
    match *change {
        Change::Set {
            id,
            key,
            value,
            due,
        } => Entry::Set {
            id,
            key: key.0,
            value: *value,
            due: since_1970(due).expect("later"),
        },
        Change::Move { id, due } => Entry::Move {
            id,
            due: since_1970(due).expect("later"),
        },
        Change::End { id } => Entry::End { id },
    }
}
