//! Faults that tests plant, to see that they are found. Outside of tests there are none.

/// A step that is left out, or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A removal of an invalidated entry removes a newer one that has taken its place.
    LazyDelete,
    /// A sweep leaves what it finds.
    Sweep,
    /// A caller leads a second load of a key that is being loaded.
    TwoLeads,
    /// The latest event comes first.
    EventOrder,
    /// Weight that a shard gives back is lost.
    WeightLeak,
    /// A value is fresh after its soft deadline.
    Stale,
}

thread_local! {
    pub(crate) static PLANTED: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

/// True if a test has planted this fault in this thread.
#[inline(always)]
pub(crate) fn is_planted(fault: Fault) -> bool {
    cfg!(test) && PLANTED.get() == Some(fault)
}
