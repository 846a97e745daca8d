//! A queue: its name, and the rules that a store keeps for it.

use crate::shape::error::StoreError;
use crate::shape::rate::Rate;

/// Bytes that a queue's name may have: engines write some of them as three.
const NAME_MAX: usize = 64;

/// The rules of a queue, which a store keeps. One that it was told nothing of has the default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct QueueRules {
    /// True if nothing is claimed from it.
    pub paused: bool,
    /// How many of its tasks may begin in each period.
    pub limit: Option<Rate>,
}

/// A change of a queue's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueChange {
    /// Nothing is claimed from it any more.
    Pause,
    /// Its tasks are claimed again.
    Resume,
    /// So many of its tasks may begin in each period; `None` if as many as there are.
    Limit(Option<Rate>),
}

impl QueueChange {
    /// Checks that stores take it for a queue.
    pub(crate) fn check(self, queue: &str) -> Result<(), StoreError> {
        check_queue(queue)?;
        match self {
            Self::Limit(Some(rate)) => rate.check(),
            _ => Ok(()),
        }
    }
}

impl QueueRules {
    /// The rules after a change.
    #[must_use]
    pub fn after(mut self, change: QueueChange) -> Self {
        match change {
            QueueChange::Pause => self.paused = true,
            QueueChange::Resume => self.paused = false,
            QueueChange::Limit(limit) => self.limit = limit,
        }
        self
    }

    /// True if there are no rules.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The text by which a store keeps them: a line for each. A line that this program cannot read
    /// is left out.
    pub(crate) fn text(&self) -> String {
        let paused = self.paused.then(|| "paused".to_owned());
        let limit = self.limit.map(|rate| format!("limit={}", rate.text()));
        let lines: Vec<_> = paused.into_iter().chain(limit).collect();
        lines.join("\n")
    }

    pub(crate) fn read(text: &str) -> Self {
        let mut rules = Self::default();
        for line in text.lines() {
            match line.split_once('=').unwrap_or((line, "")) {
                ("paused", _) => rules.paused = true,
                ("limit", rate) => rules.limit = Rate::read(rate),
                _ => {}
            }
        }
        rules
    }
}

/// Checks that stores take a queue's name. The empty one is the default queue's.
pub(crate) fn check_queue(queue: &str) -> Result<(), StoreError> {
    if queue.len() > NAME_MAX || queue.contains(char::is_control) {
        return Err(StoreError::refused(
            "a queue's name has 64 bytes at most, and no control characters",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_come_back_from_their_text() {
        let paused = QueueRules::default().after(QueueChange::Pause);
        let limit = Rate::new(3, std::time::Duration::from_secs(1));
        let limited = paused.clone().after(QueueChange::Limit(Some(limit)));
        for rules in [QueueRules::default(), paused.clone(), limited] {
            assert_eq!(QueueRules::read(&rules.text()), rules);
        }
        assert!(paused.after(QueueChange::Resume).is_default());
    }
}
