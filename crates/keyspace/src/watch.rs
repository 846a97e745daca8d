//! WATCH: the keys that a client watches, and a mark that is set when one has changed.
//!
//! A shard with watched keys has an observer: the funnel tells it each change, and it marks those
//! who watch the key. So a transaction needs to look at one flag, while it holds the locks of all
//! keys that it watches.

use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::claims::{Blocked, ShardAction};
use crate::context::Context;
use crate::gate::Seat;
use crate::keyspace::Keyspace;
use crate::session::Session;
use crate::shard::Hold;
use crate::time::{Now, Time};

/// The keys that one client watches. [`Keyspace::watch`] adds to them; hand them to
/// [`Keyspace::unwatch`] in the end.
#[derive(Debug, Default)]
pub struct Watching {
    changed: Arc<AtomicBool>,
    /// By database and name: the tick at which a key was watched. What had died by then was no key,
    /// so its removal changes nothing.
    keys: BTreeMap<(u32, Box<[u8]>), u64>,
    bytes: usize,
}

/// Tells whether a key that a client watches has changed.
#[derive(Debug, Clone)]
pub struct WatchMark(Arc<AtomicBool>);

impl WatchMark {
    /// True if a key has changed. Says nothing about one that is dead and not yet removed.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

impl Watching {
    /// A mark for other threads, which tells whether a key has changed.
    #[must_use]
    pub fn mark(&self) -> WatchMark {
        WatchMark(Arc::clone(&self.changed))
    }

    /// True if a watched key has changed. Says nothing about one that is dead and not yet removed.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.changed.load(Relaxed)
    }

    /// True if no key is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The number of watched keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes held, here and in the shards.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.keys().map(|(_, key)| &**key)
    }
}

/// Bytes of one watched key beside its name, which is kept twice.
const WATCHED_KEY_BYTES: usize = 128;

impl Keyspace {
    /// Watches one more key of a database. O(log n) in the keys that are watched.
    ///
    /// # Errors
    ///
    /// If another has the key's shard for long. Those watched so far may be watched again.
    pub fn watch(
        &self,
        seat: &mut Seat,
        time: Time,
        db: u32,
        key: &[u8],
        watching: &mut Watching,
    ) -> Result<(), Blocked> {
        let Entry::Vacant(place) = watching.keys.entry((db, key.into())) else {
            return Ok(());
        };
        let since = self.look(seat, time, db, key, |hold, now| {
            hold.watch(db, self.key(key), now.tick, &watching.changed);
            now.tick
        })?;
        place.insert(since);
        watching.bytes += 2 * key.len() + WATCHED_KEY_BYTES;
        Ok(())
    }

    /// Removes a key if it is dead, then looks at its shard.
    fn look<R>(
        &self,
        seat: &mut Seat,
        time: Time,
        db: u32,
        key: &[u8],
        look: impl FnOnce(&mut Hold<'_>, &Now) -> R,
    ) -> Result<R, Blocked> {
        let _visit = seat.visit();
        let now = Now::of(&self.timeline, time);
        let mut session = Session {
            db,
            ..Session::default()
        };
        let mut out = tidewheel_resp::Writer::new(tidewheel_resp::Protocol::Resp2);
        let args = tidewheel_resp::Args::from_slices(&[]);
        let mut context = Context::new(self, &mut session, now, args, &mut out, None);
        context.lock_briefly(key)?;
        context.find_at(self.key(key), db);
        let now = context.now;
        let seen = look(context.locked(), &now);
        context.finish();
        Ok(seen)
    }

    /// Removes what is dead of the watched keys. A key that loses something by that is marked.
    pub(crate) fn remove_watched_dead(
        &self,
        seat: &mut Seat,
        time: Time,
        watching: &Watching,
    ) -> Result<(), Blocked> {
        let mut keys = watching.keys.keys();
        keys.try_for_each(|(db, key)| self.look(seat, time, *db, key, |_, _| ()))
    }

    /// Watches nothing any more.
    pub fn unwatch(&self, watching: Watching) {
        for ((db, key), _) in watching.keys {
            let changed = Arc::clone(&watching.changed);
            let shard = self.key(&key).shard;
            let unwatch: ShardAction = Box::new(move |hold| hold.unwatch(db, &key, &changed));
            drop(self.act_on(shard, unwatch));
        }
    }

    /// True if a watched key has changed, or its deadline was reached since. The locks are those of
    /// the keys' shards.
    pub(crate) fn is_changed(
        &self,
        watching: &Watching,
        locks: &[(usize, Hold<'_>)],
        now: &Now,
    ) -> bool {
        let died = |((db, key), since): (&(u32, Box<[u8]>), &u64)| {
            let key = self.key(key);
            let at = locks.binary_search_by_key(&key.shard, |(shard, _)| *shard);
            at.is_ok_and(|at| {
                let entries = locks[at].1.entries(*db);
                let deadline = entries
                    .look(key.hash, key.bytes)
                    .and_then(|seen| seen.deadline());
                // Of a collection it may be a member's, or earlier than all: then ask again once
                // what is dead was removed.
                deadline.is_some_and(|deadline| now.reached(deadline) && deadline > *since)
            })
        };
        watching.is_changed() || watching.keys.iter().any(died)
    }
}
