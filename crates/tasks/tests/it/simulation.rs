//! A fleet in virtual time: workers die, sleep, fail and stop, the engine is away now and then.
//! Every task that was not cancelled ends, none runs early, and a task that runs again does so
//! under a higher fence.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_tasks::{
    Due, ManualClock, ManualWorker, MemoryStore, Outcome, Retry, Task, TaskStore, Worker, wait,
};

use crate::common::{MS, Random, engine};

const SEEDS: u64 = 60;
const TASKS: u64 = 60;

/// The known facts of one id.
#[derive(Debug, Default)]
struct Known {
    fence: u64,
    ran: u32,
    /// Cancelled before anybody had claimed it.
    cancelled: bool,
}

type Log = Arc<Mutex<HashMap<String, Known>>>;

struct Fleet {
    clock: ManualClock,
    store: Arc<MemoryStore>,
    workers: Vec<ManualWorker<Arc<MemoryStore>>>,
    log: Log,
    random: Random,
}

impl Fleet {
    fn worker(&mut self) -> ManualWorker<Arc<MemoryStore>> {
        let (log, clock) = (Arc::clone(&self.log), self.clock.clone());
        let random = Mutex::new(Random(self.random.below(u64::MAX)));
        let retry = Retry::default()
            .attempts(u32::MAX)
            .base(MS(50))
            .cap(MS(400));
        let builder = Worker::builder(Arc::clone(&self.store)).retry(retry);
        let builder = builder.lookahead(MS(2000)).lease(MS(1500)).held(20);
        let strict = self.random.one_in(2);
        let worker = builder.strict(strict).manual(&clock.clone(), move |run| {
            let now = tidewheel_tasks::Clock::wall(&clock);
            assert!(now >= run.due().to_system_time(), "early");
            let mut log = log.lock().expect("no panic");
            let known = log.entry(run.id().to_owned()).or_default();
            assert!(!known.cancelled, "{} was cancelled", run.id());
            // The same claim runs once.
            assert!(
                run.fence().0 > known.fence,
                "{} under an old fence",
                run.id()
            );
            known.fence = run.fence().0;
            known.ran += 1;
            match random.lock().expect("no panic").below(5) {
                0 => Outcome::failed("at random"),
                _ => Outcome::Done,
            }
        });
        worker.expect("a worker")
    }

    fn schedule(&mut self, n: u64) {
        let wait_ms = self.random.below(6000);
        let task = Task::new(format!("{n}"), "").after(MS(wait_ms));
        wait(self.store.schedule(task)).expect("scheduled");
        if self.random.one_in(8) {
            // Nobody can have claimed it: no turn was made since.
            assert_eq!(wait(self.store.cancel(&format!("{n}"))), Ok(true));
            let mut log = self.log.lock().expect("no panic");
            log.entry(format!("{n}")).or_default().cancelled = true;
        }
    }

    fn step(&mut self) {
        let at = self.random.below(self.workers.len() as u64) as usize;
        match self.random.below(40) {
            // It dies, and another one starts.
            0 => self.workers[at] = self.worker(),
            1 => {
                self.workers[at].stop();
                self.workers[at] = self.worker();
            }
            2 => self.store.set_down(true),
            3..6 => self.store.set_down(false),
            6 => {
                let id = format!("{}", self.random.below(TASKS));
                let _ = wait(self.store.reschedule(&id, Due::After(MS(300))));
            }
            // The others sleep meanwhile.
            _ => self.workers[at].turn(),
        }
        self.clock.advance(MS(self.random.below(30)));
    }
}

fn simulate(seed: u64) {
    let (clock, store) = engine();
    let mut fleet = Fleet {
        clock,
        store,
        workers: Vec::new(),
        log: Log::default(),
        random: Random(seed),
    };
    for _ in 0..3 {
        let worker = fleet.worker();
        fleet.workers.push(worker);
    }
    for n in 0..TASKS {
        fleet.store.set_down(false);
        fleet.schedule(n);
        fleet.step();
    }
    for _ in 0..600 {
        fleet.step();
    }
    fleet.store.set_down(false);
    let mut turns = 0;
    while !fleet.store.is_empty() {
        fleet.workers.iter().for_each(ManualWorker::turn);
        fleet.clock.advance(Duration::from_millis(20));
        turns += 1;
        assert!(turns < 5000, "tasks are left: {:?}", fleet.store);
    }
    let log = fleet.log.lock().expect("no panic");
    for n in 0..TASKS {
        let known = &log[&format!("{n}")];
        assert!(known.cancelled || known.ran > 0, "{n} never ran");
    }
}

#[test]
fn a_fleet_that_fails_in_every_way_loses_nothing_and_runs_nothing_early() {
    for seed in 0..SEEDS {
        let result = std::panic::catch_unwind(|| simulate(seed));
        assert!(result.is_ok(), "seed {seed}");
    }
}
