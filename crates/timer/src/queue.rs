//! The trait that every timer structure implements, and the one through which it reaches timers.

/// One timer as its owner keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer {
    /// The live deadline, in ticks.
    pub deadline: u64,
    /// What the queue asked the owner to remember with [`Timers::set_registration`].
    pub registration: u32,
}

/// The owner of the timers: a store over its entries, or a [`TimerSet`](crate::TimerSet) over its
/// slab.
///
/// A queue holds records only; deadline and registration live in the owner's entry, next to the data
/// that the deadline is about, so that moving a deadline touches one cache line.
pub trait Timers {
    /// Which low bits of a registration the owner keeps. [`HierarchicalWheel`](crate::HierarchicalWheel)
    /// is content with fewer than all: a dead record that is taken for a live one costs a move, never an
    /// early or a lost deadline. The other queues need all of them.
    const REGISTRATION_BITS: u32 = u32::MAX;

    /// The timer of `id`; `None` when the entry is gone or has no deadline.
    fn timer(&self, id: u32) -> Option<Timer>;

    /// Remembers the queue's 32 bits for `id`. Called only for ids that have a timer or are being
    /// inserted.
    fn set_registration(&mut self, id: u32, registration: u32);
}

/// What one call of [`TimerQueue::advance`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Timers handed to the sink.
    pub fired: u32,
    /// Records moved to a finer place or dropped as stale.
    pub moved: u32,
    /// Whether the budget ran out before everything due was fired: call again.
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

/// A set of deadlines over timers that somebody else owns.
///
/// Ids are the owner's. Time is an argument: a tick is whatever the owner says (milliseconds in
/// Tidewheel). A timer is due when `now >= deadline`; nothing fires earlier. Should `now` run backwards,
/// it counts as the latest one seen.
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

    /// Forgets the timer of `id`, whose state was `old`. The owner must clear it before the next call.
    fn cancel<T: Timers>(&mut self, timers: &mut T, id: u32, old: Timer);

    /// Hands every timer with `deadline <= now` to `sink`, in batches of ids whose registration is void
    /// from then on (the owner must clear their timers inside the sink).
    ///
    /// `budget` bounds the records touched: fired, moved and dropped ones alike. Deadlines come in
    /// ascending order; any split of the work into budgets gives the same order of deadlines.
    fn advance<T: Timers>(
        &mut self,
        timers: &mut T,
        now: u64,
        budget: u32,
        sink: impl FnMut(&mut T, &[u32]),
    ) -> Progress;

    /// Hands every timer to `sink`, whatever its deadline, and is empty afterwards. O(n).
    fn drain<T: Timers>(&mut self, timers: &mut T, sink: impl FnMut(&mut T, &[u32]));

    /// A lower bound of the earliest live deadline, never later than it. `None` only when nothing is
    /// pending; records of cancelled timers may still ask for wake-ups, one or a few each.
    ///
    /// Whoever sleeps until then and calls [`advance`](Self::advance) makes progress: the call fires,
    /// moves or drops a record, or finds a later bound.
    fn next_deadline(&self) -> Option<u64>;

    /// Adds the registered deadlines to the windows of `forecast`, seen from `now`.
    fn forecast(&self, now: u64, forecast: &mut Forecast);

    /// Does at most about `budget` units of tidying (dropping stale records, closing gaps) and tells
    /// whether more is worth doing.
    fn maintain<T: Timers>(&mut self, timers: &mut T, budget: u32) -> bool;

    /// The queue's own position: every deadline before it has been fired, and no timer that is
    /// pending has a registered deadline before it.
    fn elapsed(&self) -> u64;

    /// Timers that are pending.
    fn len(&self) -> usize;

    /// Whether no timer is pending.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Heap bytes held.
    fn bytes(&self) -> usize;

    /// Walks the whole structure and panics with a message if an invariant is broken. O(n).
    fn validate<T: Timers>(&self, timers: &T);
}
