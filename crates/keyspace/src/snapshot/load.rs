//! Reads a file, and stores each key.

use std::io::Read;

use tidewheel_resp::{Args, Protocol, Writer};

use super::error::SnapshotError;
use super::input::Input;
use super::{MEMBERS, cut, mark};
use crate::commands::dump::{RestoredAccess, put_loaded, read_from_file};
use crate::context::Context;
use crate::dump;
use crate::garbage::Garbage;
use crate::gate::Exclusive;
use crate::keyspace::Keyspace;
use crate::session::Session;
use crate::time::{Now, Time};

/// The newest versions that are read: of Redis 8.10, and of Valkey 9.2.
const REDIS_MAX: u16 = 15;
const VALKEY: std::ops::RangeInclusive<u16> = 80..=81;

/// The types from this one on are no values' that anybody writes into files, but marks.
const FIRST_UNKNOWN: u8 = dump::kind::HASH_LISTPACK_EX + 1;

/// What a file says of itself: names and values.
pub type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// What was loaded.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Keys.
    pub keys: u64,
    /// What the file says of itself.
    pub fields: Fields,
    /// The codes of libraries of functions.
    pub functions: Vec<Vec<u8>>,
}

/// What is known of the next key.
#[derive(Default)]
struct Ahead {
    /// Its deadline, as wall time in milliseconds.
    wall_ms: Option<i64>,
    access: Option<RestoredAccess>,
}

/// A key that was read. What is known of its members may stand behind it.
struct ReadEntry {
    key: Vec<u8>,
    /// The type and the value.
    value: Vec<u8>,
    ahead: Ahead,
    members: Vec<u8>,
    /// Where it stands.
    at: u64,
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
    /// that each is announced. With `replaces` a key of the file takes the place of one that is
    /// there. After an error some keys are there.
    ///
    /// # Errors
    ///
    /// If the file is no snapshot, or damaged, or has what is not known, or a key is there already
    /// which is not to be replaced.
    pub fn load(
        &self,
        _alone: &Exclusive<'_>,
        time: Time,
        wall_offset_ms: &dyn Fn(&Fields) -> i64,
        replaces: bool,
        from: &mut dyn Read,
    ) -> Result<Loaded, SnapshotError> {
        let mut load = Load {
            keyspace: self,
            input: Input::new(from),
            now: Now::of(&self.timeline, time),
            wall_offset_ms,
            replaces,
            beginning: None,
            version: 0,
            db: 0,
            loaded: Loaded::default(),
            read: None,
        };
        load.header()?;
        load.entries()?;
        Ok(load.loaded)
    }
}

struct Load<'a, 'r> {
    keyspace: &'a Keyspace,
    input: Input<'r>,
    now: Now,
    wall_offset_ms: &'a dyn Fn(&Fields) -> i64,
    replaces: bool,
    /// The beginning of engine time, when nothing was dead.
    beginning: Option<Now>,
    version: u16,
    db: u32,
    loaded: Loaded,
    /// The last key, which is not stored yet.
    read: Option<ReadEntry>,
}

impl Load<'_, '_> {
    fn header(&mut self) -> Result<(), SnapshotError> {
        let header: [u8; 9] = self.input.array()?;
        let (digits, is_valkey) = match &header {
            [b'R', b'E', b'D', b'I', b'S', digits @ ..] => (&digits[..], false),
            [b'V', b'A', b'L', b'K', b'E', b'Y', digits @ ..] => (&digits[..], true),
            _ => return Err(SnapshotError::NoSnapshot),
        };
        let digits = String::from_utf8_lossy(digits).into_owned();
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let version = digits.parse().ok().filter(|_| is_number).unwrap_or(0);
        let known = match is_valkey {
            true => VALKEY.contains(&version),
            false => (1..=REDIS_MAX).contains(&version),
        };
        if !known {
            return Err(SnapshotError::UnknownVersion(digits));
        }
        self.version = version;
        Ok(())
    }

