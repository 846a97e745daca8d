//! The thread that writes the log, and one that syncs for it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use tidewheel_log::{Folder, Log, RealFolder, Sync, Synced};

use super::writer::LogWriter;
use crate::config::SyncPolicy;
use crate::state::log::{LogRequest, Trouble};
use crate::state::server::Server;

/// The time in which records gather before they are written, unless replies wait for them.
const GATHER: Duration = Duration::from_millis(10);

/// The time between two attempts to write after one has failed.
const RETRY: Duration = Duration::from_millis(100);

/// The longest rest. Something may have to be synced, or said of the last frame.
const REST: Duration = Duration::from_secs(1);

const SYNC_MS: u64 = 1_000;

/// The threads of a log.
#[derive(Debug)]
pub(crate) struct LogThreads {
    writer: JoinHandle<()>,
}

struct LogThread<D: Folder> {
    server: Arc<Server>,
    writer: LogWriter<D>,
    requests: Receiver<LogRequest>,
    /// To the thread that syncs, and back.
    syncs: Sender<Sync<D::File>>,
    synced: Receiver<Synced>,
    is_syncing: bool,
    /// The tick at which the last sync has begun.
    synced_at: u64,
}

impl LogThreads {
    /// Begins to log: each change from now on is recorded.
    pub(crate) fn start(server: &Arc<Server>, log: Log<RealFolder>) -> anyhow::Result<Self> {
        let (ask, requests) = channel();
        let (syncs, to_sync) = channel::<Sync<<RealFolder as Folder>::File>>();
        let (tell, synced) = channel();
        let name = |name: &str| std::thread::Builder::new().name(name.to_owned());
        name("log-sync")
            .spawn(move || {
                for sync in to_sync {
                    if tell.send(sync.run()).is_err() {
                        return;
                    }
                }
            })
            .context("cannot start a thread")?;
        let thread = LogThread {
            writer: LogWriter::new(log),
            requests,
            syncs,
            synced,
            is_syncing: false,
            synced_at: server.clock.now().tick,
            server: Arc::clone(server),
        };
        let writer = name("log")
            .spawn(move || thread.run())
            .context("cannot start a thread")?;
        server.log.set_thread(writer.thread().clone());
        server.log.start(ask);
        Ok(Self { writer })
    }

    /// Brings everything to disk that was logged, and ends.
    pub(crate) fn stop(self, server: &Server) {
        server.log.ask(LogRequest::Stop);
        if self.writer.join().is_err() {
            tracing::error!("the thread that writes the log ended by a panic");
        }
    }
}

impl<D: Folder> LogThread<D> {
    fn run(mut self) {
        let server = Arc::clone(&self.server);
        loop {
            let ends = self.answer();
            let policy = server.config.current().sync_policy;
            let holds = policy == SyncPolicy::Always;
            if server.log.holds_replies() != holds {
                server.log.set_holds_replies(holds);
                // Those that were held are looked at once more.
                server.log.tell(&server.loops);
            }
            let has_written = self.writer.write(&server);
            if ends {
                self.sync_now();
                self.writer.say_synced(&server);
                return self.sync_now();
            }
            match policy {
                SyncPolicy::Always => self.sync_now(),
                SyncPolicy::EverySecond => self.sync_beside(),
                SyncPolicy::Never => {}
            }
            self.rest(policy, has_written);
        }
    }

    /// Does what was asked for. True if that is to end.
    fn answer(&mut self) -> bool {
        loop {
            match self.requests.try_recv() {
                Ok(LogRequest::Rebase(segment, tell)) => {
                    let rebased = self.writer.rebase(&self.server, segment);
                    // Who has given up needs no word.
                    let _ = tell.send(rebased);
                }
                Ok(LogRequest::Stop) | Err(TryRecvError::Disconnected) => return true,
                Err(TryRecvError::Empty) => return false,
            }
        }
    }

    fn sync_now(&mut self) {
        self.end_sync_beside(true);
        if let Some(sync) = self.writer.begin_sync() {
            self.synced_at = self.server.clock.now().tick;
            let done = sync.run();
            self.writer.end_sync(&self.server, done);
        }
    }

    /// Has the other thread sync, once a second.
    fn sync_beside(&mut self) {
        self.end_sync_beside(false);
        let now = self.server.clock.now().tick;
        if self.is_syncing || now < self.synced_at + SYNC_MS {
            return;
        }
        if let Some(sync) = self.writer.begin_sync() {
            self.synced_at = now;
            self.is_syncing = self.syncs.send(sync).is_ok();
        }
    }

    fn end_sync_beside(&mut self, waits: bool) {
        while self.is_syncing {
            let done = match waits {
                true => self.synced.recv().ok(),
                false => self.synced.try_recv().ok(),
            };
            let Some(done) = done else { return };
            self.is_syncing = false;
            self.writer.end_sync(&self.server, done);
        }
    }

    /// Rests until there is something to do.
    fn rest(&mut self, policy: SyncPolicy, has_written: bool) {
        let log = &self.server.log;
        if log.trouble() != Trouble::None {
            return std::thread::park_timeout(RETRY);
        }
        let holds = policy == SyncPolicy::Always;
        if has_written || self.is_syncing {
            // With others at work, more comes soon.
            if !holds {
                std::thread::park_timeout(GATHER);
            }
            return;
        }
        log.fall_asleep();
        if self.server.keyspace.waiting_record_bytes() == 0 {
            std::thread::park_timeout(REST);
        }
        log.awake();
        let is_idle = self.server.keyspace.waiting_record_bytes() == 0;
        if is_idle && self.writer.is_done() {
            self.writer.say_synced(&self.server);
        } else if !holds {
            std::thread::park_timeout(GATHER);
        }
    }
}
