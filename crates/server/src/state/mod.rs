//! The state of the server, which all loops share, and of each loop.

pub(crate) mod changes;
pub(crate) mod loading;
pub(crate) mod log;
pub(crate) mod long_script;
pub(crate) mod long_scripts;
pub(crate) mod loop_state;
pub(crate) mod observer;
pub(crate) mod preface;
pub(crate) mod server;
pub(crate) mod snapshots;
