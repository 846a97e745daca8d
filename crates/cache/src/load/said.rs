//! What a loader may return that says how long its value lives: four shapes, each with its own
//! answer.

use std::convert::Infallible;
use std::sync::Arc;

use super::{Answer, Said, never};
use crate::loaded::{Loaded, Presence};

/// What the loader of [`Cache::get_or_load_with`](crate::Cache::get_or_load_with) returns, and what
/// the caller gets for it:
///
/// | the loader returns | the caller gets |
/// |---|---|
/// | [`Loaded<V>`] | `V` |
/// | `Option<Loaded<V>>`: there may be no such thing | `Option<V>` |
/// | `Result<Loaded<V>, E>`: it may fail | `Result<V, Arc<E>>` |
/// | `Result<Option<Loaded<V>>, E>`: both | `Result<Option<V>, Arc<E>>` |
/// | [`Presence<V>`], `Result<Presence<V>, E>`: these say for how long an absence is remembered | `Option<V>`, `Result<Option<V>, Arc<E>>` |
///
/// There are no other implementations.
#[diagnostic::on_unimplemented(
    message = "this loader does not say how long its value lives",
    label = "returns `{Self}`",
    note = "return `Loaded::new(value, lifetime)`, or that in `Some`, `Ok` or `Ok(Some(..))`",
    note = "`Presence` says for how long an absence is remembered",
    note = "for a plain value call `get_or_load`, `try_get_or_load` or `optionally_get_or_load`"
)]
pub trait LoaderResult<V>: Shape {
    /// What the caller gets.
    type Answer;
    /// The loader's error.
    type Error: Send + Sync + 'static;
    /// Whether an absence is an answer.
    #[doc(hidden)]
    const MAY_BE_ABSENT: bool;
    #[doc(hidden)]
    fn said(self) -> Said<V, Self::Error>;
    #[doc(hidden)]
    fn answer(answer: Answer<V, Self::Error>) -> Self::Answer;
}

/// Nobody else implements [`LoaderResult`], so that there may be more shapes one day.
#[expect(unnameable_types, reason = "a seal")]
pub trait Shape {}

impl<V> Shape for Loaded<V> {}
impl<V> Shape for Option<Loaded<V>> {}
impl<V, E> Shape for Result<Loaded<V>, E> {}
impl<V, E> Shape for Result<Option<Loaded<V>>, E> {}
impl<V> Shape for Presence<V> {}
impl<V, E> Shape for Result<Presence<V>, E> {}

impl<V> LoaderResult<V> for Loaded<V> {
    type Answer = V;
    type Error = Infallible;
    const MAY_BE_ABSENT: bool = false;

    fn said(self) -> Said<V, Infallible> {
        Ok(self.into())
    }

    fn answer(answer: Answer<V, Infallible>) -> V {
        present(answer.unwrap_or_else(|error| never(&error)))
    }
}

impl<V> LoaderResult<V> for Option<Loaded<V>> {
    type Answer = Option<V>;
    type Error = Infallible;
    const MAY_BE_ABSENT: bool = true;

    fn said(self) -> Said<V, Infallible> {
        Ok(self.into())
    }

    fn answer(answer: Answer<V, Infallible>) -> Option<V> {
        answer.unwrap_or_else(|error| never(&error))
    }
}

impl<V> LoaderResult<V> for Presence<V> {
    type Answer = Option<V>;
    type Error = Infallible;
    const MAY_BE_ABSENT: bool = true;

    fn said(self) -> Said<V, Infallible> {
        Ok(self)
    }

    fn answer(answer: Answer<V, Infallible>) -> Option<V> {
        answer.unwrap_or_else(|error| never(&error))
    }
}

impl<V, E: Send + Sync + 'static> LoaderResult<V> for Result<Loaded<V>, E> {
    type Answer = Result<V, Arc<E>>;
    type Error = E;
    const MAY_BE_ABSENT: bool = false;

    fn said(self) -> Said<V, E> {
        self.map(Into::into)
    }

    fn answer(answer: Answer<V, E>) -> Result<V, Arc<E>> {
        answer.map(present)
    }
}

impl<V, E: Send + Sync + 'static> LoaderResult<V> for Result<Option<Loaded<V>>, E> {
    type Answer = Answer<V, E>;
    type Error = E;
    const MAY_BE_ABSENT: bool = true;

    fn said(self) -> Said<V, E> {
        self.map(Into::into)
    }

    fn answer(answer: Answer<V, E>) -> Answer<V, E> {
        answer
    }
}

impl<V, E: Send + Sync + 'static> LoaderResult<V> for Result<Presence<V>, E> {
    type Answer = Answer<V, E>;
    type Error = E;
    const MAY_BE_ABSENT: bool = true;

    fn said(self) -> Self {
        self
    }

    fn answer(answer: Answer<V, E>) -> Answer<V, E> {
        answer
    }
}

/// The value of a load whose loader knows no absence.
pub(crate) fn present<V>(value: Option<V>) -> V {
    value.expect("this loader has a value or fails")
}
