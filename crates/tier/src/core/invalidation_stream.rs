//! The invalidation stream, without its sockets: it decides from the messages of all connections
//! which watch covers which key.
//!
//! A backend tells it four things of each *source*, which is a connection to one primary: it is
//! connected and will tell of changes; a heartbeat was answered; something changed; it is lost. And
//! it tells who owns which slot.
//!
//! **The heartbeat.** An answer proves that the message of every change before the *previous*
//! heartbeat was sent has arrived. Not before this one: an engine tells of a batch of changes when
//! it has run a batch of commands, so its answer to a heartbeat may precede the message of a change
//! in the same batch.
//!
//! **The namespace's own version** decides over all entries, so no entry is believed for longer
//! than the source that tells of it.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tidewheel_time::{Moment, Readings, TICK_NANOS, nanos};

use super::change_waiters::ChangeWaiters;
use super::faults::fault;
use super::names::{Named, Names};
use super::server::ServerId;
use super::slot::slot;
use super::tags::{SPACE, Tag, Tags};
use super::watch::Watch;

/// Tags that are watched, at most.
const TAGS: usize = 65_536;

/// A connection to one primary; a backend numbers them.
pub type Source = u32;

/// The owners of the slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owners {
    /// One server has everything.
    One(Source),
    /// The owner of each of the 16,384 slots of a cluster, as far as there is one.
    Slots(Arc<[Option<Source>]>),
}

impl Owners {
    fn of(&self, slot: u16) -> Option<Source> {
        match self {
            Self::One(source) => Some(*source),
            Self::Slots(slots) => slots.get(usize::from(slot)).copied().flatten(),
        }
    }

    fn has(&self, source: Source) -> bool {
        match self {
            Self::One(one) => *one == source,
            Self::Slots(slots) => slots.contains(&Some(source)),
        }
    }
}

/// The cover of a key now.
#[derive(Debug)]
pub(crate) enum Cover {
    /// A connection that tells of its changes.
    Watched(Arc<Watch>),
    /// No connection tells of it: an entry may live for a short time.
    Degraded(Arc<Watch>),
    /// No connection tells of it, and nothing may be stored.
    Refused,
}

/// The first tier, as the invalidation stream needs it.
pub(crate) trait Local: Send + Sync {
    /// Removes a key, and supersedes its load.
    fn forget(&self, key: &[u8]);

    /// Another server has taken over: what the one before has taken lately is to be repeated.
    fn taken_over(&self);

    /// Tries invalidations again that the engine has not taken, if there are any.
    fn settle(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>>;
}

/// The limits of age and of time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The greatest age of a hit while a connection watches.
    pub(crate) watched: Duration,
    /// The additional age after the connection is lost; zero: nothing is believed then.
    pub(crate) degraded: Duration,
    /// A server may lose its last writes of so long, when another one takes over.
    pub(crate) lag: Duration,
    /// The time limit of a question to the engine.
    pub(crate) timeout: Duration,
}

/// The server from which answers are taken, where one server has everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Any server's: nothing was ever watched, or it is a Cluster.
    Anybody,
    /// The server that is watched, or was until a moment ago.
    Server(ServerId),
    /// No server's: another one has taken over, and is not watched yet.
    Nobody,
}

/// The state of all sources.
pub struct InvalidationStream {
    names: Names,
    clock: Readings,
    bounds: Bounds,
    /// The slot of the key that holds the namespace's version.
    space: u16,
    state: Mutex<State>,
    pub(crate) tags: Tags,
    pub(crate) change_waiters: ChangeWaiters,
    local: OnceLock<Box<dyn Local>>,
    /// The number of times that the namespace was cleared, as far as is known here.
    cleared: AtomicU64,
    /// The nanoseconds by which the stream's clock is ahead of the first tier's.
    zero: AtomicI64,
    /// The time until which other processes may repeat what they know to be lost.
    quiet_until: AtomicU64,
}

#[derive(Debug)]
struct State {
    owners: Option<Owners>,
    sources: BTreeMap<Source, Heard>,
    /// The watch of entries that are read while nothing watches.
    degraded: Arc<Watch>,
    known: Known,
}

/// The state of a source.
#[derive(Debug)]
struct Heard {
    /// The server that it leads to.
    server: ServerId,
    watch: Option<Arc<Watch>>,
    /// The last watch that was lost, as long as it may be believed after that.
    faded: Option<Arc<Watch>>,
    /// The time at which the last heartbeat was sent that was answered.
    sent: Option<Moment>,
    /// The time before which all changes have arrived.
    credit: Option<Moment>,
}

