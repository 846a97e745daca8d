//! The operations of the model, each told by 64 bits.

use std::time::Duration;

use tidewheel::{Condition, Lifetime};

use super::closures::{Aside, Change, Wants};
use super::load::{Asks, Load, Meanwhile};

/// Keys are below this.
pub(crate) const KEYS: u16 = 40;

/// One call, or one turn of a clock. A number is the key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Op {
    Insert(u16, New),
    InsertIfAbsent(u16, New),
    /// As a loader's value, by hand.
    Store(Load),
    /// A closure decides what becomes of a key.
    Change(Change),
    Get(u16),
    Touch(u16),
    Remove(u16),
    Invalidate(u16),
    InvalidateAll,
    Expire(u16, Duration, Condition),
    ExpireAt(u16, At, Condition),
    Persist(u16),
    Update(u16),
    /// Of all keys with this rest.
    InvalidateIf(u16),
    Load(Load),
    Refresh,
    InvalidateTag(u8),
    Pin(u16, bool),
    SetMaxCapacity(u64),
    Version(u16),
    GetWithVersion(u16),
    /// `keeps` what is left of the old one's life. `past` takes a version that is no longer there.
    CompareAndSet {
        key: u16,
        new: New,
        keeps: bool,
        past: bool,
    },
    /// True takes a version that is no longer there.
    RemoveVersion(u16, bool),
    /// If the value's number is even.
    RemoveIf(u16),
    /// So many nanoseconds pass, and nobody looks.
    Pass(u64),
    /// A pass of the driver. `behind` is how much older than now its reading of the clock is.
    Advance {
        behind: u64,
        budget: u32,
    },
    /// So many nanoseconds pass, and the driver does all there is to do.
    Drive(u64),
    Freeze,
    Resume,
    SetWall(u64),
}

/// What is said of a new value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct New {
    pub(crate) weight: u32,
    pub(crate) life: Life,
    pub(crate) tags: Tags,
}

impl New {
    /// Of this weight, and else as configured.
    pub(crate) const fn of(weight: u32) -> Self {
        Self {
            weight,
            life: Life::Configured,
            tags: Tags::NONE,
        }
    }

    fn from_bits(high: u32, life: Life) -> Self {
        Self {
            weight: weight(high),
            life,
            tags: Tags::from_bits(high >> 10),
        }
    }
}

/// The lifetime of an inserted value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Life {
    Configured,
    For(Duration),
    Until(At),
    Forever,
}

/// The tags of an entry: a bit for each of [`TAGS`], or more than can be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tags(pub(crate) u8);

/// Tags are numbered below this.
pub(crate) const TAGS: u8 = 4;

impl Tags {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const TOO_MANY: Self = Self(1 << TAGS);

    fn from_bits(bits: u32) -> Self {
        match bits % 16 {
            0..=8 => Self::NONE,
            9..=12 => Self(1 << (bits / 16 % u32::from(TAGS))),
            13 | 14 => Self((bits / 16 % 16) as u8),
            _ => Self::TOO_MANY,
        }
    }

    /// Returns whether an invalidation of this tag concerns an entry with these.
    pub(crate) fn are_hit_by(self, tag: u8) -> bool {
        self == Self::TOO_MANY || self.0 >> tag & 1 == 1
    }

    pub(crate) fn names(self) -> Vec<String> {
        let numbers = match self {
            Self::TOO_MANY => 0..40,
            _ => 0..TAGS,
        };
        numbers
            .filter(|tag| self == Self::TOO_MANY || self.are_hit_by(*tag))
            .map(|tag| tag.to_string())
            .collect()
    }
}

impl Life {
    /// As callers say it, unless it is a point in time.
    pub(crate) fn plain(self) -> Lifetime {
        match self {
            Self::Configured | Self::Until(_) => Lifetime::configured(),
            Self::For(ttl) => Lifetime::ttl(ttl),
            Self::Forever => Lifetime::forever(),
        }
    }
}

/// A point in wall time, told from now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum At {
    Before(Duration),
    After(Duration),
}

impl Op {
    /// The operation that bits stand for.
    pub(crate) fn from_bits(bits: u64) -> Self {
        let key = ((bits >> 8) as u16) % KEYS;
        // Often the same few keys, so that calls meet what others have left.
        let often = if bits >> 22 & 1 == 0 { key % 4 } else { key };
        let low = (bits >> 24) as u16;
        let high = (bits >> 40) as u32;
        match bits % 64 {
            14..=19 => Self::Load(loading(key, low, high, (bits >> 8) as u16 / KEYS)),
            12 | 13 => Self::Store(loading(key, low, high, (bits >> 8) as u16 / KEYS)),
            0..=11 => Self::Insert(key, New::from_bits(high, life(low))),
            20..=24 => Self::Get(often),
            25 => Self::Refresh,
            26 => Self::InvalidateTag((bits >> 8) as u8 % TAGS),
            27 if high.is_multiple_of(4) => {
                Self::SetMaxCapacity(u64::from(low) % 8 * u64::from(low) / 8 % 80)
            }
            27 => Self::Pin(key, !low.is_multiple_of(3)),
            28 => Self::versioned(often, low, high),
            29 => Self::Touch(often),
            30 if high.is_multiple_of(8) => Self::Update(often),
            30 | 31 => Self::Change(changing(key, low, high, (bits >> 8) as u16 / KEYS)),
            32 | 33 => Self::Remove(key),
            34 => Self::Invalidate(key),
            35 => match low % 4 {
                0 => Self::InvalidateAll,
                1 => Self::InvalidateIf(key % 5),
                _ => Self::Refresh,
            },
            36..=41 => Self::Expire(often, ttl(low), condition(high)),
            42 => Self::ExpireAt(often, at(low), condition(high)),
            43 | 44 => Self::Persist(often),
            45..=50 => Self::Pass(nanos(low)),
            51..=54 => Self::Advance {
                behind: u64::from(high.is_multiple_of(8)) * nanos(low),
                budget: match high % 3 {
                    0 => u32::MAX,
                    _ => high % 24,
                },
            },
            55..=60 => Self::Drive(nanos(low)),
            61 => Self::Freeze,
            62 => Self::Resume,
            _ => Self::SetWall(u64::from(high) << (low % 32)),
        }
    }

