//! Settings: a table of keys, the values that they set, and where the values come from.
//!
//! 1. [`invocation`] reads the command line, the environment and the file when the server starts.
//! 2. [`Live`] holds the settings in force. CONFIG SET exchanges them.
//! 3. Each loop keeps a copy, and compares one number to see whether it is still the newest.

mod access;
mod cli;
mod collections;
mod diagnosis;
pub(crate) mod engine;
mod file;
mod live;
mod password;
mod settings;
mod table;
mod value;

pub(crate) use access::{Access, DENIED};
pub(crate) use cli::{Invocation, Refusal, invocation};
pub(crate) use live::Live;
pub(crate) use settings::Settings;
pub(crate) use table::{ChangeTime, ConfigKey, key, keys};
pub(crate) use value::{LogLevel, OutputLimit, memory};
