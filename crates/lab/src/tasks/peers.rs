//! Other people's timers with a key to each, as one writes it today.

use std::collections::HashMap;
use std::hint::black_box;

use anyhow::Result;
use tokio_util::time::{DelayQueue, delay_queue};

use super::key;
use crate::timers::peers::{self, Name, Paused};
use crate::timers::subject::{Subject, Tick};

/// tokio-util's `DelayQueue` on tokio's paused clock, and the map that finds a task in it. The
/// queue's items are key and value: the key is needed when an item fires, to take it out of the
/// map.
pub(super) struct Delay {
    clock: Paused,
    queue: DelayQueue<(u64, u64)>,
    handles: HashMap<u64, delay_queue::Key, foldhash::quality::RandomState>,
}

impl Delay {
    pub(super) fn new() -> Result<Self> {
        let (clock, queue) = Paused::with_queue()?;
        Ok(Self {
            clock,
            queue,
            handles: HashMap::default(),
        })
    }
}

impl Subject for Delay {
    fn insert(&mut self, id: u32, delay: u32) {
        let item = (key(id), u64::from(id));
        let handle = self.queue.insert_at(item, self.clock.at(delay));
        self.handles.insert(key(id), handle);
    }

    fn reschedule(&mut self, id: u32, delay: u32) {
        if let Some(handle) = self.handles.get(&key(id)) {
            self.queue.reset_at(handle, self.clock.at(delay));
        }
    }

    fn cancel(&mut self, id: u32) {
        if let Some(handle) = self.handles.remove(&key(id)) {
            black_box(self.queue.remove(&handle));
        }
    }

    fn tick_all(&mut self, last: u32, _: u32, seen: &mut dyn FnMut(Tick) -> bool) {
        let handles = &mut self.handles;
        self.clock
            .tick_all(&mut self.queue, last, seen, |(key, value)| {
                handles.remove(&key);
                black_box(value);
            });
    }
}

impl Name for u64 {
    fn of(id: u32) -> Self {
        key(id)
    }
}

/// The `hierarchical_hash_wheel_timer` crate's cancellable wheel by the keys of tasks.
pub(super) type Hhwt = peers::Hhwt<u64>;
