//! Runs commands: dispatch to the keyspace, or to a handler of the server's own.

pub(crate) mod call;
pub(crate) mod dispatch;
pub(crate) mod foreign_protocol;
pub(crate) mod host;
pub(crate) mod permission;
pub(crate) mod timing;
pub(crate) mod turn;
