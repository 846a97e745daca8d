//! A store in a simulated world. A seed decides what is called. The disk tears and reorders writes,
//! and the power fails at any point. Then the next process, called the next *life*, starts with the
//! contents of the disk.
//!
//! Beside the store, a *reference* over a disk without faults gets the same calls. After a crash
//! the store must have what the reference had before one of the calls that nobody had answered, or
//! after the last of them: everything that was answered is there, each call wholly or not at all,
//! and in their order.
//!
//! A failure prints the setting that replays it: `TIDEWHEEL_SIM=seed:crash`, 0 for any crash.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tidewheel_tasks::{
    Ask, CatchUp, Claim, DeadLetter, Due, Failure, FileStore, Look, ManualClock, Priority, State,
    StoreError, Task, TaskStore, wait,
};

use crate::common::{EPOCH, MS, Random};
use crate::disk::Disk;

const IDS: u64 = 6;
const QUEUE: &str = "mails";
/// Calls of one life, unless the power fails before.
const CALLS: u64 = 40;
const LIVES: u64 = 4;
/// Calls that wait for the disk at the same time.
const TOGETHER: u64 = 4;

/// What a store has, without its leases: these end with the process.
type Contents = (Vec<Look>, Vec<DeadLetter>, Vec<String>);

fn contents(store: &FileStore) -> Contents {
    let list = |state| wait(store.list(state, None, None, usize::MAX)).expect("listed");
    let mut tasks = [list(State::Pending), list(State::Claimed)].concat();
    tasks.sort_by(|a, b| a.id.cmp(&b.id));
    tasks
        .iter_mut()
        .for_each(|look| look.state = State::Pending);
    let letters = wait(store.dead_letters(usize::MAX)).expect("listed");
    (tasks, letters, wait(store.paused()).expect("listed"))
}

/// A call, drawn before it is made: the store and its reference get the same.
#[derive(Debug, Clone)]
enum Call {
    Schedule(Task),
    ScheduleMany(Vec<Task>),
    Ensure(Task),
    Cancel(String),
    Reschedule(String, Due),
    Claim(usize),
    Done(Vec<Arc<Claim>>),
    Fail(Arc<Claim>, Failure),
    Release(Vec<Arc<Claim>>),
    Requeue(String, Due),
    RemoveDead(String),
    Pause,
    Resume,
}

impl Call {
    /// Makes the call; returns what was claimed.
    fn make(&self, store: &FileStore) -> Result<Vec<Claim>, StoreError> {
        match self.make_once(store) {
            // That is an answer, too.
            Err(StoreError::Duplicate) => Ok(Vec::new()),
            made => made,
        }
    }

    fn make_once(&self, store: &FileStore) -> Result<Vec<Claim>, StoreError> {
        let mut claims = Vec::new();
        match self.clone() {
            Self::Schedule(task) => drop(wait(store.schedule(task))?),
            Self::ScheduleMany(tasks) => drop(wait(store.schedule_many(tasks))?),
            Self::Ensure(task) => drop(wait(store.ensure(task))?),
            Self::Cancel(id) => drop(wait(store.cancel(&id))?),
            Self::Reschedule(id, due) => drop(wait(store.reschedule(&id, due))?),
            Self::Claim(most) => {
                let ask = Ask::new("w", MS(50), MS(300), most);
                claims = wait(store.claim(ask))?;
            }
            Self::Done(claims) => drop(wait(store.done(&claims))?),
            Self::Fail(claim, failure) => drop(wait(store.fail(&claim, failure))?),
            Self::Release(claims) => drop(wait(store.release(&claims))?),
            Self::Requeue(id, due) => drop(wait(store.requeue(&id, due))?),
            Self::RemoveDead(id) => drop(wait(store.remove_dead(&id))?),
            Self::Pause => wait(store.pause(QUEUE))?,
            Self::Resume => wait(store.resume(QUEUE))?,
        }
        Ok(claims)
    }
}

/// What there is after a call.
#[derive(Debug)]
struct Moment {
    contents: Contents,
    records: BTreeSet<(Arc<str>, Vec<u8>)>,
    appended: u64,
}

