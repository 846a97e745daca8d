//! These tests set one key on several threads while tasks run, under schedules that shuttle
//! chooses, with a crash at any moment: the value that was set last is pending then.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use shuttle::thread;

use crate::{
    Ack, Change, Durable, DurableRun, IntoOutcome, Journal, JournalError, ManualClock, Place,
    Record, Scheduler,
};

const RUNS: usize = 3000;
/// Ordering constraints that a PCT run looks for.
const PCT_DEPTH: usize = 3;

const KEY: u8 = 7;
const HOUR: Duration = Duration::from_secs(3600);

/// Tasks that live, in the order in which they were written.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<Record<u8, u64>>>>);

impl Notes {
    fn live(&self) -> Vec<Record<u8, u64>> {
        self.0.lock().expect("unpoisoned").clone()
    }
}

impl Journal<u8, u64> for Notes {
    fn append(&self, changes: &[Change<'_, u8, u64>]) -> Result<u64, JournalError> {
        thread::yield_now();
        let mut live = self.0.lock().expect("unpoisoned");
        for change in changes {
            match *change {
                Change::Set {
                    id,
                    key,
                    value,
                    status,
                } => live.push(Record::new(id, *key, *value, status.clone())),
                Change::Update { id, status } => live
                    .iter_mut()
                    .filter(|record| record.id == id)
                    .for_each(|record| record.status = status.clone()),
                Change::End { id } => live.retain(|record| record.id != id),
            }
        }
        Ok(1)
    }

    fn wait(&self, _: u64) -> Result<(), JournalError> {
        thread::yield_now();
        Ok(())
    }

    fn load(&self) -> Result<Vec<Record<u8, u64>>, JournalError> {
        Ok(self.live())
    }

    fn epoch(&self) -> u64 {
        1
    }
}

type Tasks = Durable<u8, u64, Notes, foldhash::quality::FixedState>;

fn start<R: IntoOutcome>(
    clock: &ManualClock,
    notes: &Notes,
    handler: impl Fn(&DurableRun<u8, u64>) -> R + Send + Sync + 'static,
) -> Arc<Tasks> {
    let hasher = foldhash::quality::FixedState::default();
    let builder = Scheduler::builder().shards(1).hasher(hasher);
    let tasks = Durable::manual(builder, clock, notes.clone(), move |_, run| handler(&run));
    Arc::new(tasks.expect("valid"))
}

/// Memory holds the record that was written last.
fn agrees(tasks: &Tasks, live: &[Record<u8, u64>]) {
    let due = live
        .last()
        .map(|record| SystemTime::UNIX_EPOCH + HOUR == record.status.due);
    let far = tasks.get(&KEY).map(|left| !left.is_zero());
    assert_eq!(far, due, "memory and journal disagree");
}

fn sets_of_one_key_during_its_runs_and_a_crash() {
    let (clock, notes) = (ManualClock::new(), Notes::default());
    let crashes: Arc<Mutex<Vec<Notes>>> = Arc::default();
    let (of_handler, its_crashes) = (notes.clone(), Arc::clone(&crashes));
    let tasks = start(&clock, &notes, move |_| {
        for _ in 0..4 {
            thread::yield_now();
            // What a crash at this moment would leave.
            let left = Notes(Arc::new(Mutex::new(of_handler.live())));
            its_crashes.lock().expect("unpoisoned").push(left);
        }
    });
    let setting = [Duration::ZERO, HOUR].map(|delay| {
        let tasks = Arc::clone(&tasks);
        thread::spawn(move || tasks.set(KEY, 1, delay).expect("on disk"))
    });
    for _ in 0..6 {
        tasks.advance(tasks.now(), 8);
        thread::yield_now();
    }
    for thread in setting {
        thread.join().expect("no panic");
    }
    agrees(&tasks, &notes.live());
    for crashed in crashes.lock().expect("unpoisoned").iter() {
        let left = crashed.live();
        let restarted = start(&clock, crashed, |_| ());
        agrees(&restarted, &left[left.len().saturating_sub(1)..]);
    }
}

#[test]
fn the_task_that_was_set_last_is_pending_after_a_crash_at_any_moment() {
    shuttle::check_random(sets_of_one_key_during_its_runs_and_a_crash, RUNS);
    shuttle::check_pct(sets_of_one_key_during_its_runs_and_a_crash, RUNS, PCT_DEPTH);
}

/// Two jobs of one key fail, one in its handler and one by its acknowledgement, while the key is
/// set anew.
fn failures_of_one_key_during_a_set() {
    let (clock, notes) = (ManualClock::new(), Notes::default());
    let held: Arc<Mutex<Vec<Ack>>> = Arc::default();
    let holds = Arc::clone(&held);
    let tasks = start(&clock, &notes, move |run| {
        thread::yield_now();
        if run.value == 1 {
            holds.lock().expect("unpoisoned").push(run.ack());
        }
        Err::<(), _>("planned")
    });
    tasks.set(KEY, 1, Duration::ZERO).expect("on disk");
    clock.advance(Duration::from_millis(1));
    tasks.run_due();
    let ack = held.lock().expect("unpoisoned").pop();
    let dropping = thread::spawn(move || drop(ack));
    let setting = {
        let tasks = Arc::clone(&tasks);
        thread::spawn(move || tasks.set(KEY, 2, HOUR).expect("on disk"))
    };
    tasks.set(KEY + 1, 3, Duration::ZERO).expect("on disk");
    clock.advance(Duration::from_millis(1));
    tasks.run_due();
    dropping.join().expect("no panic");
    let replaced = setting.join().expect("no panic");
    // The set came first, and the failed job waits under its id; or it came second, and has
    // replaced that job.
    let mut live = notes.live();
    live.sort_unstable_by_key(|record| record.id);
    let places: Vec<_> = live
        .iter()
        .map(|record| (record.value, record.status.attempt, record.status.place))
        .collect();
    let other = (3, 2, Place::Keyed);
    match replaced {
        Some(1) => assert_eq!(places.len(), 2),
        _ => assert!(places.contains(&(1, 2, Place::Unkeyed)), "{places:?}"),
    }
    assert!(places.contains(&(2, 1, Place::Keyed)) && places.contains(&other));
    assert_eq!(tasks.len(), live.len());
}

#[test]
fn a_job_that_fails_while_its_key_is_set_is_unkeyed_or_was_replaced() {
    shuttle::check_random(failures_of_one_key_during_a_set, RUNS);
    shuttle::check_pct(failures_of_one_key_during_a_set, RUNS, PCT_DEPTH);
}
