//! A file that is written: entries, and collections whose members come by and by.

use std::io::{self, Write};

use tidewheel_collections::CopiedMembers;
use tidewheel_store::{Slot, Value};

use super::{MEMBERS, mark};
use crate::access::Recency;
use crate::dump::{self, Crc64, FieldDeadlines, Writer as Bytes};
use crate::format::FileFormat;
use crate::keyspace::Keyspace;
use crate::time::Now;
use crate::value::{
    self, Entries, Object, TAG_HASH, TAG_HASH_TIMED, TAG_SET, TAG_SET_TIMED, TAG_ZSET_TIMED,
};

/// Bytes that are written at once.
const PORTION: usize = 256 << 10;

/// What was saved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Saved {
    /// Keys.
    pub keys: u64,
    /// Keys some of whose members have deadlines for which the format has no word: stock servers do
    /// not read them.
    pub with_member_deadlines: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// What a file has of an entry beside its key and its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) tag: u8,
    pub(super) access: u32,
    /// The key's own deadline.
    pub(super) deadline: Option<u64>,
}

impl Head {
    pub(super) fn of(entries: &Entries, slot: Slot) -> Self {
        Self {
            tag: entries.tag(slot),
            access: entries.access(slot),
            deadline: value::own_deadline(entries, slot),
        }
    }
}

/// A collection that is shown member by member.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    pub(super) db: u32,
    pub(super) key: Box<[u8]>,
    pub(super) head: Head,
    /// The number of its members at the first instant.
    pub(super) len: u64,
    /// No member's deadline is earlier.
    pub(super) earliest: Option<u64>,
}

/// Keys of a database, and those that have a deadline.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sizes {
    pub(super) keys: u64,
    pub(super) with_deadline: u64,
}

/// What is the same for all entries of a file.
#[derive(Debug)]
pub(super) struct Setting {
    /// The moment that it shows.
    pub(super) now: Now,
    format: FileFormat,
    /// What is written of the accesses to a key: what the policy in force evicts by.
    accesses: Option<Recency>,
    /// Of each database.
    sizes: Vec<Sizes>,
}

impl Setting {
    pub(super) fn of(keyspace: &Keyspace, now: Now) -> Self {
        let policy = keyspace.rules().policy();
        let evicts_by_access = policy.uses_idle_time() || policy.counts_frequency();
        let size = |db| {
            let mut sizes = Sizes::default();
            for shard in &*keyspace.shards {
                let hold = shard.lock();
                sizes.keys += hold.entries(db).len() as u64;
                sizes.with_deadline += hold.with_deadline(db) as u64;
            }
            sizes
        };
        Self {
            now,
            format: keyspace.rules().file_format(),
            accesses: evicts_by_access.then(|| keyspace.recency()),
            sizes: (0..keyspace.databases() as u32).map(size).collect(),
        }
    }

    /// Keys of all databases.
    pub(super) fn keys(&self) -> u64 {
        self.sizes.iter().map(|sizes| sizes.keys).sum()
    }
}

/// A file that is written, with its checksum.
pub(super) struct Output<'w> {
    to: &'w mut dyn Write,
    setting: &'w Setting,
    bytes: Bytes,
    crc: Crc64,
    saved: Saved,
    /// The database of what comes next.
    db: Option<u32>,
    /// The databases whose sizes are written.
    sized: Vec<bool>,
    /// A value, and the deadlines of its members.
    value: Bytes,
    members: Bytes,
}