struct World {
    random: Random,
    clock: ManualClock,
    disk: Disk,
    /// The disk of the reference.
    right: Disk,
    claims: Vec<Arc<Claim>>,
    /// Crashes after which a call was there that nobody had answered, and after which one was not.
    kept: u64,
    undone: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let clock = ManualClock::new();
        clock.set_wall(EPOCH);
        Self {
            random: Random(seed),
            clock,
            disk: Disk::default(),
            right: Disk::default(),
            claims: Vec::new(),
            kept: 0,
            undone: 0,
        }
    }

    fn open(&self, disk: &Disk) -> FileStore {
        FileStore::over(disk.clone(), self.clock.clone()).expect("it opens")
    }

    fn id(&mut self) -> String {
        format!("{}", self.random.below(IDS))
    }

    fn due(&mut self) -> Due {
        Due::After(MS(self.random.below(400)))
    }

    fn task(&mut self) -> Task {
        let payload = vec![7; self.random.below(40) as usize];
        let mut task = Task::new(self.id(), payload);
        task.due = self.due();
        task.priority = Priority::of_level(self.random.below(3) as u8);
        if self.random.one_in(3) {
            task = task.queue(QUEUE);
        }
        match self.random.one_in(3) {
            true => {
                let burst = CatchUp::Burst(self.random.below(3) as u32);
                let catch_up = [CatchUp::Skip, burst, CatchUp::Delay];
                let task = task.every(MS(1 + self.random.below(3) * 100));
                task.catch_up(catch_up[self.random.below(3) as usize])
            }
            false => task,
        }
    }

    /// Some of the claims, which may be over by now.
    fn some_claims(&mut self) -> Vec<Arc<Claim>> {
        let count = (1 + self.random.below(3) as usize).min(self.claims.len());
        let from = self.random.below((self.claims.len() - count + 1) as u64) as usize;
        self.claims[from..from + count].to_vec()
    }

    fn call(&mut self) -> Call {
        let has_claims = !self.claims.is_empty();
        match self.random.below(18) {
            0..2 => Call::Schedule(self.task()),
            2 => {
                let time = MS(1 + self.random.below(2000));
                Call::Schedule(self.task().unique_for(time))
            }
            3 => Call::ScheduleMany((0..3).map(|_| self.task()).collect()),
            4 => Call::Ensure(self.task()),
            5 => Call::Cancel(self.id()),
            6 => Call::Reschedule(self.id(), self.due()),
            7..10 if has_claims => Call::Done(self.some_claims()),
            10..12 if has_claims => {
                let failure = match self.random.one_in(2) {
                    true => Failure::dead("gone: ä"),
                    false => Failure::retry(self.due(), "busy"),
                };
                Call::Fail(self.some_claims().remove(0), failure)
            }
            12 if has_claims => Call::Release(self.some_claims()),
            13 => Call::Requeue(self.id(), self.due()),
            14 => Call::RemoveDead(self.id()),
            15 if self.random.one_in(3) => Call::Pause,
            15 => Call::Resume,
            _ => Call::Claim(1 + self.random.below(4) as usize),
        }
    }

    /// One life: calls one by one, and some that wait for the disk together. It may be cut off.
    /// Returns whether it was.
    fn live(&mut self, together: bool) -> bool {
        let (store, reference) = (self.open(&self.disk), self.open(&self.right));
        assert_eq!(contents(&store), contents(&reference), "at the start");
        self.claims.clear();
        let mut states = vec![self.state(&reference)];
        for _ in 0..CALLS {
            self.clock.advance(MS(self.random.below(60)));
            let count = if together && self.random.one_in(3) {
                TOGETHER
            } else {
                1
            };
            let calls: Vec<Call> = (0..count).map(|_| self.call()).collect();
            // Nobody knows the end of a call that is cut off: each of these may have happened.
            let mut claims = Vec::new();
            for call in &calls {
                claims.extend(call.make(&reference).expect("no faults"));
                states.push(self.state(&reference));
            }
            let answered = self.make(&store, &calls);
            let is_over = !self.disk.has_power();
            assert!(is_over || answered.is_ok(), "{answered:?}");
            if is_over {
                drop((store, reference));
                self.die(&states);
                return true;
            }
            let answered = answered.expect("answered");
            assert_eq!(answered, claims, "{calls:?}");
            self.claims.extend(claims.into_iter().map(Arc::new));
            states.drain(..states.len() - 1);
            assert_eq!(contents(&store), states[0].contents, "{calls:?}");
            assert_eq!(self.disk.records(), states[0].records, "{calls:?}");
        }
        false
    }

    fn state(&self, reference: &FileStore) -> Moment {
        Moment {
            contents: contents(reference),
            records: self.right.records(),
            appended: self.right.appended(),
        }
    }

    /// Makes the calls: in their order, but each before the one before it is on disk.
    fn make(&mut self, store: &FileStore, calls: &[Call]) -> Result<Vec<Claim>, StoreError> {
        if let [call] = calls {
            return call.make(store);
        }
        self.disk.set_slow(true);
        let fails = self.random.one_in(2);
        let answers: Vec<_> = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for call in calls {
                let before = self.disk.appended();
                let thread = scope.spawn(|| call.make(store));
                // It waits for the disk, or has nothing to write.
                while self.disk.appended() == before && !thread.is_finished() {
                    std::thread::yield_now();
                }
                threads.push(thread);
            }
            if fails {
                self.disk.lose_power(&mut self.random);
            }
            self.disk.set_slow(false);
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.map(|answer| answer.expect("no panic")).collect()
        });
        let claims: Result<Vec<_>, _> = answers.into_iter().collect();
        Ok(claims?.into_iter().flatten().collect())
    }

    /// The power has failed in one of the calls after the first of these states.
    fn die(&mut self, states: &[Moment]) {
        self.disk.lose_power(&mut self.random);
        let (store, records) = (self.open(&self.disk), self.disk.records());
        let at = states.iter().rposition(|state| state.records == records);
        let at = at.unwrap_or_else(|| panic!("{records:#?}\nis none of\n{states:#?}"));
        assert_eq!(contents(&store), states[at].contents);
        drop(store);
        match at {
            0 => self.undone += 1,
            _ => self.kept += 1,
        }
        let appended = states.last().map_or(0, |state| state.appended);
        self.right.forget((appended - states[at].appended) as usize);
        drop(self.open(&self.right));
    }
}

