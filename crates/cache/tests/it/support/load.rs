//! The model of loads: who runs a loader, what is remembered of it, and from when an entry is
//! stale.

use std::time::Duration;

use tidewheel::{Condition, Fetched, Lifetime, Loaded, Outcome, Presence, RemovalCause};

use super::model::{Effects, Entry, Model};
use super::once;
use super::op::{New, Tags};
use super::refresh::StatedEnd;
use super::setup::{ABSENT, NEGATIVE};
use super::value::{Key, Probe, Value};

/// Ticks until a failed refresh of an entry without an end is tried again.
const RETRY: u64 = 60_000;

/// A loader, and what it does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Load {
    pub(crate) key: u16,
    pub(crate) asks: Asks,
    /// True if it has a value, this one.
    pub(crate) succeeds: bool,
    pub(crate) new: New,
    pub(crate) fresh: Option<Duration>,
    pub(crate) stale: Option<Duration>,
    /// True if the loader is given the old value, and says that it has not changed.
    pub(crate) sees_old: bool,
    pub(crate) unchanged: bool,
    /// True if a value that is no old one is for the caller alone.
    pub(crate) private: bool,
    pub(crate) is_async: bool,
    /// True if a loader that may find nothing is called as one of many keys.
    pub(crate) in_bulk: bool,
    pub(crate) meanwhile: Meanwhile,
}

impl Load {
    /// A value, or an error, of which nothing more is said.
    pub(crate) fn of(key: u16) -> Self {
        Self {
            key,
            asks: Asks::Fallibly,
            succeeds: true,
            new: New::of(1),
            fresh: None,
            stale: None,
            sees_old: false,
            unchanged: false,
            private: false,
            is_async: false,
            in_bulk: false,
            meanwhile: Meanwhile::Nothing,
        }
    }

    /// What a loader says of an absence that it may say more of.
    fn absent_for(&self) -> Duration {
        match self.new.weight {
            0 => Duration::ZERO,
            _ => ABSENT,
        }
    }
}

/// The ways to ask for a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Asks {
    Plainly,
    Optionally,
    Fallibly,
}

/// The changes to the key while its loader runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Meanwhile {
    Nothing,
    Insert,
    Remove,
    InvalidateAll,
    InvalidateTag(u8),
    /// Calls that change nothing.
    Idle,
    /// A change of its end.
    Expire,
}

/// The result that is remembered of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Negative {
    Absent,
    Error,
}

/// A loader's error.
#[derive(Debug)]
pub(crate) struct Failed;

impl Entry {
    /// Returns whether it is past its soft deadline; `None` while that depends on the jitter.
    fn is_stale(&self, now: u64) -> Option<bool> {
        if self.failed {
            return Some(true);
        }
        self.is_due(now)
    }

    /// Returns whether its next value is wanted; `None` while that depends on the jitter.
    pub(super) fn is_due(&self, now: u64) -> Option<bool> {
        match self.soft {
            None => Some(false),
            Some((low, _)) if now < low => Some(false),
            Some((_, high)) if now >= high => Some(true),
            Some(_) => None,
        }
    }

    /// Returns whether it may be served in place of an error; `None` while only jitter knows.
    pub(super) fn is_kept(&self, now: u64) -> Option<bool> {
        match self.end() {
            _ if self.invalidated => Some(false),
            None => Some(true),
            Some((low, _)) if now < low + self.grace => Some(true),
            Some((_, high)) if now >= high + self.grace => Some(false),
            Some(_) => None,
        }
    }

    /// Gives it a soft deadline. `fresh` is the duration that was given for this entry, if one was.
    pub(super) fn is_fresh_for(&mut self, soft: Option<(u64, u64)>, fresh: Option<Duration>) {
        (self.soft, self.fresh) = (soft, fresh);
    }

    /// Where only the cache knows whether the next value is wanted, the model learns it from the
    /// cache.
    pub(super) fn learn_due(&mut self, now: u64, due: bool) {
        if let Some((low, high)) = &mut self.soft {
            if due {
                *high = now.min(*high).max(*low);
            } else {
                *low = (now + 1).max(*low).min(*high);
            }
        }
    }

