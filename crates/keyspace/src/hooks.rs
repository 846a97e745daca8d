//! The interface through which the keyspace calls its shell.

use std::sync::Arc;

use crate::garbage::Garbage;
use crate::waiters::{Served, Ticket, Waiter};

/// The functions of the shell that the keyspace calls. No shard is locked during `wake` and
/// `reclaim`.
pub trait Hooks: Send + Sync {
    /// A shard's published deadline became earlier: the thread that sleeps until it must look
    /// again. `deadline` is in clock ticks, as
    /// [`Keyspace::next_deadline`](crate::Keyspace::next_deadline) gives it.
    fn wake(&self, shard: usize, deadline: u64);

    /// Large values or whole stores to drop away from the loop that serves clients.
    fn reclaim(&self, garbage: Garbage);

    /// Monotonic nanoseconds of the clock that [`Time`](crate::Time) comes from. They measure how
    /// long a lock was held, and how long making room took. Called under shard locks.
    fn stopwatch_ns(&self) -> u64;

    /// A command that waited was served, or can be. Nothing is locked. It is called only if a
    /// session names a [`Waiter`].
    fn served(&self, served: Served) {
        drop(served);
    }

    /// A long command may begin: some thread that is no event loop is to call
    /// [`Keyspace::run_long`](crate::Keyspace::run_long). Nothing is locked. It is called only if a
    /// session names a [`Waiter`].
    fn run_long(&self, ticket: Arc<Ticket>) {
        drop(ticket);
    }

    /// Keys are invalid that these clients track; all that they have read, if there are none named.
    /// No shard is locked.
    fn invalidate(&self, clients: &[Waiter], keys: Option<&[&[u8]]>) {
        let _ = (clients, keys);
    }

    /// A client that was [parked](crate::Keyspace::park) may try again. Nothing is locked.
    fn go_on(&self, waiter: Waiter) {
        let _ = waiter;
    }
}
