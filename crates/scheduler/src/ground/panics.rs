//! Panics of user code are caught, so that they end no thread of ours.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs user code; `None` when it panicked.
pub(crate) fn survive<R>(body: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => Some(result),
        Err(payload) => {
            discard(payload);
            None
        }
    }
}

/// Gives all items to `body`, also after it has panicked; then goes on with its first panic.
pub(crate) fn give_all<T>(items: impl IntoIterator<Item = T>, mut body: impl FnMut(T)) {
    let mut first = None;
    for item in items {
        match catch_unwind(AssertUnwindSafe(|| body(item))) {
            Err(payload) if first.is_none() => first = Some(payload),
            Err(payload) => discard(payload),
            Ok(()) => {}
        }
    }
    if let Some(payload) = first {
        resume_unwind(payload);
    }
}

/// Drops the payload of a panic. Its own `Drop` may panic too.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // Bounded: it leaks only what panics twice.
        std::mem::forget(second);
    }
}
