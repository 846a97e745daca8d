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
//!
//! Another program may have put messages under these subjects that name no id as it is written
//! here. Such a message has its whole subject as its id, so that it can be listed, looked at and
//! removed; no task is scheduled under such an id.

use std::fmt::Display;

use super::text::{decoded, encoded};
use crate::shape::error::StoreError;
use crate::shape::look::State;
use crate::shape::task::{Priority, check_id};

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
        self.strange(id, PENDING)
            .unwrap_or_else(|| self.pending(id, "*"))
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
        self.strange(id, HANDED)
            .unwrap_or_else(|| format!("{}.d.*.{}.{generation}", self.prefix, encoded(id)))
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
        self.strange(id, DEAD)
            .unwrap_or_else(|| format!("{}.x.{}", self.prefix, encoded(id)))
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
            State::Pending => format!("{}.s.>", self.prefix),
            State::Claimed => format!("{}.d.>", self.prefix),
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

    /// The id and the generation of a task or a letter: the whole subject and 0 if another program
    /// has written it.
    pub(super) fn named(&self, subject: &str) -> (String, u64) {
        self.ours(subject)
            .unwrap_or_else(|| (subject.to_owned(), 0))
    }

    /// The same; `None` if it is not as it is written here.
    fn ours(&self, subject: &str) -> Option<(String, u64)> {
        let tokens: Vec<_> = self.tokens(subject)?.collect();
        let (id, generation) = match *tokens {
            [PENDING, id, generation] | [HANDED, _, id, generation] => {
                (id, generation.parse().ok()?)
            }
            [DEAD, id] => (id, 0),
            _ => return None,
        };
        let id = decoded(id).filter(|read| encoded(read) == id)?;
        Some((id, generation))
    }

    /// The tokens after the space's.
    fn tokens<'a>(&self, subject: &'a str) -> Option<impl Iterator<Item = &'a str>> {
        let rest = subject.strip_prefix(&self.prefix)?.strip_prefix('.')?;
        Some(rest.split('.'))
    }

    /// The id as a subject of this kind, if it is one, and not as it is written here.
    fn strange(&self, id: &str, kind: &str) -> Option<String> {
        let mut tokens = self.tokens(id)?;
        let is_kind = tokens.next() == Some(kind);
        // A subject that stands for many is none.
        let is_token = |token: &str| !matches!(token, "" | "*" | ">") && !token.contains(is_space);
        let is_strange = is_kind && tokens.all(is_token) && self.ours(id).is_none();
        is_strange.then(|| id.to_owned())
    }

    /// True if an id is the subject of a message that another program has put here.
    pub(super) fn is_strange(&self, id: &str) -> bool {
        let mut kinds = [PENDING, HANDED, DEAD].into_iter();
        kinds.any(|kind| self.strange(id, kind).is_some())
    }

    /// Checks an id that somebody asks about.
    pub(super) fn check(&self, id: &str) -> Result<(), StoreError> {
        match self.is_strange(id) {
            true => Ok(()),
            false => check_id(id),
        }
    }
}

/// The tokens of tasks that are pending, of those that are handed over, and of dead letters.
const PENDING: &str = "s";
const HANDED: &str = "d";
const DEAD: &str = "x";

fn is_space(letter: char) -> bool {
    letter.is_whitespace() || letter.is_control()
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

/// The generation at the end of the subject of a task; 0 if there is none.
pub(super) fn generation_in(subject: &str) -> u64 {
    let last = subject.rsplit('.').next();
    last.and_then(|last| last.parse().ok()).unwrap_or(0)
}

/// The id at the end of a subject.
pub(super) fn id_of(subject: &str) -> Option<String> {
    decoded(subject.rsplit('.').next()?)
}
