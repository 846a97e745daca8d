//! One loop's script that has run for so long that others are refused.

use std::sync::Arc;

use crate::scripts::running::Kind;
use crate::state::server::Server;

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