    fn entries(&mut self) -> Result<(), SnapshotError> {
        let mut ahead = Ahead::default();
        loop {
            let at = self.input.at();
            let mark = self.input.byte()?;
            if mark != mark::AUX {
                self.store()?;
            }
            match mark {
                mark::AUX => {
                    let (name, value) = (self.string()?, self.string()?);
                    match (name == MEMBERS, &mut self.read) {
                        (true, None) => return Err(SnapshotError::Malformed { at }),
                        (true, Some(read)) => read.members = value,
                        (false, _) => self.loaded.fields.push((name, value)),
                    }
                }
                mark::SIZES => {
                    self.number()?;
                    self.number()?;
                }
                mark::SLOT_INFO => {
                    for _ in 0..3 {
                        self.number()?;
                    }
                }
                mark::DATABASE => {
                    let number = self.number()?;
                    let db = i64::try_from(number).ok();
                    let db = db.and_then(|number| self.keyspace.database_index(number));
                    self.db = db.ok_or(SnapshotError::UnknownDatabase { number, at })?;
                }
                mark::DEADLINE_MS => {
                    ahead.wall_ms = Some(i64::from_le_bytes(self.input.array()?));
                }
                mark::DEADLINE_S => {
                    let seconds = i32::from_le_bytes(self.input.array()?);
                    ahead.wall_ms = Some(i64::from(seconds) * 1000);
                }
                mark::IDLE => {
                    let seconds = self.number()?;
                    ahead.access = Some(RestoredAccess::IdleSeconds(seconds));
                }
                mark::FREQUENCY => {
                    let frequency = self.input.byte()?;
                    ahead.access = Some(RestoredAccess::Frequency(frequency));
                }
                mark::FUNCTION => {
                    let code = self.string()?;
                    self.loaded.functions.push(code);
                }
                mark::MODULE_AUX => self.skip_module()?,
                mark::END => return self.end(),
                kind @ (FIRST_UNKNOWN..) => {
                    return Err(SnapshotError::UnknownType { kind, at });
                }
                kind => self.read(kind, std::mem::take(&mut ahead), at)?,
            }
        }
    }

    fn end(&mut self) -> Result<(), SnapshotError> {
        if self.version < 5 {
            return Ok(());
        }
        let computed = self.input.checksum();
        match u64::from_le_bytes(self.input.array()?) {
            // It was switched off where the file was written.
            0 => Ok(()),
            written if written == computed => Ok(()),
            _ => Err(SnapshotError::Checksum),
        }
    }

    /// What a module has stored beside the keys.
    fn skip_module(&mut self) -> Result<(), SnapshotError> {
        let mut skipped = Vec::new();
        self.number()?;
        loop {
            let at = self.input.at();
            match self.number()? {
                0 => return Ok(()),
                1 | 2 => drop(self.number()?),
                3 => drop(self.input.array::<4>()?),
                4 => drop(self.input.array::<8>()?),
                5 => cut::string(&mut self.input, &mut skipped)?,
                _ => return Err(SnapshotError::Malformed { at }),
            }
            skipped.clear();
        }
    }

    fn read(&mut self, kind: u8, ahead: Ahead, at: u64) -> Result<(), SnapshotError> {
        let key = self.string()?;
        let mut value = vec![kind];
        cut::value(
            (kind, at),
            VALKEY.contains(&self.version),
            &mut self.input,
            &mut value,
        )?;
        let members = Vec::new();
        self.read = Some(ReadEntry {
            key,
            value,
            ahead,
            members,
            at,
        });
        Ok(())
    }

    /// Stores the key that was read.
    fn store(&mut self) -> Result<(), SnapshotError> {
        let Some(read) = self.read.take() else {
            return Ok(());
        };
        let ReadEntry {
            key,
            value,
            ahead,
            members,
            at,
        } = read;
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
        let setting = (beginning, &members[..]);
        let loaded = read_from_file(&context, &value, self.version, setting);
        let loaded = loaded.map_err(|_| SnapshotError::Malformed { at })?;
        if loaded.is_over() {
            // All its members died before the beginning of time.
            return Ok(());
        }
        let deadline = ahead
            .wall_ms
            .map(|wall_ms| beginning.deadline_of_wall(wall_ms));
        let with = (deadline, ahead.access);
        let stored = put_loaded(&mut context, &key, loaded, with, self.replaces);
        context.finish();
        drop(context);
        if !stored {
            return Err(SnapshotError::Twice { key, at });
        }
        self.loaded.keys += 1;
        Ok(())
    }

    fn number(&mut self) -> Result<u64, SnapshotError> {
        cut::number(&mut self.input)
    }

    fn string(&mut self) -> Result<Vec<u8>, SnapshotError> {
        let at = self.input.at();
        let mut bytes = Vec::new();
        cut::string(&mut self.input, &mut bytes)?;
        dump::read_string(&bytes).map_err(|_| SnapshotError::Malformed { at })
    }
}
