//! One life of a server: from a recovery to a crash. Its loops, the steps of the thread that writes
//! the log, of the one that syncs, and of the one that writes a base.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use parking_lot::Mutex;
use tidewheel_keyspace::{Saved, SnapshotCourse};
use tidewheel_log::Synced;
use tidewheel_log::simulated::Disk;

use super::super::rig::Rig;
use super::ledger::{Ledger, Mark};
use crate::persistence::log::{
    Beside, LogThread, LogTurn, Recovered, conclude, recover_from, write_file,
};
use crate::state::log::{BegunBase, LogRequest};

type BegunBases = Arc<Mutex<VecDeque<BegunBase>>>;

/// A server that logs to a simulated disk.
pub(super) struct Life {
    pub(super) rig: Rig,
    disk: Disk,
    thread: LogThread<Disk>,
    beside: Beside<Disk>,
    /// What the thread that writes has written, and not synced yet.
    turn: Option<LogTurn>,
    /// What the thread beside has synced, and not told yet.
    synced: Option<Synced>,
    begun: BegunBases,
    base: Option<Base>,
}

/// A base on its way.
enum Base {
    Begun(BegunBase),
    Written(Written),
}

struct Written {
    course: SnapshotCourse,
    segment: u64,
    saved: Saved,
    rebased: Receiver<Result<(), String>>,
}

impl Life {
    /// Makes the data of the log.
    pub(super) fn begin(rig: Rig, disk: &Disk) -> anyhow::Result<Self> {
        let place = Path::new("a simulated disk");
        let recovered = recover_from(&rig.server, &|| None, disk.clone(), place)?;
        let Recovered::Log(log) = recovered else {
            anyhow::bail!("nobody has stopped it");
        };
        let begun = BegunBases::default();
        let queue = Arc::clone(&begun);
        let bases = move |base| queue.lock().push_back(base);
        let (thread, beside) = LogThread::new(&rig.server, log, Box::new(bases));
        Ok(Self {
            rig,
            disk: disk.clone(),
            thread,
            beside,
            turn: None,
            synced: None,
            begun,
            base: None,
        })
    }

    /// The thread that writes does its next step.
    pub(super) fn write(&mut self) {
        match self.turn.take() {
            Some(turn) => {
                if self.rig.server.log.holds_replies() {
                    // It waits for the one that syncs beside.
                    self.sync();
                    self.sync();
                }
                self.thread.sync(turn);
            }
            None => self.turn = self.thread.write(),
        }
    }

    /// It has nothing to do for a while.
    pub(super) fn say_synced(&mut self) {
        if self.turn.is_none() {
            self.thread.say_synced();
        }
    }

    /// The thread that syncs beside it does its next step.
    pub(super) fn sync(&mut self) {
        let (to_sync, tell) = &self.beside;
        match self.synced.take() {
            Some(synced) => tell.send(synced).expect("it is awaited"),
            None => self.synced = to_sync.try_recv().ok().map(|sync| sync.run()),
        }
    }

    /// The thread that writes a base does its next step.
    pub(super) fn rebase(&mut self, ledger: &mut Ledger) {
        let server = Arc::clone(&self.rig.server);
        match self.base.take() {
            None => self.base = self.begun.lock().pop_front().map(Base::Begun),
            Some(Base::Begun(begun)) if !begun.snapshot.course().is_shown() => {
                self.base = Some(Base::Begun(begun));
            }
            Some(Base::Begun(begun)) => {
                let Ok(rolled) = begun.rolled.try_recv() else {
                    self.base = Some(Base::Begun(begun));
                    return;
                };
                let course = begun.snapshot.course();
                match rolled.map_err(io::Error::other) {
                    Ok(segment) => {
                        ledger.note_base(segment, Mark::of_fields(&begun.preface.fields));
                        self.write_base(course, segment, begun);
                    }
                    Err(why) => conclude(&server, &course, Err(why)),
                }
            }
            Some(Base::Written(written)) => match written.rebased.try_recv() {
                Ok(rebased) => {
                    let based = rebased.map(|()| (written.segment, written.saved));
                    conclude(&server, &written.course, based.map_err(io::Error::other));
                }
                Err(_) => self.base = Some(Base::Written(written)),
            },
        }
    }

    fn write_base(&mut self, course: SnapshotCourse, segment: u64, begun: BegunBase) {
        let server = &self.rig.server;
        match write_file(&self.disk, segment, begun.snapshot, &begun.preface) {
            Ok(saved) => {
                let (tell, rebased) = channel();
                assert!(server.log.ask(LogRequest::Rebase(segment, tell)));
                self.base = Some(Base::Written(Written {
                    course,
                    segment,
                    saved,
                    rebased,
                }));
            }
            Err(why) => conclude(server, &course, Err(why)),
        }
    }
}
