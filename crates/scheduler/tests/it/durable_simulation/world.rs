//! The lives of a simulation share the truth, the clock, the journal, and the runs that somebody
//! acknowledges later.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use tidewheel_scheduler::{
    Ack, CatchUp, Change, Clock, DurableRun, Journal, JournalError, ManualClock, Record, Repeat,
    Status,
};

use super::baton::yield_now;
use super::disk::{Entry, State};
use super::key::Key;
use super::truth::{Ended, Truth};

/// Keys of all worlds; some use fewer, so that threads meet.
pub(crate) const KEYS: u8 = 4;

/// The number of `CatchUp::Delay` on the disk.
pub(crate) const DELAY: u64 = 1_000;

/// The faults that may happen in a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Plan {
    /// The point at which the process dies, counted over all lives.
    pub(crate) crash_at: Option<u64>,
    /// It also dies at random points, on average one in this many.
    pub(crate) crash_one_in: Option<u64>,
    /// Calls of the journal fail at random, on average one in this many.
    pub(crate) failure_one_in: Option<u64>,
    /// Handlers succeed at once.
    pub(crate) is_calm: bool,
}

/// A run that goes on after its handler.
pub(crate) struct HeldAck {
    pub(crate) id: u64,
    pub(crate) value: u64,
    pub(crate) ack: Ack,
}

thread_local! {
    /// This thread's last append, and the job that it ended without its having run.
    static LAST: Cell<(u64, Option<Ended>)> = const { Cell::new((0, None)) };
}

/// Shared by the simulation and by the journal of each life.
#[derive(Clone)]
pub(crate) struct World {
    truth: Arc<Mutex<Truth>>,
    held: Arc<Mutex<Vec<HeldAck>>>,
    pub(crate) clock: ManualClock,
    keys: u64,
}

impl World {
    pub(crate) fn new(seed: u64, plan: Plan) -> Self {
        Self {
            truth: Arc::new(Mutex::new(Truth::new(seed, plan))),
            held: Arc::default(),
            clock: ManualClock::new(),
            keys: 1 + seed % u64::from(KEYS),
        }
    }

    /// Nothing goes wrong from now on.
    pub(crate) fn calm(&self) {
        self.truth().plan = Plan {
            is_calm: true,
            ..Plan::default()
        };
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

    /// A call has returned `Ok`, having changed something. `old` is what it says that it ended, if
    /// it says so.
    pub(crate) fn acknowledge(&self, old: Option<Option<u64>>) {
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
        let ended = ended.map(|Ended(value)| value);
        if old.is_some_and(|old| old != ended) {
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
            truth.wrong(|| format!("the token of job {value} is not greater than all before"));
        }
        truth.last_token = run.token;
        if run.attempt > 1 {
            truth.saw("another attempt");
        }
        truth.begin(run.id, value, run.attempt, now);
        true
    }

    pub(crate) fn hold(&self, held: HeldAck) {
        self.held.lock().expect("unpoisoned").push(held);
    }

    /// Takes one of the runs that wait for their acknowledgement.
    pub(crate) fn take_held(&self) -> Option<HeldAck> {
        let random = self.below(u64::MAX);
        let mut held = self.held.lock().expect("unpoisoned");
        let count = held.len() as u64;
        (count > 0).then(|| held.swap_remove((random % count) as usize))
    }

    /// The process has ended: what it held is gone, and nothing of that reaches the journal.
    pub(crate) fn end_life(&self) {
        self.truth().dead = true;
        let held = std::mem::take(&mut *self.held.lock().expect("unpoisoned"));
        drop(held);
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
            let gone = truth.apply(entry);
            truth.ended.extend(gone.map(|Ended(value)| value));
            ended = ended.or(gone);
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
        let mut records: Vec<_> = truth
            .view
            .iter()
            .map(|(id, live)| Record::new(*id, Key(live.key), live.value, status(&live.state)))
            .collect();
        truth.set_cut_off_unkeyed();
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
    match *change {
        Change::Set {
            id,
            key,
            value,
            status,
        } => Entry::Set {
            id,
            key: key.0,
            value: *value,
            state: state(status),
        },
        Change::Update { id, status } => Entry::Update {
            id,
            state: state(status),
        },
        Change::End { id } => Entry::End { id },
        ref other => panic!("{other:?}"),
    }
}

fn state(status: &Status) -> State {
    let since_1970 = status.due.duration_since(SystemTime::UNIX_EPOCH);
    let catch_up = match status.repeat.map(|repeat| repeat.catch_up) {
        Some(CatchUp::Burst(most)) => u64::from(most),
        Some(CatchUp::Delay) => DELAY,
        _ => 0,
    };
    State {
        due: since_1970.expect("later"),
        attempt: status.attempt,
        place: status.place,
        period_ms: status
            .repeat
            .map_or(0, |repeat| repeat.period.as_millis() as u64),
        catch_up,
    }
}

fn status(state: &State) -> Status {
    let mut status = Status::at(SystemTime::UNIX_EPOCH + state.due);
    status.attempt = state.attempt;
    status.place = state.place;
    let catch_up = match state.catch_up {
        0 => CatchUp::Skip,
        DELAY => CatchUp::Delay,
        most => CatchUp::Burst(most as u32),
    };
    let period = Duration::from_millis(state.period_ms);
    status.repeat = (state.period_ms > 0).then(|| Repeat::every(period, catch_up));
    status
}