impl<'w> Output<'w> {
    pub(super) fn new(to: &'w mut dyn Write, setting: &'w Setting) -> Self {
        let mut bytes = Bytes::empty();
        bytes.bytes(setting.format.header());
        Self {
            to,
            setting,
            bytes,
            crc: Crc64::default(),
            saved: Saved::default(),
            db: None,
            sized: vec![false; setting.sizes.len()],
            value: Bytes::empty(),
            members: Bytes::empty(),
        }
    }

    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.bytes(&[mark::AUX]);
        self.bytes.string(name);
        self.bytes.string(value);
    }

    pub(super) fn function(&mut self, code: &[u8]) {
        self.bytes.bytes(&[mark::FUNCTION]);
        self.bytes.string(code);
    }

    /// Says in which database the next entries are.
    pub(super) fn select(&mut self, db: u32) {
        if self.db.replace(db) == Some(db) {
            return;
        }
        self.bytes.bytes(&[mark::DATABASE]);
        self.bytes.number(db.into());
        let at = db as usize;
        if !std::mem::replace(&mut self.sized[at], true) {
            let sizes = self.setting.sizes[at];
            self.bytes.bytes(&[mark::SIZES]);
            self.bytes.number(sizes.keys);
            self.bytes.number(sizes.with_deadline);
        }
    }

    /// Writes an entry.
    pub(super) fn entry(
        &mut self,
        head: Head,
        key: &[u8],
        value: &Value<'_, Object>,
    ) -> io::Result<()> {
        self.value.clear();
        let setting = (&self.setting.now, self.setting.format);
        let parts = (&mut self.value, &mut self.members);
        dump::write_for_file(head.tag, value, setting, parts);
        let kind = self.value.written()[0];
        self.begin(head, key, kind);
        self.bytes.bytes(&self.value.written()[1..]);
        self.end_entry()
    }

    /// Begins an entry whose members come next.
    pub(super) fn begin_collection(&mut self, opened: &Opened) {
        let Opened { head, key, len, .. } = opened;
        let fields = self.field_deadlines(opened);
        let kind = match head.tag {
            TAG_HASH | TAG_HASH_TIMED => fields.kind(),
            TAG_SET | TAG_SET_TIMED => dump::kind::SET,
            _ => dump::kind::ZSET_2,
        };
        self.begin(*head, key, kind);
        match head.tag {
            TAG_HASH | TAG_HASH_TIMED => fields.begin(*len, &mut self.bytes),
            _ => self.bytes.number(*len),
        }
    }

    /// Goes on with it.
    pub(super) fn members(&mut self, opened: &Opened, members: &CopiedMembers) -> io::Result<()> {
        let fields = self.field_deadlines(opened);
        let Self { bytes, setting, .. } = self;
        let deadlines = &mut self.members;
        // Eight bytes a member, in memory until the collection's end.
        let timed = matches!(
            opened.head.tag,
            TAG_HASH_TIMED | TAG_SET_TIMED | TAG_ZSET_TIMED
        );
        members.for_each(|member, value, deadline| {
            match opened.head.tag {
                TAG_HASH | TAG_HASH_TIMED => {
                    let at = dump::wall_of(deadline, &setting.now);
                    fields.field((member, value), at, bytes);
                }
                _ => {
                    bytes.string(member);
                    // A score; or nothing, of a set.
                    bytes.bytes(value);
                }
            }
            if timed && fields == FieldDeadlines::Apart {
                deadlines.deadline(deadline, &setting.now);
            }
        });
        self.flush(PORTION)
    }

    /// Where the deadlines of a collection's members stand.
    fn field_deadlines(&self, opened: &Opened) -> FieldDeadlines {
        let Setting { now, format, .. } = self.setting;
        match opened.head.tag {
            TAG_HASH_TIMED => {
                FieldDeadlines::of(*format, || dump::wall_of(opened.earliest, now).unwrap_or(0))
            }
            _ => FieldDeadlines::Apart,
        }
    }

    /// Ends the entry. The deadlines of its members stand behind it.
    pub(super) fn end_entry(&mut self) -> io::Result<()> {
        if self.members.written().iter().any(|byte| *byte != 0) {
            self.saved.with_member_deadlines += 1;
            let deadlines = std::mem::replace(&mut self.members, Bytes::empty());
            self.field(MEMBERS, deadlines.written());
            self.members = deadlines;
        }
        self.members.clear();
        self.saved.keys += 1;
        self.flush(PORTION)
    }

    fn begin(&mut self, head: Head, key: &[u8], kind: u8) {
        if let Some(deadline) = head.deadline {
            self.bytes.bytes(&[mark::DEADLINE_MS]);
            let wall_ms = self.setting.now.wall_of(deadline);
            self.bytes.bytes(&wall_ms.to_le_bytes());
        }
        self.access(head.access);
        self.bytes.kind(kind);
        self.bytes.string(key);
    }

    fn access(&mut self, access: u32) {
        let clock = self.setting.now.time.tick;
        match self.setting.accesses {
            None => {}
            Some(Recency::Clock) => {
                self.bytes.bytes(&[mark::IDLE]);
                let seconds = Recency::idle_seconds(access, clock);
                self.bytes.number(seconds.into());
            }
            Some(recency) => {
                let frequency = recency.frequency(access, clock).min(u8::MAX.into());
                self.bytes.bytes(&[mark::FREQUENCY, frequency as u8]);
            }
        }
    }

    fn flush(&mut self, least: usize) -> io::Result<()> {
        if self.bytes.len() >= least {
            self.crc.add(self.bytes.written());
            self.saved.bytes += self.bytes.len() as u64;
            self.to.write_all(self.bytes.written())?;
            self.bytes.clear();
        }
        Ok(())
    }

    /// Ends the file.
    pub(super) fn end(mut self) -> io::Result<Saved> {
        self.bytes.bytes(&[mark::END]);
        self.flush(0)?;
        let checksum = self.crc.get();
        self.to.write_all(&checksum.to_le_bytes())?;
        self.saved.bytes += 8;
        Ok(self.saved)
    }
}
