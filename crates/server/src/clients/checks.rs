//! Bits of checks that a command needs before or after it runs.
//!
//! Some bits concern every client. They are in the keyspace gate's byte, which is read before each
//! command. The others concern one connection, and lie above that byte.

/// The snapshot is being loaded.
pub(crate) const LOADING: u8 = 1;

/// Commands that change data, since the log cannot be written.
pub(crate) const UNLOGGED: u8 = 2;

/// A script runs for so long that others are refused, on some loop.
pub(crate) const BUSY: u8 = 4;

/// Every command of every client (CLIENT PAUSE ALL).
pub(crate) const PAUSE_ALL: u8 = 8;

/// Commands that change data (CLIENT PAUSE WRITE).
pub(crate) const PAUSE_WRITE: u8 = 16;

/// A monitor is shown every command (MONITOR).
pub(crate) const MONITORED: u8 = 32;

/// The client needed a password when it connected or sent RESET, and has given none since.
pub(crate) const UNAUTHENTICATED: u16 = 1 << 8;

/// RESP2 has no pushes, so a subscriber may only manage subscriptions.
pub(crate) const SUBSCRIBER: u16 = 1 << 9;

/// CLIENT REPLY suppresses the replies.
pub(crate) const MUTED: u16 = 1 << 10;

/// After MULTI, commands are queued.
pub(crate) const QUEUING: u16 = 1 << 11;

/// CLIENT CACHING was said: it concerns the next command.
pub(crate) const CACHING: u16 = 1 << 13;

/// The client's user may not do everything.
pub(crate) const LIMITED: u16 = 1 << 14;

/// The client is a monitor, so it may use no keys.
pub(crate) const MONITOR: u16 = 1 << 12;
