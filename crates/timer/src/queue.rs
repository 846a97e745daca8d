//! The trait that every timer structure implements, and the one through which it reaches timers.

/// One timer as its owner keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer {
    /// The live deadline, in ticks.
    pub deadline: u64,
    /// The number that the queue asked the owner to remember with [`Timers::set_registration`].
    pub registration: u32,
}

/// The owner of the timers: a store over its entries, or a [`TimerSet`](crate::TimerSet) over its
/// slab.
///
/// A queue holds records only. Deadline and registration are in the owner's entry, next to the data
/// that the deadline is about. So moving a deadline touches one cache line.
pub trait Timers {
    /// The bits of a registration that the owner keeps: adjacent ones.
    /// [`HierarchicalWheel`](crate::HierarchicalWheel) works with some of them: it takes more dead
    /// records for living ones then, which costs moves, but no deadline comes early or is lost. The
    /// other queues need all 32.
    const REGISTRATION_BITS: u32 = u32::MAX;

    /// The timer of `id`; `None` when the entry is gone or has no deadline.
    fn timer(&self, id: u32) -> Option<Timer>;

    /// Remembers the queue's 32 bits for `id`. Called only for ids that have a timer or are being
    /// inserted.
    fn set_registration(&mut self, id: u32, registration: u32);
}

/// The result of one call of [`TimerQueue::advance`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Timers handed to the sink.
    pub fired: u32,
    /// Records that were moved to a lower level or another slot, and dead ones that were dropped.
    pub moved: u32,
    /// True if the budget ran out before everything due was fired: call again.
    pub backlog: bool,
    /// Lower bound of the next deadline, as [`TimerQueue::next_deadline`] gives it.
    pub next_deadline: Option<u64>,
}

/// Windows of a forecast: `[0]` counts what is due already, `[i]` the deadlines that lie
/// `2^(i-1) ..< 2^i` ticks ahead.
pub type Forecast = [u64; 65];

/// The window of a [`Forecast`] that a distance in ticks belongs to.
#[must_use]
pub fn forecast_window(distance: u64) -> usize {
    (64 - distance.leading_zeros()) as usize
}

/// The greatest distance of each window of a [`Forecast`] but the last.
const EDGES: [u64; 64] = {
    let mut edges = [0; 64];
    let mut i = 1;
    while i < 64 {
        edges[i] = u64::MAX >> (64 - i);
        i += 1;
    }
    edges
};

/// Deadlines of which only the range is known: so many ticks ahead, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The distance of the nearest in ticks; 0 if it is due.
    pub first: u64,
    /// The distance of the farthest.
    pub last: u64,
    /// How many they are.
    pub count: u64,
}

impl Span {
    /// One deadline, at that distance.
    #[must_use]
    pub fn one(distance: u64) -> Self {
        Self {
            first: distance,
            last: distance,
            count: 1,
        }
    }

    /// True if an edge lies within: some deadlines may be before it, and some behind.
    pub(crate) fn has_edge(self, edges: &[u64]) -> bool {
        let next = edges.partition_point(|edge| *edge < self.first);
        edges.get(next).is_some_and(|edge| *edge < self.last)
    }

    /// Adds the deadlines to windows, as if they were spread evenly. Window `i` ends with the
    /// distance `edges[i]`; the last one, behind all edges, has no end.
    pub fn spread(self, edges: &[u64], windows: &mut [u64]) {
        debug_assert_eq!(windows.len(), edges.len() + 1, "a window more than edges");
        let Self { first, last, count } = self;
        let width = u128::from(last - first) + 1;
        let mut given = 0;
        let mut window = edges.partition_point(|edge| *edge < first);
        while window < windows.len() && given < count {
            let end = edges.get(window).map_or(last, |edge| last.min(*edge));
            let covered = u128::from(end - first) + 1;
            let sum = (u128::from(count) * covered / width) as u64;
            windows[window] += sum - given;
            given = sum;
            window += 1;
        }
    }
}

/// The most ids that a queue hands to a sink at once.
pub const BATCH_MAX: usize = 30;

/// A set of deadlines over timers that somebody else owns.
///
/// Ids are the owner's. Time is an argument: the owner says what a tick is (a millisecond in
/// Tidewheel). A timer is due when `now >= deadline`; nothing fires earlier. If `now` runs
/// backwards, the latest `now` seen counts instead.
pub trait TimerQueue {
    /// Adds a timer for `id`, which must have none. A deadline that has passed is due at once.
    ///
    /// Sets the registration of `id`; the owner stores the deadline itself.
    fn insert<T: Timers>(&mut self, timers: &mut T, id: u32, deadline: u64, now: u64);

    /// Gives the timer of `id` a new deadline. `old` is its state before; the owner stores the new
    /// deadline itself, before or after the call.
    fn reschedule<T: Timers>(
        &mut self,
        timers: &mut T,
        id: u32,
        old: Timer,
        deadline: u64,
        now: u64,
    );

    /// Forgets the timer of `id`, whose state was `old`. The owner must clear it before the next
    /// call.
    fn cancel<T: Timers>(&mut self, timers: &mut T, id: u32, old: Timer);

    /// Hands every timer with `deadline <= now` to `sink`, in batches of [`BATCH_MAX`] ids at most.
    /// The owner must clear their timers inside the sink: their registrations mean nothing from
    /// then on.
    ///
    /// `budget` bounds the records touched: fired, moved and dropped ones alike. Deadlines come in
    /// ascending order, also when the work is split over several calls.
    fn advance<T: Timers>(
        &mut self,
        timers: &mut T,
        now: u64,
        budget: u32,
        sink: impl FnMut(&mut T, &[u32]),
    ) -> Progress;

    /// Hands every timer to `sink`, due or not, and is empty afterwards. O(n).
    fn drain<T: Timers>(&mut self, timers: &mut T, sink: impl FnMut(&mut T, &[u32]));

    /// A lower bound of the earliest deadline, never later than it. `None` only when nothing is
    /// pending. Records of cancelled timers may still cause a few needless wake-ups.
    ///
    /// A caller that sleeps until then and calls [`advance`](Self::advance) makes progress: the
    /// call fires, moves or drops a record, or finds a later bound.
    fn next_deadline(&self) -> Option<u64>;

    /// Shows the registered deadlines, seen from `now`. What lies around one of `edges`, in ticks
    /// from now and ascending, is shown as exactly as is cheap: for that, timers are looked at.
    fn spans<T: Timers>(&self, timers: &T, now: u64, edges: &[u64], show: impl FnMut(Span));

    /// Adds them to the windows of `forecast`.
    fn forecast<T: Timers>(&self, timers: &T, now: u64, forecast: &mut Forecast) {
        self.spans(timers, now, &[], |span| span.spread(&EDGES, forecast));
    }

    /// Does about `budget` units of tidying at most: drops dead records, closes gaps. Tells whether
    /// more is worth doing.
    fn maintain<T: Timers>(&mut self, timers: &mut T, budget: u32) -> bool;

    /// The queue's own position: every deadline before it has been fired, and no timer that is
    /// pending has a registered deadline before it.
    fn elapsed(&self) -> u64;

    /// Timers that are pending.
    fn len(&self) -> usize;

    /// Returns whether no timer is pending.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Heap bytes held.
    fn bytes(&self) -> usize;

    /// Walks the whole structure and panics with a message if an invariant is broken. O(n).
    fn validate<T: Timers>(&self, timers: &T);
}
