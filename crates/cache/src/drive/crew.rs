//! The threads that work for one cache or many: one for expiry, one for listeners, some for
//! refreshes.

use std::hash::{BuildHasher, Hash};
use std::io;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use crate::core::hooks::Runs;
use crate::core::inner::Inner;
use crate::core::parties::{Kind, Party};
use crate::core::requests::Requests;
use crate::drive::background::Nothing;
use crate::drive::cycle::End;
use crate::drive::desk::Desk;
use crate::drive::pool::Pool;
use crate::drive::swarm::Work;
use crate::drive::turns::Pace;
use crate::sync::{Mutex, lock};

/// The threads of one driver. They start when a cache joins that needs them.
pub(crate) struct Crew(Arc<Rooms>);

/// What the threads share: where they work, and who they are.
struct Rooms {
    name: String,
    expiry: Desk,
    events: Desk,
    refreshes: Pool,
    threads: Mutex<Threads>,
}

#[derive(Default)]
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

    /// Works for a cache from now on, until that is closed. `E` is how it ends.
    pub(crate) fn join<K, V, S, E>(&self, inner: &Arc<Inner<K, V, S>>, pace: Pace) -> io::Result<()>
    where
        K: Hash + Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
        S: BuildHasher + Send + Sync + 'static,
        E: End,
    {
        let (telling, refreshing) = (&inner.hooks.telling, &inner.hooks.refreshing);
        self.0.start(telling.is_some(), refreshing.is_some())?;
        inner.requests.work_by_threads();
        if let Some(refreshing) = refreshing {
            self.refresh(&inner.requests, (refreshing.runs)(inner));
        }
        if let Some(telling) = telling {
            let work = (telling.drive)(Arc::clone(inner), pace.events);
            self.0.events.put(of_party(thread_of(inner), work));
        }
        let party = thread_of(inner);
        let inner = Arc::clone(inner);
        let sleep = self.0.expiry.sleeper();
        let work = async move { inner.drive::<_, _, E>(Nothing, pace, sleep).await };
        self.0.expiry.put(of_party(party, Box::pin(work)));
        Ok(())
    }

    /// Has the cache's refreshes run on these threads.
    fn refresh(&self, requests: &Requests, cache: Weak<dyn Runs>) {
        let rooms = Arc::clone(&self.0);
        requests.tell_of_refreshes(move || {
            let Some(cache) = cache.upgrade() else { return };
            if cache.begin() && rooms.refreshes.push(cache) {
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
    Party::join(inner, Kind::Thread)
}

/// Work of a party, which leaves when that is done.
fn of_party(party: Party, work: Work<'static>) -> Work<'static> {
    Box::pin(async move {
        let _party = party;
        work.await;
    })
}

impl Rooms {
    /// Starts the threads that are needed and not there yet.
    fn start(self: &Arc<Self>, listens: bool, refreshes: bool) -> io::Result<()> {
        let mut threads = lock(&self.threads);
        if !threads.expiry {
            let rooms = Arc::clone(self);
            let work = move || rooms.expiry.work(&|| rooms.start_refreshing());
            self.spawn(&mut threads, "expiry", Box::new(work))?;
            threads.expiry = true;
        }
        if listens && !threads.events {
            let rooms = Arc::clone(self);
            let work = move || rooms.events.work(&|| ());
            self.spawn(&mut threads, "events", Box::new(work))?;
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
        let started = self.spawn(
            threads,
            "refresh",
            Box::new(move || rooms.refreshes.work(is_first)),
        );
        if started.is_err() {
            self.refreshes.end_thread();
        }
        started
    }

    fn spawn(
        &self,
        threads: &mut Threads,
        role: &str,
        work: Box<dyn FnOnce() + Send>,
    ) -> io::Result<()> {
        if self.name.contains('\0') {
            // The standard library panics.
            let why = "its name has a NUL character";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let builder = thread::Builder::new().name(format!("{}-{role}", self.name));
        threads.handles.push(builder.spawn(work)?);
        Ok(())
    }
}
