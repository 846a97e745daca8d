//! What holds a cache up: shards and their locks, who is alive, who makes room, and what becomes of
//! those who leave.

pub(crate) mod by_hash;
pub(crate) mod capacity;
pub(crate) mod config;
pub(crate) mod delivery;
pub(crate) mod emptied;
pub(crate) mod flight;
pub(crate) mod flights;
pub(crate) mod fresh;
mod glimpse;
mod hand;
pub(crate) mod hash;
pub(crate) mod helm;
pub(crate) mod hooks;
pub(crate) mod inner;
pub(crate) mod insert;
mod leave;
pub(crate) mod life;
pub(crate) mod live_on;
pub(crate) mod midst;
pub(crate) mod negative;
mod overwrite;
pub(crate) mod parties;
#[cfg(feature = "metrics")]
pub(crate) mod published;
pub(crate) mod refreshes;
pub(crate) mod removal;
pub(crate) mod renew;
pub(crate) mod requests;
pub(crate) mod retry;
mod room;
pub(crate) mod shard;
pub(crate) mod sweeps;
pub(crate) mod tags;
mod telling;
pub(crate) mod waiting;
mod write;