impl Heard {
    /// Begins a new watch: nothing of before is believed.
    fn restart(&mut self) {
        self.end();
        self.watch = Some(Watch::begin(self.server));
    }

    fn end(&mut self) {
        let ended = [self.watch.take(), self.faded.take()];
        ended.iter().flatten().for_each(|watch| watch.end());
    }
}

impl InvalidationStream {
    pub(crate) fn new(names: Names, clock: Readings, bounds: Bounds) -> Self {
        let space = slot(&names.tag(SPACE));
        Self {
            names,
            clock,
            bounds,
            space,
            state: Mutex::new(State {
                owners: None,
                sources: BTreeMap::new(),
                degraded: Watch::forever(),
                known: Known::Anybody,
            }),
            tags: Tags::new(TAGS),
            change_waiters: ChangeWaiters::default(),
            local: OnceLock::new(),
            cleared: AtomicU64::new(0),
            zero: AtomicI64::new(0),
            quiet_until: AtomicU64::new(0),
        }
    }

    /// The engine's keys.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The time now, for heartbeats.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.clock.now()
    }

    /// The clock that watches are believed by.
    pub(crate) fn clock(&self) -> &Readings {
        &self.clock
    }

    /// A hit is believed for so long after its source was heard. A backend's heartbeat must be a
    /// fraction of it.
    #[must_use]
    pub fn bound(&self) -> Duration {
        self.bounds.watched
    }

    /// The time limit of a question, with all that it waits for. A backend keeps to it.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.bounds.timeout
    }

    /// The life of entries that are stored while nothing watches.
    pub(crate) fn degraded_life(&self) -> Duration {
        self.bounds.degraded
    }

    /// The time for which invalidations of the past are repeated when another server takes over.
    pub(crate) fn lag(&self) -> Duration {
        self.bounds.lag
    }

    /// `tick`: what the first tier's clock shows now. The two clocks run alike.
    pub(crate) fn set_local(&self, local: Box<dyn Local>, tick: u64) {
        let since = tick.saturating_mul(TICK_NANOS).cast_signed();
        self.zero
            .store(self.now().0.cast_signed().saturating_sub(since), Relaxed);
        // There is one first tier, which is set once.
        let _ = self.local.set(local);
    }

    /// The first tier's last tick that has ended by a time of the stream's.
    fn tick(&self, at: Moment) -> u64 {
        let since = i128::from(at.0) - i128::from(self.zero.load(Relaxed));
        u64::try_from(since / i128::from(TICK_NANOS)).unwrap_or(0)
    }

    fn extend(&self, watch: &Watch, until: Moment) {
        watch.extend(until, self.tick(until));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// # What a backend tells
impl InvalidationStream {
    /// A source, which is a connection to this server, will tell of every change from now on.
    pub fn connected(&self, source: Source, server: ServerId) {
        if self.lock().is_other(source, server) {
            // It has another's place, or what it had when it was started.
            self.taken_over();
        }
        let mut state = self.lock();
        let heard = state.sources.entry(source).or_insert(Heard {
            server,
            watch: None,
            faded: None,
            sent: None,
            credit: None,
        });
        if (fault!(H2) || fault!(H8) || fault!(H9)) && heard.watch.is_some() {
            return;
        }
        heard.server = server;
        heard.restart();
        if matches!(state.owners, Some(Owners::One(_))) {
            state.known = Known::Server(server);
        }
        let Some(heard) = state.sources.get_mut(&source) else {
            return;
        };
        (heard.sent, heard.credit) = (None, None);
        state.renew_degraded();
        if state.owner(self.space) == Some(source) {
            // The namespace may have been cleared meanwhile, unheard.
            state.restart_all();
        }
    }

    /// A source has answered a heartbeat that was sent then. The first answer proves nothing yet.
    pub fn heard(&self, source: Source, sent: Moment) {
        let mut state = self.lock();
        if let Some(heard) = state.sources.get_mut(&source) {
            heard.credit = heard.sent.or(heard.credit);
            heard.sent = Some(sent);
        }
        self.publish(&state);
    }

    /// Keys have changed, of the engine's names.
    pub fn changed<'a>(&self, keys: impl IntoIterator<Item = &'a [u8]>) {
        let most = if fault!(H3) { 1 } else { usize::MAX };
        for key in keys.into_iter().take(most) {
            match self.names.named(key) {
                Some(Named::Value(key)) => {
                    if let Some(local) = self.local.get() {
                        local.forget(key);
                    }
                    self.change_waiters.notify(key);
                }
                Some(Named::Tag(tag)) => self.forget_tag(tag),
                None => {}
            }
        }
    }

    /// Notes that everything that a source had is gone.
    pub fn flushed(&self, source: Source) {
        if fault!(H3) {
            return;
        }
        let mut state = self.lock();
        if state.owner(self.space) == Some(source) {
            self.cleared.fetch_add(1, AcqRel);
            state.restart_all();
        } else if let Some(heard) = state.sources.get_mut(&source) {
            heard.restart();
        }
        self.publish(&state);
    }

    /// A source tells nothing any more.
    pub fn lost(&self, source: Source) {
        if fault!(H2) || fault!(H8) {
            return;
        }
        let mut state = self.lock();
        let credit = state.credit(source, self.space);
        let Some(heard) = state.sources.get_mut(&source) else {
            return;
        };
        let Some(watch) = heard.watch.take() else {
            return;
        };
        if self.bounds.degraded.is_zero() {
            watch.end();
            return;
        }
        if let Some(credit) = credit {
            // A watch that is not known to be true of any time stays unbelieved.
            let until = after(credit, self.bounds.watched + self.bounds.degraded);
            self.extend(&watch, until);
        }
        heard.faded = Some(watch);
    }

    /// Sets the owners of the slots, as asked at some time. Another answer than the last one ends
    /// everything.
    pub fn owned(&self, owners: Owners) {
        let is_takeover = self.lock().is_takeover(&owners);
        if is_takeover {
            // Before anybody reads from the new owner.
            let until = after(self.now(), self.bounds.watched);
            if !self.bounds.lag.is_zero() {
                self.quiet_until.store(until.0, Release);
            }
            self.taken_over();
        }
        let mut state = self.lock();
        if state.owners.as_ref() == Some(&owners) {
            return;
        }
        state.known = match owners {
            Owners::One(_) if is_takeover => Known::Nobody,
            Owners::One(_) => state.known,
            Owners::Slots(_) => Known::Anybody,
        };
        let gone = |source: &Source| !owners.has(*source);
        let left: Vec<_> = state.sources.keys().copied().filter(gone).collect();
        for source in left {
            if let Some(mut heard) = state.sources.remove(&source) {
                if (fault!(H8) || fault!(H9))
                    && let Owners::One(next) = owners
                {
                    state.sources.insert(next, heard);
                    continue;
                }
                heard.end();
            }
        }
        state.owners = Some(owners);
        if !(fault!(H8) || fault!(H9)) {
            state.restart_all();
            state.renew_degraded();
        }
        self.publish(&state);
    }

    fn taken_over(&self) {
        if let Some(local) = self.local.get() {
            local.taken_over();
        }
    }

    /// Tries invalidations again that the engine has not taken. A backend calls it several times a
    /// second: nobody may read.
    pub async fn settle(&self) {
        let work = self.local.get().and_then(|local| local.settle());
        if let Some(work) = work {
            work.await;
        }
    }

    /// Ends everything: nothing is believed any more.
    pub fn close(&self) {
        let mut state = self.lock();
        state.sources.values_mut().for_each(Heard::end);
        state.sources.clear();
        state.degraded.end();
    }

    /// True if every slot is watched, and heard from within the bound.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        let state = self.lock();
        let believed = |source| {
            let heard: Option<&Heard> = state.sources.get(&source);
            heard
                .and_then(|heard| heard.watch.as_ref())
                .is_some_and(|watch| watch.is_believed(&self.clock))
        };
        match &state.owners {
            None => false,
            Some(Owners::One(source)) => believed(*source),
            Some(Owners::Slots(slots)) => slots.iter().all(|owner| owner.is_some_and(believed)),
        }
    }
}

