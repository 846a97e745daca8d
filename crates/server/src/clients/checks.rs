//! Reasons to check a command before it runs, one bit each.

/// A password was required when it came, or said RESET, and was not given since.
pub(crate) const UNAUTHENTICATED: u8 = 1;

/// RESP2 has no pushes, so a subscriber may only manage subscriptions.
pub(crate) const SUBSCRIBER: u8 = 2;

/// Replies are not wanted.
pub(crate) const MUTED: u8 = 4;

/// Every command of every client (CLIENT PAUSE ALL). Shared, not of one connection.
pub(crate) const PAUSE_ALL: u8 = 8;

/// Commands that change data (CLIENT PAUSE WRITE). Shared, not of one connection.
pub(crate) const PAUSE_WRITE: u8 = 16;

/// After MULTI, commands are queued.
pub(crate) const QUEUING: u8 = 32;