    /// The end that no read moves, as the cache keeps it.
    pub(super) fn hard_end(&self, idles: bool) -> Option<(u64, u64)> {
        let latest = if idles { u64::MAX } else { self.latest() };
        self.hard
            .map(|(low, high)| (low.min(latest), high.min(latest)))
    }
}

impl Model {
    /// The soft deadline of a lifetime that begins now.
    pub(super) fn soft(
        &self,
        fresh: Option<Duration>,
        hard: Option<(u64, u64)>,
    ) -> Option<(u64, u64)> {
        if let Some(fresh) = fresh {
            let at = self.deadline(fresh);
            return Some((at, at));
        }
        let (fraction, (low, high)) = (self.setup.refresh_after()?, hard?);
        let now = self.tick();
        let share = |end: u64| now + (end.saturating_sub(now) as f64 * fraction) as u64;
        Some((share(low), share(high)))
    }

    /// A key's end was changed by hand.
    pub(super) fn rebase(&mut self, key: u16, hard: Option<(u64, u64)>) {
        let soft = self.soft(None, hard);
        let by_share = self.setup.refresh_after().is_some();
        if let Some(entry) = self
            .entries
            .get_mut(&key)
            .filter(|entry| entry.fresh.is_none())
            && by_share
        {
            (entry.soft, entry.failed) = (soft, false);
        }
    }

    /// A live entry was served: counts it if it was stale.
    pub(super) fn served(&mut self, key: u16) {
        let now = self.tick();
        let counted = self.cache.stats().stale_hits - self.counts.stale;
        let entry = self.entries.get_mut(&key).expect("alive");
        let stale = counted > 0;
        match entry.is_stale(now) {
            Some(expected) => assert_eq!(stale, expected, "whether {entry:?} is stale at {now}"),
            None => entry.learn_due(now, stale),
        }
        self.counts.stale += u64::from(stale);
        if stale {
            self.wants_refresh(key);
        }
    }

    /// A writer changes a key: what is remembered of it is forgotten, a load
    /// of it superseded.
    pub(super) fn forget(&mut self, key: u16) {
        self.negatives.remove(&key);
        self.flights.remove(&key);
    }

    pub(super) fn remembered(&self, key: u16) -> Option<Negative> {
        let (negative, deadline) = self.negatives.get(&key)?;
        (self.tick() < *deadline).then_some(*negative)
    }

    pub(super) fn load(&mut self, load: &Load, effects: &mut Effects) {
        let &Load { key, asks, .. } = load;
        let now = self.tick();
        let live = self.is_live(key);
        let negative = self.remembered(key);
        let stale = match self.entries.get(&key) {
            Some(entry) if live => entry.is_due(now),
            _ => Some(false),
        };
        let expected = if live {
            // While the answer to an earlier refresh is remembered, the old value is served.
            // With a refresher too.
            let served = negative.is_some() || self.setup.has_refresher();
            if served { Some(false) } else { stale }
        } else {
            match (negative, asks) {
                (Some(Negative::Absent), Asks::Optionally) => Some(false),
                (Some(Negative::Error), Asks::Fallibly) => Some(false),
                (_, Asks::Fallibly) => self.is_put_off(key).map(|put_off| !put_off),
                _ => Some(true),
            }
        };
        let over = self.entries.get(&key).filter(|_| live);
        let mut run = Run {
            over: over.map(|entry| entry.tags),
            ..Run::default()
        };
        let (answer, outcome) = self.ask_for(load, &mut run, effects);
        let answer = answer.map(|value| value.id);
        let (ran, stale_before) = (run.ran, self.counts.stale);
        assert!(
            expected.is_none_or(|expected| expected == run.ran),
            "whether the loader of {load:?} runs: {:?}, {negative:?}, at {now}",
            self.entries.get(&key)
        );
        if run.ran {
            self.finish_load(load, run, stale, answer, effects);
        } else if live {
            let found = self.used(key);
            assert_eq!(answer, found, "{load:?} of what is there");
        } else {
            self.counts.misses += 1;
            self.answered(load, negative, answer);
        }
        let is_stale = self.counts.stale > stale_before;
        let expected = match (ran, live) {
            (true, _) | (_, false) if is_stale => Outcome::StaleOnError,
            (true, _) => Outcome::Loaded,
            (_, false) => Outcome::Negative,
            _ if is_stale => Outcome::Stale,
            _ => Outcome::Hit,
        };
        let outcome = outcome.unwrap_or(expected);
        assert_eq!(outcome, expected, "the outcome of {load:?}");
        self.counts.stale_on_error += u64::from(outcome == Outcome::StaleOnError);
    }

