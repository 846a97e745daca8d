//! One life of the process: threads that set, move and remove, one that drives, and how it ends.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;
use std::time::Duration;

use tidewheel_scheduler::{Clock, Durable, DurableHandle, DurableRun, Error, Progress, Scheduler};

use super::baton::{Baton, yield_now};
use super::key::Key;
use super::world::{KEYS, World};

type Hasher = foldhash::quality::FixedState;
type Tasks = Durable<Key, u64, World, Hasher>;
type Handle = DurableHandle<Key, u64, World, Hasher>;

const CLIENTS: usize = 2;
const CALLS: usize = 5;
const TURNS: usize = 8;
const MS: Duration = Duration::from_millis(1);
/// Farther than any task.
const FAR: Duration = Duration::from_secs(4 * 3600);

/// What a handler panics with; no message is printed.
struct Planned;

pub(crate) struct Life<'a> {
    world: &'a World,
    seed: u64,
}

impl<'a> Life<'a> {
    pub(crate) fn new(world: &'a World, seed: u64) -> Self {
        Self { world, seed }
    }

    /// Starts, does this and that on several threads, and stops, or is dropped.
    pub(crate) fn live(&self) {
        let Some(tasks) = self.start() else { return };
        let baton = Baton::new(CLIENTS + 1, self.seed);
        thread::scope(|scope| {
            for me in 0..CLIENTS {
                let (baton, tasks) = (&baton, &tasks);
                scope.spawn(move || baton.play(me, || self.guarded(|| self.use_it(tasks))));
            }
            baton.play(CLIENTS, || self.guarded(|| self.drive(&tasks)));
        });
        self.catch_up(&tasks);
        self.agrees(&tasks);
        if self.world.below(2) == 0 {
            self.stop(&tasks);
        }
    }

    /// A life without faults, until nothing is pending.
    pub(crate) fn outlive_everything(&self) {
        // Without faults only what is wrong keeps it from starting.
        let Some(tasks) = self.start() else { return };
        while tasks.stats().pending > 0 {
            self.world.clock.advance(FAR);
            self.catch_up(&tasks);
            self.agrees(&tasks);
        }
        self.stop(&tasks);
    }

    fn start(&self) -> Option<Tasks> {
        let world = self.world.clone();
        let builder = Scheduler::builder().shards(2).hasher(Hasher::default());
        let handler = move |tasks: &Handle, run| handle(&world, tasks, &run);
        let started = Durable::manual(builder, &self.world.clock, self.world.clone(), handler);
        if let Err(error) = &started {
            self.world
                .truth()
                .wrong(|| format!("it did not start: {error}"));
        }
        started.iter().for_each(|tasks| self.agrees(tasks));
        let mut truth = self.world.truth();
        let cut_off = |key| {
            let newest = truth.newest(key).copied();
            let mut live = truth.view.values().filter(|live| live.key == key);
            !truth.failed && live.any(|live| Some(*live) != newest && !live.started)
        };
        if (0..KEYS).any(cut_off) {
            truth.wrong(|| "a task that was cut off has not run".to_owned());
        }
        drop(truth);
        started.ok().filter(|_| !self.world.is_over())
    }

