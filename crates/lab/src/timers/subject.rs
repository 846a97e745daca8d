//! `Subject` is the interface of a structure that is measured; our own structures implement it
//! here.

use tidewheel_timer::{TimerId, TimerQueue, TimerSet};

use crate::clock;

/// The result of one tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    /// Ticks since the start.
    pub(crate) at: u32,
    pub(crate) ns: u64,
    pub(crate) fired: u32,
}

/// Times `advance` for each tick of `1..=last` until `seen` has seen enough; it tells how many it
/// fired.
pub(crate) fn ticks(
    last: u32,
    seen: &mut dyn FnMut(Tick) -> bool,
    mut advance: impl FnMut(u32) -> u32,
) {
    for at in 1..=last {
        let from = clock::mono_ns();
        let fired = advance(at);
        let ns = clock::mono_ns() - from;
        if seen(Tick { at, ns, fired }) {
            return;
        }
    }
}

/// A structure with timers `0..n`. Whole passes are default methods: every structure gets its own
/// copy of the loop with its operation inlined, and no call through the trait is part of a single
/// operation.
pub(crate) trait Subject {
    /// Adds a timer that falls due so many ticks after the start.
    fn insert(&mut self, id: u32, delay: u32);

    /// Gives a timer a new delay, counted from the start.
    fn reschedule(&mut self, id: u32, delay: u32);

    fn cancel(&mut self, id: u32);

    /// Adds timer `i` with `delays[i]`.
    fn insert_all(&mut self, delays: &[u32]) {
        for (id, &delay) in (0..).zip(delays) {
            self.insert(id, delay);
        }
    }

    /// Gives timer `order[i]` the new delay `delays[i]`.
    fn reschedule_all(&mut self, order: &[u32], delays: &[u32]) {
        for (&id, &delay) in order.iter().zip(delays) {
            self.reschedule(id, delay);
        }
    }

    fn cancel_all(&mut self, order: &[u32]) {
        order.iter().for_each(|&id| self.cancel(id));
    }

    /// Advances a tick at a time through `1..=last`, telling of each after it was timed; ends early
    /// when `seen` says that it has seen enough. `budget` matters only where there is one.
    fn tick_all(&mut self, last: u32, budget: u32, seen: &mut dyn FnMut(Tick) -> bool);

    /// The bytes that the measuring itself allocates besides the structure.
    fn handle_bytes(&self) -> usize {
        0
    }
}

/// Any queue of ours, with the slab that comes with it.
pub(crate) struct Ours<Q> {
    set: TimerSet<Q>,
    ids: Vec<Option<TimerId>>,
    start: u64,
}

impl<Q: TimerQueue + 'static> Ours<Q> {
    pub(crate) fn boxed(queue: Q, start: u64, timers: usize) -> Box<dyn Subject> {
        Box::new(Self {
            set: TimerSet::new(queue),
            ids: vec![None; timers],
            start,
        })
    }
}

impl<Q: TimerQueue> Subject for Ours<Q> {
    fn insert(&mut self, id: u32, delay: u32) {
        let due = self.start + u64::from(delay);
        self.ids[id as usize] = Some(self.set.insert(due, self.start));
    }

    fn reschedule(&mut self, id: u32, delay: u32) {
        if let Some(id) = self.ids[id as usize] {
            let due = self.start + u64::from(delay);
            self.set.reschedule(id, due, self.start);
        }
    }

    fn cancel(&mut self, id: u32) {
        if let Some(id) = self.ids[id as usize] {
            self.set.cancel(id);
        }
    }

    fn tick_all(&mut self, last: u32, budget: u32, seen: &mut dyn FnMut(Tick) -> bool) {
        ticks(last, seen, |at| {
            let progress = self.set.advance(self.start + u64::from(at), budget, |id| {
                std::hint::black_box(id);
            });
            progress.fired
        });
    }

    fn handle_bytes(&self) -> usize {
        self.ids.capacity() * size_of::<Option<TimerId>>()
    }
}
