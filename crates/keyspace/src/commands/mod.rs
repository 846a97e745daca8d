//! The bodies of the commands that the keyspace runs.

pub(crate) mod arguments;
pub(crate) mod bitfield;
pub(crate) mod bitmap;
pub(crate) mod bitop;
mod change;
pub(crate) mod database;
pub(crate) mod debug;
pub(crate) mod dump;
pub(crate) mod edit;
pub(crate) mod expire;
pub(crate) mod expiry;
pub(crate) mod hash;
pub(crate) mod help;
pub(crate) mod hyperloglog;
pub(crate) mod introspect;
pub(crate) mod key;
pub(crate) mod lcs;
pub(crate) mod lifetime;
pub(crate) mod member_scan;
pub(crate) mod members;
pub(crate) mod number;
pub(crate) mod object;
pub(crate) mod scan;
pub(crate) mod set;
pub(crate) mod sort;
pub(crate) mod string;
pub(crate) mod zset;
