//! What commands know of the connection that they come from.

/// Who waits, in the shell's own terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter {
    /// Its thread.
    pub owner: usize,
    /// Its place there.
    pub slot: u32,
    /// Its id, which is never used twice.
    pub id: u64,
}

/// What commands of the keyspace know and change about one connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Session {
    /// The selected database, below [`Keyspace::databases`](crate::Keyspace::databases).
    pub db: u32,
    /// CLIENT NO-TOUCH: reads leave no trace in the access history.
    pub no_touch: bool,
    /// DEBUG is for this client.
    pub may_debug: bool,
    /// Who it is, if its commands may wait.
    pub waiter: Option<Waiter>,
}
