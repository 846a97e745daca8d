//! Claims of tasks that wait for others are asked about on a thread of their own, again and again
//! until it is their turn: the threads of the wheel wait for none of the looks that takes, and no
//! handler keeps a claim from being asked about.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
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

/// The longest sleep while there are claims. The worker's clock may be another than the system's.
const SLEEP: Duration = Duration::from_millis(250);

/// The claims whose turn is asked for, by the time of that. It is bounded: a worker holds so many.
#[derive(Debug, Default)]
pub(super) struct Turns {
    queue: Mutex<Queue>,
    came: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    keys: BTreeSet<(Duration, u64)>,
    stopped: bool,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `false` if the worker stops.
    fn add(&self, key: u64, at: Duration) -> bool {
        let mut queue = self.lock();
        if queue.stopped {
            return false;
        }
        queue.keys.insert((at, key));
        drop(queue);
        self.came.notify_one();
        true
    }

    /// The next claim; `None` if there is none now. All go back when the worker stops.
    fn next(&self, now: Duration) -> Option<u64> {
        let mut queue = self.lock();
        let is_next = |at| at <= now || queue.stopped;
        queue.keys.first().filter(|(at, _)| is_next(*at))?;
        queue.keys.pop_first().map(|(_, key)| key)
    }

    /// Waits until there is a claim. `false` if the worker stops.
    fn wait(&self, clock: &dyn Clock) -> bool {
        let mut queue = self.lock();
        while !queue.stopped {
            let wait = match queue.keys.first() {
                None => Duration::MAX,
                Some((at, _)) => at.saturating_sub(clock.now()).min(SLEEP),
            };
            if wait.is_zero() {
                return true;
            }
            let waited = self.came.wait_timeout(queue, wait);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
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
        if asks {
            self.ask_at(key, self.clock.now());
        }
        true
    }

    /// Has a claim's turn asked for at a time. One of a worker that stops goes back.
    fn ask_at(&self, key: u64, at: Duration) {
        if !self.turns.add(key, at) {
            self.give_back(std::iter::once(key));
        }
    }

    /// Asks for the turns of all claims that are to be asked about now.
    pub(super) fn answer_turns(&self, wheel: &Wheel) {
        while let Some(key) = self.turns.next(self.clock.now()) {
            // It is not there if it went back meanwhile.
            let asked = self.held().asked(key);
            let Some((claim, until, waited_until)) = asked else {
                continue;
            };
            if self.turns.is_stopped() {
                self.give_back(std::iter::once(key));
                continue;
            }
            if self.clock.now() >= until {
                self.held().remove(key);
                count(&self.counters.lapsed);
                continue;
            }
            // A store's panic is the end of this question, and not of the thread.
            let ask = AssertUnwindSafe(|| self.turn_among(&claim, waited_until));
            let turn = catch_unwind(ask).unwrap_or(Turn::Unknown);
            let wait = match turn {
                Turn::Now => Duration::ZERO,
                Turn::Unknown => ASK_AGAIN.max(self.share_of_each()),
                Turn::After(wait, _) if !self.mailbox.is_closing() => wait,
                turn => {
                    self.not_now(wheel, key, turn);
                    continue;
                }
            };
            let at = self.clock.now().saturating_add(wait);
            if self.held().answer(key, &turn, at) {
                match turn {
                    Turn::Now => self.file(wheel, key, wait),
                    _ => self.ask_at(key, at),
                }
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
        while shared.turns.wait(&shared.clock) {
            shared.answer_turns(&wheel);
        }
        // What was not asked about goes back.
        shared.answer_turns(&wheel);
    });
    thread.map_err(Error::Thread)
}
