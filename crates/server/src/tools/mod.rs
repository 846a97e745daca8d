//! What the program does beside serving: it reads what a server has written, watches one, or asks
//! whether it is well, and starts none.
//!
//! ```sh
//! tidewheel check dump.rdb        # is it sound, and what does it hold?
//! tidewheel dump dump.rdb         # a line for each key
//! tidewheel log print FOLDER      # a log, as commands or as lines
//! tidewheel log repair FOLDER     # cuts a damaged log
//! tidewheel health                # is the server of this machine well?
//! tidewheel top                   # watches a server in a terminal
//! ```
//!
//! A tool reads a snapshot from its start to its end, and has one key with its value in memory at a
//! time. Values are read as the server reads them. So what `check` calls sound is loaded, but for
//! one thing: whether a key comes twice is only known to who has all keys in memory.
//!
//! The exit code is 0, or 1 if the file cannot be read or is not sound; then standard error has the
//! reason, and the position of the byte where it was seen. `log/mod.rs` has more on logs.
//!
//! | file | idea |
//! |---|---|
//! | `check.rs` | what a file holds, in numbers |
//! | `dump.rs` | a line for each key |
//! | `health.rs` | is a server well? |
//! | `log/` | a log: printed, or cut |
//! | `source.rs` | the file, and how much of it was read |
//! | `top/` | a running server, in a terminal |
//! | `text.rs` | bytes, values and times as text |

mod check;
mod dump;
mod health;
mod log;
#[cfg(test)]
mod sample;
mod source;
mod text;
mod top;

use std::io::{self, Write};
use std::path::Path;

use tidewheel_keyspace::SnapshotError;
use tidewheel_log::OpenError;

use crate::config::ToolCall;
use crate::state::server::random;

/// The exit code after an error.
const FAILED: u8 = 1;

/// Runs a tool. Returns the program's exit code.
pub(crate) fn run(call: &ToolCall) -> u8 {
    let out = &mut io::stdout().lock();
    let (ran, of) = match call {
        ToolCall::Check { file } => (check::run(file, out), file.display().to_string()),
        ToolCall::Dump { file, whole } => {
            (dump::run(file, *whole, out), file.display().to_string())
        }
        ToolCall::PrintLog { folder, form } => {
            (log::print(folder, *form, out), folder.display().to_string())
        }
        ToolCall::RepairLog { folder, yes } => {
            (log::repair(folder, *yes, out), folder.display().to_string())
        }
        ToolCall::Health { address } => (health::run(*address, out), address.to_string()),
        ToolCall::Top(call) => return top::run(call),
    };
    match ran {
        Ok(()) => 0,
        // Who reads the output has read enough.
        Err(Trouble::Output(why)) if why.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(why) => {
            // Nobody may read that either.
            let _ = writeln!(io::stderr(), "tidewheel: {of}: {why}");
            FAILED
        }
    }
}

/// The reason why a tool has ended early.
#[derive(Debug)]
enum Trouble {
    Open(io::Error),
    File(SnapshotError),
    Output(io::Error),
    /// The file has keys of a type that only a module knows.
    Unknown {
        kind: u8,
        at: u64,
    },
    Log(OpenError),
    /// What was asked for is not done.
    Refused(&'static str),
    /// A record of a log cannot be run again.
    Again {
        command: String,
        reply: String,
    },
    /// The server at an address does not answer.
    Silent(io::Error),
    /// A server says that it is not well.
    Unwell(String),
    /// A log's frame has what is not known here.
    Frame {
        segment: u64,
        offset: u64,
        why: String,
    },
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Open(why) => write!(f, "it cannot be opened: {why}"),
            Self::File(why) => write!(f, "{why}"),
            Self::Output(why) => write!(f, "the output cannot be written: {why}"),
            Self::Unknown { kind, at } => write!(
                f,
                "at byte {at} a value has the type {kind}, a module's: the file is loaded only with \
                 --load-skip-unknown yes, and without such keys"
            ),
            Self::Log(why) => write!(f, "{why}"),
            Self::Refused(why) => f.write_str(why),
            Self::Silent(why) => write!(f, "no answer: {why}"),
            Self::Unwell(why) => write!(f, "it is not well: {why}"),
            Self::Again { command, reply } => {
                write!(f, "{command} cannot be run again: {reply}")
            }
            Self::Frame {
                segment,
                offset,
                why,
            } => write!(f, "segment {segment}, the frame at byte {offset}: {why}"),
        }
    }
}

impl From<SnapshotError> for Trouble {
    fn from(why: SnapshotError) -> Self {
        Self::File(why)
    }
}

impl From<OpenError> for Trouble {
    fn from(why: OpenError) -> Self {
        Self::Log(why)
    }
}

type Outcome = Result<(), Trouble>;

/// The secret with which members are hashed.
fn seed() -> u128 {
    u128::from(random()) << 64 | u128::from(random())
}

fn open(path: &Path, shows_progress: bool) -> Result<source::Source, Trouble> {
    source::Source::open(path, shows_progress).map_err(Trouble::Open)
}
