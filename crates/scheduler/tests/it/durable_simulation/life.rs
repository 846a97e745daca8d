//! One life of the process: threads that call, one that drives, and how it ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use tidewheel_scheduler::{
    Clock, Durable, DurableHandle, DurableRun, Place, Progress, Retry, Scheduler,
};

use super::baton::{Baton, yield_now};
use super::call::{call, handle};
use super::key::Key;
use super::truth::Live;
use super::world::{KEYS, World};

type Hasher = foldhash::quality::FixedState;
type Tasks = Durable<Key, u64, World, Hasher>;
pub(crate) type Handle = DurableHandle<Key, u64, World, Hasher>;
pub(crate) type Run = DurableRun<Key, u64>;

const CLIENTS: usize = 2;
const CALLS: usize = 5;
const TURNS: usize = 8;
const MS: Duration = Duration::from_millis(1);
/// Farther than any task.
const FAR: Duration = Duration::from_secs(4 * 3600);

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
        self.world.end_life();
    }

    /// A life without faults, until nothing is left: periodic jobs are removed, and dead letters
    /// re-queued.
    pub(crate) fn outlive_everything(&self) {
        // Without faults only what is wrong keeps it from starting.
        let Some(tasks) = self.start() else { return };
        for key in 0..KEYS {
            let is_periodic = self.world.truth().keyed(key).is_some_and(Live::is_periodic);
            if is_periodic {
                tasks.remove(&Key(key)).expect("no faults");
            }
        }
        while tasks.stats().pending + tasks.stats().dead > 0 && !self.world.is_over() {
            for letter in tasks.dead_letters() {
                tasks.requeue(letter.id, MS).expect("no faults");
            }
            self.world.clock.advance(FAR);
            self.catch_up(&tasks);
            self.agrees(&tasks);
        }
        self.stop(&tasks);
    }

    fn start(&self) -> Option<Tasks> {
        let world = self.world.clone();
        let retry = Retry::default().attempts(3).base(2 * MS).factor(3.0);
        let started = Scheduler::builder()
            .shards(2)
            .hasher(Hasher::default())
            .durable(self.world.clone())
            .retry(retry.cap(20 * MS))
            .dead_letters(2)
            .manual(&self.world.clock, move |tasks: &Handle, run: Run| {
                handle(&world, tasks, &run)
            });
        if let Err(error) = &started {
            let mut truth = self.world.truth();
            if !truth.failed {
                truth.wrong(|| format!("it did not start: {error}"));
            }
        }
        started.iter().for_each(|tasks| self.agrees(tasks));
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
            let is_due = |live: &Live| live.is_pending() && live.state.due + MS <= now;
            let is_over = truth.dead || truth.failed || truth.wrong.is_some();
            if is_over || !truth.view.values().any(is_due) {
                return;
            }
        }
        self.world
            .truth()
            .wrong(|| "what is due does not run".to_owned());
    }

    /// Memory holds what the journal says. Nobody is within a locked section.
    fn agrees(&self, tasks: &Tasks) {
        for key in 0..KEYS {
            let left = tasks.get(&Key(key));
            let now = self.world.clock.now();
            let mut truth = self.world.truth();
            if truth.failed || truth.dead {
                return;
            }
            let keyed = truth.keyed(key).copied();
            let is_right = match (left, keyed) {
                // It was filed for its next run, and this one is on its way.
                (Some(_), Some(live)) if truth.advancing && live.is_periodic() => true,
                (Some(left), Some(live)) => {
                    let at = live.state.due.max(now);
                    now + left >= at && now + left < at + MS
                }
                (None, Some(live)) => truth.advancing && live.state.due <= now,
                (None, None) => true,
                (Some(_), None) => false,
            };
            if !is_right {
                truth.wrong(|| {
                    format!("at {now:?} key {key} is due in {left:?}; journal: {keyed:?}")
                });
            }
        }
        self.agrees_as_a_whole(tasks);
    }

    /// The same jobs in the same places, and the same letters.
    fn agrees_as_a_whole(&self, tasks: &Tasks) {
        let in_memory = tasks.iter();
        let mut in_memory: Vec<_> = in_memory
            .map(|job| (job.key.0, job.value, job.attempt, job.is_unkeyed))
            .collect();
        let letters: Vec<u64> = tasks
            .dead_letters()
            .iter()
            .map(|letter| letter.id)
            .collect();
        let mut truth = self.world.truth();
        if truth.advancing {
            return;
        }
        let pending = truth.view.values().filter(|live| live.is_pending());
        let mut in_journal: Vec<_> = pending
            .map(|live| {
                let is_unkeyed = live.state.place == Place::Unkeyed;
                (live.key, live.value, live.state.attempt, is_unkeyed)
            })
            .collect();
        let dead = |(_, live): &(&u64, &Live)| live.state.place == Place::Dead && !live.running;
        let dead: Vec<u64> = truth.view.iter().filter(dead).map(|(id, _)| *id).collect();
        in_memory.sort_unstable();
        in_journal.sort_unstable();
        if in_memory != in_journal || letters != dead {
            truth.wrong(|| {
                format!("memory: {in_memory:?}, {letters:?}; journal: {in_journal:?}, {dead:?}")
            });
        }
    }

    /// The jobs that a stop returns as pending are those that the disk has, for certain, except
    /// letters and runs without an end.
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
        let is_certain = |id: &u64| certain.contains(id);
        let live = truth.view.iter().filter(|(id, _)| is_certain(id));
        let mut on_disk: Vec<u64> = live
            .filter(|(_, live)| live.is_pending())
            .map(|(_, live)| live.value)
            .collect();
        on_disk.sort_unstable();
        let is_whole = certain.len() == truth.view.len();
        if stopped.journal.is_err() || pending != on_disk || !is_whole {
            truth.wrong(|| format!("pending: {pending:?}, on disk: {on_disk:?} of {certain:?}"));
        }
    }
}
