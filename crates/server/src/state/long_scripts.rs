//! Scripts that have run for so long that others are refused: all loops look at each command then.

use parking_lot::Mutex;
use tidewheel_keyspace::Keyspace;

use crate::clients::checks;

/// How many want all loops to look at each command.
#[derive(Debug, Default)]
pub(crate) struct LongScripts(Mutex<usize>);

/// All loops look at each command, until it is dropped.
#[derive(Debug)]
pub(crate) struct Refusing<'s> {
    scripts: &'s LongScripts,
    keyspace: &'s Keyspace,
}

impl LongScripts {
    pub(crate) fn refuse<'s>(&'s self, keyspace: &'s Keyspace) -> Refusing<'s> {
        self.add(keyspace);
        Refusing {
            scripts: self,
            keyspace,
        }
    }

    pub(super) fn add(&self, keyspace: &Keyspace) {
        let mut count = self.0.lock();
        *count += 1;
        keyspace.gate().set(checks::BUSY);
    }

    pub(super) fn remove(&self, keyspace: &Keyspace) {
        let mut count = self.0.lock();
        *count -= 1;
        if *count == 0 {
            keyspace.gate().clear(checks::BUSY);
        }
    }
}

impl Drop for Refusing<'_> {
    fn drop(&mut self) {
        self.scripts.remove(self.keyspace);
    }
}
