//! The run of an async handler goes on as a future, which a runtime polls.

use std::future::Future;
use std::hash::{BuildHasher, Hash};
use std::pin::Pin;

use crate::api::builder::Builder;
use crate::api::handle::Handle;
use crate::api::scheduler::Scheduler;
use crate::core::run::Run;
use crate::ground::error::Error;

/// The future of an async handler, as the runtime's `spawn` gets it.
pub type JobFuture = Pin<Box<dyn Future<Output = ()> + Send + 'static>>;

/// A run that goes on as a future. Its end is counted when this is dropped.
struct Going<K, V, S> {
    handle: Handle<K, V, S>,
    has_failed: bool,
}

impl<K, V, S> Going<K, V, S> {
    fn begin(handle: Handle<K, V, S>) -> Self {
        handle.inner().queue.defer();
        Self {
            handle,
            has_failed: true,
        }
    }

    /// The future has come to its end.
    fn end(mut self) {
        self.has_failed = false;
    }
}

impl<K, V, S> Drop for Going<K, V, S> {
    fn drop(&mut self) {
        let inner = self.handle.inner();
        if self.has_failed {
            inner.counters.fail_one();
        }
        inner.queue.ended();
    }
}

impl<K, V, S: BuildHasher + Clone> Builder<K, V, S> {
    /// Starts it with an async handler. `spawn` hands its future to a runtime, whichever it is. One
    /// worker is enough: it calls the handler and `spawn`, and the runtime does the rest.
    /// [`in_flight`](Self::in_flight) bounds the futures. One that panics, or that the runtime
    /// drops, counts as [`failed`](crate::Stats::failed).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidewheel_scheduler::Scheduler;
    ///
    /// #[tokio::main]
    /// async fn main() -> Result<(), tidewheel_scheduler::Error> {
    ///     let (sent, mut mails) = tokio::sync::mpsc::channel(16);
    ///     let runtime = tokio::runtime::Handle::current();
    ///     let scheduler = Scheduler::<u32, &str>::builder().workers(1).start_async(
    ///         move |future| drop(runtime.spawn(future)),
    ///         move |_, run| {
    ///             let sent = sent.clone();
    ///             async move { drop(sent.send(run.value).await) }
    ///         },
    ///     )?;
    ///     scheduler.set(7, "mail", Duration::from_millis(20))?;
    ///     assert_eq!(mails.recv().await, Some("mail"));
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`start`](Self::start).
    pub fn start_async<F>(
        self,
        spawn: impl Fn(JobFuture) + Send + Sync + 'static,
        handler: impl Fn(Handle<K, V, S>, Run<K, V>) -> F + Send + Sync + 'static,
    ) -> Result<Scheduler<K, V, S>, Error>
    where
        K: Hash + Eq + Send + 'static,
        V: Send + 'static,
        S: Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        self.start(move |handle, run| {
            let future = handler(handle.clone(), run);
            let going = Going::begin(handle.clone());
            spawn(Box::pin(async move {
                future.await;
                going.end();
            }));
        })
    }
}
