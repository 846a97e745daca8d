//! Scripts that have run for so long that others are refused: all loops look at each command then.

use std::sync::Arc;

use parking_lot::Mutex;
use tidewheel_keyspace::Keyspace;

use crate::clients::checks;
use crate::scripts::running::Kind;
use crate::state::server::Server;

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

    fn add(&self, keyspace: &Keyspace) {
        let mut count = self.0.lock();
        *count += 1;
        keyspace.gate().set(checks::BUSY);
    }

    fn remove(&self, keyspace: &Keyspace) {
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

/// A loop's script has run for so long that others are refused, until this is dropped.
#[derive(Debug)]
pub(crate) struct LongScript {
    server: Arc<Server>,
    index: usize,
}

impl LongScript {
    /// The script that the loop of that number runs.
    pub(crate) fn new(server: Arc<Server>, index: usize, kind: Kind) -> Self {
        server.loops[index].script.set_long(Some(kind));
        server.long_scripts.add(&server.keyspace);
        Self { server, index }
    }
}

impl Drop for LongScript {
    fn drop(&mut self) {
        self.server.loops[self.index].script.set_long(None);
        self.server.long_scripts.remove(&self.server.keyspace);
    }
}
