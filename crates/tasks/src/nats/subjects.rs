//! The stream's subjects. Each has one message at most: the last.
//!
//! | subject | what it says |
//! |---|---|
//! | `tw.SPACE.s.ID.GENERATION` | the task is pending: a schedule of JetStream's, which becomes the next when its time comes |
//! | `tw.SPACE.d.PRIORITY.ID.GENERATION` | the task is handed over: consumers deliver it, until it is acknowledged; of a queue with a name it is `PRIORITY-QUEUE` |
//! | `tw.SPACE.c.ID` | the record of the task's latest claim: claimed again, ended, or void |
//! | `tw.SPACE.b.ID` | a run of a doubtful claim has begun |
//! | `tw.SPACE.x.ID` | a dead letter |
//! | `tw.SPACE.p.ID` | the progress of a run |
//! | `tw.SPACE.r.ID` | the result of a run |
//! | `tw.SPACE.u.ID` | the id is unique for a while |
//! | `tw.SPACE.q.QUEUE` | the rules of a queue; the default queue's token is `%` |
//! | `tw.SPACE.l.QUEUE` | the slots of a limited queue that were given away |
//!
//! Each schedule has a *generation* of its own. A schedule that fires while it is replaced comes
//! later than its replacement. It removes the message of its own subject alone, and is written to
//! one of its own.

use std::fmt::Display;

use super::text::{decoded, encoded};
use crate::shape::look::State;
use crate::shape::task::Priority;

/// The subjects of one space.
#[derive(Debug, Clone)]
pub(super) struct Subjects {
    prefix: String,
}

impl Subjects {
    pub(super) fn of(space: &str) -> Self {
        let prefix = format!("tw.{space}");
        Self { prefix }
    }

    pub(super) fn all(&self) -> String {
        format!("{}.>", self.prefix)
    }

    pub(super) fn pending(&self, id: &str, generation: impl Display) -> String {
        format!("{}.s.{}.{generation}", self.prefix, encoded(id))
    }

    /// The subject of any generation.
    pub(super) fn pending_any(&self, id: &str) -> String {
        self.pending(id, "*")
    }

    pub(super) fn handed(
        &self,
        (id, generation): (&str, u64),
        priority: Priority,
        queue: &str,
    ) -> String {
        let (line, id) = (line(priority, queue), encoded(id));
        format!("{}.d.{line}.{id}.{generation}", self.prefix)
    }

    /// The subject of any priority, queue and generation.
    pub(super) fn handed_any(&self, id: &str) -> String {
        self.handed_of(id, "*")
    }

    /// The subject of any priority and queue.
    pub(super) fn handed_of(&self, id: &str, generation: impl Display) -> String {
        format!("{}.d.*.{}.{generation}", self.prefix, encoded(id))
    }

    /// The subject of all ids.
    pub(super) fn handed_all(&self, priority: Priority, queue: &str) -> String {
        format!("{}.d.{}.>", self.prefix, line(priority, queue))
    }

    pub(super) fn record(&self, id: &str) -> String {
        format!("{}.c.{}", self.prefix, encoded(id))
    }

    pub(super) fn start(&self, id: &str) -> String {
        format!("{}.b.{}", self.prefix, encoded(id))
    }

    pub(super) fn dead(&self, id: &str) -> String {
        format!("{}.x.{}", self.prefix, encoded(id))
    }

    pub(super) fn progress(&self, id: &str) -> String {
        format!("{}.p.{}", self.prefix, encoded(id))
    }

    pub(super) fn result(&self, id: &str) -> String {
        format!("{}.r.{}", self.prefix, encoded(id))
    }

    pub(super) fn unique(&self, id: &str) -> String {
        format!("{}.u.{}", self.prefix, encoded(id))
    }

    pub(super) fn rules(&self, queue: &str) -> String {
        format!("{}.q.{}", self.prefix, token(queue))
    }

    pub(super) fn spent(&self, queue: &str) -> String {
        format!("{}.l.{}", self.prefix, token(queue))
    }

    pub(super) fn rules_all(&self) -> String {
        format!("{}.q.*", self.prefix)
    }

    /// The subject of all tasks in a state.
    pub(super) fn all_of(&self, state: State) -> String {
        match state {
            State::Pending => format!("{}.s.*.*", self.prefix),
            State::Claimed => format!("{}.d.*.*.*", self.prefix),
            State::Done => format!("{}.r.*", self.prefix),
            State::Dead => self.dead_all(),
        }
    }

    /// The subject of one.
    pub(super) fn one_of(&self, state: State, id: &str) -> String {
        match state {
            State::Pending => self.pending_any(id),
            State::Claimed => self.handed_any(id),
            State::Done => self.result(id),
            State::Dead => self.dead(id),
        }
    }

    pub(super) fn dead_all(&self) -> String {
        format!("{}.x.>", self.prefix)
    }
}

/// The token of the default queue: no name is encoded like this.
const NO_NAME: &str = "%";

/// The token of a queue alone.
fn token(queue: &str) -> String {
    match queue {
        "" => NO_NAME.to_owned(),
        name => encoded(name),
    }
}

/// The queue at the end of a subject.
pub(super) fn queue_of(subject: &str) -> Option<String> {
    match subject.rsplit('.').next()? {
        NO_NAME => Some(String::new()),
        token => decoded(token),
    }
}

/// The token of a priority and a queue. The default queue's is the priority alone, as it was before
/// there were others.
pub(super) fn line(priority: Priority, queue: &str) -> String {
    let level = priority.level();
    if queue.is_empty() {
        return level.to_string();
    }
    format!("{level}-{}", encoded(queue))
}

/// The queue of such a token.
pub(super) fn queue_of_line(line: &str) -> Option<String> {
    match line.split_once('-') {
        Some((_, queue)) => decoded(queue),
        None => Some(String::new()),
    }
}

/// Id and generation at the end of the subject of a task.
pub(super) fn task_of(subject: &str) -> Option<(String, u64)> {
    let (rest, generation) = subject.rsplit_once('.')?;
    Some((id_of(rest)?, generation.parse().ok()?))
}

/// The id at the end of a subject.
pub(super) fn id_of(subject: &str) -> Option<String> {
    decoded(subject.rsplit('.').next()?)
}