    /// Calls the cache. `None` is an absence or an error.
    fn ask_for(&mut self, load: &Load, run: &mut Run, effects: &mut Effects) -> Told {
        fn told<T, E>(fetched: Fetched<T, E>, value: impl FnOnce(T) -> Option<Value>) -> Told {
            (value(fetched.value), Some(fetched.outcome))
        }
        let (cache, key) = (self.cache.clone(), Key::new(load.key, &self.ledger));
        let fetch = cache.fetch(key.clone());
        let mut loader = |old| self.loader(load, old, run, effects);
        let absent = Presence::AbsentFor(load.absent_for());
        match (load.asks, load.sees_old, load.is_async) {
            (Asks::Optionally, false, false) if load.in_bulk => {
                let load = |_| Some((key.clone(), loader(None)?));
                (cache.get_or_load_many([&key], load).remove(0), None)
            }
            (Asks::Plainly, false, false) => {
                told(fetch.load_with(|| loader(None).expect("loads")), Some)
            }
            (Asks::Plainly, false, true) => {
                let load = async { loader(None).expect("loads") };
                told(once(fetch.load_with_async(load)), Some)
            }
            (Asks::Plainly, true, false) => {
                let load = |old| loader(Some(old)).expect("loads");
                told(fetch.load_with_old(load), Some)
            }
            (Asks::Plainly, true, true) => {
                let load = async |old| loader(Some(old)).expect("loads");
                told(once(fetch.load_with_old_async(load)), Some)
            }
            (Asks::Optionally, false, false) => {
                told(fetch.load_with(|| loader(None)), |found| found)
            }
            (Asks::Optionally, false, true) => {
                let load = async { loader(None) };
                told(once(fetch.load_with_async(load)), |found| found)
            }
            (Asks::Optionally, true, false) => {
                let load = |old| loader(Some(old)).map_or(absent, Presence::Present);
                told(fetch.load_with_old(load), |found| found)
            }
            (Asks::Optionally, true, true) => {
                let load = async |old| loader(Some(old)).map_or(absent, Presence::Present);
                told(once(fetch.load_with_old_async(load)), |found| found)
            }
            (Asks::Fallibly, false, false) => {
                told(fetch.load_with(|| loader(None).ok_or(Failed)), Result::ok)
            }
            (Asks::Fallibly, false, true) => {
                let load = async { loader(None).ok_or(Failed) };
                told(once(fetch.load_with_async(load)), Result::ok)
            }
            (Asks::Fallibly, true, false) => {
                let load = |old| loader(Some(old)).ok_or(Failed);
                told(fetch.load_with_old(load), Result::ok)
            }
            (Asks::Fallibly, true, true) => {
                let load = async |old| loader(Some(old)).ok_or(Failed);
                told(once(fetch.load_with_old_async(load)), Result::ok)
            }
        }
    }

    fn loader(
        &mut self,
        load: &Load,
        old: Option<Option<Value>>,
        run: &mut Run,
        effects: &mut Effects,
    ) -> Option<Loaded<Value>> {
        run.ran = true;
        self.counts.misses += 1;
        self.counts.loads += 1;
        if let Some(old) = &old {
            self.given_old(load.key, old.as_ref().map(|old| old.id));
        }
        self.meanwhile(load, run, effects);
        if let Some(old) = old.flatten().filter(|_| load.unchanged) {
            return Some(self.unchanged(load, old, run));
        }
        let succeeds = load.succeeds || load.asks == Asks::Plainly;
        succeeds.then(|| {
            let (value, lifetime, entry) = self.plan_load(load);
            run.entry = Some(entry);
            match load.private {
                true => Loaded::private(value),
                false => Loaded::new(value, lifetime),
            }
        })
    }

