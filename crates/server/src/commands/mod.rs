//! Running one command, in the keyspace or here.

pub(crate) mod call;
pub(crate) mod dispatch;
pub(crate) mod host;
pub(crate) mod stranger;
pub(crate) mod timing;
pub(crate) mod turn;
