//! A handler returns the outcome of its run.

use std::any::Any;
use std::fmt::Display;
use std::time::Duration;

/// The outcome of a run.
///
/// Handlers mostly return `()`, which is `Done`, or a `Result`, of which an error is `Failed` with
/// its text. A `Result<Outcome, E>` does both:
///
/// ```
/// use std::time::Duration;
/// use tidewheel_tasks::{IntoOutcome, Outcome};
///
/// fn deliver(status: &str) -> Result<Outcome, std::num::ParseIntError> {
///     Ok(match status.parse()? {
///         200 => Outcome::Done,
///         404 => Outcome::dead("no such mailbox"),
///         503 => Outcome::retry_after(Duration::from_secs(60), "busy"),
///         other => Outcome::failed(format_args!("status {other}")),
///     })
/// }
///
/// assert_eq!(deliver("200").into_outcome(), Outcome::Done);
/// assert_eq!(deliver("404").into_outcome(), Outcome::dead("no such mailbox"));
/// assert!(matches!(deliver("?").into_outcome(), Outcome::Failed { after: None, .. }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The task is over.
    Done,
    /// The task runs again, by the rules of [`Retry`](crate::Retry); after the last attempt it is
    /// dead.
    Failed {
        /// The error, for people. At most 1,000 bytes are kept.
        error: String,
        /// The wait before the next attempt, instead of that of `Retry`: a server's `Retry-After`,
        /// for example. The number of attempts stays bounded.
        after: Option<Duration>,
    },
    /// The task will never succeed: it becomes a dead letter at once.
    Dead {
        /// The error, for people. At most 1,000 bytes are kept.
        error: String,
    },
}

impl Outcome {
    /// The run failed, and is retried by the rules.
    pub fn failed(error: impl Display) -> Self {
        Self::Failed {
            error: error.to_string(),
            after: None,
        }
    }

    /// The run failed, and is retried after a given time.
    pub fn retry_after(after: Duration, error: impl Display) -> Self {
        Self::Failed {
            error: error.to_string(),
            after: Some(after),
        }
    }

    /// The task is given up.
    pub fn dead(error: impl Display) -> Self {
        Self::Dead {
            error: error.to_string(),
        }
    }

    /// The outcome of a panic, with its message.
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self::failed(format_args!("panicked: {}", text.unwrap_or("no message")))
    }
}

/// A type that a handler may return.
pub trait IntoOutcome {
    /// The outcome of the run.
    fn into_outcome(self) -> Outcome;
}

impl IntoOutcome for Outcome {
    fn into_outcome(self) -> Outcome {
        self
    }
}

impl IntoOutcome for () {
    fn into_outcome(self) -> Outcome {
        Outcome::Done
    }
}

/// The outcome of `()` or of an [`Outcome`]: a handler that says in one arm how its run ended may
/// use `?` in the others.
impl<T: IntoOutcome, E: Display> IntoOutcome for Result<T, E> {
    fn into_outcome(self) -> Outcome {
        match self {
            Ok(end) => end.into_outcome(),
            Err(error) => Outcome::failed(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_keeps_its_message() {
        let text = |outcome| match outcome {
            Outcome::Failed { error, .. } => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(text(Outcome::panicked(&"static")), "panicked: static");
        assert_eq!(
            text(Outcome::panicked(&"of it".to_owned())),
            "panicked: of it"
        );
        assert_eq!(text(Outcome::panicked(&7)), "panicked: no message");
    }
}