    /// As [`plan`](Self::plan), with all that is said of a value.
    pub(super) fn plan_load(&mut self, load: &Load) -> (Value, Lifetime, Entry) {
        let (value, mut lifetime, mut entry) = self.plan(load.key, load.new);
        if let Some(fresh) = load.fresh {
            lifetime = lifetime.fresh_for(fresh);
            entry.is_fresh_for(self.soft(load.fresh, entry.hard), load.fresh);
        }
        if let Some(stale) = load.stale {
            lifetime = lifetime.stale_for(stale);
            entry.grace = stale.as_millis() as u64;
        }
        (value, lifetime, entry)
    }

    fn meanwhile(&mut self, load: &Load, run: &mut Run, effects: &mut Effects) {
        let key = load.key;
        run.overtaken = true;
        match load.meanwhile {
            Meanwhile::Insert => self.insert(key, New::of(1), effects),
            Meanwhile::Remove => {
                self.cache.remove(&Probe(key));
                self.leaves(key, RemovalCause::Removed);
            }
            Meanwhile::InvalidateAll => {
                self.cache.invalidate_all();
                self.all_leave(RemovalCause::Cleared);
            }
            Meanwhile::InvalidateTag(tag) => {
                self.invalidate_tag(tag);
                // One of the tags of the entry that is loaded again.
                run.overtaken = run.over.is_some_and(|tags| tags.are_hit_by(tag));
            }
            Meanwhile::Expire => {
                let ttl = Duration::from_millis(90);
                let changed = self.cache.expire(&Probe(key), ttl, Condition::Always);
                let expected = self.expire(key, ttl, Condition::Always, StatedEnd::For(ttl));
                assert_eq!(changed, expected, "expire of {key} while it is loaded");
                run.overtaken = changed;
            }
            Meanwhile::Idle | Meanwhile::Nothing => run.overtaken = false,
        }
        if load.meanwhile == Meanwhile::Idle {
            let live = self.is_live(key);
            let endless = live && self.entries[&key].end().is_none();
            let changed = if endless {
                self.cache.persist(&Probe(key))
            } else {
                self.cache
                    .expire(&Probe(key), Duration::from_millis(5), Condition::IfNone)
            };
            assert!(!changed, "it has an end, or is not there");
            assert!(!self.cache.remove_if(&Probe(key), |_| false));
        }
    }

    /// The loader has run.
    fn finish_load(
        &mut self,
        load: &Load,
        run: Run,
        stale: Option<bool>,
        answer: Option<u64>,
        effects: &mut Effects,
    ) {
        let (key, now) = (load.key, self.tick());
        if !run.overtaken {
            // One that waited in the queue of refreshes was taken over.
            self.flights.remove(&key);
        }
        if let Some(entry) = self.entries.get_mut(&key)
            && stale.is_none()
            && !run.overtaken
        {
            entry.learn_due(now, true);
        }
        match (run.entry, load.asks) {
            (Some(entry), _) => {
                assert_eq!(answer, Some(entry.id), "what was loaded is the answer");
                match run.unchanged {
                    false if load.private => {
                        if !run.overtaken {
                            self.leaves(key, RemovalCause::Removed);
                        }
                    }
                    true if run.overtaken => effects.makes_room = true,
                    true => self.lives_on(key, entry, effects),
                    false => self.loaded(key, entry, run.overtaken, effects),
                }
            }
            (None, Asks::Optionally) => {
                assert_eq!(answer, None);
                if !run.overtaken {
                    self.leaves(key, RemovalCause::Removed);
                    let time = if load.sees_old {
                        load.absent_for()
                    } else {
                        NEGATIVE
                    };
                    self.remember(key, Negative::Absent, time);
                }
            }
            (None, _) => {
                self.counts.load_errors += 1;
                self.old_in_place_of_an_error(key, answer);
                if !run.overtaken {
                    self.try_later(key);
                    self.remember(key, Negative::Error, self.setup.error_time());
                }
            }
        }
    }

