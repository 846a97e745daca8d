//! What a refresher may return: a value, with a lifetime of its own or without, and perhaps word that there is none.

use std::convert::Infallible;
use std::sync::Arc;

use super::Said;
use crate::core::flight::Negative;
use crate::core::refreshes::Refreshed;
use crate::lifetime::Loaded;

/// What the refresher of [`Builder::refresh_with`](crate::Builder::refresh_with) returns:
///
/// | the refresher returns | |
/// |---|---|
/// | `Result<V, E>`, `Result<Loaded<V>, E>` | it may fail |
/// | `Result<Option<V>, E>`, `Result<Option<Loaded<V>>, E>` | there may be no such thing any more: the old value goes |
/// | [`Loaded<V>`], `Option<Loaded<V>>` | the same of one that cannot fail |
///
/// There are no other implementations.
#[diagnostic::on_unimplemented(
    message = "this refresher does not return a value of the cache",
    label = "returns `{Self}`",
    note = "return `Result<V, E>`; in place of `V` also `Loaded<V>`, `Option<V>` or `Option<Loaded<V>>`"
)]
pub trait RefresherResult<V>: Shape {
    /// The refresher's error.
    #[doc(hidden)]
    type Error: Send + Sync + 'static;
    #[doc(hidden)]
    fn said(self) -> Said<V, Self::Error>;
}

/// Nobody else implements [`RefresherResult`], so that there may be more shapes one day.
#[expect(unnameable_types, reason = "a seal")]
pub trait Shape {}

impl<T, E> Shape for Result<T, E> {}
impl<V> Shape for Option<Loaded<V>> {}
impl<V> Shape for Loaded<V> {}

impl<V, E: Send + Sync + 'static> RefresherResult<V> for Result<V, E> {
    type Error = E;

    fn said(self) -> Said<V, E> {
        self.map(|value| Some(value.into()))
    }
}

impl<V, E: Send + Sync + 'static> RefresherResult<V> for Result<Option<V>, E> {
    type Error = E;

    fn said(self) -> Said<V, E> {
        self.map(|value| value.map(Into::into))
    }
}

impl<V, E: Send + Sync + 'static> RefresherResult<V> for Result<Loaded<V>, E> {
    type Error = E;

    fn said(self) -> Said<V, E> {
        self.map(Some)
    }
}

impl<V, E: Send + Sync + 'static> RefresherResult<V> for Result<Option<Loaded<V>>, E> {
    type Error = E;

    fn said(self) -> Self {
        self
    }
}

impl<V> RefresherResult<V> for Loaded<V> {
    type Error = Infallible;

    fn said(self) -> Said<V, Infallible> {
        Ok(Some(self))
    }
}

impl<V> RefresherResult<V> for Option<Loaded<V>> {
    type Error = Infallible;

    fn said(self) -> Said<V, Infallible> {
        Ok(self)
    }
}

/// The same for the core.
pub(crate) fn refreshed<V>(said: impl RefresherResult<V>) -> Refreshed<V> {
    match said.said() {
        Ok(found) => found.ok_or(Negative::Absent),
        Err(error) => Err(Negative::error(&Arc::new(error))),
    }
}
