//! Loads: who leads one, who waits for it, and how it ends.
//!
//! A caller first looks the key up under the reader lock. If that does not answer it, it claims
//! the key under the writer's: it leads a new flight (or one whose leader has failed), or joins the
//! one there is. A leader runs its loader without any lock and then ends the flight: under one hold
//! of the lock the flight leaves the table and the value enters the store, so nobody can miss both.

mod claim;
pub(crate) mod fetched;
pub(crate) mod form;
pub(crate) mod latch;
mod lead;
pub(crate) mod loader_result;
mod many;
mod refresh;
mod run;
mod turn;

use std::convert::Infallible;
use std::sync::Arc;

use self::fetched::Fetched;
use crate::loaded::Presence;

/// The error of a loader. It is shared by those who wait for the load, and may be remembered.
pub(crate) trait LoadError: Send + Sync + 'static {}

impl<E: Send + Sync + 'static> LoadError for E {}

/// A caller's answer: `Ok(None)` is an absence.
pub(crate) type CallerAnswer<V, E> = Result<Option<V>, Arc<E>>;

/// A caller's answer with its outcome.
pub(crate) type Found<V, E> = Fetched<CallerAnswer<V, E>, E>;

/// A loader's answer.
pub(crate) type LoaderAnswer<V, E> = Result<Presence<V>, E>;

/// The answer of a loader that cannot fail.
pub(crate) fn infallible<V>(answer: CallerAnswer<V, Infallible>) -> Option<V> {
    answer.unwrap_or_else(|error| match *error {})
}
