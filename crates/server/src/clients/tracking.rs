//! One client's tracking: what CLIENT TRACKING has asked for.

/// Which reads are tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrackedReads {
    All,
    /// That of the command after CLIENT CACHING YES.
    OptIn,
    /// All but that of the command after CLIENT CACHING NO.
    OptOut,
}

/// What a client that tracks has asked for.
#[derive(Debug)]
pub(crate) struct Tracking {
    /// The client that is told instead; 0: itself.
    pub(crate) redirect: u64,
    /// It is told of every change of a key with one of its prefixes, and of no reads.
    pub(crate) broadcast: bool,
    pub(crate) reads: TrackedReads,
    pub(crate) no_loop: bool,
    /// The client that was to be told instead was gone.
    pub(crate) broken: bool,
}

/// A client's tracking, as CLIENT LIST shows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrackingFacts {
    pub(crate) redirect: u64,
    pub(crate) broadcast: bool,
    pub(crate) broken: bool,
}

impl Tracking {
    /// Returns true if the next command's reads are tracked; `caching`: CLIENT CACHING preceded it.
    pub(crate) fn tracks(&self, caching: bool) -> bool {
        !self.broadcast
            && match self.reads {
                TrackedReads::All => true,
                TrackedReads::OptIn => caching,
                TrackedReads::OptOut => !caching,
            }
    }

    pub(crate) fn facts(&self) -> TrackingFacts {
        TrackingFacts {
            redirect: self.redirect,
            broadcast: self.broadcast,
            broken: self.broken,
        }
    }
}
