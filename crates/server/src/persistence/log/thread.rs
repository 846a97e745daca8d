//! The thread that writes the log, and one that syncs for it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use tidewheel_log::{Folder, Log, RealFolder, Sync, Synced};

use super::rewrite;
use super::writer::LogWriter;
use crate::config::SyncPolicy;
use crate::state::log::{BegunBase, LogRequest, Trouble};
use crate::state::server::{Server, StopReason};

/// The time in which records gather before they are written, unless replies wait for them.
const GATHER: Duration = Duration::from_millis(10);

/// The time between two attempts to write after one has failed.
const RETRY: Duration = Duration::from_millis(100);

/// The longest rest. Something may have to be synced, or said of the last frame.
const REST: Duration = Duration::from_secs(1);

const SYNC_MS: u64 = 1_000;

/// The one who syncs beside the one who writes: what is to be synced comes here, and what became of
/// it goes back.
pub(crate) type Beside<D> = (Receiver<Sync<<D as Folder>::File>>, Sender<Synced>);

/// One turn of the thread that writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogTurn {
    policy: SyncPolicy,
    has_written: bool,
}

/// The threads of a log.
#[derive(Debug)]
pub(crate) struct LogThreads {
    writer: JoinHandle<()>,
}

/// What the thread that writes does, step by step.
pub(crate) struct LogThread<D: Folder> {
    server: Arc<Server>,
    pub(super) writer: LogWriter<D>,
    requests: Receiver<LogRequest>,
    /// Has somebody write a base.
    bases: Box<dyn FnMut(BegunBase) + Send>,
    /// To the thread that syncs, and back.
    syncs: Sender<Sync<D::File>>,
    synced: Receiver<Synced>,
    is_syncing: bool,
    /// The tick at which the last sync has begun.
    synced_at: u64,
    /// The tick at which a frame said last that engine time stands still.
    noted_at: u64,
}

/// Stops the server when the thread that writes the log ends by a panic.
struct OnPanic(Arc<Server>);

impl Drop for OnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.ask_to_stop(StopReason::Failure);
        }
    }
}

