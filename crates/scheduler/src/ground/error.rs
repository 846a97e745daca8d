//! Errors of the scheduler, and of a journal.

use std::fmt;

/// A call failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The scheduler was stopped: it takes no tasks any more. Start another one.
    Stopped,
    /// A thread could not be started.
    Thread(std::io::Error),
    /// The journal failed: what was asked for may or may not survive a crash. See its message, and
    /// start again with a journal that works.
    Journal(JournalError),
    /// The journal cannot write this key or value so that it comes back. Nothing was changed, and
    /// the journal has not failed.
    Refused(JournalError),
    /// A number given to the builder is out of range.
    Config(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the scheduler was stopped"),
            Self::Thread(error) => write!(f, "a thread could not be started: {error}"),
            Self::Journal(error) => write!(f, "the journal failed: {error}"),
            Self::Refused(why) => write!(f, "the job cannot be written: {why}"),
            Self::Config(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Thread(error) => Some(error),
            Self::Journal(error) | Self::Refused(error) => Some(error),
            _ => None,
        }
    }
}

/// A journal failed, or refused a key or value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalError(String);

impl JournalError {
    /// An error with the store's own words.
    pub fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JournalError {}
