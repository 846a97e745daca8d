//! The configurations under which the model's tests run.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel::{Cache, Driver, Expiry, Jitter, ManualClock, OnFull, Removal, RemovalCause};

use super::load::Failed;
use super::refresh::Origin;
use super::value::{Hashing, Key, Value};

/// The capacity of caches with a weigher.
pub(crate) const WEIGHT: u32 = 40;

/// The capacity of caches without one.
pub(crate) const COUNT: u64 = 9;

pub(crate) const TTL: Duration = Duration::from_millis(50);
pub(crate) const IDLE: Duration = Duration::from_micros(29_300);
pub(crate) const GRACE: Duration = Duration::from_millis(13);
/// The time for which errors and absences are remembered, where they are.
pub(crate) const NEGATIVE: Duration = Duration::from_millis(9);
/// The same of an absence whose loader says how long.
pub(crate) const ABSENT: Duration = Duration::from_millis(17);
/// The same of an error, where errors have a time of their own.
const FAILED: Duration = Duration::from_millis(5);
/// The time for which a failing origin is left alone while there is an old value.
const BACKOFF: Duration = Duration::from_millis(4);
pub(crate) const JITTER: f64 = 0.3;
pub(crate) const BOUNDS: (Duration, Duration) =
    (Duration::from_millis(20), Duration::from_millis(65));

/// One configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Setup {
    pub(crate) room: Room,
    pub(crate) ends: Ends,
    pub(crate) shape: Shape,
    pub(crate) shards: usize,
    pub(crate) listener: Listening,
    /// True if events are asked for after every step.
    pub(crate) prompt: bool,
    pub(crate) weak_hash: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Room {
    Count,
    Weight,
    Unbounded,
}

/// By which options entries end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ends {
    ttl: bool,
    idle: bool,
    expiry: bool,
}

