//! Memory keeps a job's id, its value, and what few jobs have.

use std::time::SystemTime;

use super::journal::{Place, Repeat, Status};
use super::name::Name;
use crate::api::handle::Handle;
use crate::core::run::Run;

/// The value of a task in the scheduler underneath.
#[derive(Debug, Clone)]
pub(crate) struct Job<V> {
    /// Its name in the journal.
    pub(super) id: u64,
    pub(super) value: V,
    /// Most jobs have not failed yet, and run once.
    rare: Option<Box<Rare>>,
}

#[derive(Debug, Clone)]
struct Rare {
    attempt: u32,
    error: Option<String>,
    repeat: Option<Repeat>,
    phase: Option<Phase>,
    missed: u64,
    /// A crash may have cut off a run of this attempt: it was due at the start.
    may_have_begun: bool,
}

/// A wall time of a periodic job, and the tick that it was rounded up to. Its other runs are whole
/// periods away from both.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phase {
    pub(super) due: SystemTime,
    pub(super) tick: u64,
}

impl Default for Rare {
    fn default() -> Self {
        Self {
            attempt: 1,
            error: None,
            repeat: None,
            phase: None,
            missed: 0,
            may_have_begun: false,
        }
    }
}

/// The scheduler underneath.
pub(super) type JobHandle<K, V, S> = Handle<Name<K>, Job<V>, S>;

/// A run as the scheduler underneath gives it.
pub(super) type JobRun<K, V> = Run<Name<K>, Job<V>>;

impl<V> Job<V> {
    pub(super) fn new(id: u64, value: V) -> Self {
        Self {
            id,
            value,
            rare: None,
        }
    }

    /// A job as a journal has it.
    pub(super) fn restored(id: u64, value: V, status: Status) -> Self {
        let rare = Rare {
            attempt: status.attempt.max(1),
            error: status.error,
            repeat: status.repeat,
            ..Rare::default()
        };
        let is_rare = rare.attempt > 1 || rare.error.is_some() || rare.repeat.is_some();
        Self {
            id,
            value,
            rare: is_rare.then(|| Box::new(rare)),
        }
    }

    pub(super) fn repeating(mut self, repeat: Repeat) -> Self {
        self.rare_mut().repeat = Some(repeat);
        self
    }

    /// A periodic job that is filed for a wall time, in memory for a tick.
    pub(super) fn in_phase(mut self, due: SystemTime, tick: u64) -> Self {
        self.rare_mut().phase = Some(Phase { due, tick });
        self
    }

    /// A run of a periodic job as a job of its own.
    pub(super) fn single(mut self, id: u64, missed: u64) -> Self {
        self.id = id;
        self.rare = None;
        if missed > 0 {
            self.rare_mut().missed = missed;
        }
        self
    }

    /// A job that was due before the process started.
    pub(super) fn begun_perhaps(mut self) -> Self {
        self.rare_mut().may_have_begun = true;
        self
    }

    /// The job after a failure.
    pub(super) fn failed(mut self, attempt: u32, error: String) -> Self {
        let rare = self.rare_mut();
        rare.attempt = attempt;
        rare.error = Some(error);
        rare.may_have_begun = false;
        self
    }

    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// The number of its next run, from 1.
    pub(super) fn attempt(&self) -> u32 {
        self.rare.as_ref().map_or(1, |rare| rare.attempt)
    }

    pub(super) fn error(&self) -> Option<&str> {
        self.rare.as_ref()?.error.as_deref()
    }

    pub(super) fn repeat(&self) -> Option<Repeat> {
        self.rare.as_ref()?.repeat
    }

    pub(super) fn phase(&self) -> Option<Phase> {
        self.rare.as_ref()?.phase
    }

    pub(super) fn missed(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.missed)
    }

    pub(super) fn may_have_begun(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.may_have_begun)
    }

    /// The job's status, as the journal has it.
    pub(super) fn status(&self, due: SystemTime, is_unkeyed: bool) -> Status {
        Status {
            due,
            attempt: self.attempt(),
            error: self.error().map(str::to_owned),
            place: if is_unkeyed {
                Place::Unkeyed
            } else {
                Place::Keyed
            },
            repeat: self.repeat(),
        }
    }
}
