//! Other people's timers with a key to each: what one writes today.

use std::collections::HashMap;
use std::future::poll_fn;
use std::hint::black_box;
use std::task::Poll;
use std::time::Duration;

use anyhow::Result;
use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::cancellable::QuadWheelWithOverflow;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;
use tokio_util::time::{DelayQueue, delay_queue};

use super::key;
use crate::clock;
use crate::timers::subject::{Subject, Tick};

fn ms(ticks: u32) -> Duration {
    Duration::from_millis(u64::from(ticks))
}

/// tokio-util's `DelayQueue` on tokio's paused clock, and the map that finds a task in it. The queue's items
/// are key and value: the key is needed when an item fires, to take it out of the map.
pub(super) struct Delay {
    runtime: Runtime,
    queue: DelayQueue<(u64, u64)>,
    handles: HashMap<u64, delay_queue::Key, foldhash::quality::RandomState>,
    start: Instant,
}

impl Delay {
    pub(super) fn new() -> Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()?;
        let guard = runtime.enter();
        let (queue, start) = (DelayQueue::new(), Instant::now());
        drop(guard);
        Ok(Self {
            runtime,
            queue,
            handles: HashMap::default(),
            start,
        })
    }
}

impl Subject for Delay {
    fn insert_all(&mut self, delays: &[u32]) {
        let _guard = self.runtime.enter();
        for (id, &delay) in (0..).zip(delays) {
            let at = self.start + ms(delay);
            let handle = self.queue.insert_at((key(id), u64::from(id)), at);
            self.handles.insert(key(id), handle);
        }
    }

    fn reschedule_all(&mut self, order: &[u32], delays: &[u32]) {
        let _guard = self.runtime.enter();
        for (&id, &delay) in order.iter().zip(delays) {
            if let Some(handle) = self.handles.get(&key(id)) {
                self.queue.reset_at(handle, self.start + ms(delay));
            }
        }
    }

    fn cancel_all(&mut self, order: &[u32]) {
        let _guard = self.runtime.enter();
        for &id in order {
            if let Some(handle) = self.handles.remove(&key(id)) {
                black_box(self.queue.remove(&handle));
            }
        }
    }

    fn tick_all(&mut self, last: u32, _: u32, seen: &mut dyn FnMut(Tick) -> bool) {
        let (queue, handles) = (&mut self.queue, &mut self.handles);
        // Unconstrained: a task's usual budget would end a poll after some 128 timers.
        self.runtime
            .block_on(tokio::task::unconstrained(async move {
                for at in 1..=last {
                    tokio::time::advance(ms(1)).await;
                    let from = clock::mono_ns();
                    let fired = poll_fn(|context| {
                        let mut fired = 0;
                        while let Poll::Ready(Some(expired)) = queue.poll_expired(context) {
                            let (key, value) = expired.into_inner();
                            handles.remove(&key);
                            black_box(value);
                            fired += 1;
                        }
                        Poll::Ready(fired)
                    })
                    .await;
                    let ns = clock::mono_ns() - from;
                    let tick = Tick {
                        at,
                        ns,
                        fired,
                        backlog: false,
                    };
                    if seen(tick) {
                        return;
                    }
                }
            }));
    }

    fn own_bytes(&self) -> Option<usize> {
        None
    }

    fn handle_bytes(&self) -> usize {
        0
    }
}

/// The `hierarchical_hash_wheel_timer` crate's cancellable wheel, whose map is part of it.
pub(super) struct Hhwt {
    wheel: QuadWheelWithOverflow<IdOnlyTimerEntry<u64>>,
}

impl Hhwt {
    pub(super) fn new() -> Self {
        Self {
            wheel: QuadWheelWithOverflow::new(),
        }
    }

    fn insert(&mut self, id: u32, delay: u32) {
        let inserted = self.wheel.insert(IdOnlyTimerEntry {
            id: key(id),
            delay: ms(delay),
        });
        debug_assert!(inserted.is_ok(), "every delay lies ahead");
    }
}

impl Subject for Hhwt {
    fn insert_all(&mut self, delays: &[u32]) {
        for (id, &delay) in (0..).zip(delays) {
            self.insert(id, delay);
        }
    }

    fn reschedule_all(&mut self, order: &[u32], delays: &[u32]) {
        for (&id, &delay) in order.iter().zip(delays) {
            let cancelled = self.wheel.cancel(&key(id));
            debug_assert!(cancelled.is_ok(), "every task is pending");
            self.insert(id, delay);
        }
    }

    fn cancel_all(&mut self, order: &[u32]) {
        for &id in order {
            let cancelled = self.wheel.cancel(&key(id));
            debug_assert!(cancelled.is_ok(), "every task is pending");
        }
    }

    fn tick_all(&mut self, last: u32, _: u32, seen: &mut dyn FnMut(Tick) -> bool) {
        for at in 1..=last {
            let from = clock::mono_ns();
            let fired = self.wheel.tick();
            let count = fired.len() as u32;
            drop(black_box(fired));
            let ns = clock::mono_ns() - from;
            let tick = Tick {
                at,
                ns,
                fired: count,
                backlog: false,
            };
            if seen(tick) {
                return;
            }
        }
    }

    fn own_bytes(&self) -> Option<usize> {
        None
    }

    fn handle_bytes(&self) -> usize {
        0
    }
}
