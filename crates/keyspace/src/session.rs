//! The state of a connection, as far as commands of the keyspace use it.

/// A client that may wait, in the shell's own terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Waiter {
    /// Its thread.
    pub owner: usize,
    /// Its place there.
    pub slot: u32,
    /// Its id, which is never used twice.
    pub id: u64,
}

/// The state of one connection that commands of the keyspace read and change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    /// The selected database, below [`Keyspace::databases`](crate::Keyspace::databases).
    pub db: u32,
    /// CLIENT NO-TOUCH: reads leave no trace in the access history.
    pub no_touch: bool,
    /// DEBUG is for this client.
    pub may_debug: bool,
    /// The client is told when what its next command reads may have changed (CLIENT TRACKING).
    /// Then `waiter` names it, and it was [announced](crate::Keyspace::track).
    pub tracks: bool,
    /// Its commands are called by a script.
    pub in_script: bool,
    /// The client, if its commands may wait.
    pub waiter: Option<Waiter>,
}
