//! What clients ask of a cache, with the time at which they ask.

use crate::hit_ratios::bounds::Object;

/// Requests of one run at most: about 10 GiB with all that is made of them.
pub(super) const MAX_REQUESTS: usize = 1 << 26;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// A read; what was not there is stored afterwards.
    Get(Object),
    /// A write, whatever is there.
    Set(Object),
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Since the beginning; requests are in the order of time.
    pub(super) at_ms: u64,
    pub(super) key: u64,
    pub(super) verb: Verb,
}
