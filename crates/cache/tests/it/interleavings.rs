//! Loads, bulk loads and async closures of a few keys, polled and dropped in a random order,
//! against a model.
//!
//! Everything runs on one thread, so the model knows the order: a change happens in the poll that
//! reports it. In the end only those futures are polled that were woken: a wake-up that was lost
//! leaves one pending.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::Poll;

use tidewheel::{Cache, Compute, ManualClock, Outcome};

use crate::loading::{Failure, MS, Valid, manual};
use crate::manual_poll::{Alarm, poll};
use crate::support::{Random, is_deep, mixed};

const KEYS: u64 = 4;
const SEEDS: u64 = 200;
const SEEDS_DEEP: u64 = 5_000;
const STEPS: u64 = 60;

/// Values that loaders return are above this, and tell which call returned them.
const LOADED: u64 = 1_000_000;

/// The controls of a future, as its loader or closure sees them.
#[derive(Default)]
struct Gate {
    /// True if it may go on.
    open: Cell<bool>,
    /// True if its loader has begun.
    ran: Cell<bool>,
    /// True if it has not ended at once.
    waited: Cell<bool>,
    /// The keys for which its loader or closure runs.
    inside: RefCell<Vec<u64>>,
    /// Those of them that no writer has overtaken.
    counts_for: RefCell<Vec<u64>>,
}

impl Gate {
    fn enter(&self, keys: Vec<u64>) {
        self.ran.set(true);
        self.inside.replace(keys.clone());
        self.counts_for.replace(keys);
    }

    /// How a load ends that is answered.
    fn outcome(&self) -> Outcome {
        match (self.ran.get(), self.waited.get()) {
            (true, _) => Outcome::Loaded,
            (false, true) => Outcome::Joined,
            (false, false) => Outcome::Hit,
        }
    }

    fn leave(&self) {
        self.enter(Vec::new());
    }
}

enum Done {
    Loaded(Vec<(u64, Option<u64>)>),
    /// A loader has failed: this one, or that of another caller.
    Failed,
    /// The loader or closure has panicked.
    Panicked,
    Changed {
        key: u64,
        /// The value of which it said that it is there.
        now: Option<u64>,
        /// True if the closure wanted to change nothing.
        kept: bool,
    },
}

/// What a loader says.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Says {
    Value,
    Error,
    Panic,
}

struct Task<'a> {
    future: Pin<Box<dyn Future<Output = Done> + 'a>>,
    alarm: Arc<Alarm>,
    woken: usize,
    gate: Rc<Gate>,
}

struct World<'a> {
    cache: &'a Cache<u64, u64>,
    clock: ManualClock,
    /// The value that is stored for each key.
    model: [Option<u64>; KEYS as usize],
    tasks: Vec<Task<'a>>,
    calls: Rc<Cell<u64>>,
}

