//! The race of bugs 1 and 9: a thread has found an expired entry, and removes it after a fresh
//! value took its place.
//!
//! 1. The first thread finds an expired entry.
//! 2. A writer replaces every entry.
//! 3. The first thread removes what it has found.
//!
//! Where the writer can come between depends on the cache. So the race is run once for each
//! *moment* of the first thread: each time that it reads the clock, or hashes, compares or drops a
//! key. Under a lock the writer has to wait. At every other moment it replaces the entries before
//! the first thread goes on.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::Cache;

use super::stage::{Intruder, LONG, MINUTE, MS, StageClock, Valid, tidewheel};

/// Entries that are dead together: more than a sweep removes in one hold of a lock.
const KEYS: u32 = 40;

/// The time that the first thread waits for the writer, which a lock may hold up.
const PATIENCE: Duration = Duration::from_millis(20);

/// A key that tells the stage each time it is used.
#[derive(Clone)]
pub(crate) struct Key {
    number: u32,
    clock: StageClock,
}

impl Key {
    pub(crate) fn new(number: u32, clock: &StageClock) -> Self {
        let clock = clock.clone();
        Self { number, clock }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.clock.moment();
        self.number.hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.clock.moment();
        self.number == other.number
    }
}

impl Eq for Key {}

impl Drop for Key {
    fn drop(&mut self) {
        self.clock.moment();
    }
}

/// The script's view of a cache.
pub(crate) trait LazyCache: Send + Sync {
    fn get(&self, key: u32) -> Option<&'static str>;
    fn set(&self, key: u32, value: &'static str, ttl: Duration);
    /// Removes what is dead.
    fn sweep(&self);
    /// Entries, dead ones included.
    fn len(&self) -> usize;
}

struct Ours {
    clock: StageClock,
    cache: Cache<Key, &'static str>,
}

/// Tidewheel with one shard, on the stage's clock.
pub(crate) fn ours(clock: &StageClock) -> Arc<dyn LazyCache> {
    let cache = tidewheel(clock).shards(1).valid();
    let clock = clock.clone();
    Arc::new(Ours { clock, cache })
}

impl LazyCache for Ours {
    fn get(&self, key: u32) -> Option<&'static str> {
        self.cache.get(&Key::new(key, &self.clock))
    }

    fn set(&self, key: u32, value: &'static str, ttl: Duration) {
        let key = Key::new(key, &self.clock);
        self.cache.insert_with_ttl(key, value, ttl);
    }

    fn sweep(&self) {
        self.cache.advance(self.cache.now(), u32::MAX);
    }

    fn len(&self) -> usize {
        self.cache.len()
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.cache.validate();
    }
}

/// The thread that finds the dead entries.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MetBy {
    Reader,
    Sweeper,
}

/// At which moments the writer steps in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    /// Right after the clock was read: the faulty caches hold no lock then.
    Read,
    /// At all of them.
    Any,
}

/// The result of the races.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Moments at which a writer stepped in.
    pub(crate) moments: u32,
    /// Moments among these at which the sweep was half done, and the writer did not have to wait.
    pub(crate) in_the_middle: u32,
    /// Fresh values that were gone afterwards.
    pub(crate) lost: usize,
}

/// Lets a writer replace all dead entries, once at each moment of a reader or of the sweeper.
pub(crate) fn race(
    cache: impl Fn(&StageClock) -> Arc<dyn LazyCache>,
    met_by: MetBy,
    when: When,
) -> Outcome {
    let mut outcome = Outcome::default();
    loop {
        let clock = StageClock::new();
        let cache = cache(&clock);
        let Some(found) = race_at(&cache, &clock, (met_by, when), outcome.moments) else {
            return outcome;
        };
        outcome.moments += 1;
        let is_half_done = found.is_some_and(|dead| dead > 0 && dead < KEYS);
        outcome.in_the_middle += u32::from(is_half_done);
        let fresh = (0..KEYS).filter(|key| cache.get(*key) == Some("fresh"));
        outcome.lost += KEYS as usize - fresh.count();
    }
}

/// Runs the race. The writer comes after `moment` moments; `None` if there are fewer. Returns the
/// number of dead entries that it still found, if nothing kept it waiting.
fn race_at(
    cache: &Arc<dyn LazyCache>,
    clock: &StageClock,
    (met_by, when): (MetBy, When),
    moment: u32,
) -> Option<Option<u32>> {
    (0..KEYS).for_each(|key| cache.set(key, "old", 10 * MS));
    clock.advance(10 * MS);
    let stage = Arc::new(Mutex::new(None));
    let (target, entered) = (Arc::clone(cache), Arc::clone(&stage));
    let act = move || {
        let dead = Arc::new(AtomicU32::new(0));
        let found = Arc::clone(&dead);
        let writer = Intruder::enter(move || {
            found.store(target.len() as u32, SeqCst);
            (0..KEYS).for_each(|key| target.set(key, "fresh", 5 * MINUTE));
        });
        let free = writer.is_done_within(match when {
            When::Read => LONG,
            When::Any => PATIENCE,
        });
        let found = free.then(|| dead.load(SeqCst));
        *entered.lock().expect("whole") = Some((writer, found));
    };
    match when {
        When::Read => clock.at_reading(moment, act),
        When::Any => clock.at_moment(moment, act),
    }
    match met_by {
        MetBy::Reader => assert_ne!(cache.get(7), Some("old"), "a dead value was served"),
        MetBy::Sweeper => cache.sweep(),
    }
    clock.forget();
    let (writer, found) = stage.lock().expect("whole").take()?;
    writer.leave();
    Some(found)
}

/// Tidewheel loses nothing, and the writer did step in where it matters.
pub(crate) fn assert_that_ours_loses_nothing() {
    for met_by in [MetBy::Reader, MetBy::Sweeper] {
        let outcome = race(ours, met_by, When::Any);
        assert_eq!(outcome.lost, 0, "{met_by:?}: {outcome:?}");
        assert!(outcome.moments > 2, "{met_by:?}: {outcome:?}");
        if let MetBy::Sweeper = met_by {
            // Between two holds of the lock, where the sweep drops what it has removed.
            assert!(outcome.in_the_middle > 2, "{outcome:?}");
        }
    }
}
