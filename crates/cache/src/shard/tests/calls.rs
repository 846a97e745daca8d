//! Random settings and calls.

use std::hash::{BuildHasher, Hasher};

use super::Bits;

pub(super) const KEYS: u64 = 12;
pub(super) const TAGS: usize = 2;

/// The settings of a shard.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) capacity: Option<u64>,
    pub(super) grace: u64,
    pub(super) negative_ttl: Option<u64>,
    pub(super) listens: bool,
    pub(super) collides: bool,
}

impl Setup {
    pub(super) fn of(bits: &mut Bits) -> Self {
        Self {
            capacity: bits.flip().then(|| 1 + bits.below(12)),
            grace: if bits.flip() { 20 } else { 0 },
            negative_ttl: bits.flip().then_some(30),
            listens: bits.below(4) > 0,
            collides: bits.flip(),
        }
    }
}

/// The end of a load.
#[derive(Debug, Clone, Copy)]
pub(super) enum Says {
    Value(New),
    Absent,
    Error,
    Private,
    /// Its loader has panicked.
    Nothing,
}

/// A new entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct New {
    pub(super) ttl: Option<u64>,
    pub(super) fresh_for: Option<u64>,
    pub(super) weight: u32,
    pub(super) tag: Option<usize>,
}

impl New {
    fn of(bits: &mut Bits) -> Self {
        Self {
            ttl: [None, Some(0), Some(1), Some(10), Some(40), Some(100)][bits.below(6) as usize],
            fresh_for: bits.flip().then(|| bits.below(20)),
            weight: if bits.flip() { 1 } else { bits.below(5) as u32 },
            tag: bits.flip().then(|| bits.below(TAGS as u64) as usize),
        }
    }
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(super) enum Call {
    Pass(u64),
    Insert(u32, New),
    Get(u32),
    /// The removal that a look at an invalidated entry has left to do.
    RemoveInvalidated(u32),
    Remove(u32),
    Move(u32, Option<u64>),
    Claim {
        key: u32,
        absent: bool,
    },
    Land(usize, Says),
    Poll(usize),
    StopWaiting(usize),
    Latch(u32),
    Open,
    Expire(u32),
    ExpireAll,
    Invalidate(usize),
    Sweep,
    Clear,
    SetCapacity(u64),
}

impl Call {
    pub(super) fn of(bits: &mut Bits) -> Self {
        let kind = bits.below(40);
        let key = bits.below(KEYS) as u32;
        match kind {
            0..5 => Self::Pass(bits.below(15)),
            5..15 => Self::Insert(key, New::of(bits)),
            15..18 => Self::Get(key),
            18 => Self::RemoveInvalidated(key),
            19..21 => Self::Remove(key),
            21 => Self::Move(key, bits.flip().then(|| bits.below(50))),
            22..27 => Self::Claim {
                key,
                absent: bits.flip(),
            },
            27..31 => Self::Land(
                bits.below(4) as usize,
                match bits.below(8) {
                    0 => Says::Absent,
                    1 => Says::Error,
                    2 => Says::Private,
                    3 => Says::Nothing,
                    _ => Says::Value(New::of(bits)),
                },
            ),
            31..33 => Self::Poll(bits.below(4) as usize),
            33 => Self::StopWaiting(bits.below(4) as usize),
            34 => {
                if bits.flip() {
                    Self::Latch(key)
                } else {
                    Self::Open
                }
            }
            35 => Self::Expire(1 + bits.below(4) as u32),
            36 => Self::ExpireAll,
            37 => Self::Invalidate(bits.below(TAGS as u64) as usize),
            38 => match bits.below(4) {
                0 => Self::Clear,
                _ => Self::Sweep,
            },
            _ => Self::SetCapacity(1 + bits.below(12)),
        }
    }
}

/// All keys, or groups of them, have one hash.
pub(super) struct KeyHash {
    pub(super) collides: bool,
}

pub(super) struct KeyHasher {
    collides: bool,
    key: u64,
}

impl BuildHasher for KeyHash {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        let collides = self.collides;
        KeyHasher { collides, key: 0 }
    }
}

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        if self.collides {
            self.key % 3
        } else {
            self.key
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.key = bytes
            .iter()
            .fold(self.key, |key, byte| key * 256 + u64::from(*byte));
    }
}