impl InvalidationStream {
    /// True if another server took over a moment ago, so that other processes may still repeat what
    /// is lost.
    pub(crate) fn is_quiet(&self) -> bool {
        let until = self.quiet_until.load(Acquire);
        until != 0 && self.now().0 < until
    }

    /// True if nobody may be asked: another server has taken over, and is not watched yet.
    pub(crate) fn is_between(&self) -> bool {
        !fault!(H13) && self.lock().known == Known::Nobody
    }

    /// True if an answer is of another server than the one that is watched, where one has
    /// everything. It may be of one that lacks what is to be repeated, or of one that was the
    /// primary.
    pub(crate) fn is_stranger(&self, server: Option<ServerId>) -> bool {
        let known = self.lock().known;
        !fault!(H13)
            && match (known, server) {
                (Known::Nobody, _) => true,
                (Known::Server(known), Some(server)) => known != server,
                _ => false,
            }
    }

    /// The cover of a key in a slot now.
    pub(crate) fn cover(&self, slot: u16) -> Cover {
        let state = self.lock();
        let watched = |slot| {
            let source = state.owner(slot)?;
            state.sources.get(&source)?.watch.as_ref()
        };
        if let (Some(watch), Some(_)) = (watched(slot), watched(self.space)) {
            return Cover::Watched(Arc::clone(watch));
        }
        if self.bounds.degraded.is_zero() {
            return Cover::Refused;
        }
        Cover::Degraded(Arc::clone(&state.degraded))
    }

