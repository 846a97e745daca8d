//! Other people's timer structures, driven by the same passes on the same virtual clock.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use anyhow::Result;
use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::cancellable::QuadWheelWithOverflow;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

use super::subject::{Subject, Tick};
use crate::clock;

fn ms(ticks: u32) -> Duration {
    Duration::from_millis(u64::from(ticks))
}

/// tokio-util's `DelayQueue` on tokio's paused clock.
pub(crate) struct Delay {
    runtime: Runtime,
    queue: DelayQueue<u32>,
    keys: Vec<Option<Key>>,
    start: Instant,
}

impl Delay {
    pub(crate) fn new(timers: usize) -> Result<Self> {
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
            keys: vec![None; timers],
            start,
        })
    }
}

impl Subject for Delay {
    fn insert_all(&mut self, delays: &[u32]) {
        let _guard = self.runtime.enter();
        for (id, (key, &delay)) in self.keys.iter_mut().zip(delays).enumerate() {
            *key = Some(self.queue.insert_at(id as u32, self.start + ms(delay)));
        }
    }

    fn reschedule_all(&mut self, order: &[u32], delays: &[u32]) {
        let _guard = self.runtime.enter();
        for (&at, &delay) in order.iter().zip(delays) {
            if let Some(key) = &self.keys[at as usize] {
                self.queue.reset_at(key, self.start + ms(delay));
            }
        }
    }

    fn cancel_all(&mut self, order: &[u32]) {
        let _guard = self.runtime.enter();
        for &at in order {
            if let Some(key) = &self.keys[at as usize] {
                self.queue.remove(key);
            }
        }
    }

    fn tick_all(&mut self, last: u32, _: u32, seen: &mut dyn FnMut(Tick) -> bool) {
        let queue = &mut self.queue;
        // Unconstrained: a task's usual budget would end a poll after some 128 timers.
        self.runtime
            .block_on(tokio::task::unconstrained(async move {
                for at in 1..=last {
                    tokio::time::advance(ms(1)).await;
                    let from = clock::mono_ns();
                    let fired = poll_fn(|context| {
                        let mut fired = 0;
                        while let Poll::Ready(Some(expired)) = queue.poll_expired(context) {
                            std::hint::black_box(expired.into_inner());
                            fired += 1;
                        }
                        Poll::Ready(fired)
                    })
                    .await;
                    let ns = clock::mono_ns() - from;
                    if seen(Tick {
                        at,
                        ns,
                        fired,
                        backlog: false,
                    }) {
                        return;
                    }
                }
            }));
    }

    fn own_bytes(&self) -> Option<usize> {
        None
    }

    fn handle_bytes(&self) -> usize {
        self.keys.capacity() * size_of::<Option<Key>>()
    }
}

/// The `hierarchical_hash_wheel_timer` crate's cancellable wheel.
pub(crate) struct Hhwt {
    wheel: QuadWheelWithOverflow<IdOnlyTimerEntry<u32>>,
}

impl Hhwt {
    pub(crate) fn new() -> Self {
        Self {
            wheel: QuadWheelWithOverflow::new(),
        }
    }

    fn insert(&mut self, id: u32, delay: u32) {
        let inserted = self.wheel.insert(IdOnlyTimerEntry {
            id,
            delay: ms(delay),
        });
        debug_assert!(inserted.is_ok(), "every delay lies ahead");
    }
}

impl Subject for Hhwt {
    fn insert_all(&mut self, delays: &[u32]) {
        for (id, &delay) in delays.iter().enumerate() {
            self.insert(id as u32, delay);
        }
    }

    fn reschedule_all(&mut self, order: &[u32], delays: &[u32]) {
        for (&id, &delay) in order.iter().zip(delays) {
            let cancelled = self.wheel.cancel(&id);
            debug_assert!(cancelled.is_ok(), "every timer is pending");
            self.insert(id, delay);
        }
    }

    fn cancel_all(&mut self, order: &[u32]) {
        for id in order {
            let cancelled = self.wheel.cancel(id);
            debug_assert!(cancelled.is_ok(), "every timer is pending");
        }
    }

    fn tick_all(&mut self, last: u32, _: u32, seen: &mut dyn FnMut(Tick) -> bool) {
        for at in 1..=last {
            let from = clock::mono_ns();
            let fired = self.wheel.tick();
            let count = fired.len() as u32;
            drop(std::hint::black_box(fired));
            let ns = clock::mono_ns() - from;
            if seen(Tick {
                at,
                ns,
                fired: count,
                backlog: false,
            }) {
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
