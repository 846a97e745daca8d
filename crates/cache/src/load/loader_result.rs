//! The types that a loader may return to state how long its value lives, the answer that the caller
//! gets for each, and the types that a refresher may return.

use std::convert::Infallible;
use std::sync::Arc;

use super::{CallerAnswer, LoaderAnswer, infallible};
use crate::loaded::{Loaded, Presence};
use crate::shard::config::Refreshed;
use crate::shard::flight::Negative;

/// The result type of a loader for [`Fetch::load_with`](crate::Fetch::load_with), and
/// the answer that the caller gets for it:
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
pub trait LoaderResult<V>: LoaderShape {
    /// The type of the caller's answer.
    type Answer;
    /// The loader's error.
    type Error: Send + Sync + 'static;
    /// True if an absence is an answer.
    #[doc(hidden)]
    const MAY_BE_ABSENT: bool;
    #[doc(hidden)]
    fn into_answer(self) -> LoaderAnswer<V, Self::Error>;
    #[doc(hidden)]
    fn answer(answer: CallerAnswer<V, Self::Error>) -> Self::Answer;
}

/// A seal: no other crate implements [`LoaderResult`], so that more types can be added.
#[expect(unnameable_types, reason = "a seal")]
pub trait LoaderShape {}

/// One row for each type that a loader, and so a refresher, may return: the caller's answer, the
/// loader's error, whether an absence is an answer, and how both are made.
macro_rules! loader_results {
    ($([$($generics:tt)+] $result:ty: $answer:ty, $error:ty, $absent:literal, $into:expr, $caller:expr;)+) => {$(
        impl<$($generics)+> LoaderShape for $result {}

        impl<$($generics)+> LoaderResult<V> for $result {
            type Answer = $answer;
            type Error = $error;
            const MAY_BE_ABSENT: bool = $absent;

            fn into_answer(self) -> LoaderAnswer<V, $error> {
                $into(self)
            }

            fn answer(answer: CallerAnswer<V, $error>) -> $answer {
                $caller(answer)
            }
        }

        impl<$($generics)+> RefresherResult<V> for $result {
            type Error = $error;

            fn into_answer(self) -> LoaderAnswer<V, $error> {
                $into(self)
            }
        }
    )+};
}

loader_results! {
    [V] Loaded<V>: V, Infallible, false, cannot_fail, |answer| present(infallible(answer));
    [V] Option<Loaded<V>>: Option<V>, Infallible, true, cannot_fail, infallible;
    [V] Presence<V>: Option<V>, Infallible, true, cannot_fail, infallible;
    [V, E: Send + Sync + 'static] Result<Loaded<V>, E>:
        Result<V, Arc<E>>, E, false, can_fail, |answer: CallerAnswer<V, E>| answer.map(present);
    [V, E: Send + Sync + 'static] Result<Option<Loaded<V>>, E>:
        CallerAnswer<V, E>, E, true, can_fail, std::convert::identity;
    [V, E: Send + Sync + 'static] Result<Presence<V>, E>:
        CallerAnswer<V, E>, E, true, can_fail, std::convert::identity;
}

/// The answer of a loader that cannot fail.
fn cannot_fail<V, E>(answer: impl Into<Presence<V>>) -> LoaderAnswer<V, E> {
    Ok(answer.into())
}

/// The answer of a loader that can.
fn can_fail<V, E>(answer: Result<impl Into<Presence<V>>, E>) -> LoaderAnswer<V, E> {
    answer.map(Into::into)
}

/// The value of a load whose loader knows no absence.
fn present<V>(value: Option<V>) -> V {
    value.expect("this loader has a value or fails")
}

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
        Ok(Presence::Present(self?.into()))
    }
}

impl<V, E: Send + Sync + 'static> RefresherResult<V> for Result<Option<V>, E> {
    type Error = E;

    fn into_answer(self) -> LoaderAnswer<V, E> {
        Ok(self?.map(Loaded::from).into())
    }
}

/// Converts a refresher's result for the core.
pub(crate) fn refreshed<V>(answer: impl RefresherResult<V>) -> Refreshed<V> {
    answer
        .into_answer()
        .map_err(|error| Negative::error(&Arc::new(error)))
}
