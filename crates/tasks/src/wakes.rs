//! The callbacks that a store calls when something may have become claimable.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::store::Wake;

#[derive(Default)]
pub(crate) struct Wakes(Mutex<Vec<Wake>>);

impl fmt::Debug for Wakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakes").finish_non_exhaustive()
    }
}

impl Wakes {
    pub(crate) fn add(&self, wake: Wake) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(wake);
    }

    /// Calls them, without a lock.
    pub(crate) fn tell(&self) {
        let wakes = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        wakes.iter().for_each(|wake| wake());
    }
}
