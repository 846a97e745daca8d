//! Faults that tests plant, to see that they are found. Outside of tests there are none.

/// A step that is left out, or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The manifest is renamed before it is on disk.
    ManifestNotSynced,
    /// The name of a new manifest is not brought to disk.
    ManifestNameNotSynced,
    /// The name of a new segment is not brought to disk.
    SegmentNameNotSynced,
    /// A sync says that it is done, and does nothing.
    SyncLeftOut,
    /// A sync that failed is tried again, and its success believed.
    SyncRetried,
    /// A sync that failed is forgotten.
    FailureForgotten,
    /// Whatever has a marker is a frame.
    NoChecksum,
    /// A frame need not follow the one in front of it.
    NoChain,
    /// What a process before this one wrote, and perhaps could not sync, is taken for synced.
    NotRewritten,
    /// A segment behind a hole is not marked.
    HoleNotMarked,
    /// A segment is finished without a sync.
    NotFinished,
    /// Old segments go before the new manifest is in force.
    RemovedEarly,
}

thread_local! {
    pub(crate) static PLANTED: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

/// True if a test has planted this fault in this thread.
#[inline(always)]
pub(crate) fn is_planted(fault: Fault) -> bool {
    cfg!(test) && PLANTED.get() == Some(fault)
}
