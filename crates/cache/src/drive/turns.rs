//! The budget of one turn of a driver, with and without other caches that wait.

/// Nanoseconds after which a turn on a shared driver ends with the hold of a lock that it is in.
const SHARED_TURN: u64 = 200_000;

/// The amount of work that one turn may do.
#[derive(Clone, Copy)]
pub(crate) struct TurnBudget {
    /// Timer records touched.
    pub(crate) records: u32,
    /// Slots that a sweep looks at.
    pub(crate) slots: u32,
    /// Units of tidying.
    pub(crate) tidy: u32,
    /// Calls of a listener.
    pub(crate) events: usize,
    /// Entries of a closed cache that are dropped.
    pub(crate) drops: usize,
    /// Nanoseconds of the cache's clock, after which no hold of a lock begins.
    pub(crate) time: Option<u64>,
}

impl TurnBudget {
    /// The budget of a driver with one cache: it bounds the time until the driver notices that it
    /// was told to stop.
    pub(crate) const OWN: Self = Self {
        records: 4096,
        slots: 2048,
        tidy: 256,
        events: 256,
        drops: 4096,
        time: None,
    };

    /// The budget of a driver whose other caches wait.
    pub(crate) const SHARED: Self = Self {
        records: 1024,
        slots: 64,
        tidy: 64,
        events: 16,
        drops: 16,
        time: Some(SHARED_TURN),
    };
}
