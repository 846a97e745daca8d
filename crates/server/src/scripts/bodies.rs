//! The bodies of scripts, which all loops share.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use parking_lot::Mutex;
use tidewheel_keyspace::Reach;
use tidewheel_scripts::{ScriptFlags, Sha};

/// Bytes of all bodies together. Above that the oldest are dropped; one may have half of it.
pub(super) const BYTES_MAX: usize = 64 << 20;

/// Bytes that a body takes beside its text.
const BODY_BYTES: usize = 256;

/// Runs over all shards of a script of which nothing is known yet.
const TRIALS: u32 = 3;

/// One script.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) name: Sha,
    pub(crate) text: Box<[u8]>,
    pub(crate) flags: ScriptFlags,
    pub(crate) learned: Learned,
}

/// What runs of a script or a function have shown.
#[derive(Debug)]
pub(crate) struct Learned {
    /// The most that a run has reached for.
    reached: AtomicU8,
    runs: AtomicU32,
}

impl Body {
    pub(crate) fn new(name: Sha, text: &[u8], flags: ScriptFlags) -> Self {
        Self {
            name,
            text: text.into(),
            flags,
            learned: Learned::of(text),
        }
    }
}

impl Learned {
    /// What a text shows of its runs.
    pub(crate) fn of(text: &[u8]) -> Self {
        Self {
            reached: AtomicU8::new(match names_whole(text) {
                true => Reach::Whole,
                false => Reach::Keys,
            } as u8),
            runs: AtomicU32::new(0),
        }
    }

    /// How much of the keyspace the next run begins with. The first few have all shards, and show
    /// whether the script stays with its keys.
    pub(crate) fn reach(&self) -> Reach {
        match self.reached.load(Ordering::Relaxed) {
            0 if self.runs.load(Ordering::Relaxed) < TRIALS => Reach::Shards,
            0 => Reach::Keys,
            1 => Reach::Shards,
            _ => Reach::Whole,
        }
    }

    /// A run needs that much.
    pub(crate) fn reaches(&self, reach: Reach) {
        self.reached.fetch_max(reach as u8, Ordering::Relaxed);
    }

    /// A run has ended.
    pub(crate) fn has_run(&self) {
        if self.runs.load(Ordering::Relaxed) < TRIALS {
            self.runs.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Commands that need the whole keyspace.
const WHOLE: [&[u8]; 7] = [
    b"keys",
    b"scan",
    b"dbsize",
    b"randomkey",
    b"flushall",
    b"flushdb",
    b"swapdb",
];

/// Returns true if a script names such a command in quotes. It may call it in other ways: then it
/// fails once, if it has changed data before, and is known from then on.
fn names_whole(text: &[u8]) -> bool {
    let quoted = |words: &[u8]| {
        let (first, last) = (words.first(), words.last());
        first == last && matches!(first, Some(b'\'' | b'"'))
    };
    WHOLE.iter().any(|name| {
        let windows = text.windows(name.len() + 2).filter(|words| quoted(words));
        let mut inner = windows.map(|words| &words[1..=name.len()]);
        inner.any(|word| word.eq_ignore_ascii_case(name))
    })
}

/// All bodies.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    state: Mutex<State>,
    /// Counts how often some were dropped.
    version: AtomicU64,
    /// Counts those that made room for others.
    evicted: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    by_name: HashMap<Sha, Arc<Body>>,
    /// In the order in which they came.
    order: VecDeque<Sha>,
    bytes: usize,
}

impl Bodies {
    /// Adds a body; returns the one that is there, if it is.
    pub(crate) fn add(&self, body: Body) -> Arc<Body> {
        let mut state = self.state.lock();
        if let Some(known) = state.by_name.get(&body.name) {
            return Arc::clone(known);
        }
        state.bytes += body.text.len() + BODY_BYTES;
        let (name, body) = (body.name, Arc::new(body));
        let mut dropped = 0;
        // Many at once: each loop forgets what it has compiled when some are dropped.
        let bound = match state.bytes > BYTES_MAX {
            true => BYTES_MAX / 8 * 7,
            false => BYTES_MAX,
        };
        while state.bytes > bound
            && let Some(oldest) = state.order.pop_front()
        {
            if let Some(old) = state.by_name.remove(&oldest) {
                state.bytes -= old.text.len() + BODY_BYTES;
                dropped += 1;
            }
        }
        state.by_name.insert(name, Arc::clone(&body));
        state.order.push_back(name);
        drop(state);
        if dropped > 0 {
            self.evicted.fetch_add(dropped, Ordering::Relaxed);
            self.version.fetch_add(1, Ordering::Release);
        }
        body
    }

    pub(crate) fn find(&self, name: &Sha) -> Option<Arc<Body>> {
        self.state.lock().by_name.get(name).map(Arc::clone)
    }

    /// Drops all.
    pub(crate) fn clear(&self) {
        *self.state.lock() = State::default();
        self.version.fetch_add(1, Ordering::Release);
    }

    /// How many there are, and their bytes.
    pub(crate) fn totals(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.by_name.len(), state.bytes)
    }

    /// How many made room for others, since that was reset.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Begins to count anew (CONFIG RESETSTAT).
    pub(crate) fn reset_evicted(&self) {
        self.evicted.store(0, Ordering::Relaxed);
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_make_room_for_others_are_counted() {
        let bodies = Bodies::default();
        for first in [b'1', b'2', b'3'] {
            let text = vec![first; BYTES_MAX * 2 / 5];
            let body = Body::new(Sha::of(&[first]), &text, ScriptFlags::default());
            bodies.add(body);
        }
        assert_eq!((bodies.evicted(), bodies.totals().0), (1, 2));
        bodies.clear();
        assert_eq!(bodies.evicted(), 1, "that was asked for");
        bodies.reset_evicted();
        assert_eq!(bodies.evicted(), 0);
    }
}
