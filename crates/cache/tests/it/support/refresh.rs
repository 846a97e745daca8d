//! The model of background refreshes: what is queued, and what the next value keeps of the old one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tidewheel::{Loaded, Presence, RemovalCause};

use super::load::{Failed, Negative};
use super::model::{Effects, Entry, Model};
use super::op::{Life, Tags};
use super::setup::{ABSENT, NEGATIVE};
use super::value::{Ledger, Value};

/// The ids of refreshed values begin here.
const FIRST_ID: u64 = 1 << 40;

/// The end that the caller stated for an entry, when it was stored or later.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum StatedEnd {
    Nothing,
    Never,
    Point,
    For(Duration),
}

impl StatedEnd {
    pub(super) fn of(life: Life) -> Self {
        match life {
            Life::Configured => Self::Nothing,
            Life::For(ttl) => Self::For(ttl),
            Life::Until(_) => Self::Point,
            Life::Forever => Self::Never,
        }
    }
}

/// Where refreshed values come from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    ledger: Ledger,
    asked: Arc<AtomicU64>,
}

/// The origin's answer about one value. Where it says nothing, the earlier settings of the entry
/// remain.
#[derive(Debug, Clone, Copy)]
struct News {
    id: u64,
    weight: u32,
    life: Life,
    fresh: Option<Duration>,
    tags: Tags,
    /// True if the value is the old one.
    unchanged: bool,
}

/// The origin's answer when it has no value.
#[derive(Debug, Clone, Copy)]
enum NoNews {
    Failed,
    Absent,
    AbsentFor(Duration),
    /// A value that is not to be stored.
    Private,
}

impl News {
    /// The next of the origin's, whatever is asked for.
    fn of(number: u64) -> Result<Self, NoNews> {
        let plain = Self {
            id: FIRST_ID + number,
            weight: 1 + (number % 5) as u32,
            life: Life::Configured,
            fresh: None,
            tags: Tags::NONE,
            unchanged: number % 5 == 3,
        };
        Ok(match number % 7 {
            0 if number % 4 == 1 => return Err(NoNews::Absent),
            0 if number % 4 == 2 => return Err(NoNews::AbsentFor(ABSENT)),
            0 if number % 4 == 3 => return Err(NoNews::Private),
            0 => return Err(NoNews::Failed),
            1 => Self {
                life: Life::For(Duration::from_millis(33)),
                ..plain
            },
            2 => Self {
                life: Life::Forever,
                fresh: Some(Duration::from_millis(7)),
                tags: Tags(2),
                ..plain
            },
            3 => Self {
                fresh: Some(Duration::from_micros(11_500)),
                ..plain
            },
            _ => plain,
        })
    }
}

impl Origin {
    pub(crate) fn new(ledger: &Ledger) -> Self {
        Self {
            ledger: ledger.clone(),
            asked: Arc::default(),
        }
    }

    /// The refresher.
    pub(crate) fn load(&self, old: Value) -> Result<Presence<Value>, Failed> {
        let news = match News::of(self.asked.fetch_add(1, SeqCst)) {
            Ok(news) => news,
            Err(NoNews::Failed) => return Err(Failed),
            Err(NoNews::Absent) => return Ok(Presence::Absent),
            Err(NoNews::AbsentFor(time)) => return Ok(Presence::AbsentFor(time)),
            Err(NoNews::Private) => return Ok(Loaded::private(old).into()),
        };
        let mut lifetime = news.life.plain();
        if let Some(fresh) = news.fresh {
            lifetime = lifetime.fresh_for(fresh);
        }
        let tags = news.tags.names().into_iter();
        let lifetime = tags.fold(lifetime, tidewheel::Lifetime::tag);
        let loaded = match news.unchanged {
            true => Loaded::unchanged(old, lifetime),
            false => Loaded::new(Value::new(news.id, news.weight, &self.ledger), lifetime),
        };
        Ok(loaded.into())
    }
}

impl Model {
    /// A stale entry was read: its refresh is queued, once.
    pub(super) fn wants_refresh(&mut self, key: u16) {
        let waits = self.flights.contains_key(&key) || self.remembered(key).is_some();
        // The read may have ended it: an `Expiry` may leave it no time.
        let is_over = self.entries[&key].is_live(self.tick()) == Some(false);
        if self.setup.has_refresher() && !waits && !is_over && self.is_due(key) {
            self.next_flight += 1;
            self.flights.insert(key, self.next_flight);
            self.queue.push_back((key, self.next_flight));
        }
    }

