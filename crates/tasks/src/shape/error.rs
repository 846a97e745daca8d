//! Errors between a worker and an engine.

use std::fmt;

/// A call of a store failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The engine cannot be reached, or failed: whether the call had an effect is unknown. Call
    /// again; workers do.
    Engine(String),
    /// The engine did not answer in time: whether the call had an effect is unknown.
    TimedOut,
    /// The store takes no such task, or does no such thing. Nothing was changed.
    Refused(String),
    /// A task of this id was scheduled a while ago, and is
    /// [unique for longer](crate::Task::unique_for). Nothing was changed.
    Duplicate,
}

impl StoreError {
    /// An error with the engine's own words.
    pub fn engine(error: impl fmt::Display) -> Self {
        Self::Engine(error.to_string())
    }

    /// A refusal that says what is wrong.
    pub fn refused(why: impl fmt::Display) -> Self {
        Self::Refused(why.to_string())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => write!(f, "the engine failed: {error}"),
            Self::TimedOut => f.write_str("the engine did not answer in time"),
            Self::Refused(why) => write!(f, "it is refused: {why}"),
            Self::Duplicate => f.write_str("a task of this id was scheduled a while ago"),
        }
    }
}

impl std::error::Error for StoreError {}
