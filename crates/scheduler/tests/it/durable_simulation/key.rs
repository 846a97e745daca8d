//! A key at whose first hash another thread may run: after a call began, before it has locked
//! anything.

use std::cell::Cell;
use std::hash::{Hash, Hasher};

use super::baton::yield_now;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(pub(crate) u8);

thread_local! {
    static YIELDS: Cell<bool> = const { Cell::new(false) };
}

impl Key {
    /// The next hash on this thread is the first of a call.
    pub(crate) fn arm() {
        YIELDS.set(true);
    }

    /// The call is over, and may have hashed nothing.
    pub(crate) fn disarm() {
        YIELDS.set(false);
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        if YIELDS.replace(false) {
            yield_now();
        }
        self.0.hash(state);
    }
}
