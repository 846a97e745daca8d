//! The sockets of one loop, as its poller knows them.

use std::io;

use mio::{Interest, Registry, Token};

use crate::config::Settings;
use crate::loops::loop_core::Sockets;
use crate::net::listener;
use crate::net::stream::Stream;

/// Sockets registered with one poller.
#[derive(Debug)]
pub(super) struct Registered(Registry);

impl Registered {
    pub(super) fn new(registry: Registry) -> Self {
        Self(registry)
    }
}

impl Sockets for Registered {
    type Stream = Stream;

    fn register(&self, stream: &mut Stream, slot: u32, settings: &Settings) -> io::Result<()> {
        listener::tune(stream, settings.tcp_keepalive_s)?;
        // Both, once: edges come only when something changes, so interest need not follow the
        // state.
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.0.register(stream, Token(slot as usize), interest)
    }

    fn deregister(&self, stream: &mut Stream) {
        if let Err(why) = self.0.deregister(stream) {
            tracing::debug!(%why, "cannot deregister a connection");
        }
    }

    fn descriptor(&self, stream: &Stream) -> i64 {
        stream.descriptor()
    }
}
