//! The threads that work for one cache or many: one for expiry, one for listeners, some for refreshes.

use std::hash::{BuildHasher, Hash};
use std::io;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use crate::core::inner::Inner;
use crate::core::parties::{Kind, Party};
use crate::drive::cycle::Role;
use crate::drive::desk::Desk;
use crate::drive::pool::{Pool, Refreshes};
use crate::drive::turns::Pace;
use crate::sync::{Mutex, lock};

/// The threads of one driver. They start when a cache joins that needs them.
#[derive(Debug)]
pub(crate) struct Crew(Arc<Rooms>);

/// What the threads share: where they work, and who they are.
#[derive(Debug)]
struct Rooms {
    name: String,
    expiry: Desk,
    events: Desk,
    refreshes: Pool,
    threads: Mutex<Threads>,
}

#[derive(Debug, Default)]
struct Threads {
    expiry: bool,
    events: bool,
    handles: Vec<JoinHandle<()>>,
}

impl Crew {
    pub(crate) fn new(name: &str, refresh_threads: usize) -> Self {
        Self(Arc::new(Rooms {
            name: name.to_string(),
            expiry: Desk::new(),
            events: Desk::new(),
            refreshes: Pool::new(refresh_threads),
            threads: Mutex::new(Threads::default()),
        }))
    }

    /// Works for a cache from now on, until that is closed.
    pub(crate) fn join<K, V, S>(&self, inner: &Arc<Inner<K, V, S>>, pace: Pace) -> io::Result<()>
    where
        K: Hash + Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
        S: BuildHasher + Send + Sync + 'static,
    {
        let (listens, refreshes) = (
            inner.delivery.has_listener(),
            inner.config.refresher.is_some(),
        );
        self.0.start(listens, refreshes)?;
        inner.requests.work_by_threads();
        if refreshes {
            self.refresh(inner);
        }
        if listens {
            let (party, inner) = (thread_of(inner), Arc::clone(inner));
            self.0.events.put(Box::pin(async move {
                let _party = party;
                inner.drive_events(pace).await;
            }));
        }
        let (party, inner) = (thread_of(inner), Arc::clone(inner));
        let sleep = self.0.expiry.sleeper();
        self.0.expiry.put(Box::pin(async move {
            let _party = party;
            inner.drive(Role::Expiry, pace, sleep).await;
        }));
        Ok(())
    }

    /// Has the cache's refreshes run on these threads.
    fn refresh<K, V, S>(&self, inner: &Arc<Inner<K, V, S>>)
    where
        K: Hash + Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
        S: BuildHasher + Send + Sync + 'static,
    {
        let cache: Weak<Inner<K, V, S>> = Arc::downgrade(inner);
        let rooms = Arc::clone(&self.0);
        inner.requests.tell_of_refreshes(move || {
            let Some(cache) = cache.upgrade() else { return };
            if cache.refreshes.begin_runner() && rooms.refreshes.push(cache) {
                // Not started here: a read has caused this.
                rooms.expiry.ask();
            }
        });
    }

    /// The threads end once the caches that they work for have.
    pub(crate) fn end(&self) {
        self.0.expiry.end();
        self.0.events.end();
        self.0.refreshes.end();
    }

    /// Waits until they have.
    pub(crate) fn wait(&self) {
        let handles = std::mem::take(&mut lock(&self.0.threads).handles);
        for handle in handles {
            // A panic there was reported by its hook.
            let _ = handle.join();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.end();
    }
}

fn thread_of<K, V, S>(inner: &Arc<Inner<K, V, S>>) -> Party
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    Party::join(Arc::clone(inner) as _, Kind::Thread)
}

impl Rooms {
    /// Starts the threads that are needed and not there yet.
    fn start(self: &Arc<Self>, listens: bool, refreshes: bool) -> io::Result<()> {
        let mut threads = lock(&self.threads);
        if !threads.expiry {
            let rooms = Arc::clone(self);
            let work = move || rooms.expiry.work(|| rooms.start_refreshing());
            self.spawn(&mut threads, "expiry", work)?;
            threads.expiry = true;
        }
        if listens && !threads.events {
            let rooms = Arc::clone(self);
            self.spawn(&mut threads, "events", move || rooms.events.work(|| ()))?;
            threads.events = true;
        }
        if refreshes && self.refreshes.begin_first() {
            self.spawn_refresher(&mut threads, true)?;
        }
        Ok(())
    }

    /// Starts threads for refreshes as they are wanted.
    fn start_refreshing(self: &Arc<Self>) {
        while self.refreshes.begin_thread() {
            let mut threads = lock(&self.threads);
            threads.handles.retain(|handle| !handle.is_finished());
            if self.spawn_refresher(&mut threads, false).is_err() {
                // There is the first one.
                return;
            }
        }
    }

    fn spawn_refresher(self: &Arc<Self>, threads: &mut Threads, is_first: bool) -> io::Result<()> {
        let rooms = Arc::clone(self);
        let started = self.spawn(threads, "refresh", move || rooms.refreshes.work(is_first));
        if started.is_err() {
            self.refreshes.end_thread();
        }
        started
    }

    fn spawn(
        &self,
        threads: &mut Threads,
        role: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let builder = thread::Builder::new().name(format!("{}-{role}", self.name));
        threads.handles.push(builder.spawn(work)?);
        Ok(())
    }
}

impl<K, V, S> Refreshes for Inner<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    fn run_one(self: Arc<Self>) -> bool {
        let _party = thread_of(&self);
        self.run_refresh()
    }
}
