//! Settings: the table of keys, their values, and the sources of the values.
//!
//! 1. [`asked`] reads the command line, the environment and the file when the server starts.
//! 2. [`Live`] holds the settings in force. CONFIG SET exchanges them.
//! 3. Each loop keeps a copy, and compares one number to know that it is still the newest.
//! 4. [`rewritten`] writes them into the text of their file. [`FileChanges`] are what the file says
//!    otherwise than before.

mod access;
mod address;
mod cli;
mod collections;
mod config_file;
mod diagnosis;
pub(crate) mod engine;
mod expired_streams;
mod file;
mod flags;
mod foreign;
mod live;
mod logging;
mod manual;
mod named_file;
mod password;
mod print;
mod quote;
mod reread;
mod rewrite;
mod save_points;
mod settings;
mod table;
mod tls;
mod top;
mod value;

pub(crate) use access::{ClientAccess, DENIED};
pub(crate) use address::Address;
pub(crate) use cli::{Asked, Invocation, LogForm, Refusal, ToolCall, asked};
pub(crate) use config_file::ConfigFile;
pub(crate) use expired_streams::ExpiredStreams;
pub(crate) use file::{read, read_users};
pub(crate) use live::Live;
pub(crate) use logging::{LogFormat, LogLevel, LogSettings};
pub(crate) use named_file::{open_regular, open_to_append};
pub(crate) use reread::FileChanges;
pub(crate) use rewrite::rewritten;
pub(crate) use save_points::SavePoints;
pub(crate) use settings::Settings;
pub(crate) use table::{ChangeTime, ConfigKey, key, keys};
pub(crate) use tls::{CertifiedUser, ClientCertificates, TlsSettings};
#[cfg(test)]
pub(crate) use tls::{SUITES_12, SUITES_13};
pub(crate) use top::{TopCall, TopTls};
#[cfg(test)]
pub(crate) use value::BindAddress;
pub(crate) use value::{OutputLimit, Port, SyncPolicy, memory};
