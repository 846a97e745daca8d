//! Scripts that have run for so long that others are refused: all loops look at each command then.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::clients::checks;
use crate::state::server::Server;

/// How many scripts run for so long that others are refused.
#[derive(Debug, Default)]
pub(crate) struct LongScripts(Mutex<usize>);

/// One of them, until it is dropped. All loops look at each command meanwhile.
#[derive(Debug)]
pub(crate) struct LongScript {
    server: Arc<Server>,
    index: usize,
}

impl LongScript {
    /// The script that the loop of that number runs.
    pub(crate) fn new(server: Arc<Server>, index: usize) -> Self {
        server.loops[index].script.set_long(true);
        let mut count = server.long_scripts.0.lock();
        *count += 1;
        server.keyspace.gate().set(checks::BUSY);
        drop(count);
        Self { server, index }
    }
}

impl Drop for LongScript {
    fn drop(&mut self) {
        self.server.loops[self.index].script.set_long(false);
        let mut count = self.server.long_scripts.0.lock();
        *count -= 1;
        if *count == 0 {
            self.server.keyspace.gate().clear(checks::BUSY);
        }
    }
}
