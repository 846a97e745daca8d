//! Reads a file, and stores each key.

use std::io::Read;

use tidewheel_resp::{Args, Protocol, Writer};

use super::error::SnapshotError;
use super::reader::{Entry, Item, SnapshotReader};
use crate::commands::dump::{put_loaded, read_from_file};
use crate::context::Context;
use crate::garbage::Garbage;
use crate::gate::Exclusive;
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
        let reader = SnapshotReader::new(from)?;
        let load = Load {
            keyspace: self,
            now: Now::of(&self.timeline, time),
            wall_offset_ms,
            rules,
            beginning: None,
            version: reader.version(),
            db: 0,
            loaded: Loaded::default(),
        };
        load.all(reader)
    }
}

struct Load<'a> {
    keyspace: &'a Keyspace,
    now: Now,
    wall_offset_ms: &'a dyn Fn(&Fields) -> i64,
    rules: LoadRules,
    /// The beginning of engine time, when nothing was dead.
    beginning: Option<Now>,
    version: u16,
    db: u32,
    loaded: Loaded,
}

impl Load<'_> {
    fn all(mut self, mut reader: SnapshotReader<'_>) -> Result<Loaded, SnapshotError> {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            match reader.next_into(&mut bytes)? {
                Item::Field(name, value) => self.loaded.fields.push((name, value)),
                Item::Function(code) => self.loaded.functions.push(code),
                Item::Database { number, at } => {
                    let db = i64::try_from(number).ok();
                    let db = db.and_then(|number| self.keyspace.database_index(number));
                    self.db = db.ok_or(SnapshotError::UnknownDatabase { number, at })?;
                }
                Item::Entry(entry) => self.entry(entry, &bytes)?,
                Item::End(_) => return Ok(self.loaded),
            }
        }
    }

    fn entry(&mut self, entry: Entry, bytes: &[u8]) -> Result<(), SnapshotError> {
        let at = entry.at;
        if self.rules.skips_unknown && !entry.is_known() {
            self.loaded.skipped_unknown += 1;
            return Ok(());
        }
        let (key, value) = (entry.key(bytes)?, entry.value(bytes)?);
        let beginning = *self.beginning.get_or_insert_with(|| {
            Now::of_engine(Time {
                tick: 0,
                micros: 0,
                wall_offset_ms: (self.wall_offset_ms)(&self.loaded.fields),
            })
        });
        let args = Args::from_slices(&[]);
        let mut session = Session {
            db: self.db,
            ..Session::default()
        };
        let mut out = Writer::new(Protocol::Resp2);
        let mut context = Context::new(self.keyspace, &mut session, self.now, args, &mut out, None);
        let setting = (beginning, &entry.members[..]);
        let loaded = read_from_file(&context, value, self.version, setting);
        let loaded = loaded.map_err(|_| SnapshotError::Malformed { at })?;
        if loaded.is_over() {
            // It has none, or all died before the beginning of time.
            self.loaded.skipped_empty += 1;
            return Ok(());
        }
        let deadline = entry
            .wall_ms
            .map(|wall_ms| beginning.deadline_of_wall(wall_ms));
        let with = (deadline, entry.access);
        let stored = put_loaded(&mut context, &key, loaded, with, self.rules.replaces);
        context.finish();
        drop(context);
        if !stored {
            let key = key.into_owned();
            return Err(SnapshotError::Twice { key, at });
        }
        self.loaded.keys += 1;
        Ok(())
    }
}