    /// A loaded value is stored, unless the load was overtaken.
    fn loaded(&mut self, key: u16, entry: Entry, overtaken: bool, effects: &mut Effects) {
        // Room was made for it in any case.
        effects.makes_room = true;
        let fits = self.fits(entry.weight);
        match (overtaken, fits) {
            (true, _) => {}
            (false, true) => self.takes_place(key, entry, effects),
            (false, false) => self.refused(key, &entry, effects),
        }
    }

    pub(super) fn remember(&mut self, key: u16, negative: Negative, time: Duration) {
        if self.setup.is_negative() {
            self.negatives.insert(key, (negative, self.deadline(time)));
        }
    }

    /// A refresh has failed.
    pub(super) fn try_later(&mut self, key: u16) {
        let (now, idles) = (self.tick(), self.setup.idle().is_some());
        let backoff = self.setup.backoff().as_millis() as u64;
        let live = self.is_live(key);
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        if live && entry.is_due(now) != Some(true) || entry.is_kept(now) == Some(false) {
            return;
        }
        let half = |end: u64| now + (end.saturating_sub(now) / 2).max(backoff);
        entry.soft = Some(match entry.hard_end(idles) {
            _ if !live => (now + backoff, now + backoff),
            Some((low, high)) => (half(low), half(high)),
            None => (now + RETRY, now + RETRY),
        });
        entry.failed = true;
    }

    /// An answer that was remembered.
    fn answered(&mut self, load: &Load, negative: Option<Negative>, answer: Option<u64>) {
        let key = load.key;
        match (load.asks, negative) {
            (Asks::Fallibly, Some(Negative::Error)) => self.old_in_place_of_an_error(key, answer),
            (Asks::Fallibly, _) => {
                assert!(answer.is_some(), "{key} is answered by its old value");
                self.old_in_place_of_an_error(key, answer);
            }
            _ => assert_eq!(answer, None, "the absence of {key} is remembered"),
        }
    }

    /// Returns whether a dead entry is served without a load, since the last one has failed a
    /// moment ago. `None` while only the cache knows.
    fn is_put_off(&self, key: u16) -> Option<bool> {
        let now = self.tick();
        let entry = self.entries.get(&key).filter(|entry| entry.failed);
        let Some((low, high)) = entry.and_then(|entry| entry.soft) else {
            return Some(false);
        };
        let is_told = self.setup.is_told() && self.setup.prompt;
        match entry.and_then(|entry| entry.is_kept(now)) {
            _ if now >= high => Some(false),
            Some(false) => Some(false),
            Some(true) if now < low && is_told => Some(true),
            _ => None,
        }
    }

    /// The loader answered with an error: the old value is served if the cache still keeps it for
    /// that case.
    fn old_in_place_of_an_error(&mut self, key: u16, answer: Option<u64>) {
        let now = self.tick();
        let entry = self.entries.get(&key);
        let kept = entry.and_then(|entry| entry.is_kept(now));
        let live = self.is_live(key);
        // An expired entry may have been evicted already, and the listener may not know yet.
        // So may one that was stored meanwhile, if there was no room.
        let crowded = entry.is_some_and(|entry| self.is_crowded_out(entry));
        let told = self.setup.is_told() && self.setup.prompt;
        let known = (live || told) && !crowded;
        match answer {
            Some(id) => {
                assert_eq!(
                    entry.map(|entry| entry.id),
                    Some(id),
                    "the old value of {key}"
                );
                assert_ne!(kept, Some(false), "{entry:?} is served too long, at {now}");
                self.counts.stale += 1;
            }
            None => assert!(
                kept != Some(true) || !known,
                "{entry:?} is kept for this, at {now}"
            ),
        }
    }
}

/// A call's answer, and where that comes from.
type Told = (Option<Value>, Option<Outcome>);

/// The result of a loader's run.
#[derive(Debug, Default)]
pub(super) struct Run {
    ran: bool,
    /// The tags of the live entry that was there.
    over: Option<Tags>,
    /// True if a writer came between.
    overtaken: bool,
    /// The entry that the returned value should become.
    pub(super) entry: Option<Entry>,
    /// True if it has returned the old one.
    pub(super) unchanged: bool,
}