    fn versioned(key: u16, low: u16, high: u32) -> Self {
        let past = (high >> 20).is_multiple_of(4);
        let new = New::from_bits(high, life(low >> 4));
        match low % 16 {
            0 | 1 => Self::Version(key),
            2 | 3 => Self::GetWithVersion(key),
            4 | 5 => Self::RemoveVersion(key, past),
            6 => Self::RemoveIf(key),
            7 | 8 => Self::InsertIfAbsent(key, new),
            _ => Self::CompareAndSet {
                key,
                new,
                keeps: !low.is_multiple_of(2),
                past,
            },
        }
    }

    /// The operations that bytes stand for: eight bytes each.
    pub(crate) fn all_from_bytes(bytes: &[u8]) -> Vec<Self> {
        let chunks = bytes.as_chunks().0.iter();
        let bits = chunks.map(|bytes| u64::from_le_bytes(*bytes));
        bits.map(Self::from_bits).collect()
    }
}

fn loading(key: u16, low: u16, high: u32, more: u16) -> Load {
    // As above.
    let key = if high & 1 == 0 { key % 4 } else { key };
    Load {
        key,
        asks: match high >> 18 & 3 {
            0 => Asks::Plainly,
            1 => Asks::Optionally,
            _ => Asks::Fallibly,
        },
        succeeds: high >> 20 & 1 == 0,
        new: New::from_bits(high, life(low)),
        fresh: (high >> 21 & 3 == 0).then(|| ttl(low.rotate_left(5))),
        stale: (high >> 23 == 0 && low % 3 == 0)
            .then(|| Duration::from_millis(u64::from(low / 3 % 3) * 9)),
        sees_old: more.is_multiple_of(2),
        unchanged: more.is_multiple_of(4),
        private: more % 11 == 4,
        is_async: more % 5 == 1,
        in_bulk: more % 5 == 2,
        meanwhile: match high >> 14 & 15 {
            0 => Meanwhile::Insert,
            1 => Meanwhile::Remove,
            2 => Meanwhile::InvalidateAll,
            3 | 4 => Meanwhile::Idle,
            5 => Meanwhile::InvalidateTag((more % u16::from(TAGS)) as u8),
            6 => Meanwhile::Expire,
            _ => Meanwhile::Nothing,
        },
    }
}

fn changing(key: u16, low: u16, high: u32, more: u16) -> Change {
    Change {
        next: loading(key, low, high, more),
        wants: match more % 8 {
            0 => Wants::Keep,
            1 => Wants::Fail,
            2 => Wants::Remove,
            3 | 4 => Wants::Update,
            5 => Wants::Replace,
            _ => Wants::Put,
        },
        aside: match more / 8 % 12 {
            0 => Aside::InvalidateAll,
            1 => Aside::InvalidateTag((low % u16::from(TAGS)) as u8),
            2 | 3 => Aside::Pass(nanos(low)),
            4 | 5 => Aside::Drive(nanos(low)),
            6 | 7 => Aside::Insert((key + 1) % KEYS),
            _ => Aside::Nothing,
        },
        is_async: more / 96 % 2 == 1,
    }
}

fn life(bits: u16) -> Life {
    match bits % 8 {
        0..=3 => Life::Configured,
        4 | 5 => Life::For(ttl(bits >> 3)),
        6 => Life::Until(at(bits >> 3)),
        _ => Life::Forever,
    }
}

fn weight(bits: u32) -> u32 {
    match bits % 16 {
        0 => 0,
        1 => super::setup::WEIGHT,
        2 => super::setup::WEIGHT + 1,
        3 if bits.is_multiple_of(5) => u32::MAX,
        4 | 5 => bits / 16 % 32,
        _ => 1 + bits / 16 % 8,
    }
}

fn ttl(bits: u16) -> Duration {
    match bits % 16 {
        0 => Duration::ZERO,
        1 => Duration::MAX,
        2 => Duration::from_micros(u64::from(bits) * 37),
        3 => Duration::from_millis((1 << 40) - 2 + u64::from(bits / 16 % 4)),
        4 => Duration::from_millis((1 << 32) + u64::from(bits)),
        5 => Duration::from_secs(u64::from(bits)),
        _ => Duration::from_millis(u64::from(bits / 16 % 80)),
    }
}

fn at(bits: u16) -> At {
    if bits & 8 == 0 {
        At::After(Duration::from_micros(u64::from(bits) * 10))
    } else {
        At::Before(Duration::from_millis(u64::from(bits)))
    }
}

fn condition(bits: u32) -> Condition {
    match bits % 6 {
        0 => Condition::IfNone,
        1 => Condition::IfSome,
        2 => Condition::IfLater,
        3 => Condition::IfEarlier,
        _ => Condition::Always,
    }
}

fn nanos(bits: u16) -> u64 {
    const MS: u64 = 1_000_000;
    let bits = u64::from(bits);
    match bits % 16 {
        0 => bits * 31,
        1 => MS - 1,
        2 => bits * MS,
        3 if bits.is_multiple_of(7) => 20 * 86_400_000 * MS,
        4..=7 => bits / 16 % 60 * MS,
        _ => bits / 16 % 8 * MS,
    }
}