    /// A panic of the library is a finding too.
    fn guarded(&self, part: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(part)).is_err() {
            self.world.truth().wrong(|| "a call panicked".to_owned());
        }
    }

    fn use_it(&self, tasks: &Tasks) {
        for _ in 0..CALLS {
            if self.world.is_over() {
                return;
            }
            call(self.world, tasks);
            yield_now();
        }
    }

    fn drive(&self, tasks: &Tasks) {
        for _ in 0..TURNS {
            if self.world.is_over() {
                return;
            }
            let step = self.world.below(8_000);
            self.world.clock.advance(Duration::from_micros(step));
            let budget = 1 + self.world.below(20) as u32;
            self.advance(tasks, budget);
            self.agrees(tasks);
            yield_now();
        }
    }

    fn advance(&self, tasks: &Tasks, budget: u32) -> Progress {
        self.world.truth().advancing = true;
        let advance = tasks.advance(tasks.now(), budget);
        self.world.truth().advancing = false;
        advance
    }

    /// Runs all that is due. Nobody else is there.
    fn catch_up(&self, tasks: &Tasks) {
        for _ in 0..1000 {
            self.advance(tasks, u32::MAX);
            let now = self.world.clock.now();
            let truth = self.world.truth();
            let due = |key| truth.newest(key).is_some_and(|live| live.due + MS <= now);
            let is_over = truth.dead || truth.failed || truth.wrong.is_some();
            if is_over || !(0..KEYS).any(due) {
                return;
            }
        }
        self.world
            .truth()
            .wrong(|| "what is due does not run".to_owned());
    }

    /// Memory holds, key by key, what the journal says that was set last. Nobody is within a locked section.
    fn agrees(&self, tasks: &Tasks) {
        for key in 0..KEYS {
            let left = tasks.get(&Key(key));
            let now = self.world.clock.now();
            let mut truth = self.world.truth();
            if truth.failed || truth.dead {
                return;
            }
            let newest = truth.newest(key).copied();
            let is_right = match (left, newest) {
                (Some(left), Some(live)) => {
                    let at = live.due.max(now);
                    !live.started && now + left >= at && now + left < at + MS
                }
                (None, Some(live)) => live.started || truth.advancing && live.due <= now,
                (None, None) => true,
                (Some(_), None) => false,
            };
            if !is_right {
                truth.wrong(|| {
                    format!("at {now:?} key {key} is due in {left:?}; journal: {newest:?}")
                });
            }
        }
    }

    /// What a stop returns as pending is what the disk has, for certain.
    fn stop(&self, tasks: &Tasks) {
        let stopped = tasks.stop(Duration::ZERO);
        let mut truth = self.world.truth();
        if truth.dead {
            return;
        }
        if truth.failed {
            if stopped.journal.is_ok() {
                truth.wrong(|| "a stop hides that the journal failed".to_owned());
            }
            return;
        }
        let mut pending: Vec<u64> = stopped.pending.iter().map(|(_, value, _)| *value).collect();
        pending.sort_unstable();
        let certain = truth.certain();
        let mut on_disk: Vec<u64> = truth
            .view
            .iter()
            .filter(|(id, _)| certain.contains(id))
            .map(|(_, live)| live.value)
            .collect();
        on_disk.sort_unstable();
        if stopped.journal.is_err() || pending != on_disk || certain.len() != on_disk.len() {
            truth.wrong(|| format!("pending: {pending:?}, on disk: {on_disk:?} of {certain:?}"));
        }
    }
}

/// What every handler does: it may call anything, its own key included, and panic.
fn handle(world: &World, tasks: &Handle, run: &DurableRun<Key, u64>) {
    if !world.begin(run) {
        return;
    }
    for _ in 0..world.below(8) {
        yield_now();
    }
    for _ in 0..world.below(3) {
        call(world, tasks);
    }
    if world.below(10) == 0 {
        resume_unwind(Box::new(Planned));
    }
}

/// One call of a random kind.
fn call(world: &World, tasks: &Handle) {
    let key = world.key();
    let delay = match world.below(3) {
        0 => Duration::ZERO,
        1 => Duration::from_micros(world.below(20_000)),
        _ => Duration::from_secs(3600),
    };
    world.forget_last();
    Key::arm();
    let outcome = match world.below(6) {
        0 => tasks.remove(&key).map(|old| old.is_some().then_some(old)),
        1 => tasks
            .move_to(&key, delay)
            .map(|moved| moved.then_some(None)),
        _ => {
            let value = world.next_value();
            let set = tasks.set(key, value, delay);
            if set.is_ok() && !world.truth().dead {
                world.truth().set.insert(value);
            }
            set.map(Some)
        }
    };
    match outcome {
        // Nothing was there to be changed.
        Ok(None) => {}
        Ok(Some(old)) => world.acknowledge(old),
        Err(error) => {
            let mut truth = world.truth();
            let expected = truth.failed && matches!(error, Error::Journal(_));
            if !expected {
                truth.wrong(|| format!("a call failed: {error}"));
            }
        }
    }
}
