//! Helpers that several tests use.

#[cfg(any(feature = "nats", feature = "postgres"))]
pub(crate) mod proxy;
pub(crate) mod watched;

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tidewheel_engines::eventually;
use tidewheel_tasks::{Ask, ManualClock, MemoryStore, Rate, Task, TaskStore, Worker, wait};

/// A worker's store falls silent, and what another one schedules meanwhile runs soon after.
#[cfg(any(feature = "nats", feature = "postgres"))]
pub(crate) fn goes_on_after_silence(
    store: impl TaskStore + Clone,
    direct: &impl TaskStore,
    proxy: &proxy::Proxy,
) {
    use tidewheel_tasks::{Clock, SystemClock};
    let clock = SystemClock::new();
    let (told, runs) = mpsc::channel();
    let worker = Worker::builder(store.clone()).threads(2);
    let worker = worker.start(move |run| {
        let _ = told.send(run.id().to_owned());
    });
    let worker = worker.expect("a worker");
    wait(direct.schedule(Task::new("before", ""))).expect("scheduled");
    assert_eq!(runs.recv().as_deref(), Ok("before"));
    proxy.silence();
    wait(direct.schedule(Task::new("after", ""))).expect("scheduled");
    let begun = clock.now();
    let own = wait(store.schedule(Task::new("own", "").after(Duration::from_secs(600))));
    assert!(clock.now() - begun < Duration::from_secs(15), "{own:?}");
    let after = runs.recv_timeout(Duration::from_secs(25));
    assert_eq!(after.as_deref(), Ok("after"));
    let stopped = worker.stop(Duration::from_secs(5));
    assert_eq!(stopped.left, 0);
}

/// Ten tasks were due, and one worker kept those that it had no thread for, while another one had
/// nothing to do.
pub(crate) fn shares_what_is_due<S: TaskStore + Clone>(stores: &[S; 2]) {
    let (open, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let worker = |store: &S| {
        let gate = Arc::clone(&gate);
        let worker = Worker::builder(store.clone()).threads(2);
        let worker = worker.start(move |_| {
            let _ = gate.lock().map(|gate| gate.recv());
        });
        worker.expect("a worker")
    };
    let tasks = (0..10).map(|n| Task::new(format!("{n}"), ""));
    wait(stores[0].schedule_many(tasks.collect())).expect("scheduled");
    let busy = worker(&stores[0]);
    eventually("it has begun two", || {
        (busy.stats().running == 2).then_some(())
    });
    let idle = worker(&stores[1]);
    eventually("the other has begun two", || {
        (idle.stats().running == 2).then_some(())
    });
    eventually("both have given back the others", || {
        (busy.stats().held + idle.stats().held == 4).then_some(())
    });
    drop(open);
    eventually("all have ended", || {
        (busy.stats().done + idle.stats().done == 10).then_some(())
    });
    let (busy, idle) = (busy.stop(MS(2000)), idle.stop(MS(2000)));
    assert_eq!((busy.left, idle.left), (0, 0));
}

/// Sixty change a queue's rules at the same time, and none gives up.
#[cfg(any(feature = "nats", feature = "postgres"))]
pub(crate) fn changes_one_queue(store: &impl TaskStore) {
    const CHANGES: usize = 60;
    let barrier = std::sync::Barrier::new(CHANGES);
    std::thread::scope(|scope| {
        for n in 0..CHANGES {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                let rate = Rate::new(1 + n as u32, MS(1000));
                let changed = match n % 2 {
                    0 => wait(store.pause("mails")),
                    _ => wait(store.limit("mails", Some(rate))),
                };
                assert_eq!(changed, Ok(()), "{n}");
            });
        }
    });
    let rules = wait(store.queue_rules()).expect("rules");
    assert!(rules["mails"].paused && rules["mails"].limit.is_some());
}

/// Two that claim at the same time, by connections of their own, claim no more than a queue's
/// limit.
pub(crate) fn shares_a_limit<S: TaskStore>(stores: &[S; 2]) {
    const TASKS: usize = 30;
    let rate = Rate::new(4, MS(300));
    assert_eq!(wait(stores[0].limit("mails", Some(rate))), Ok(()));
    let task = |n| Task::new(format!("{n}"), "").queue("mails").after(MS(500));
    let tasks = (0..TASKS).map(task);
    wait(stores[0].schedule_many(tasks.collect())).expect("scheduled");
    // Another process learns of the limit.
    eventually("both know the limit", || {
        let rules = wait(stores[1].queue_rules()).ok()?;
        rules.contains_key("mails").then_some(())
    });
    let slots = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for store in stores {
            let slots = &slots;
            scope.spawn(move || {
                eventually("all are claimed", || {
                    let ask = Ask::new("w", MS(1000), Duration::from_secs(60), 10);
                    let claims = wait(store.claim(ask)).unwrap_or_default();
                    let claims: Vec<_> = claims.into_iter().map(Arc::new).collect();
                    let mut slots = slots.lock().expect("no panic");
                    slots.extend(claims.iter().map(|claim| claim.due.0 / 300_000));
                    (slots.len() == TASKS).then_some(())
                });
            });
        }
    });
    let slots = slots.into_inner().expect("no panic");
    for slot in &slots {
        let times = slots.iter().filter(|other| *other == slot).count();
        assert!(times <= 4, "{slots:?}");
    }
}

pub(crate) const MS: fn(u64) -> Duration = Duration::from_millis;

/// The wall time at which virtual engines begin.
pub(crate) const EPOCH: Duration = Duration::from_secs(1_700_000_000);

/// A clock that is moved by hand, and an engine by its wall time.
pub(crate) fn engine() -> (ManualClock, Arc<MemoryStore>) {
    let clock = ManualClock::new();
    clock.set_wall(EPOCH);
    let store = MemoryStore::with_clock(clock.clone());
    (clock, Arc::new(store))
}

/// Random numbers of a seed.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % end
    }

    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
