//! The snapshot file while it is loaded: it says how much was read, and ends when the server is
//! asked to stop.

use std::io::{self, Read};
use std::sync::atomic::Ordering::Relaxed;

use crate::process::sd_notify;
use crate::state::server::{Server, StopReason};

/// How often the log, and systemd, are told how much is loaded.
const TELL_NS: u64 = 3_000_000_000;

/// A file that is loaded.
pub(super) struct Watched<'a, R> {
    file: R,
    server: &'a Server,
    /// Says whether somebody has asked the server to stop.
    stops: &'a dyn Fn() -> Option<StopReason>,
    pub(super) stopped: Option<StopReason>,
    told_ns: u64,
}

impl<'a, R> Watched<'a, R> {
    pub(super) fn new(
        file: R,
        server: &'a Server,
        stops: &'a dyn Fn() -> Option<StopReason>,
    ) -> Self {
        sd_notify::loading(server.loading.percent());
        Self {
            file,
            server,
            stops,
            stopped: None,
            told_ns: server.clock.monotonic_ns(),
        }
    }

    fn tell(&mut self) {
        let now_ns = self.server.clock.monotonic_ns();
        if now_ns.saturating_sub(self.told_ns) < TELL_NS {
            return;
        }
        self.told_ns = now_ns;
        let loading = &self.server.loading;
        let now_s = self.server.clock.now().wall_ms() / 1000;
        sd_notify::loading(loading.percent());
        tracing::info!(
            bytes = loading.read_bytes.load(Relaxed),
            seconds_left = loading.seconds_left(now_s),
            "loading: {:.0} %",
            loading.percent()
        );
    }
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stopped = self.stopped.or_else(self.stops);
        if self.stopped.is_some() {
            return Err(io::Error::other("the server was asked to stop"));
        }
        let read = self.file.read(into)?;
        self.server
            .loading
            .read_bytes
            .fetch_add(read as u64, Relaxed);
        self.tell();
        Ok(read)
    }
}
