//! Errors of the scheduler.

use std::fmt;

/// A call failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The scheduler was stopped: it takes no tasks any more. Start another one.
    Stopped,
    /// A thread could not be started.
    Thread(std::io::Error),
    /// A number given to the builder is out of range.
    Config(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the scheduler was stopped"),
            Self::Thread(error) => write!(f, "a thread could not be started: {error}"),
            Self::Config(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Thread(error) => Some(error),
            _ => None,
        }
    }
}
