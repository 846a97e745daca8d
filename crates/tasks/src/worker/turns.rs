//! Claims of tasks that wait for others are asked about on a thread of their own: the threads of
//! the wheel wait for none of the looks that takes.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tidewheel_scheduler::Error;
use tidewheel_time::Clock;

use super::fire::ASK_AGAIN;
use super::held::Stage;
use super::mailbox::End;
use super::shared::{Shared, Wheel};
use super::stats::count;
use super::waits::Turn;
use crate::store::TaskStore;

/// The claims whose turn is asked for, in their order. It is bounded: a worker holds so many.
#[derive(Debug, Default)]
pub(super) struct Turns {
    queue: Mutex<Queue>,
    came: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    keys: VecDeque<u64>,
    stopped: bool,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `false` if the worker stops.
    fn add(&self, key: u64) -> bool {
        let mut queue = self.lock();
        if queue.stopped {
            return false;
        }
        queue.keys.push_back(key);
        drop(queue);
        self.came.notify_one();
        true
    }

    /// The next claim; `None` if there is none now.
    fn next(&self) -> Option<u64> {
        self.lock().keys.pop_front()
    }

    /// Waits until there is a claim. `false` if the worker stops.
    fn wait(&self) -> bool {
        let idle = |queue: &mut Queue| queue.keys.is_empty() && !queue.stopped;
        let waited = self.came.wait_while(self.lock(), idle);
        !waited.unwrap_or_else(PoisonError::into_inner).stopped
    }

    /// Nothing more is asked for.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.came.notify_one();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }
}

impl<S: TaskStore> Shared<S> {
    /// Has a claim's turn asked for. `false` if it has come.
    pub(super) fn ask_for_turn(&self, key: u64) -> bool {
        if self.held().get(key).is_none_or(|held| held.is_its_turn) {
            return false;
        }
        let asks = self.held().ask(key);
        if asks && !self.turns.add(key) {
            self.give_back(std::iter::once(key));
        }
        true
    }

    /// Asks for the turns of all claims that are to be asked about.
    pub(super) fn answer_turns(&self, wheel: &Wheel) {
        while let Some(key) = self.turns.next() {
            let held =
                (self.held().get(key)).map(|held| (Arc::clone(&held.claim), held.waited_until));
            // It is not there if the engine took it back meanwhile.
            let Some((claim, waited_until)) = held else {
                continue;
            };
            if self.turns.is_stopped() {
                self.give_back(std::iter::once(key));
                continue;
            }
            let turn = self.turn_among(&claim, waited_until);
            let wait = match turn {
                Turn::Now => Duration::ZERO,
                Turn::Unknown => ASK_AGAIN,
                Turn::After(wait, _) if !self.mailbox.is_closing() => wait,
                turn => {
                    self.not_now(wheel, key, turn);
                    continue;
                }
            };
            let due = self.clock.now().saturating_add(wait);
            if self.held().answer(key, &turn, due) {
                self.file(wheel, key, wait);
            }
        }
    }

    /// Settles a claim that does not begin now.
    pub(super) fn not_now(&self, wheel: &Wheel, key: u64, turn: Turn) {
        match turn {
            Turn::Now | Turn::Unknown => self.file(wheel, key, ASK_AGAIN),
            Turn::After(..) => self.give_back(std::iter::once(key)),
            Turn::Later => {
                self.held().remove(key);
                // There is room for another.
                self.mailbox.arrived();
            }
            Turn::Lost => {
                self.held().remove(key);
                count(&self.counters.recalled);
            }
            Turn::Never(outcome) => {
                if self.held().begin(key, self.clock.now()) {
                    self.held().set_stage(key, Stage::Ended);
                    self.mailbox.end(key, End::Never(outcome));
                }
            }
        }
    }
}

/// Starts the thread.
pub(super) fn start<S: TaskStore>(
    shared: &Arc<Shared<S>>,
    wheel: Wheel,
) -> Result<JoinHandle<()>, Error> {
    let shared = Arc::clone(shared);
    let name = format!("{}-turns", shared.settings.name);
    let thread = thread::Builder::new().name(name);
    let thread = thread.spawn(move || {
        while shared.turns.wait() {
            shared.answer_turns(&wheel);
        }
        // What was not asked about goes back.
        shared.answer_turns(&wheel);
    });
    thread.map_err(Error::Thread)
}
