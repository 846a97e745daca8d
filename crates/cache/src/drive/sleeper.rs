//! The runtime's timer, shared by many caches. A panic of the timer reaches the future that polls
//! the caches, and no cache. Compiled as the registry is, which uses it.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::drive::task_set::BoxFuture;
use crate::quiet::forget_quietly;
use crate::sync::{Mutex, lock};

/// The payload of a panic.
type PanicPayload = Box<dyn Any + Send>;

/// The runtime's timer, whatever its type. A task set contains the panics of a cache; those of the
/// timer get past it.
#[derive(Clone)]
pub(crate) struct Sleeper {
    timer: Arc<dyn Fn(Duration) -> BoxFuture<'static> + Send + Sync>,
    panics: Arc<Panics>,
}

/// The first panic that was not taken yet.
struct Panics(Mutex<Option<PanicPayload>>);

/// One sleep. After a panic it does not end.
pub(crate) struct RuntimeSleep {
    timer: Option<BoxFuture<'static>>,
    panics: Arc<Panics>,
}

impl Sleeper {
    pub(crate) fn new<T, F>(sleep: T) -> Self
    where
        T: Fn(Duration) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        Self {
            timer: Arc::new(move |duration| Box::pin(sleep(duration))),
            panics: Arc::new(Panics(Mutex::new(None))),
        }
    }

    #[inline]
    pub(crate) fn sleep(&self, duration: Duration) -> RuntimeSleep {
        RuntimeSleep {
            timer: self.panics.catch(|| (self.timer)(duration)),
            panics: Arc::clone(&self.panics),
        }
    }

    /// The panic of a sleep, if there was one.
    #[inline]
    pub(crate) fn take_panic(&self) -> Option<PanicPayload> {
        lock(&self.panics.0).take()
    }
}

impl Panics {
    #[inline]
    fn catch<R>(&self, act: impl FnOnce() -> R) -> Option<R> {
        catch_unwind(AssertUnwindSafe(act))
            .map_err(|panic| self.keep(panic))
            .ok()
    }

    #[inline]
    fn keep(&self, panic: PanicPayload) {
        let mut first = lock(&self.0);
        if first.is_none() {
            *first = Some(panic);
            return;
        }
        drop(first);
        forget_quietly(panic);
    }
}

impl Future for RuntimeSleep {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { timer, panics } = &mut *self;
        let Some(timer) = timer else {
            return Poll::Pending;
        };
        let polled = panics.catch(|| timer.as_mut().poll(context));
        polled.unwrap_or(Poll::Pending)
    }
}

impl Drop for RuntimeSleep {
    #[inline]
    fn drop(&mut self) {
        let timer = self.timer.take();
        self.panics.catch(|| drop(timer));
    }
}