/// Runs a world to its end; returns how often a call that was cut off had happened, and had not.
fn run(seed: u64, crash_at: Option<u64>, together: bool) -> (u64, u64, u64) {
    let mut world = World::new(seed);
    for life in 0..LIVES {
        match crash_at {
            Some(at) if life == 0 => world.disk.fail_after(at),
            None if life + 1 < LIVES => {
                let at = 1 + world.random.below(6 * CALLS);
                world.disk.fail_after(at);
            }
            _ => {}
        }
        world.live(together);
    }
    (world.disk.points(), world.kept, world.undone)
}

fn checked(seed: u64, crash_at: Option<u64>, together: bool) -> (u64, u64, u64) {
    let ran = std::panic::catch_unwind(|| run(seed, crash_at, together));
    let crash = crash_at.unwrap_or(0);
    ran.unwrap_or_else(|_| panic!("to replay it: TIDEWHEEL_SIM={seed}:{crash}"))
}

fn is_deep() -> bool {
    std::env::var_os("TIDEWHEEL_DEEP").is_some()
}

/// The run that the environment asks to replay.
fn replays() -> bool {
    let Ok(text) = std::env::var("TIDEWHEEL_SIM") else {
        return false;
    };
    let (seed, crash) = text.split_once(':').unwrap_or((&text, "0"));
    let crash: u64 = crash.parse().expect("a number");
    let crash = (crash > 0).then_some(crash);
    run(seed.parse().expect("a number"), crash, crash.is_none());
    true
}

#[test]
fn a_crash_at_every_point_loses_nothing_that_was_answered() {
    if replays() {
        return;
    }
    let seeds = if is_deep() { 8 } else { 1 };
    for seed in 0..seeds {
        let (points, ..) = checked(seed, Some(u64::MAX), false);
        assert!(points > 100, "too little happens");
        let one_life = points / LIVES;
        let runs = (1..=one_life).map(|point| checked(seed, Some(point), false));
        let (kept, undone) = runs.fold((0, 0), |all, (_, kept, undone)| {
            (all.0 + kept, all.1 + undone)
        });
        println!("seed {seed}: {one_life} crashes, {kept} calls kept, {undone} undone");
        assert!(kept > 10 && undone > 10);
    }
}

#[test]
fn crashes_at_random_lose_nothing_that_was_answered() {
    if replays() {
        return;
    }
    let seeds = if is_deep() { 2_000 } else { 300 };
    let runs = (1_000..1_000 + seeds).map(|seed| checked(seed, None, true));
    let (kept, undone) = runs.fold((0, 0), |all, (_, kept, undone)| {
        (all.0 + kept, all.1 + undone)
    });
    println!("{seeds} seeds: {kept} calls kept, {undone} undone");
    assert!(kept > seeds / 4 && undone > seeds / 4);
}

/// Long enough that a lease ends.
#[test]
fn a_task_that_a_dead_process_had_claimed_is_claimable_at_once() {
    let mut world = World::new(7);
    let store = world.open(&world.disk);
    wait(store.schedule(Task::new("a", ""))).expect("kept");
    let ask = || Ask::new("w", Duration::ZERO, Duration::from_secs(60), 9);
    let before = wait(store.claim(ask())).expect("claimed").remove(0);
    world.disk.lose_power(&mut world.random);
    drop(store);
    let store = world.open(&world.disk);
    let after = wait(store.claim(ask())).expect("claimed").remove(0);
    assert!(after.fence > before.fence);
    assert_eq!((after.attempt, after.due), (before.attempt, before.due));
}
