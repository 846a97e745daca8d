//! The stream's subjects. Each has one message at most: the last.
//!
//! | subject | what it says |
//! |---|---|
//! | `tw.QUEUE.s.ID` | the task is pending: a schedule of JetStream's, which becomes the next when its time comes |
//! | `tw.QUEUE.d.PRIORITY.ID` | the task is handed over: consumers deliver it, until it is acknowledged |
//! | `tw.QUEUE.c.ID` | the record of the task's latest claim: claimed again, ended, or void |
//! | `tw.QUEUE.x.ID` | a dead letter |

use super::text::{decoded, encoded};
use crate::shape::task::Priority;

/// The subjects of one queue.
#[derive(Debug, Clone)]
pub(super) struct Subjects {
    prefix: String,
}

impl Subjects {
    pub(super) fn of(queue: &str) -> Self {
        let prefix = format!("tw.{queue}");
        Self { prefix }
    }

    pub(super) fn all(&self) -> String {
        format!("{}.>", self.prefix)
    }

    pub(super) fn pending(&self, id: &str) -> String {
        format!("{}.s.{}", self.prefix, encoded(id))
    }

    pub(super) fn handed(&self, id: &str, priority: Priority) -> String {
        format!("{}.d.{}.{}", self.prefix, priority.level(), encoded(id))
    }

    /// The subject of any priority.
    pub(super) fn handed_any(&self, id: &str) -> String {
        format!("{}.d.*.{}", self.prefix, encoded(id))
    }

    /// The subject of all ids.
    pub(super) fn handed_all(&self, priority: Priority) -> String {
        format!("{}.d.{}.>", self.prefix, priority.level())
    }

    pub(super) fn record(&self, id: &str) -> String {
        format!("{}.c.{}", self.prefix, encoded(id))
    }

    pub(super) fn dead(&self, id: &str) -> String {
        format!("{}.x.{}", self.prefix, encoded(id))
    }

    pub(super) fn dead_all(&self) -> String {
        format!("{}.x.>", self.prefix)
    }
}

/// The id at the end of a subject.
pub(super) fn id_of(subject: &str) -> Option<String> {
    decoded(subject.rsplit('.').next()?)
}
