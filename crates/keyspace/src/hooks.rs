//! What the keyspace asks of its shell.

use crate::garbage::Garbage;
use crate::waiters::Served;

/// What the keyspace asks of its shell. No shard is locked during `wake` and `reclaim`.
pub trait Hooks: Send + Sync {
    /// A shard's published deadline became earlier: the thread that sleeps until it must look again. `deadline` is in
    /// clock ticks, as [`Keyspace::next_deadline`](crate::Keyspace::next_deadline) gives it.
    fn wake(&self, shard: usize, deadline: u64);

    /// Large values or whole stores to drop away from the loop that serves clients.
    fn reclaim(&self, garbage: Garbage);

    /// Monotonic nanoseconds of the clock that [`Time`](crate::Time) comes from. They measure how long a lock was held,
    /// and how long making room took. Called under shard locks.
    fn stopwatch_ns(&self) -> u64;

    /// A command that waited was served, or can be. Nothing is locked. It is called only if a session names a
    /// [`Waiter`](crate::Waiter).
    fn served(&self, served: Served) {
        drop(served);
    }
}