    /// Returns whether the next value of a stale entry, which was read just now, is wanted. The
    /// last try may have failed a moment ago.
    fn is_due(&mut self, key: u16) -> bool {
        let now = self.tick();
        let queued = self.cache.stats().refreshes_queued > self.queue.len() as u64;
        let entry = self.entries.get_mut(&key).expect("alive");
        entry.is_due(now).unwrap_or_else(|| {
            entry.learn_due(now, queued);
            queued
        })
    }

    /// Runs the first refresh that is queued. More at once, and an eviction by one might concern
    /// another.
    pub(super) fn refresh(&mut self, effects: &mut Effects) {
        let number = self.origin.asked.load(SeqCst);
        let taken = self.cache.run_refreshes(1);
        let next = self.queue.pop_front();
        assert_eq!(taken, usize::from(next.is_some()), "refreshes queued");
        let asked = self.origin.asked.load(SeqCst) - number;
        let Some((key, flight)) = next else { return };
        let waits = self.flights.get(&key) == Some(&flight);
        let runs = waits && self.is_live(key);
        assert_eq!(asked, u64::from(runs), "whether {key} is refreshed");
        if !runs {
            if waits {
                self.flights.remove(&key);
            }
            return;
        }
        self.counts.loads += 1;
        match News::of(number) {
            Ok(news) => self.refreshed(key, news, effects),
            Err(NoNews::Failed) => {
                self.flights.remove(&key);
                self.counts.load_errors += 1;
                self.try_later(key);
                self.remember(key, Negative::Error, self.setup.error_time());
            }
            Err(NoNews::Absent) => self.refreshed_away(key, NEGATIVE),
            Err(NoNews::AbsentFor(time)) => self.refreshed_away(key, time),
            Err(NoNews::Private) => _ = self.leaves(key, RemovalCause::Removed),
        }
    }

    /// There is no such thing any more.
    fn refreshed_away(&mut self, key: u16, time: Duration) {
        self.leaves(key, RemovalCause::Removed);
        self.remember(key, Negative::Absent, time);
    }

    fn refreshed(&mut self, key: u16, mut news: News, effects: &mut Effects) {
        if news.unchanged {
            let old = &self.entries[&key];
            (news.id, news.weight) = (old.id, old.weight);
            let entry = self.next_entry(key, news);
            return self.lives_on(key, entry, effects);
        }
        let entry = self.next_entry(key, news);
        if self.fits(entry.weight) {
            self.takes_place(key, entry, effects);
        } else {
            self.refused(key, &entry, effects);
        }
    }

    /// The entry that a refreshed value becomes: with what was said for the old one, unless the
    /// origin said otherwise.
    fn next_entry(&self, key: u16, news: News) -> Entry {
        let old = &self.entries[&key];
        let silent = news.life == Life::Configured;
        let stated = if silent {
            old.stated
        } else {
            StatedEnd::of(news.life)
        };
        let hard = match (silent, stated) {
            (true, StatedEnd::For(ttl)) => Some(self.shaped(ticks(ttl))),
            (true, StatedEnd::Point) => old.hard_end(self.setup.idle().is_some()),
            (true, StatedEnd::Never) => None,
            _ => self.lifetime(news.life, news.id, self.left(key)).1,
        };
        let fresh = match news.fresh {
            None if silent => old.fresh.map(ticks),
            fresh => fresh,
        };
        let tags = if news.tags == Tags::NONE {
            old.tags
        } else {
            news.tags
        };
        let mut entry = self.entry(news.id, news.weight, hard, tags);
        entry.stated = stated;
        if silent {
            entry.grace = old.grace;
        }
        if stated == StatedEnd::Nothing {
            entry.cap = self.cap(Life::Configured);
        }
        entry.is_fresh_for(self.soft(fresh, hard), fresh);
        entry
    }
}

/// As the cache keeps it: whole ticks, rounded up.
fn ticks(ttl: Duration) -> Duration {
    let nanos = u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_millis(nanos.div_ceil(1_000_000))
}