    /// A watch for what is known of a tag in a slot, and until when that is believed at most. What
    /// was asked for while nothing watched is over when something does: it may have changed
    /// unheard.
    pub(crate) fn cover_tag(&self, slot: u16) -> (Arc<Watch>, Moment) {
        match self.cover(slot) {
            Cover::Watched(watch) => (watch, Moment(u64::MAX)),
            Cover::Degraded(watch) => (watch, after(self.now(), self.bounds.degraded)),
            Cover::Refused => (Watch::never(), self.now()),
        }
    }

    /// A tag has another version. The empty one's decides over everything.
    pub(crate) fn forget_tag(&self, tag: &str) {
        self.tags.changed(tag);
        if tag == SPACE {
            self.cleared.fetch_add(1, AcqRel);
            let mut state = self.lock();
            state.restart_all();
            state.renew_degraded();
            self.publish(&state);
        }
    }

    /// The number of times that the namespace was cleared, as far as is known here. An entry of
    /// before is no answer to an error.
    pub(crate) fn cleared(&self) -> u64 {
        self.cleared.load(Acquire)
    }

    /// A tag of a value that no engine speaks for.
    pub(crate) fn tag_unasked(&self, name: &str) -> Arc<Tag> {
        let cover = || self.cover_tag(slot(&self.names.tag(name)));
        let known = self.tags.get(name);
        known.unwrap_or_else(|| self.tags.ask(name, cover()))
    }

    /// The watch of what no connection tells of.
    pub(crate) fn degraded_watch(&self) -> Arc<Watch> {
        Arc::clone(&self.lock().degraded)
    }

    /// Moves the watches ahead, by what was heard.
    fn publish(&self, state: &State) {
        for (source, heard) in &state.sources {
            let credit = state.credit(*source, self.space);
            if let (Some(watch), Some(credit)) = (&heard.watch, credit) {
                self.extend(watch, after(credit, self.bounds.watched));
            }
        }
    }
}

impl State {
    fn owner(&self, slot: u16) -> Option<Source> {
        self.owners.as_ref()?.of(slot)
    }

    /// True if a source has led to another server before.
    fn is_other(&self, source: Source, server: ServerId) -> bool {
        let heard = self.sources.get(&source);
        heard.is_some_and(|heard| heard.server != server)
    }

    /// True if a former owner owns nothing any more.
    fn is_takeover(&self, next: &Owners) -> bool {
        match &self.owners {
            None => false,
            Some(Owners::One(source)) => !next.has(*source),
            Some(Owners::Slots(slots)) => slots.iter().flatten().any(|source| !next.has(*source)),
        }
    }

    /// The time before which all changes have arrived, those of the namespace's version included.
    fn credit(&self, source: Source, space: u16) -> Option<Moment> {
        let of = |source| self.sources.get(&source)?.credit;
        Some(of(source)?.min(of(self.owner(space)?)?))
    }

    fn restart_all(&mut self) {
        for heard in self.sources.values_mut() {
            if heard.watch.is_some() {
                heard.restart();
            } else {
                heard.end();
            }
        }
    }

    /// Entries that were read while nothing watched are not believed any more.
    fn renew_degraded(&mut self) {
        self.degraded.end();
        self.degraded = Watch::forever();
    }
}

fn after(moment: Moment, by: Duration) -> Moment {
    Moment(moment.0.saturating_add(nanos(by)))
}

impl fmt::Debug for InvalidationStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InvalidationStream")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
