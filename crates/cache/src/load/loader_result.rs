//! The types that a loader may return to state how long its value lives, the answer that the caller
//! gets for each, and the types that a refresher may return.

use std::convert::Infallible;
use std::sync::Arc;

use super::{CallerAnswer, LoaderAnswer, never};
use crate::loaded::{Loaded, Presence};
use crate::shard::flight::Negative;
use crate::shard::refresher::Refreshed;

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

impl<V> LoaderShape for Loaded<V> {}
impl<V> LoaderShape for Option<Loaded<V>> {}
impl<V, E> LoaderShape for Result<Loaded<V>, E> {}
impl<V, E> LoaderShape for Result<Option<Loaded<V>>, E> {}
impl<V> LoaderShape for Presence<V> {}
impl<V, E> LoaderShape for Result<Presence<V>, E> {}

impl<V> LoaderResult<V> for Loaded<V> {
    type Answer = V;
    type Error = Infallible;
    const MAY_BE_ABSENT: bool = false;

    fn into_answer(self) -> LoaderAnswer<V, Infallible> {
        Ok(self.into())
    }

    fn answer(answer: CallerAnswer<V, Infallible>) -> V {
        present(answer.unwrap_or_else(|error| never(&error)))
    }
}

impl<V> LoaderResult<V> for Option<Loaded<V>> {
    type Answer = Option<V>;
    type Error = Infallible;
    const MAY_BE_ABSENT: bool = true;

    fn into_answer(self) -> LoaderAnswer<V, Infallible> {
        Ok(self.into())
    }

    fn answer(answer: CallerAnswer<V, Infallible>) -> Option<V> {
        answer.unwrap_or_else(|error| never(&error))
    }
}

impl<V> LoaderResult<V> for Presence<V> {
    type Answer = Option<V>;
    type Error = Infallible;
    const MAY_BE_ABSENT: bool = true;

    fn into_answer(self) -> LoaderAnswer<V, Infallible> {
        Ok(self)
    }

    fn answer(answer: CallerAnswer<V, Infallible>) -> Option<V> {
        answer.unwrap_or_else(|error| never(&error))
    }
}

impl<V, E: Send + Sync + 'static> LoaderResult<V> for Result<Loaded<V>, E> {
    type Answer = Result<V, Arc<E>>;
    type Error = E;
    const MAY_BE_ABSENT: bool = false;

    fn into_answer(self) -> LoaderAnswer<V, E> {
        self.map(Into::into)
    }

    fn answer(answer: CallerAnswer<V, E>) -> Result<V, Arc<E>> {
        answer.map(present)
    }
}

impl<V, E: Send + Sync + 'static> LoaderResult<V> for Result<Option<Loaded<V>>, E> {
    type Answer = CallerAnswer<V, E>;
    type Error = E;
    const MAY_BE_ABSENT: bool = true;

    fn into_answer(self) -> LoaderAnswer<V, E> {
        self.map(Into::into)
    }

    fn answer(answer: CallerAnswer<V, E>) -> CallerAnswer<V, E> {
        answer
    }
}

impl<V, E: Send + Sync + 'static> LoaderResult<V> for Result<Presence<V>, E> {
    type Answer = CallerAnswer<V, E>;
    type Error = E;
    const MAY_BE_ABSENT: bool = true;

    fn into_answer(self) -> Self {
        self
    }

    fn answer(answer: CallerAnswer<V, E>) -> CallerAnswer<V, E> {
        answer
    }
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

/// A refresher may return all that a loader may.
macro_rules! as_of_a_loader {
    ($([$($generics:tt)+] $result:ty;)+) => {$(
        impl<$($generics)+> RefresherResult<V> for $result {
            type Error = <Self as LoaderResult<V>>::Error;

            fn into_answer(self) -> LoaderAnswer<V, Self::Error> {
                LoaderResult::into_answer(self)
            }
        }
    )+};
}

as_of_a_loader! {
    [V] Loaded<V>;
    [V] Option<Loaded<V>>;
    [V] Presence<V>;
    [V, E: Send + Sync + 'static] Result<Loaded<V>, E>;
    [V, E: Send + Sync + 'static] Result<Option<Loaded<V>>, E>;
    [V, E: Send + Sync + 'static] Result<Presence<V>, E>;
}

/// Converts a refresher's result for the core.
pub(crate) fn refreshed<V>(answer: impl RefresherResult<V>) -> Refreshed<V> {
    answer
        .into_answer()
        .map_err(|error| Negative::error(&Arc::new(error)))
}
