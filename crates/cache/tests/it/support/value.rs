//! Keys and values that count their living instances, and a hasher that may be weak.

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use tidewheel::Equivalent;

/// The number of keys and values that are alive.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger(Arc<AtomicI64>);

impl Ledger {
    pub(crate) fn living(&self) -> i64 {
        self.0.load(SeqCst)
    }
}

/// Counts itself for as long as it lives.
#[derive(Debug)]
pub(crate) struct Counted(Ledger);

impl Counted {
    pub(crate) fn new(ledger: &Ledger) -> Self {
        ledger.0.fetch_add(1, SeqCst);
        Self(ledger.clone())
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let before = self.0.0.fetch_sub(1, SeqCst);
        assert!(before > 0, "dropped twice");
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) number: u16,
    _counted: Counted,
}

impl Key {
    pub(crate) fn new(number: u16, ledger: &Ledger) -> Self {
        Self {
            number,
            _counted: Counted::new(ledger),
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

/// The borrowed form by which keys are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Probe(pub(crate) u16);

impl Equivalent<Key> for Probe {
    fn equivalent(&self, key: &Key) -> bool {
        self.0 == key.number
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Value {
    /// Another one for every insertion.
    pub(crate) id: u64,
    pub(crate) weight: u32,
    _counted: Counted,
}

impl Value {
    pub(crate) fn new(id: u64, weight: u32, ledger: &Ledger) -> Self {
        Self {
            id,
            weight,
            _counted: Counted::new(ledger),
        }
    }
}

/// Hashes the same way in every run; a weak one knows only four hashes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hashing {
    pub(crate) weak: bool,
}

pub(crate) struct Hash4 {
    weak: bool,
    hasher: DefaultHasher,
}

impl BuildHasher for Hashing {
    type Hasher = Hash4;

    fn build_hasher(&self) -> Hash4 {
        Hash4 {
            weak: self.weak,
            hasher: DefaultHasher::new(),
        }
    }
}

impl Hasher for Hash4 {
    fn write(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
    }

    fn finish(&self) -> u64 {
        let hash = self.hasher.finish();
        if self.weak { hash % 4 } else { hash }
    }
}
