//! What clients ask of a cache, with the time at which they ask.

/// Requests of one run at most: about 10 GiB with all that is made of them.
pub(super) const MAX_REQUESTS: usize = 1 << 26;

/// What is stored, with the time at which it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object {
    /// Key and value together.
    pub(super) bytes: u32,
    /// [`NEVER`](crate::studies::expiry::strategies::NEVER) without one.
    pub(super) deadline_ms: u64,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// A read; what was not there is stored afterwards, if it is known.
    Get(Option<Object>),
    /// A write, whatever is there.
    Set(Object),
    /// A removal.
    Delete,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Since the beginning; requests are in the order of time.
    pub(super) at_ms: u64,
    pub(super) key: u64,
    pub(super) verb: Verb,
}
