//! Bulk loads and async closures of a few keys, polled and dropped in a random order, against a
//! model.
//!
//! Everything runs on one thread, so the model knows the order: a change happens in the poll that
//! reports it. In the end only those futures are polled that were woken: a wake-up that was lost
//! leaves one pending.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::Poll;

use tidewheel::{Cache, Compute, ManualClock};

use crate::loading::manual;
use crate::manual_poll::{Alarm, poll};
use crate::support::{is_deep, mixed};

const KEYS: u64 = 4;
const SEEDS: u64 = 200;
const SEEDS_DEEP: u64 = 5_000;
const STEPS: u64 = 60;

/// Values that loaders return are above this, and tell which call returned them.
const LOADED: u64 = 1_000_000;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mixed(self.0) % bound
    }
}

/// The controls of a future, as its loader or closure sees them.
#[derive(Default)]
struct Gate {
    /// True if it may go on.
    open: Cell<bool>,
    /// The keys for which its loader or closure runs.
    inside: RefCell<Vec<u64>>,
    /// Those of them that no writer has overtaken.
    counts_for: RefCell<Vec<u64>>,
}

impl Gate {
    fn enter(&self, keys: Vec<u64>) {
        self.inside.replace(keys.clone());
        self.counts_for.replace(keys);
    }

    fn leave(&self) {
        self.enter(Vec::new());
    }
}

enum Done {
    Loaded(Vec<(u64, Option<u64>)>),
    /// The key, and the value of which it said that it is there.
    Changed(u64, Option<u64>),
}

struct Task<'a> {
    future: Pin<Box<dyn Future<Output = Done> + 'a>>,
    alarm: Arc<Alarm>,
    woken: usize,
    gate: Rc<Gate>,
}

struct World<'a> {
    cache: &'a Cache<u64, u64>,
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

    fn change(&mut self, key: u64) {
        let cache = self.cache;
        let gate = Rc::new(Gate::default());
        let own = Rc::clone(&gate);
        let future = async move {
            let change = async |old| {
                own.enter(vec![key]);
                opened(&own).await;
                add(old)
            };
            Done::Changed(key, cache.entry(key).compute_async(change).await)
        };
        self.spawn(Box::pin(future), gate);
    }

    /// Polls a future, and checks what that has changed.
    fn poll(&mut self, at: usize) {
        let task = &mut self.tasks[at];
        task.woken = task.alarm.woken.load(SeqCst);
        let done = match poll(task.future.as_mut(), &task.alarm) {
            Poll::Pending => None,
            Poll::Ready(done) => {
                self.tasks.swap_remove(at);
                Some(done)
            }
        };
        match done {
            Some(Done::Changed(key, now)) => {
                let expected = match add(self.model[key as usize]) {
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
            None => {}
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

    fn write(&mut self, key: u64, value: Option<u64>) {
        match value {
            Some(value) => self.cache.insert(key, value),
            None => _ = self.cache.remove(&key),
        }
        self.model[key as usize] = value;
        for task in &self.tasks {
            task.gate
                .counts_for
                .borrow_mut()
                .retain(|counts| *counts != key);
        }
        self.compare();
    }

    fn step(&mut self, random: &mut Random) {
        let (key, other) = (random.below(KEYS), random.below(KEYS));
        let task = random.below(self.tasks.len().max(1) as u64) as usize;
        match random.below(12) {
            0 | 1 => self.load(vec![key, other, random.below(KEYS)]),
            2 | 3 => self.change(key),
            4 => self.write(key, Some(10 * random.below(10))),
            5 => self.write(key, None),
            6 if task < self.tasks.len() => {
                self.tasks.swap_remove(task);
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
        let cache = manual(&ManualClock::new()).build().expect("valid");
        let mut random = Random(mixed(seed));
        let mut world = World {
            cache: &cache,
            model: [None; KEYS as usize],
            tasks: Vec::new(),
            calls: Rc::new(Cell::new(0)),
        };
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
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
