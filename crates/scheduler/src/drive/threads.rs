//! A running scheduler has one thread that keeps time, and others that run handlers.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::drive::inner::Inner;
use crate::drive::timing::keep_time;
use crate::ground::error::Error;

/// The threads of one scheduler.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    pub(crate) timing: Option<JoinHandle<()>>,
    pub(crate) workers: Vec<JoinHandle<()>>,
}

impl Threads {
    pub(crate) fn start<K, V, S>(
        inner: &Arc<Inner<K, V, S>>,
        name: &str,
        workers: usize,
    ) -> Result<Self, Error>
    where
        K: Hash + Eq + Send + 'static,
        V: Send + 'static,
        S: BuildHasher + Send + Sync + 'static,
    {
        let mut threads = Self::default();
        for _ in 0..workers {
            let worker = Arc::clone(inner);
            let spawned = spawn(format!("{name}-worker"), move || work(&worker));
            threads.workers.push(threads.or_end_all(inner, spawned)?);
        }
        let timing = Arc::clone(inner);
        let spawned = spawn(format!("{name}-timing"), move || keep_time(&timing));
        threads.timing = Some(threads.or_end_all(inner, spawned)?);
        Ok(threads)
    }

    /// The thread, if it was started; if not, the other ones end.
    fn or_end_all<K, V, S>(
        &self,
        inner: &Inner<K, V, S>,
        spawned: std::io::Result<JoinHandle<()>>,
    ) -> Result<JoinHandle<()>, Error> {
        spawned.map_err(|error| {
            // The workers find the queue closed and end.
            inner.queue.close();
            Error::Thread(error)
        })
    }
}

/// A worker: runs tasks from the queue until the queue is closed and empty.
fn work<K: Hash + Eq, V, S: BuildHasher>(inner: &Arc<Inner<K, V, S>>) {
    while let Some((task, wake_timing)) = inner.queue.take() {
        if wake_timing {
            inner.alarm.ask();
        }
        inner.run(task);
        inner.queue.done();
    }
}

/// True if a thread is another than this one. A thread cannot wait for itself, and the scheduler's
/// last owner may be a value that is dropped on one of its own.
pub(crate) fn is_another(thread: &JoinHandle<()>) -> bool {
    thread.thread().id() != thread::current().id()
}

fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    if name.contains('\0') {
        // The standard library would panic.
        let why = "its name has a NUL character";
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, why));
    }
    thread::Builder::new().name(name).spawn(body)
}
