//! The versions of tags, as far as this process knows them.
//!
//! An envelope carries the version of each of its tags. Whoever invalidates a tag gives it another
//! version, and the message of that ends the object here that stands for the old one. It is in the
//! table *before* the engine is asked, so no message is missed.

use std::collections::HashMap;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{AcqRel, Acquire, Release},
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tidewheel_time::{Moment, Readings};

use super::server::ServerId;
use super::watch::Watch;

/// The tag of the whole namespace.
pub(crate) const SPACE: &str = "";

/// One version of a tag, and whether it is the present one.
#[derive(Debug)]
pub(crate) struct Tag {
    learnt: OnceLock<Learnt>,
    replaced: AtomicBool,
    watch: Arc<Watch>,
    /// The time until which it is believed, however long the watch lasts.
    until: Moment,
}

/// A version, and when this process has learnt it.
#[derive(Debug, Clone, Copy)]
struct Learnt {
    version: u64,
    at: Moment,
}

impl Tag {
    /// A version from another server than the watched one: entries that have it are not believed.
    pub(crate) fn doubtful() -> Arc<Self> {
        Arc::new(Self {
            learnt: OnceLock::new(),
            replaced: AtomicBool::new(true),
            watch: Watch::never(),
            until: Moment(0),
        })
    }

    /// True if the version may be learnt of this server.
    pub(crate) fn is_of(&self, server: Option<ServerId>) -> bool {
        self.watch.is_of(server)
    }

    /// Learns the version from the engine, and returns it; `None` if it is already over.
    pub(crate) fn learn(&self, version: u64, at: Moment) -> Option<u64> {
        let known = self.learnt.get_or_init(|| Learnt { version, at });
        if known.version != version {
            // Two answers differ: an invalidation message is on its way.
            self.replace();
        }
        (!self.is_replaced()).then_some(version)
    }

    /// The version, if it may be believed.
    pub(crate) fn current(&self, clock: &Readings) -> Option<u64> {
        let version = self.learnt.get()?.version;
        self.is_believed(clock).then_some(version)
    }

    /// True if the version was known before this time. At the same reading of the clock it may have
    /// come later.
    pub(crate) fn was_known(&self, at: Moment) -> bool {
        self.learnt.get().is_some_and(|learnt| learnt.at < at)
    }

    /// True if entries with this version may be believed.
    pub(crate) fn is_believed(&self, clock: &Readings) -> bool {
        !self.is_replaced()
            && self.watch.is_believed(clock)
            && (self.until == Moment(u64::MAX) || clock.now() < self.until)
    }

    /// True if it is known to be over.
    pub(crate) fn is_replaced(&self) -> bool {
        self.replaced.load(Acquire)
    }

    /// True if it is being asked for, under this watch.
    fn is_asked_under(&self, watch: &Arc<Watch>) -> bool {
        self.learnt.get().is_none() && !self.is_replaced() && Arc::ptr_eq(&self.watch, watch)
    }

    fn replace(&self) {
        self.replaced.store(true, Release);
    }
}

/// Tags by name, up to a limit. Beyond it all are forgotten at once, and with them every entry that
/// has one.
#[derive(Debug)]
pub(crate) struct Tags {
    limit: usize,
    table: Mutex<HashMap<Box<str>, Arc<Tag>>>,
    /// Changes so far.
    changes: AtomicU64,
}

impl Tags {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            table: Mutex::default(),
            changes: AtomicU64::new(0),
        }
    }

    /// The known version of a tag.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Tag>> {
        self.lock().get(name).map(Arc::clone)
    }

    /// A tag that the engine is about to be asked for. Several that ask at the same time share one.
    pub(crate) fn ask(&self, name: &str, (watch, until): (Arc<Watch>, Moment)) -> Arc<Tag> {
        let mut table = self.lock();
        if let Some(asked) = table.get(name).filter(|tag| tag.is_asked_under(&watch)) {
            return Arc::clone(asked);
        }
        let tag = Arc::new(Tag {
            learnt: OnceLock::new(),
            replaced: AtomicBool::new(false),
            watch,
            until,
        });
        if table.len() >= self.limit && !table.contains_key(name) {
            table.drain().for_each(|(_, tag)| tag.replace());
        }
        if let Some(old) = table.insert(name.into(), Arc::clone(&tag)) {
            old.replace();
        }
        tag
    }

    /// A tag has another version.
    pub(crate) fn changed(&self, name: &str) {
        self.changes.fetch_add(1, AcqRel);
        if let Some(tag) = self.lock().remove(name) {
            tag.replace();
        }
    }

    /// The number of changes so far, of any tag.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<Tag>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidewheel_time::ManualClock;

    use super::*;
    use crate::core::invalidation_stream::{Bounds, InvalidationStream, Owners};
    use crate::core::names::Names;

    fn ask(tags: &Tags, name: &str) -> Arc<Tag> {
        tags.ask(name, (Watch::forever(), Moment(u64::MAX)))
    }

    #[test]
    fn word_of_a_change_reaches_a_tag_whose_version_is_not_known_yet() {
        let tags = Tags::new(9);
        let tag = ask(&tags, "a");
        tags.changed("a");
        assert_eq!(tag.learn(7, Moment(0)), None);
    }

    #[test]
    fn two_different_answers_are_both_doubted() {
        let tags = Tags::new(9);
        let tag = ask(&tags, "a");
        assert_eq!(tag.learn(7, Moment(0)), Some(7));
        assert_eq!(tag.learn(8, Moment(0)), None);
        assert!(tag.is_replaced());
    }

    /// It was believed for the whole degraded life, though it may have changed unheard.
    #[test]
    fn what_was_asked_while_nothing_watched_is_over_when_something_does() {
        let clock = Readings::given(Box::new(ManualClock::new()));
        let bounds = Bounds {
            watched: Duration::from_millis(400),
            degraded: Duration::from_secs(5),
            lag: Duration::ZERO,
            timeout: Duration::from_secs(1),
        };
        let stream = InvalidationStream::new(Names::new("n"), clock, bounds);
        stream.owned(Owners::One(0));
        for name in [SPACE, "a"] {
            let tag = stream.tags.ask(name, stream.cover_tag(1));
            assert_eq!(tag.learn(7, stream.now()), Some(7));
            assert!(tag.is_believed(stream.clock()));
            stream.connected(0, ServerId::of(b"one"));
            assert!(!tag.is_believed(stream.clock()), "{name:?}");
            stream.lost(0);
        }
    }

    #[test]
    fn a_forgotten_tag_is_not_believed() {
        let tags = Tags::new(2);
        let first = ask(&tags, "a");
        ask(&tags, "b");
        ask(&tags, "c");
        assert!(first.is_replaced(), "its message would not be heard");
    }
}
