//! The subjects of the model suite: a queue behind a `TimerSet`, or behind an owner like a store.

use std::fmt::Debug;
use std::hash::Hash;

use tidewheel_timer::{Forecast, Progress, Timer, TimerId, TimerQueue, TimerSet, Timers};

/// A queue together with the owner of its timers.
pub(crate) trait Subject {
    type Handle: Copy + Eq + Hash + Debug;

    fn insert(&mut self, deadline: u64, now: u64) -> Self::Handle;
    fn deadline(&self, handle: Self::Handle) -> Option<u64>;
    fn reschedule(&mut self, handle: Self::Handle, deadline: u64, now: u64) -> bool;
    fn cancel(&mut self, handle: Self::Handle) -> bool;
    fn advance(&mut self, now: u64, budget: u32, fired: &mut Vec<Self::Handle>) -> Progress;
    fn drain(&mut self, fired: &mut Vec<Self::Handle>);
    fn maintain(&mut self, budget: u32) -> bool;
    fn next_deadline(&self) -> Option<u64>;
    fn forecast(&self, now: u64) -> Forecast;
    fn elapsed(&self) -> u64;
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool;
    fn validate(&self);
}

impl<Q: TimerQueue> Subject for TimerSet<Q> {
    type Handle = TimerId;

    fn insert(&mut self, deadline: u64, now: u64) -> TimerId {
        Self::insert(self, deadline, now)
    }
    fn deadline(&self, handle: TimerId) -> Option<u64> {
        Self::deadline(self, handle)
    }
    fn reschedule(&mut self, handle: TimerId, deadline: u64, now: u64) -> bool {
        Self::reschedule(self, handle, deadline, now)
    }
    fn cancel(&mut self, handle: TimerId) -> bool {
        Self::cancel(self, handle)
    }
    fn advance(&mut self, now: u64, budget: u32, fired: &mut Vec<TimerId>) -> Progress {
        Self::advance(self, now, budget, |id| fired.push(id))
    }
    fn drain(&mut self, fired: &mut Vec<TimerId>) {
        Self::drain(self, |id| fired.push(id));
    }
    fn maintain(&mut self, budget: u32) -> bool {
        Self::maintain(self, budget)
    }
    fn next_deadline(&self) -> Option<u64> {
        Self::next_deadline(self)
    }
    fn forecast(&self, now: u64) -> Forecast {
        Self::forecast(self, now)
    }
    fn elapsed(&self) -> u64 {
        self.queue().elapsed()
    }
    fn len(&self) -> usize {
        Self::len(self)
    }
    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }
    fn validate(&self) {
        Self::validate(self);
    }
}

/// A timer's state inside an entry of [`Entries`].
#[derive(Debug, Clone, Copy)]
struct Cell {
    deadline: Option<u64>,
    registration: u32,
    /// The number of timers that this place has held.
    life: u64,
}

#[derive(Debug)]
struct Cells<const BITS: u32>(Vec<Cell>);

impl<const BITS: u32> Timers for Cells<BITS> {
    const REGISTRATION_BITS: u32 = BITS;

    fn timer(&self, id: u32) -> Option<Timer> {
        let cell = self.0[id as usize];
        Some(Timer {
            deadline: cell.deadline?,
            registration: cell.registration,
        })
    }

    fn set_registration(&mut self, id: u32, registration: u32) {
        self.0[id as usize].registration = registration & BITS;
    }
}

/// An owner of timers that behaves like the store:
///
/// - It stores deadlines that have passed as they are.
/// - It gives the id of the timer that ended last to the next new timer.
/// - It stores a deadline sometimes before and sometimes after it tells the queue.
/// - It keeps `BITS` bits of a registration.
#[derive(Debug)]
pub(crate) struct Entries<Q, const BITS: u32> {
    queue: Q,
    cells: Cells<BITS>,
    free: Vec<u32>,
    store_first: bool,
}

impl<Q: TimerQueue, const BITS: u32> Entries<Q, BITS> {
    pub(crate) fn new(queue: Q) -> Self {
        Self {
            queue,
            cells: Cells(Vec::new()),
            free: Vec::new(),
            store_first: false,
        }
    }

    fn find(&self, (id, life): (u32, u64)) -> Option<Timer> {
        let cell = self.cells.0.get(id as usize)?;
        (cell.life == life).then(|| self.cells.timer(id)).flatten()
    }

    fn clear(cells: &mut Cells<BITS>, free: &mut Vec<u32>, id: u32) -> (u32, u64) {
        let cell = &mut cells.0[id as usize];
        assert!(
            cell.deadline.is_some(),
            "id {id} has no timer and was fired"
        );
        cell.deadline = None;
        free.push(id);
        (id, cell.life)
    }
}

impl<Q: TimerQueue, const BITS: u32> Subject for Entries<Q, BITS> {
    type Handle = (u32, u64);

    fn insert(&mut self, deadline: u64, now: u64) -> (u32, u64) {
        let id = self.free.pop().unwrap_or_else(|| {
            self.cells.0.push(Cell {
                deadline: None,
                registration: 0,
                life: 0,
            });
            self.cells.0.len() as u32 - 1
        });
        self.cells.0[id as usize].life += 1;
        self.store_first = !self.store_first;
        if self.store_first {
            self.cells.0[id as usize].deadline = Some(deadline);
        }
        self.queue.insert(&mut self.cells, id, deadline, now);
        self.cells.0[id as usize].deadline = Some(deadline);
        (id, self.cells.0[id as usize].life)
    }

    fn deadline(&self, handle: (u32, u64)) -> Option<u64> {
        self.find(handle).map(|timer| timer.deadline)
    }

    fn reschedule(&mut self, handle: (u32, u64), deadline: u64, now: u64) -> bool {
        let Some(old) = self.find(handle) else {
            return false;
        };
        let id = handle.0;
        self.store_first = !self.store_first;
        if self.store_first {
            self.cells.0[id as usize].deadline = Some(deadline);
        }
        self.queue
            .reschedule(&mut self.cells, id, old, deadline, now);
        self.cells.0[id as usize].deadline = Some(deadline);
        true
    }

    fn cancel(&mut self, handle: (u32, u64)) -> bool {
        let Some(old) = self.find(handle) else {
            return false;
        };
        self.queue.cancel(&mut self.cells, handle.0, old);
        Self::clear(&mut self.cells, &mut self.free, handle.0);
        true
    }

    fn advance(&mut self, now: u64, budget: u32, fired: &mut Vec<(u32, u64)>) -> Progress {
        let free = &mut self.free;
        self.queue
            .advance(&mut self.cells, now, budget, |cells, due| {
                fired.extend(due.iter().map(|&id| Self::clear(cells, free, id)));
            })
    }

    fn drain(&mut self, fired: &mut Vec<(u32, u64)>) {
        let free = &mut self.free;
        self.queue.drain(&mut self.cells, |cells, due| {
            fired.extend(due.iter().map(|&id| Self::clear(cells, free, id)));
        });
    }

    fn maintain(&mut self, budget: u32) -> bool {
        self.queue.maintain(&mut self.cells, budget)
    }

    fn next_deadline(&self) -> Option<u64> {
        self.queue.next_deadline()
    }

    fn forecast(&self, now: u64) -> Forecast {
        let mut forecast = [0; 65];
        self.queue.forecast(&self.cells, now, &mut forecast);
        forecast
    }

    fn elapsed(&self) -> u64 {
        self.queue.elapsed()
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn validate(&self) {
        self.queue.validate(&self.cells);
    }
}
