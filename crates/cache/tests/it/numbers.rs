//! Numbers, which are read without a lock and overwritten in place, against a naive model: random
//! operations, and a clock with loose bounds that may be set back.

use std::collections::BTreeMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use tidewheel::{Cache, Clock, Condition, Lifetime, Ttl};

use crate::loading::{MS, by_hand};

const KEYS: u64 = 40;
const TICK: u64 = 1_000_000;
/// What the clock shows at first, in nanoseconds.
const ORIGIN: u64 = 3_600_000_000_000;

/// A clock that may be set back, and whose bounds are as wide as is wanted.
#[derive(Debug, Clone, Default)]
struct Loose {
    nanos: Arc<AtomicU64>,
    below: Duration,
    above: Duration,
}

impl Clock for Loose {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(SeqCst))
    }

    fn bounds(&self) -> (Duration, Duration) {
        let now = self.now();
        (
            now.saturating_sub(self.below),
            now.saturating_add(self.above),
        )
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// Takes a number for its hash, as hashers for keys that are well mixed do. That of key 0 looks
/// like a vacant place.
#[derive(Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are of one type");
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type Numbers = Cache<u64, u64, BuildHasherDefault<Itself>>;

struct World {
    cache: Numbers,
    clock: Loose,
    /// The value of each key, and its end in ticks.
    entries: BTreeMap<u64, (u64, Option<u64>)>,
    /// The cache's time.
    now: u64,
    /// The clock's latest reading, less the steps by which it was set back.
    seen: i64,
    /// What the clock shows more than that.
    offset: i64,
    /// The reading at which time stands still.
    frozen: Option<i64>,
    next: u64,
    inserts: u64,
}

impl World {
    fn new(below: Duration, above: Duration) -> Self {
        let clock = Loose {
            nanos: Arc::new(AtomicU64::new(ORIGIN)),
            below,
            above,
        };
        let cache = by_hand(&clock)
            .hasher(BuildHasherDefault::<Itself>::default())
            .build();
        Self {
            cache: cache.expect("valid"),
            clock,
            entries: BTreeMap::new(),
            now: 0,
            seen: 0,
            offset: ORIGIN as i64,
            frozen: None,
            next: 0,
            inserts: 0,
        }
    }

    fn end(&self, ttl: Duration) -> u64 {
        match ttl.as_nanos() as u64 {
            0 => self.now / TICK,
            ttl => (self.now + ttl).div_ceil(TICK),
        }
    }

    fn live(&self, key: u64) -> Option<(u64, Option<u64>)> {
        let (value, end) = *self.entries.get(&key)?;
        end.is_none_or(|end| self.now / TICK < end)
            .then_some((value, end))
    }

    fn step(&mut self, bits: u64) {
        let (key, more) = (bits >> 8 & 0xff, bits >> 16);
        let key = key % KEYS;
        let ttl = match more % 4 {
            0 => Duration::ZERO,
            1 => Duration::from_micros(more / 4 % 20_000),
            _ => Duration::from_millis(more / 4 % 60),
        };
        match bits % 16 {
            0..5 => self.insert(key, (more % 3 > 0).then_some(ttl)),
            5 => {
                let many: Vec<_> = (0..more % 50).map(|at| (at * 7 % KEYS, at)).collect();
                self.cache
                    .insert_many_with(many.iter().copied(), &Lifetime::ttl(ttl));
                self.inserts += many.len() as u64;
                let end = Some(self.end(ttl));
                let many = many.into_iter().map(|(key, value)| (key, (value, end)));
                self.entries.extend(many);
            }
            6 => {
                let expected = self.live(key).map(|(value, _)| value);
                assert_eq!(self.cache.remove(&key), expected);
                self.entries.remove(&key);
            }
            7 | 8 => {
                let changed = match more % 3 {
                    0 => self.cache.persist(&key),
                    _ => self.cache.expire(&key, ttl, Condition::Always),
                };
                let live = self.live(key);
                let end = (more % 3 > 0).then(|| self.end(ttl));
                let expected = live.is_some_and(|(_, old)| end.is_some() || old.is_some());
                assert_eq!(changed, expected, "{key}");
                if let Some((value, _)) = live.filter(|_| changed) {
                    self.entries.insert(key, (value, end));
                }
            }
            9..12 => self.pass((more % 12_000_000) as i64),
            12 => {
                // By more than a second it is set; by less, it may have been read by two threads.
                let back = (more % (30 * TICK)) as i64;
                let far = if more % 2 == 0 { 2_000_000_000 } else { 0 };
                self.pass(-back - far);
            }
            13 => match more % 2 {
                0 => {
                    self.cache.freeze();
                    self.frozen.get_or_insert(self.seen);
                }
                _ => {
                    self.cache.resume();
                    self.frozen = None;
                    self.look(false);
                }
            },
            _ => {
                let due = self.entries.keys().filter(|key| self.live(**key).is_none());
                let due = due.count() as u64;
                // What was over at once, or overwritten, has left already.
                let expired = self.cache.advance(Duration::MAX, u32::MAX).expired;
                assert!(expired <= due, "{expired} of {due}");
                let now = self.now / TICK;
                let is_live = |end: Option<u64>| end.is_none_or(|end| now < end);
                self.entries.retain(|_, (_, end)| is_live(*end));
                assert_eq!(self.cache.len(), self.entries.len());
            }
        }
        self.compare(bits);
    }

    fn insert(&mut self, key: u64, ttl: Option<Duration>) {
        self.next += 1;
        self.inserts += 1;
        match ttl {
            Some(ttl) => self.cache.insert_with_ttl(key, self.next, ttl),
            None => self.cache.insert(key, self.next),
        }
        let end = ttl.map(|ttl| self.end(ttl));
        self.entries.insert(key, (self.next, end));
    }

    fn pass(&mut self, nanos: i64) {
        let shown = self.clock.nanos.load(SeqCst).saturating_add_signed(nanos);
        self.clock.nanos.store(shown, SeqCst);
        if self.frozen.is_none() {
            self.look(true);
        }
    }

    /// The clock is read; time may have stood still since the last reading.
    fn look(&mut self, passes: bool) {
        let shown = self.clock.nanos.load(SeqCst) as i64;
        let since = shown - self.offset - self.seen;
        if since >= 0 {
            self.seen += since;
            self.now += if passes { since as u64 } else { 0 };
        } else if since < -1_000_000_000 {
            self.offset = shown - self.seen;
        }
    }

    /// Every way to look agrees with the model: of all keys at once, and of a few.
    fn compare(&self, bits: u64) {
        assert_eq!(self.cache.now(), Duration::from_nanos(ORIGIN + self.now));
        let keys: Vec<u64> = (0..KEYS).collect();
        let many = self.cache.get_many(&keys);
        for (key, found) in keys.iter().zip(many) {
            assert_eq!(found, self.live(*key).map(|(value, _)| value), "{key}");
        }
        for key in (0..4).map(|next| ((bits >> 8 & 0xff) + next) % KEYS) {
            let live = self.live(key);
            let value = live.map(|(value, _)| value);
            assert_eq!(self.cache.get(&key), value, "{key}");
            assert_eq!(self.cache.peek(&key), value);
            assert_eq!(self.cache.contains_key(&key), value.is_some());
            assert_eq!(self.cache.touch(&key), value.is_some());
            let ttl = match live {
                None => Ttl::Missing,
                Some((_, None)) => Ttl::Forever,
                Some((_, Some(end))) => Ttl::Left(Duration::from_nanos(end * TICK - self.now)),
            };
            assert_eq!(self.cache.ttl(&key), ttl, "{key}");
        }
        if bits.is_multiple_of(8) {
            assert_eq!(self.cache.stats().inserts, self.inserts);
            self.cache.validate();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_behave_like_their_model(
        below in 0..4_usize,
        above in 0..4_usize,
        steps in prop::collection::vec(any::<u64>(), 1..120),
    ) {
        let bounds = [Duration::ZERO, MS / 1000, 3 * MS, Duration::MAX];
        let mut world = World::new(bounds[below], bounds[above]);
        for bits in steps {
            world.step(bits);
        }
    }
}