impl Ends {
    /// As `TIE` says: by time to live, idle time, `Expiry`.
    const fn by(bits: u8) -> Self {
        Self {
            ttl: bits & 0b100 > 0,
            idle: bits & 0b010 > 0,
            expiry: bits & 0b001 > 0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    Plain,
    /// With a soft deadline too.
    Grace,
    Shorten,
    Lengthen,
    Bounds,
    /// A soft deadline, and answers that are remembered.
    Soft,
    /// The same, with a refresher in the background.
    Refresh,
    /// Grace, jitter, bounds, a soft deadline, answers that are remembered.
    All,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Listening {
    Nobody,
    Everything,
    /// Writers help when this many events wait.
    Wait(usize),
    /// Events beyond this many are lost, and counted.
    Lossy(usize),
}

const ROOMS: [Room; 3] = [Room::Count, Room::Weight, Room::Unbounded];
const ENDS: [Ends; 8] = [
    Ends::by(0b000),
    Ends::by(0b100),
    Ends::by(0b010),
    Ends::by(0b110),
    Ends::by(0b001),
    Ends::by(0b011),
    Ends::by(0b101),
    Ends::by(0b111),
];
const SHAPES: [Shape; 8] = [
    Shape::Plain,
    Shape::Grace,
    Shape::Shorten,
    Shape::Lengthen,
    Shape::Bounds,
    Shape::Soft,
    Shape::Refresh,
    Shape::All,
];
const SHARDS: [usize; 2] = [1, 4];
const LISTENERS: [Listening; 4] = [
    Listening::Everything,
    Listening::Wait(3),
    Listening::Lossy(3),
    Listening::Nobody,
];

impl Setup {
    /// The configuration that bits stand for.
    pub(crate) fn from_bits(bits: u64) -> Self {
        fn pick<T: Copy, const N: usize>(of: [T; N], bits: u64) -> T {
            of[(bits & 0xff) as usize % N]
        }
        Self {
            room: pick(ROOMS, bits),
            ends: pick(ENDS, bits >> 8),
            shape: pick(SHAPES, bits >> 16),
            shards: pick(SHARDS, bits >> 24),
            listener: pick(LISTENERS, bits >> 32),
            prompt: bits >> 40 & 1 == 0,
            weak_hash: bits >> 41 & 7 == 7,
        }
    }

    /// Every configuration, events asked for promptly.
    pub(crate) fn all() -> Vec<Self> {
        fn digit<T: Copy, const N: usize>(of: [T; N], number: &mut usize) -> T {
            let digit = *number % N;
            *number /= N;
            of[digit]
        }
        let sides = [
            ROOMS.len(),
            ENDS.len(),
            SHAPES.len(),
            SHARDS.len(),
            LISTENERS.len(),
        ];
        let all = 0..sides.into_iter().product();
        all.map(|mut number| Self {
            listener: digit(LISTENERS, &mut number),
            shards: digit(SHARDS, &mut number),
            shape: digit(SHAPES, &mut number),
            ends: digit(ENDS, &mut number),
            room: digit(ROOMS, &mut number),
            prompt: true,
            weak_hash: false,
        })
        .collect()
    }

    pub(crate) fn capacity(&self) -> Option<u64> {
        match self.room {
            Room::Count => Some(COUNT),
            Room::Weight => Some(WEIGHT.into()),
            Room::Unbounded => None,
        }
    }

    /// Returns whether the listener hears of every departure.
    pub(crate) fn is_told(&self) -> bool {
        matches!(self.listener, Listening::Everything | Listening::Wait(_))
    }

    pub(crate) fn idle(&self) -> Option<Duration> {
        self.ends.idle.then_some(IDLE)
    }

    /// The TTL of what is stored without one.
    pub(crate) fn ttl(&self) -> Option<Duration> {
        self.ends.ttl.then_some(TTL)
    }

    pub(crate) fn has_expiry(&self) -> bool {
        self.ends.expiry
    }

    /// Ticks that entries are kept after their end.
    pub(crate) fn grace(&self) -> u64 {
        match self.shape {
            Shape::Grace | Shape::All => GRACE.as_millis() as u64,
            _ => 0,
        }
    }

    /// Returns the time for which a failing origin is left alone while there is an old value.
    pub(crate) fn backoff(&self) -> Duration {
        match self.shape {
            Shape::Soft => Duration::ZERO,
            _ => BACKOFF,
        }
    }

    /// The fraction of a TTL after which an entry is stale.
    pub(crate) fn refresh_after(&self) -> Option<f64> {
        match self.shape {
            Shape::Grace | Shape::Soft | Shape::Refresh => Some(0.4),
            Shape::All => Some(0.5),
            _ => None,
        }
    }

    /// Returns whether errors and absences are remembered.
    pub(crate) fn is_negative(&self) -> bool {
        matches!(self.shape, Shape::Soft | Shape::Refresh | Shape::All)
    }

    /// Returns the time for which errors are remembered, where anything is.
    pub(crate) fn error_time(&self) -> Duration {
        match self.shape {
            Shape::All => FAILED,
            _ => NEGATIVE,
        }
    }

    pub(crate) fn has_refresher(&self) -> bool {
        self.shape == Shape::Refresh
    }

    /// Returns the shortest and the longest TTL that jitter and bounds may make of one.
    pub(crate) fn shaped(&self, ttl: Duration) -> (Duration, Duration) {
        let (short, long) = match self.shape {
            Shape::Shorten | Shape::All => (scaled(ttl, 1.0 - JITTER), ttl),
            Shape::Lengthen => (ttl, scaled(ttl, 1.0 + JITTER)),
            _ => (ttl, ttl),
        };
        match self.shape {
            Shape::Bounds | Shape::All => (
                short.clamp(BOUNDS.0, BOUNDS.1),
                long.clamp(BOUNDS.0, BOUNDS.1),
            ),
            _ => (short, long),
        }
    }

    /// The cache, its clock, and where its listener writes to.
    pub(crate) fn build(
        &self,
        origin: &Origin,
    ) -> (Cache<Key, Value, Hashing>, ManualClock, Heard) {
        let clock = ManualClock::new();
        let heard = Heard::default();
        let mut builder = Cache::builder()
            .clock(clock.clone())
            .driver(Driver::Manual)
            .shards(self.shards)
            .error_backoff(self.backoff())
            .hasher(Hashing {
                weak: self.weak_hash,
            });
        builder = match self.room {
            Room::Count => builder.max_capacity(COUNT),
            Room::Weight => builder
                .max_capacity(WEIGHT.into())
                .weigher(|_, value: &Value| value.weight),
            Room::Unbounded => builder.unbounded(),
        };
        builder = builder.no_default_ttl();
        if self.ends.ttl {
            builder = builder.time_to_live(TTL);
        }
        if self.ends.idle {
            builder = builder.time_to_idle(IDLE);
        }
        if self.ends.expiry {
            builder = builder.expire_after(ByValue);
        }
        builder = match self.shape {
            Shape::Plain => builder,
            Shape::Grace => builder.stale_on_error(GRACE).refresh_after(0.4),
            Shape::Shorten => builder.jitter(JITTER),
            Shape::Lengthen => builder.jitter(Jitter::lengthen(JITTER)),
            Shape::Bounds => builder.ttl_bounds(BOUNDS.0, BOUNDS.1),
            Shape::All => builder
                .stale_on_error(GRACE)
                .jitter(JITTER)
                .ttl_bounds(BOUNDS.0, BOUNDS.1)
                .negative_ttl(NEGATIVE)
                .error_ttl(|_: &Failed| FAILED)
                .refresh_after(0.5),
            Shape::Soft => builder.negative_ttl(NEGATIVE).refresh_after(0.4),
            Shape::Refresh => {
                let origin = origin.clone();
                builder
                    .negative_ttl(NEGATIVE)
                    .refresh_after(0.4)
                    .refresh_with_old(move |_: &Key, old: Value| origin.load(old))
            }
        };
        if self.listener != Listening::Nobody {
            let ear = heard.clone();
            builder = builder.eviction_listener(move |removal| ear.hear(removal));
        }
        builder = match self.listener {
            Listening::Wait(limit) => builder.listener_queue(limit, OnFull::Wait),
            Listening::Lossy(limit) => builder.listener_queue(limit, OnFull::Drop),
            Listening::Nobody | Listening::Everything => builder,
        };
        (
            builder.build().expect("a valid configuration"),
            clock,
            heard,
        )
    }
}

fn scaled(ttl: Duration, by: f64) -> Duration {
    // A little more than floating point may lose; saturates as the cache does.
    let scaled = Duration::try_from_secs_f64(ttl.as_secs_f64() * by).unwrap_or(Duration::MAX);
    let slack = Duration::from_micros(1) + scaled / 1_000_000;
    if by < 1.0 {
        scaled.saturating_sub(slack)
    } else {
        scaled.saturating_add(slack)
    }
}

/// The events that the listener was told of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<Event>>>);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) key: u16,
    pub(crate) id: u64,
    pub(crate) cause: RemovalCause,
    pub(crate) lateness: Option<Duration>,
}

impl Heard {
    fn hear(&self, removal: Removal<Key, Value>) {
        let event = Event {
            key: removal.key.number,
            id: removal.value.id,
            cause: removal.cause,
            lateness: removal.lateness,
        };
        self.0.lock().expect("nobody panics here").push(event);
    }

    pub(crate) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics here"))
    }
}

/// Lifetimes that follow from the value.
#[derive(Debug)]
pub(crate) struct ByValue;

impl ByValue {
    pub(crate) fn create(id: u64) -> Option<Duration> {
        (!id.is_multiple_of(3)).then(|| Duration::from_micros(20_000 + id % 50 * 777))
    }

    pub(crate) fn update(id: u64, left: Option<Duration>) -> Option<Duration> {
        match id % 4 {
            0 => left,
            1 => None,
            _ => Some(Duration::from_millis(25)),
        }
    }

    pub(crate) fn read(id: u64, left: Option<Duration>) -> Option<Duration> {
        match id % 5 {
            0 => Some(Duration::from_millis(40)),
            1 if id.is_multiple_of(2) => None,
            2 => left.map(|left| left / 2),
            _ => left,
        }
    }
}

impl Expiry<Key, Value> for ByValue {
    fn expire_after_create(&self, _: &Key, value: &Value) -> Option<Duration> {
        Self::create(value.id)
    }

    fn expire_after_update(
        &self,
        _: &Key,
        value: &Value,
        left: Option<Duration>,
    ) -> Option<Duration> {
        Self::update(value.id, left)
    }

    fn expire_after_read(
        &self,
        _: &Key,
        value: &Value,
        left: Option<Duration>,
    ) -> Option<Duration> {
        Self::read(value.id, left)
    }
}
