//! Other people's timer structures, driven by the same passes on the same virtual clock.

use std::fmt::Debug;
use std::future::poll_fn;
use std::hash::Hash;
use std::task::Poll;
use std::time::Duration;

use anyhow::{Context, Result};
use hierarchical_hash_wheel_timer::IdOnlyTimerEntry;
use hierarchical_hash_wheel_timer::wheels::cancellable::QuadWheelWithOverflow;
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::time::Instant;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

use super::subject::{Subject, Tick, ticks};
use crate::clock;

fn ms(ticks: u32) -> Duration {
    Duration::from_millis(u64::from(ticks))
}

/// tokio's clock, paused: where a `DelayQueue` lives.
#[derive(Debug)]
pub(crate) struct Paused {
    runtime: Runtime,
    start: Instant,
}

impl Paused {
    /// The clock at its start, and a queue that goes by it.
    pub(crate) fn with_queue<T>() -> Result<(Self, DelayQueue<T>)> {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .context("cannot start a runtime")?;
        let guard = runtime.enter();
        let (queue, start) = (DelayQueue::new(), clock::in_runtime());
        drop(guard);
        Ok((Self { runtime, start }, queue))
    }

    /// While this is held, queues can be changed.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    /// So many ticks after the start.
    pub(crate) fn at(&self, delay: u32) -> Instant {
        self.start + ms(delay)
    }

    /// Takes what is due out of the queue, tick by tick, and hands it over.
    pub(crate) fn tick_all<T>(
        &self,
        queue: &mut DelayQueue<T>,
        last: u32,
        seen: &mut dyn FnMut(Tick) -> bool,
        mut take: impl FnMut(T),
    ) {
        // Unconstrained: a task's usual budget would end a poll after some 128 timers.
        self.runtime
            .block_on(tokio::task::unconstrained(async move {
                for at in 1..=last {
                    tokio::time::advance(ms(1)).await;
                    let from = clock::mono_ns();
                    let fired = poll_fn(|context| {
                        let mut fired = 0;
                        while let Poll::Ready(Some(expired)) = queue.poll_expired(context) {
                            take(expired.into_inner());
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
}

/// tokio-util's `DelayQueue` on tokio's paused clock.
pub(crate) struct Delay {
    clock: Paused,
    queue: DelayQueue<u32>,
    keys: Vec<Option<Key>>,
}

impl Delay {
    pub(crate) fn new(timers: usize) -> Result<Self> {
        let (clock, queue) = Paused::with_queue()?;
        Ok(Self {
            clock,
            queue,
            keys: vec![None; timers],
        })
    }
}

impl Subject for Delay {
    fn insert_all(&mut self, delays: &[u32]) {
        let _guard = self.clock.enter();
        for (id, (key, &delay)) in self.keys.iter_mut().zip(delays).enumerate() {
            *key = Some(self.queue.insert_at(id as u32, self.clock.at(delay)));
        }
    }

    fn reschedule_all(&mut self, order: &[u32], delays: &[u32]) {
        let _guard = self.clock.enter();
        for (&at, &delay) in order.iter().zip(delays) {
            if let Some(key) = &self.keys[at as usize] {
                self.queue.reset_at(key, self.clock.at(delay));
            }
        }
    }

    fn cancel_all(&mut self, order: &[u32]) {
        let _guard = self.clock.enter();
        for &at in order {
            if let Some(key) = &self.keys[at as usize] {
                self.queue.remove(key);
            }
        }
    }

    fn tick_all(&mut self, last: u32, _: u32, seen: &mut dyn FnMut(Tick) -> bool) {
        self.clock.tick_all(&mut self.queue, last, seen, |id| {
            std::hint::black_box(id);
        });
    }

    fn handle_bytes(&self) -> usize {
        self.keys.capacity() * size_of::<Option<Key>>()
    }
}

/// What a timer is known by.
pub(crate) trait Name: Copy + Debug + Eq + Hash {
    /// The name of timer `id`.
    fn of(id: u32) -> Self;
}

impl Name for u32 {
    fn of(id: u32) -> Self {
        id
    }
}

/// The `hierarchical_hash_wheel_timer` crate's cancellable wheel, whose map from name to timer is part of it.
pub(crate) struct Hhwt<N: Name> {
    wheel: QuadWheelWithOverflow<IdOnlyTimerEntry<N>>,
}

impl<N: Name> Hhwt<N> {
    pub(crate) fn new() -> Self {
        Self {
            wheel: QuadWheelWithOverflow::new(),
        }
    }

    fn insert(&mut self, id: u32, delay: u32) {
        let inserted = self.wheel.insert(IdOnlyTimerEntry {
            id: N::of(id),
            delay: ms(delay),
        });
        debug_assert!(inserted.is_ok(), "every delay lies ahead");
    }

    fn cancel(&mut self, id: u32) {
        let cancelled = self.wheel.cancel(&N::of(id));
        debug_assert!(cancelled.is_ok(), "every timer is pending");
    }
}

impl<N: Name> Subject for Hhwt<N> {
    fn insert_all(&mut self, delays: &[u32]) {
        for (id, &delay) in (0..).zip(delays) {
            self.insert(id, delay);
        }
    }

    fn reschedule_all(&mut self, order: &[u32], delays: &[u32]) {
        for (&id, &delay) in order.iter().zip(delays) {
            self.cancel(id);
            self.insert(id, delay);
        }
    }

    fn cancel_all(&mut self, order: &[u32]) {
        order.iter().for_each(|&id| self.cancel(id));
    }

    fn tick_all(&mut self, last: u32, _: u32, seen: &mut dyn FnMut(Tick) -> bool) {
        ticks(last, seen, |_| {
            let fired = self.wheel.tick();
            let count = fired.len() as u32;
            drop(std::hint::black_box(fired));
            (count, false)
        });
    }
}
