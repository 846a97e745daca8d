//! Stores the keys of a file.
//!
//! Keys are read in batches. A batch is read, and its values are put together, while nothing is
//! locked and the thread is not inside; then its keys are stored.

use std::borrow::Cow;
use std::io::Read;

use tidewheel_resp::{Args, Protocol, Writer};

use super::error::SnapshotError;
use super::reader::{Entry, Item, SnapshotReader};
use crate::commands::dump::{put_loaded, read_from_file};
use crate::context::Context;
use crate::dump::RestoredValue;
use crate::garbage::Garbage;
use crate::gate::{Exclusive, Seat};
use crate::keyspace::Keyspace;
use crate::session::Session;
use crate::time::{Now, Time};

/// What a file says of itself: names and values.
pub type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// What was loaded.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Keys.
    pub keys: u64,
    /// Keys that were skipped, since they had no members.
    pub skipped_empty: u64,
    /// Keys that were skipped, since only a module can read their values.
    pub skipped_unknown: u64,
    /// What the file says of itself.
    pub fields: Fields,
    /// The codes of libraries of functions.
    pub functions: Vec<Vec<u8>>,
}

/// What is done with keys of a file that are not simply stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadRules {
    /// A key of the file takes the place of one that is there. Otherwise that is an error.
    pub replaces: bool,
    /// A value of a type that is not known is skipped, if it is known where it ends. Otherwise that
    /// is an error.
    pub skips_unknown: bool,
}

/// The most keys of a batch, and the bytes after which it takes no more.
const BATCH_KEYS: usize = 128;
const BATCH_BYTES: usize = 128 << 10;

impl Keyspace {
    /// Empties all databases, in silence. That is no change which is recorded: what is loaded next
    /// is in their place.
    pub fn clear(&self, _alone: &Exclusive<'_>) {
        let mut garbage = Garbage::default();
        for shard in &*self.shards {
            let mut hold = shard.lock();
            for db in 0..hold.databases() {
                if let Some((entries, bytes)) = hold.flush(db, &self.hasher) {
                    garbage.add_store(entries, bytes);
                }
            }
            hold.publish_due();
            hold.take_changed();
        }
        self.tell_all_invalid();
        self.hooks.reclaim(garbage);
    }

    /// Stores what a file holds, while nobody else is inside. `wall_offset_ms` says what its
    /// deadlines mean: wall time in milliseconds less engine time. It is asked before the first
    /// key, with the fields so far. Keys that are dead by now are stored too, and expire next, so
    /// that each is announced. Collections without members are skipped: old servers have left some
    /// in their files. After an error some keys are there.
    ///
    /// # Errors
    ///
    /// If the file is no snapshot, or damaged, or has what is not known, or a key is there already,
    /// unless the rules allow that.
    pub fn load(
        &self,
        _alone: &Exclusive<'_>,
        time: Time,
        wall_offset_ms: &dyn Fn(&Fields) -> i64,
        rules: LoadRules,
        from: &mut dyn Read,
    ) -> Result<Loaded, SnapshotError> {
        self.load_into((time, rules), wall_offset_ms, from, None)
    }

    /// As [`load`](Self::load), while others are inside. They see the keys that are stored so far,
    /// and may change them: the caller sees to it that they do not.
    ///
    /// # Errors
    ///
    /// Those of `load`.
    pub fn load_beside(
        &self,
        seat: &mut Seat,
        time: Time,
        wall_offset_ms: &dyn Fn(&Fields) -> i64,
        rules: LoadRules,
        from: &mut dyn Read,
    ) -> Result<Loaded, SnapshotError> {
        self.load_into((time, rules), wall_offset_ms, from, Some(seat))
    }

    fn load_into(
        &self,
        (time, rules): (Time, LoadRules),
        wall_offset_ms: &dyn Fn(&Fields) -> i64,
        from: &mut dyn Read,
        seat: Option<&mut Seat>,
    ) -> Result<Loaded, SnapshotError> {
        let reader = SnapshotReader::new(from)?;
        let store = Store {
            keyspace: self,
            now: Now::of(&self.timeline, time),
            rules,
            version: reader.version(),
        };
        let mut load = Load {
            keyspace: self,
            wall_offset_ms,
            batch: Batch::default(),
            loaded: Loaded::default(),
        };
        load.all(reader, &store, seat)?;
        Ok(load.loaded)
    }
}

/// Keys that were read and not yet stored.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// The beginning of engine time, when nothing was dead. It is known with the first key.
    beginning: Option<Now>,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.entries.len() >= BATCH_KEYS || self.bytes.len() >= BATCH_BYTES
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(2 * BATCH_BYTES);
        self.entries.clear();
    }
}

/// A file that is loaded.
struct Load<'a> {
    keyspace: &'a Keyspace,
    wall_offset_ms: &'a dyn Fn(&Fields) -> i64,
    batch: Batch,
    loaded: Loaded,
}