impl LogThreads {
    /// Begins to log: each change from now on is recorded.
    pub(crate) fn start(server: &Arc<Server>, log: Log<RealFolder>) -> anyhow::Result<Self> {
        let name = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let (folder, owned) = (log.folder().clone(), Arc::clone(server));
        let bases = move |base: BegunBase| {
            let course = base.snapshot.course();
            let (folder, server) = (folder.clone(), Arc::clone(&owned));
            let write = move || rewrite::write(&server, base, &folder);
            if let Err(why) = name("log-base").spawn(write) {
                rewrite::conclude(&owned, &course, Err(why));
            }
        };
        let (thread, (to_sync, tell)) = LogThread::new(server, log, Box::new(bases));
        name("log-sync")
            .spawn(move || {
                for sync in to_sync {
                    if tell.send(sync.run()).is_err() {
                        return;
                    }
                }
            })
            .context("cannot start a thread")?;
        let writer = name("log")
            .spawn(move || {
                // Nothing would be logged any more, and whoever waits for it would wait for ever.
                let alarm = OnPanic(Arc::clone(&thread.server));
                thread.run();
                drop(alarm);
            })
            .context("cannot start a thread")?;
        server.log.set_thread(writer.thread().clone());
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
    /// The log is on from now on. Who syncs beside is for the caller to run.
    pub(crate) fn new(
        server: &Arc<Server>,
        log: Log<D>,
        bases: Box<dyn FnMut(BegunBase) + Send>,
    ) -> (Self, Beside<D>) {
        let (ask, requests) = channel();
        let (syncs, to_sync) = channel();
        let (tell, synced) = channel();
        server.log.start(ask);
        let thread = Self {
            writer: LogWriter::new(log),
            requests,
            bases,
            syncs,
            synced,
            is_syncing: false,
            synced_at: server.clock.now().tick,
            noted_at: 0,
            server: Arc::clone(server),
        };
        (thread, (to_sync, tell))
    }

    fn run(mut self) {
        while let Some(turn) = self.write() {
            self.sync(turn);
            self.rest(turn);
        }
    }

    /// Does what was asked for, and writes what waits. `None` at the end.
    pub(crate) fn write(&mut self) -> Option<LogTurn> {
        let ends = self.answer();
        let server = &self.server;
        let policy = server.config.current().sync_policy;
        let has_written = self.writer.write(server);
        self.note_frozen(match ends {
            true => 0,
            false => SYNC_MS,
        });
        if ends {
            self.sync_now();
            self.writer.say_synced(&self.server);
            self.sync_now();
            return None;
        }
        Some(LogTurn {
            policy,
            has_written,
        })
    }

    /// Syncs as the policy says, and when somebody waits for that.
    pub(crate) fn sync(&mut self, turn: LogTurn) {
        let is_wanted = self.server.log.is_wanted();
        match turn.policy {
            SyncPolicy::Always if self.writer.has_unsynced() => self.sync_now(),
            _ if is_wanted => self.sync_beside(Some(0)),
            SyncPolicy::Always | SyncPolicy::EverySecond => self.sync_beside(Some(SYNC_MS)),
            SyncPolicy::Never => self.sync_beside(None),
        }
    }

    /// While engine time stands still, says so, once in so many milliseconds. A restart counts on
    /// from the last frame, so no more of it than that is lost by a crash.
    fn note_frozen(&mut self, every_ms: u64) {
        let now = self.server.clock.now().tick;
        if self.server.keyspace.is_frozen() && now >= self.noted_at + every_ms {
            // If it cannot be written, that is said of the next record.
            let _ = self.writer.note_moment(&self.server);
            self.noted_at = now;
        }
    }

    /// Does what was asked for. True if that is to end.
    fn answer(&mut self) -> bool {
        loop {
            match self.requests.try_recv() {
                Ok(LogRequest::Write(base)) => (self.bases)(base),
                Ok(LogRequest::Rebase(segment, tell)) => {
                    // A key that has expired since the base began may not be in it. Its stream's
                    // entry is on disk first, and so is a time at which it was dead.
                    self.writer.write(&self.server);
                    let noted = self.writer.note_moment(&self.server);
                    self.sync_here();
                    let rebased = self.writer.rebase(&self.server, segment, noted);
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
        self.sync_here();
    }

    /// Syncs on this thread, whoever else does so.
    fn sync_here(&mut self) {
        if let Some(sync) = self.writer.begin_sync() {
            self.synced_at = self.server.clock.now().tick;
            let done = sync.run();
            self.writer.end_sync(&self.server, done);
        }
    }

    /// Has the other thread sync, if so many milliseconds have passed since the last time.
    fn sync_beside(&mut self, every_ms: Option<u64>) {
        self.end_sync_beside(false);
        let now = self.server.clock.now().tick;
        let is_due = every_ms.is_some_and(|ms| now >= self.synced_at + ms);
        if self.is_syncing || !is_due {
            return;
        }
        if let Some(sync) = self.writer.begin_sync() {
            self.synced_at = now;
            self.set_syncing(self.syncs.send(sync).is_ok());
        }
    }

    fn end_sync_beside(&mut self, waits: bool) {
        while self.is_syncing {
            let done = match waits {
                true => self.synced.recv().ok(),
                false => self.synced.try_recv().ok(),
            };
            let Some(done) = done else { return };
            self.set_syncing(false);
            if self.server.clock.now().tick > self.synced_at + SYNC_MS {
                self.server.log.late_syncs.fetch_add(1, Relaxed);
            }
            self.writer.end_sync(&self.server, done);
        }
    }

    /// Notes whether the other thread syncs, for people too.
    fn set_syncing(&mut self, is: bool) {
        self.is_syncing = is;
        self.server.log.is_syncing.store(is, Relaxed);
    }

    /// Rests until there is something to do.
    fn rest(&mut self, turn: LogTurn) {
        let log = &self.server.log;
        if log.trouble() != Trouble::None {
            return std::thread::park_timeout(RETRY);
        }
        let holds = turn.policy == SyncPolicy::Always;
        if turn.has_written || self.is_syncing {
            // With others at work, more comes soon.
            if !holds {
                std::thread::park_timeout(GATHER);
            }
            return;
        }
        log.fall_asleep();
        if !self.server.keyspace.has_records() && !log.is_wanted() {
            std::thread::park_timeout(match self.writer.is_unsaid() {
                true => GATHER,
                false => REST,
            });
        }
        log.awake();
        if !self.say_synced() && !holds {
            std::thread::park_timeout(GATHER);
        }
    }

    /// Says in the log that all is on disk, if that is so and nothing more has come.
    pub(crate) fn say_synced(&mut self) -> bool {
        let is_idle = !self.server.keyspace.has_records();
        let says = is_idle && self.writer.is_done();
        if says {
            self.writer.say_synced(&self.server);
        }
        says
    }
}
