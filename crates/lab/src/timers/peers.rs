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
    runtime: &'static Runtime,
    start: Instant,
    /// While this is held, queues can be changed.
    _entered: EnterGuard<'static>,
}

impl Paused {
    /// The clock at its start, and a queue that goes by it. The runtime is leaked, so that it is
    /// entered once and not by each operation.
    pub(crate) fn with_queue<T>() -> Result<(Self, DelayQueue<T>)> {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build();
        let runtime: &Runtime = Box::leak(Box::new(runtime.context("cannot start a runtime")?));
        let _entered = runtime.enter();
        let (queue, start) = (DelayQueue::new(), clock::in_runtime());
        let clock = Self {
            runtime,
            start,
            _entered,
        };
        Ok((clock, queue))
    }

    /// The instant so many ticks after the start.
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
        let course = tokio::task::unconstrained(async move {
            for at in 1..=last {
                tokio::time::advance(ms(1)).await;
                let from = clock::mono_ns();
                let mut fired = 0;
                poll_fn(|context| {
                    while let Poll::Ready(Some(expired)) = queue.poll_expired(context) {
                        take(expired.into_inner());
                        fired += 1;
                    }
                    Poll::Ready(())
                })
                .await;
                let ns = clock::mono_ns() - from;
                if seen(Tick { at, ns, fired }) {
                    return;
                }
            }
        });
        self.runtime.block_on(course);
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
    fn insert(&mut self, id: u32, delay: u32) {
        let key = self.queue.insert_at(id, self.clock.at(delay));
        self.keys[id as usize] = Some(key);
    }

    fn reschedule(&mut self, id: u32, delay: u32) {
        if let Some(key) = &self.keys[id as usize] {
            self.queue.reset_at(key, self.clock.at(delay));
        }
    }

    fn cancel(&mut self, id: u32) {
        if let Some(key) = &self.keys[id as usize] {
            self.queue.remove(key);
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

/// The handle by which a timer is known.
pub(crate) trait Name: Copy + Debug + Eq + Hash {
    /// The name of timer `id`.
    fn of(id: u32) -> Self;
}

impl Name for u32 {
    fn of(id: u32) -> Self {
        id
    }
}

/// The `hierarchical_hash_wheel_timer` crate's cancellable wheel, whose map from name to timer is
/// part of it.
pub(crate) struct Hhwt<N: Name> {
    wheel: QuadWheelWithOverflow<IdOnlyTimerEntry<N>>,
}

impl<N: Name> Hhwt<N> {
    pub(crate) fn new() -> Self {
        Self {
            wheel: QuadWheelWithOverflow::new(),
        }
    }
}

impl<N: Name> Subject for Hhwt<N> {
    fn insert(&mut self, id: u32, delay: u32) {
        let inserted = self.wheel.insert(IdOnlyTimerEntry {
            id: N::of(id),
            delay: ms(delay),
        });
        debug_assert!(inserted.is_ok(), "every delay lies ahead");
    }

    fn reschedule(&mut self, id: u32, delay: u32) {
        self.cancel(id);
        self.insert(id, delay);
    }

    fn cancel(&mut self, id: u32) {
        let cancelled = self.wheel.cancel(&N::of(id));
        debug_assert!(cancelled.is_ok(), "every timer is pending");
    }

    fn tick_all(&mut self, last: u32, _: u32, seen: &mut dyn FnMut(Tick) -> bool) {
        ticks(last, seen, |_| {
            let fired = self.wheel.tick();
            let count = fired.len() as u32;
            drop(std::hint::black_box(fired));
            count
        });
    }
}
