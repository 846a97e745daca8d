//! What all requests share: the server, the last hour, and who may come at once.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::hour::Hour;
use crate::state::server::Server;

/// The most streams of events at once.
const STREAMS_MAX: usize = 32;

/// The most walks over keys at once.
const WALKS_MAX: usize = 2;

/// What all requests share.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) server: Arc<Server>,
    pub(super) hour: Mutex<Hour>,
    pub(super) streams: Arc<Semaphore>,
    pub(super) walks: Semaphore,
}

impl Desk {
    /// Makes the desk of a server.
    pub(super) fn of(server: &Arc<Server>) -> Self {
        Self {
            server: Arc::clone(server),
            hour: Mutex::new(Hour::new(server)),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
            walks: Semaphore::new(WALKS_MAX),
        }
    }
}
