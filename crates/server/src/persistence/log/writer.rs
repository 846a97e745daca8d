//! Takes records, and brings them to disk.

use std::collections::VecDeque;

use tidewheel_keyspace::TakenRecords;
use tidewheel_log::{Error, Folder, Log, Sync, Synced};

use super::moment;
use crate::clients::checks;
use crate::state::log::Trouble;
use crate::state::observer::Observe as _;
use crate::state::server::Server;

/// Parts of records that are taken ahead of being written.
const TAKEN_MAX: usize = 64;

/// The log that is written, and what is on its way there.
pub(super) struct LogWriter<D: Folder> {
    log: Log<D>,
    /// Records that were taken, and are not written yet.
    taken: VecDeque<(Vec<u8>, TakenRecords)>,
    /// How many records there were up to the last that was taken.
    until: u64,
    /// Positions of the log that are not on disk, and how many records there are up to each.
    written: VecDeque<(u64, u64)>,
    /// The position behind the base.
    base: u64,
    /// No frame says yet that the last one is on disk.
    is_unsaid: bool,
}

impl<D: Folder> LogWriter<D> {
    pub(super) fn new(log: Log<D>) -> Self {
        Self {
            base: log.written(),
            log,
            taken: VecDeque::new(),
            until: 0,
            written: VecDeque::new(),
            is_unsaid: false,
        }
    }

    /// Writes all records that wait. True if there were any.
    pub(super) fn write(&mut self, server: &Server) -> bool {
        self.take(server);
        if !self.log.takes_frames() && !self.leave_behind(server) {
            return false;
        }
        let mut has_written = false;
        while let Some((bytes, taken)) = self.taken.front() {
            let (until, is_cut) = (taken.until, taken.is_cut);
            if !bytes.is_empty() {
                if let Err(why) = self.log.append(moment(server), bytes) {
                    self.fail(server, &why);
                    return has_written;
                }
                self.is_unsaid = true;
            }
            self.written.push_back((self.log.written(), until));
            has_written = true;
            self.taken.pop_front();
            if is_cut {
                self.roll(server);
            }
        }
        if server.log.trouble() == Trouble::NotWritten {
            tracing::info!("the log can be written again");
            self.set_trouble(server, Trouble::None);
        }
        self.publish(server);
        has_written
    }

    fn take(&mut self, server: &Server) {
        while self.taken.len() < TAKEN_MAX {
            let mut bytes = Vec::new();
            let taken = server.keyspace.take_records(&mut bytes);
            // A record that was promised may have no bytes.
            if taken.until == std::mem::replace(&mut self.until, taken.until) && !taken.is_cut {
                return;
            }
            server.observer.took(&bytes, taken);
            self.taken.push_back((bytes, taken));
        }
    }

    /// After a failed sync only the records behind the next cut are written: a base will hold those
    /// before it. False if there is no cut yet.
    fn leave_behind(&mut self, server: &Server) -> bool {
        let Some(at) = self.taken.iter().position(|(_, taken)| taken.is_cut) else {
            return false;
        };
        let until = self.taken[at].1.until;
        self.taken.drain(..=at);
        self.roll(server);
        self.written.push_back((self.log.written(), until));
        self.log.takes_frames()
    }

    /// Begins a segment, and tells who waits for it.
    fn roll(&mut self, server: &Server) {
        let rolled = self.log.roll();
        if let Err(why) = &rolled {
            self.fail(server, why);
        }
        server.log.rolled(rolled.map_err(|why| why.to_string()));
    }

    /// Puts a base in force.
    ///
    /// # Errors
    ///
    /// Then the old one may still be in force. It stays so if a sync has failed since the base
    /// began, or this moment was not `noted`: this one may lack what has expired since, and nothing
    /// on disk would say that so much time has passed.
    pub(super) fn rebase(
        &mut self,
        server: &Server,
        segment: u64,
        noted: Result<(), Error>,
    ) -> Result<(), String> {
        let lacks = match noted {
            Err(why) => Some(format!("the log cannot be written: {why}")),
            Ok(()) if !self.log.takes_frames() => {
                Some("a sync has failed since it began".to_owned())
            }
            Ok(()) => None,
        };
        if let Some(why) = lacks {
            self.log.drop_base(segment);
            return Err(why);
        }
        self.log.rebase(segment).map_err(|why| why.to_string())?;
        self.base = self.log.written();
        if server.log.trouble() == Trouble::NotSynced {
            tracing::info!("the log has a new base: changes are accepted again");
            self.set_trouble(server, Trouble::None);
        }
        self.publish(server);
        Ok(())
    }

    /// What brings all that is written to disk, if anything is not there.
    pub(super) fn begin_sync(&self) -> Option<Sync<D::File>> {
        let is_needed = self.log.written() > self.log.synced();
        is_needed.then(|| self.log.begin_sync())
    }

    /// Learns what came of a sync, and tells who waits for it.
    pub(super) fn end_sync(&mut self, server: &Server, done: Synced) {
        match self.log.end_sync(done) {
            // Somebody is about to be told, and nothing more may come: so the log says it too.
            Ok(()) if server.log.is_wanted() => self.say_synced(server),
            Ok(()) => {}
            Err(why) => self.fail(server, &why),
        }
        self.publish(server);
    }

    /// Appends an empty frame, which says how much is on disk, unless one says so already.
    pub(super) fn say_synced(&mut self, server: &Server) {
        let is_all = self.log.written() == self.log.synced();
        if self.is_unsaid && self.log.append(moment(server), &[]).is_ok() {
            self.is_unsaid = !is_all;
        }
    }

    /// True if all that was taken is on disk, and no frame says so.
    pub(super) fn is_unsaid(&self) -> bool {
        self.is_unsaid && self.is_done()
    }

    /// True if records were written that are not on disk.
    pub(super) fn has_unsynced(&self) -> bool {
        !self.written.is_empty()
    }

    /// Appends an empty frame, so that a restart does not go back behind this moment.
    pub(super) fn note_moment(&mut self, server: &Server) -> Result<(), Error> {
        self.log.append(moment(server), &[]).map(|_| ())
    }

    /// True if all that was taken is on disk.
    pub(super) fn is_done(&self) -> bool {
        self.taken.is_empty() && self.log.written() == self.log.synced()
    }

    /// Tells who waits how much is on disk. After a failed sync nothing more counts as on disk
    /// until a base is in force, which holds the records that the sync has lost.
    fn publish(&mut self, server: &Server) {
        let synced = self.log.synced();
        let mut records = None;
        while let Some((position, until)) = self.written.front()
            && *position <= synced
            && !self.log.is_poisoned()
        {
            records = Some(*until);
            self.written.pop_front();
        }
        if let Some(records) = records {
            server.log.set_on_disk(records, &server.loops);
        }
        self.count(server);
    }

    fn count(&self, server: &Server) {
        let bytes = self.log.written().saturating_sub(self.base);
        server.log.count_bytes(bytes);
    }

    fn fail(&mut self, server: &Server, why: &Error) {
        let trouble = match self.log.is_poisoned() {
            true => Trouble::NotSynced,
            false => Trouble::NotWritten,
        };
        if server.log.trouble() != trouble {
            tracing::error!("the log cannot be written, so changes are refused: {why}");
        }
        self.set_trouble(server, trouble);
    }

    fn set_trouble(&self, server: &Server, trouble: Trouble) {
        server.log.set_trouble(trouble);
        let gate = server.keyspace.gate();
        match trouble {
            Trouble::None => gate.clear(checks::UNLOGGED),
            Trouble::NotWritten | Trouble::NotSynced => gate.set(checks::UNLOGGED),
        }
    }
}