impl Load<'_> {
    fn all(
        &mut self,
        mut reader: SnapshotReader<'_>,
        store: &Store<'_>,
        mut seat: Option<&mut Seat>,
    ) -> Result<(), SnapshotError> {
        loop {
            let read = self.fill(&mut reader);
            // What is wrong in front of a place that makes no sense comes first.
            let stored = store.all(&self.batch, seat.as_deref_mut())?;
            self.loaded.add(&stored);
            self.batch.clear();
            if read? {
                return Ok(());
            }
        }
    }

    /// Reads until the batch is full. Returns true at the end.
    fn fill(&mut self, reader: &mut SnapshotReader<'_>) -> Result<bool, SnapshotError> {
        while !self.batch.is_full() {
            if self.next(reader)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads what stands next. Returns true at the end.
    fn next(&mut self, reader: &mut SnapshotReader<'_>) -> Result<bool, SnapshotError> {
        match reader.next_into(&mut self.batch.bytes)? {
            Item::Field(name, value) => self.loaded.fields.push((name, value)),
            Item::Function(code) => self.loaded.functions.push(code),
            Item::Database { number, at } => {
                let db = i64::try_from(number).ok();
                let db = db.and_then(|number| self.keyspace.database_index(number));
                db.ok_or(SnapshotError::UnknownDatabase { number, at })?;
            }
            Item::Entry(entry) => {
                self.batch.beginning.get_or_insert_with(|| {
                    Now::of_engine(Time {
                        tick: 0,
                        micros: 0,
                        wall_offset_ms: (self.wall_offset_ms)(&self.loaded.fields),
                    })
                });
                self.batch.entries.push(entry);
            }
            Item::End(_) => return Ok(true),
        }
        Ok(false)
    }
}

impl Loaded {
    fn add(&mut self, stored: &Stored) {
        self.keys += stored.keys;
        self.skipped_empty += stored.empty;
        self.skipped_unknown += stored.unknown;
    }
}

/// What became of a batch.
#[derive(Default)]
struct Stored {
    keys: u64,
    empty: u64,
    unknown: u64,
}

/// Stores the keys of batches.
struct Store<'a> {
    keyspace: &'a Keyspace,
    now: Now,
    rules: LoadRules,
    version: u16,
}

impl Store<'_> {
    fn all(&self, batch: &Batch, seat: Option<&mut Seat>) -> Result<Stored, SnapshotError> {
        let Some(beginning) = batch.beginning else {
            return Ok(Stored::default());
        };
        let (args, mut session) = (Args::from_slices(&[]), Session::default());
        let mut out = Writer::new(Protocol::Resp2);
        let (keyspace, now) = (self.keyspace, self.now);
        let mut context = Context::new(keyspace, &mut session, now, args, &mut out, None);
        let mut stored = Stored::default();
        let mut read = Vec::with_capacity(batch.entries.len());
        let mut wrong = None;
        for entry in &batch.entries {
            if self.rules.skips_unknown && !entry.is_known() {
                stored.unknown += 1;
                continue;
            }
            match self.value(&context, entry, &batch.bytes, beginning) {
                // It has no members, or all died before the beginning of time.
                Ok((_, value)) if value.is_over() => stored.empty += 1,
                Ok((key, value)) => read.push((entry, key, value)),
                Err(why) => {
                    // A key in front of it may be wrong, too, which is seen when it is stored.
                    wrong = Some(why);
                    break;
                }
            }
        }
        // Others may want to be alone meanwhile.
        let _visit = seat.map(Seat::visit);
        if keyspace.is_worth_prefetching() {
            for (entry, key, _) in &read {
                keyspace.prefetch_index(entry.db as u32, key);
            }
        }
        for (entry, key, value) in read {
            // It was looked for when it was named.
            context.session.db = entry.db as u32;
            let deadline = (entry.wall_ms).map(|wall_ms| beginning.deadline_of_wall(wall_ms));
            let with = (deadline, entry.access.as_ref());
            let is_new = put_loaded(&mut context, &key, value, with, self.rules.replaces);
            context.finish();
            if !is_new {
                let (key, at) = (key.into_owned(), entry.at);
                return Err(SnapshotError::Twice { key, at });
            }
            stored.keys += 1;
        }
        wrong.map_or(Ok(stored), Err)
    }

    /// The key and the value of an entry.
    fn value<'b>(
        &self,
        context: &Context<'_, '_>,
        entry: &Entry,
        bytes: &'b [u8],
        beginning: Now,
    ) -> Result<(Cow<'b, [u8]>, RestoredValue), SnapshotError> {
        let (key, value) = (entry.key(bytes)?, entry.value(bytes)?);
        let parameters = (beginning, &entry.members[..]);
        let value = read_from_file(context, value, self.version, parameters);
        let at = entry.at;
        let value = value.map_err(|_| SnapshotError::Malformed { at })?;
        Ok((key, value))
    }
}
