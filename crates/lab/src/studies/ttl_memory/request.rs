//! What clients ask of a cache, with the time at which they ask.

/// No end: a time to live or a deadline that never comes.
pub(super) const FOREVER: u64 = u64::MAX;
/// Requests of one run at most: about 10 GiB with all that is made of them.
pub(super) const MAX_REQUESTS: usize = 1 << 26;

/// What is stored under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    /// Key and value together.
    pub(super) bytes: u32,
    /// [`FOREVER`] without one.
    pub(super) ttl_ms: u64,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// A read; what was not there is stored afterwards, if it is known.
    Get(Option<Value>),
    /// A write, whatever is there.
    Set(Value),
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