async fn opened(gate: &Gate) {
    std::future::poll_fn(|_| match gate.open.get() {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
    gate.leave();
}

fn add(old: Option<u64>) -> Compute<u64> {
    match old {
        Some(old) if old % 7 == 6 => Compute::Remove,
        Some(old) if old % 7 == 5 => Compute::Keep,
        Some(old) => Compute::Update(old + 1),
        None => Compute::Put(1.into()),
    }
}

impl<'a> World<'a> {
    fn spawn(&mut self, future: Pin<Box<dyn Future<Output = Done> + 'a>>, gate: Rc<Gate>) {
        let alarm = Alarm::new();
        self.tasks.push(Task {
            future,
            alarm,
            woken: 0,
            gate,
        });
        self.poll(self.tasks.len() - 1);
    }

    fn load(&mut self, keys: Vec<u64>) {
        let (cache, calls) = (self.cache, Rc::clone(&self.calls));
        let gate = Rc::new(Gate::default());
        let own = Rc::clone(&gate);
        let future = async move {
            let load = async |missing: Vec<u64>| {
                let call = LOADED + calls.replace(calls.get() + 1);
                own.enter(missing.clone());
                opened(&own).await;
                // Key 3 is never found.
                missing
                    .into_iter()
                    .filter(|key| *key != 3)
                    .map(move |key| (key, call))
            };
            let answers = cache.get_or_load_many_async(&keys, load).await;
            Done::Loaded(keys.into_iter().zip(answers).collect())
        };
        self.spawn(Box::pin(future), gate);
    }

    /// One key, whose loader may fail or panic.
    fn load_one(&mut self, key: u64, says: Says) {
        let (cache, calls) = (self.cache, Rc::clone(&self.calls));
        let gate = Rc::new(Gate::default());
        let (own, asks) = (Rc::clone(&gate), Rc::clone(&gate));
        let future = async move {
            let load = async {
                let call = LOADED + calls.replace(calls.get() + 1);
                own.enter(vec![key]);
                opened(&own).await;
                match says {
                    Says::Value => Ok(call),
                    Says::Error => Err(Failure(1)),
                    Says::Panic => std::panic::resume_unwind(Box::new("meant")),
                }
            };
            let fetched = cache.fetch(key).try_load_async(load).await;
            assert_eq!(fetched.outcome, asks.outcome());
            let own_error = says == Says::Error && asks.ran.get();
            match fetched.value {
                Err(_) if own_error || asks.waited.get() => Done::Failed,
                value if own_error => panic!("{value:?} is no answer of its own"),
                value => Done::Loaded(vec![(key, value.ok())]),
            }
        };
        self.spawn(Box::pin(future), gate);
    }

    fn change(&mut self, key: u64, panics: bool) {
        let cache = self.cache;
        let gate = Rc::new(Gate::default());
        let own = Rc::clone(&gate);
        let future = async move {
            let kept = Cell::new(false);
            let change = async |old| {
                assert!(!kept.get(), "after that nothing runs again");
                own.enter(vec![key]);
                opened(&own).await;
                if panics {
                    std::panic::resume_unwind(Box::new("meant"));
                }
                let wanted = add(old);
                kept.set(wanted == Compute::Keep);
                wanted
            };
            let now = cache.entry(key).compute_async(change).await;
            let kept = kept.get();
            Done::Changed { key, now, kept }
        };
        self.spawn(Box::pin(future), gate);
    }

    /// Polls a future, and checks what that has changed.
    fn poll(&mut self, at: usize) {
        let task = &mut self.tasks[at];
        task.woken = task.alarm.woken.load(SeqCst);
        let (future, alarm) = (task.future.as_mut(), &task.alarm);
        let polled = catch_unwind(AssertUnwindSafe(|| poll(future, alarm)));
        let done = match polled.unwrap_or(Poll::Ready(Done::Panicked)) {
            Poll::Pending => {
                task.gate.waited.set(true);
                None
            }
            Poll::Ready(done) => {
                self.forget(at);
                Some(done)
            }
        };
        match done {
            Some(Done::Changed { key, now, kept }) => {
                let there = self.model[key as usize];
                let expected = match add(there) {
                    _ if kept => there,
                    Compute::Update(new) => Some(new),
                    Compute::Put(new) => Some(new.value),
                    _ => None,
                };
                assert_eq!(now, expected, "of key {key}");
                self.model[key as usize] = now;
            }
            Some(Done::Loaded(answers)) => {
                for (key, answer) in answers {
                    assert!(answer.is_some() || key == 3, "key {key} was loaded");
                }
            }
            Some(Done::Failed | Done::Panicked) | None => {}
        }
        self.compare();
    }

    /// Only a load stores what the model does not know, and only where there was nothing.
    fn compare(&mut self) {
        for key in 0..KEYS {
            let (now, known) = (self.cache.peek(&key), &mut self.model[key as usize]);
            if now != *known {
                assert_eq!(*known, None, "{now:?} of key {key} was not to be stored");
                assert!(now.is_some_and(|now| now >= LOADED), "{now:?} of key {key}");
                *known = now;
            }
            let counts = |task: &&Task<'_>| task.gate.counts_for.borrow().contains(&key);
            let running = self.tasks.iter().filter(counts).count();
            assert!(
                running <= 1,
                "{running} loaders or closures for key {key} at once"
            );
        }
        self.cache.validate();
    }

    /// Drops a future, which leaves no waker behind.
    fn forget(&mut self, at: usize) {
        let Task { future, alarm, .. } = self.tasks.swap_remove(at);
        drop(future);
        assert_eq!(Arc::strong_count(&alarm), 1, "a waker has leaked");
    }

    /// Another writer, which waits for nobody; `how` says which.
    fn write(&mut self, key: u64, how: u64) {
        let (cache, there) = (self.cache, self.model[key as usize]);
        let value = match how {
            0..4 => {
                cache.insert(key, 10 * how);
                Some(10 * how)
            }
            4 => {
                assert_eq!(cache.remove(&key), there);
                None
            }
            5 => {
                let updated = cache.update(&key, |old| old + 10);
                assert_eq!(updated, there.map(|there| there + 10));
                updated
            }
            6 => cache.entry(key).compute(|_| Compute::Put(70.into())),
            7 => {
                let removed = cache.invalidate_if(|stored, _| *stored == key);
                assert_eq!(removed, u64::from(there.is_some()));
                None
            }
            8 => {
                cache.invalidate_all();
                None
            }
            _ => {
                self.clock.advance(100 * MS);
                None
            }
        };
        let is_for_all = how >= 8;
        // What changes nothing supersedes nothing; nor does time.
        let is_write = how < 9 && !(there.is_none() && matches!(how, 5 | 7));
        for other in (0..KEYS).filter(|other| *other == key || is_for_all) {
            self.model[other as usize] = value;
            for task in self.tasks.iter().filter(|_| is_write) {
                let mut counts_for = task.gate.counts_for.borrow_mut();
                counts_for.retain(|counts| *counts != other);
            }
        }
        self.compare();
    }

    fn step(&mut self, random: &mut Random) {
        let (key, other) = (random.below(KEYS), random.below(KEYS));
        let task = random.below(self.tasks.len().max(1) as u64) as usize;
        match random.below(13) {
            0 => self.load(vec![key, other, random.below(KEYS)]),
            1 => self.load_one(key, Says::Value),
            2 if random.below(2) == 0 => self.load_one(key, Says::Error),
            2 => self.load_one(key, Says::Panic),
            3 => self.change(key, random.below(8) == 0),
            4 | 5 => self.write(key, random.below(10)),
            6 if task < self.tasks.len() => {
                self.forget(task);
                self.compare();
            }
            7 | 8 if task < self.tasks.len() => {
                self.tasks[task].gate.open.set(true);
                self.poll(task);
            }
            _ if task < self.tasks.len() => self.poll(task),
            _ => {}
        }
    }

    /// Opens every gate. Nobody may need more than the wake-ups that it gets.
    fn finish(&mut self) {
        for task in &self.tasks {
            task.gate.open.set(true);
        }
        while let Some(at) = self.tasks.iter().position(|task| {
            let woken = task.alarm.woken.load(SeqCst) != task.woken;
            woken || !task.gate.inside.borrow().is_empty()
        }) {
            self.poll(at);
        }
        assert!(self.tasks.is_empty(), "{} wait for ever", self.tasks.len());
    }
}

#[test]
fn every_order_of_polls_drops_and_writes_agrees_with_the_model() {
    let seeds = if is_deep() { SEEDS_DEEP } else { SEEDS };
    for seed in 0..seeds {
        let clock = ManualClock::new();
        let cache = manual(&clock).valid();
        let mut random = Random(mixed(seed));
        let mut world = World {
            cache: &cache,
            clock,
            model: [None; KEYS as usize],
            tasks: Vec::new(),
            calls: Rc::new(Cell::new(0)),
        };
        let run = catch_unwind(AssertUnwindSafe(|| {
            for _ in 0..STEPS {
                world.step(&mut random);
            }
            world.finish();
        }));
        if let Err(panic) = run {
            println!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
