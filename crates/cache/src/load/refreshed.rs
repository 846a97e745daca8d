//! The types that a refresher may return: a value, with or without a lifetime of its own, or an
//! absence.

use std::convert::Infallible;
use std::sync::Arc;

use super::{LoaderAnswer, plain, plain_or_absent};
use crate::loaded::{Loaded, Presence};
use crate::shard::flight::Negative;
use crate::shard::refresher::Refreshed;

/// The result type of a refresher for [`Builder::refresh_with`](crate::Builder::refresh_with):
///
/// | the refresher returns | |
/// |---|---|
/// | `Result<V, E>`, `Result<Loaded<V>, E>` | it may fail |
/// | `Result<Option<V>, E>`, `Result<Option<Loaded<V>>, E>` | there may be no such thing any more: the old value goes |
/// | [`Loaded<V>`], `Option<Loaded<V>>` | the same of one that cannot fail |
/// | [`Presence<V>`], `Result<Presence<V>, E>` | the same, and for how long an absence is remembered |
///
/// There are no other implementations.
#[diagnostic::on_unimplemented(
    message = "this refresher does not return a value of the cache",
    label = "returns `{Self}`",
    note = "return `Result<V, E>`; in place of `V` also `Loaded<V>`, `Option<V>` or `Option<Loaded<V>>`"
)]
pub trait RefresherResult<V>: RefresherShape {
    /// The refresher's error.
    #[doc(hidden)]
    type Error: Send + Sync + 'static;
    #[doc(hidden)]
    fn into_answer(self) -> LoaderAnswer<V, Self::Error>;
}

/// A seal: no other crate implements [`RefresherResult`], so that more types can be added.
#[expect(unnameable_types, reason = "a seal")]
pub trait RefresherShape {}

impl<T, E> RefresherShape for Result<T, E> {}
impl<V> RefresherShape for Option<Loaded<V>> {}
impl<V> RefresherShape for Loaded<V> {}
impl<V> RefresherShape for Presence<V> {}

impl<V, E: Send + Sync + 'static> RefresherResult<V> for Result<V, E> {
    type Error = E;

    fn into_answer(self) -> LoaderAnswer<V, E> {
        self.map(plain)
    }
}

impl<V, E: Send + Sync + 'static> RefresherResult<V> for Result<Option<V>, E> {
    type Error = E;

    fn into_answer(self) -> LoaderAnswer<V, E> {
        self.map(plain_or_absent)
    }
}

impl<V, E: Send + Sync + 'static> RefresherResult<V> for Result<Loaded<V>, E> {
    type Error = E;

    fn into_answer(self) -> LoaderAnswer<V, E> {
        self.map(Into::into)
    }
}

impl<V, E: Send + Sync + 'static> RefresherResult<V> for Result<Option<Loaded<V>>, E> {
    type Error = E;

    fn into_answer(self) -> LoaderAnswer<V, E> {
        self.map(Into::into)
    }
}

impl<V, E: Send + Sync + 'static> RefresherResult<V> for Result<Presence<V>, E> {
    type Error = E;

    fn into_answer(self) -> Self {
        self
    }
}

impl<V> RefresherResult<V> for Presence<V> {
    type Error = Infallible;

    fn into_answer(self) -> LoaderAnswer<V, Infallible> {
        Ok(self)
    }
}

impl<V> RefresherResult<V> for Loaded<V> {
    type Error = Infallible;

    fn into_answer(self) -> LoaderAnswer<V, Infallible> {
        Ok(self.into())
    }
}

impl<V> RefresherResult<V> for Option<Loaded<V>> {
    type Error = Infallible;

    fn into_answer(self) -> LoaderAnswer<V, Infallible> {
        Ok(self.into())
    }
}

/// Converts a refresher's result for the core.
pub(crate) fn refreshed<V>(answer: impl RefresherResult<V>) -> Refreshed<V> {
    answer
        .into_answer()
        .map_err(|error| Negative::error(&Arc::new(error)))
}
