//! Reasons why a file is not loaded.

use std::{error, fmt, io};

/// The reason why a file was not loaded, and the position of the byte at which that was seen.
#[derive(Debug)]
pub enum SnapshotError {
    /// It could not be read.
    Io {
        /// The reason.
        why: io::Error,
        /// How many bytes were read before.
        at: u64,
    },
    /// It is too short.
    Ends {
        /// How many bytes it has.
        at: u64,
    },
    /// It does not begin as a snapshot does.
    NoSnapshot,
    /// It was written by a server that is newer than all that are known.
    UnknownVersion(String),
    /// A key has a type that is not known, as those of modules.
    UnknownType {
        /// The type's number.
        kind: u8,
        /// Where it stands.
        at: u64,
    },
    /// It has a database that is not there.
    UnknownDatabase {
        /// The database's number.
        number: u64,
        /// Where it stands.
        at: u64,
    },
    /// Its bytes make no sense.
    Malformed {
        /// Where they stand.
        at: u64,
    },
    /// A key has come before.
    Twice {
        /// The key.
        key: Vec<u8>,
        /// Where it stands.
        at: u64,
    },
    /// The bytes are not those that were written.
    Checksum {
        /// Where the checksum stands.
        at: u64,
    },
}

impl SnapshotError {
    /// The position of the byte at which it was seen.
    #[must_use]
    pub fn at(&self) -> u64 {
        match self {
            Self::NoSnapshot | Self::UnknownVersion(_) => 0,
            Self::Io { at, .. }
            | Self::Ends { at }
            | Self::UnknownType { at, .. }
            | Self::UnknownDatabase { at, .. }
            | Self::Malformed { at }
            | Self::Twice { at, .. }
            | Self::Checksum { at } => *at,
        }
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { why, at } => write!(f, "it cannot be read from byte {at} on: {why}"),
            Self::Ends { at } => write!(f, "it ends too early, at byte {at}"),
            Self::NoSnapshot => f.write_str("it does not begin with REDIS or VALKEY"),
            Self::UnknownVersion(version) => {
                write!(f, "its version is {version}, which no known server writes")
            }
            Self::UnknownType { kind, at } => write!(
                f,
                "at byte {at} a value has the type {kind}, which is not known here"
            ),
            Self::UnknownDatabase { number, at } => write!(
                f,
                "at byte {at} comes database {number}, and there are not so many (--databases)"
            ),
            Self::Malformed { at } => write!(f, "its bytes make no sense at byte {at}"),
            Self::Twice { key, at } => {
                write!(
                    f,
                    "at byte {at} comes the key '{}' again",
                    key.escape_ascii()
                )
            }
            Self::Checksum { at } => {
                write!(f, "its checksum, at byte {at}, is wrong: it was damaged")
            }
        }
    }
}

impl error::Error for SnapshotError {}
