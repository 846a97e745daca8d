//! What can go wrong.

use std::{error, fmt, io};

/// Why a log cannot be opened. No file was changed, unless writing had begun.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process uses the folder, or this one does already.
    Locked,
    /// The system refused something.
    Io {
        /// The file.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// What was on disk is no longer what was written.
    Damaged(Damage),
    /// A file that must be there is not.
    Missing {
        /// The file.
        file: String,
        /// How it is known that it must be there.
        why: &'static str,
    },
    /// A newer program wrote the file.
    UnknownVersion {
        /// The file.
        file: String,
        /// The version that it says.
        version: u32,
    },
}

/// Where a file is no longer what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The file.
    pub file: String,
    /// The first byte of what does not fit.
    pub offset: u64,
    /// What does not fit.
    pub what: &'static str,
}

impl OpenError {
    pub(crate) fn io(file: &str) -> impl FnOnce(io::Error) -> Self {
        let file = file.to_owned();
        |error| Self::Io { file, error }
    }

    pub(crate) fn damaged(file: String, offset: u64, what: &'static str) -> Self {
        Self::Damaged(Damage { file, offset, what })
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked => f.write_str("the log's folder is in use by another server"),
            Self::Io { file, error } => write!(f, "{file}: {error}"),
            Self::Damaged(Damage { file, offset, what }) => write!(
                f,
                "{file} is damaged at byte {offset}: {what}; bring back a copy of the folder, or cut there with \
                 `tidewheel log repair`, which keeps what it cuts"
            ),
            Self::Missing { file, why } => write!(f, "{file} is missing: {why}"),
            Self::UnknownVersion { file, version } => {
                write!(
                    f,
                    "{file} has version {version}, which this program does not know"
                )
            }
        }
    }
}

impl error::Error for OpenError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            // Its own text is in this one's.
            Self::Io { error, .. } => error.source(),
            _ => None,
        }
    }
}

/// Why a log did not do what it was asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no room. Nothing was appended, and the same may be tried again.
    Full(io::Error),
    /// The system refused. If it was a write of a frame or a sync of a segment, the log is poisoned
    /// now.
    Failed(io::Error),
    /// A write or a sync failed before, and no base is in force that replaces what it may have
    /// lost: call `roll`, write a base, call `rebase`.
    Poisoned,
}

impl Error {
    pub(crate) fn of(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::Full(error),
            _ => Self::Failed(error),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(error) => write!(f, "the log has no room: {error}"),
            Self::Failed(error) => write!(f, "the log cannot be written: {error}"),
            Self::Poisoned => f.write_str(
                "the log could not be synced before, and waits for a snapshot that replaces it",
            ),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            // Its own text is in this one's.
            Self::Full(error) | Self::Failed(error) => error.source(),
            Self::Poisoned => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of errors is shown with each text once.
    #[test]
    fn what_the_system_says_is_said_once() {
        let io = || io::Error::from(io::ErrorKind::PermissionDenied);
        let said = OpenError::io("segment-1")(io());
        assert_eq!(said.to_string(), format!("segment-1: {}", io()));
        let errors: [&dyn error::Error; 3] = [&said, &Error::Full(io()), &Error::Failed(io())];
        for error in errors {
            assert!(error.source().is_none(), "{error}");
        }
    }
}
