//! Walks the keyspace, and writes each key.

use std::io::{self, Write};

use tidewheel_store::Slot;

use super::{HEADER, MEMBERS, mark};
use crate::access::Recency;
use crate::commands::dump::payload_of;
use crate::dump::{self, Crc64, Writer as Bytes};
use crate::gate::Exclusive;
use crate::keyspace::Keyspace;
use crate::time::{Now, Time};
use crate::value::{self, Entries};

/// Bytes that are written at once.
const PORTION: usize = 256 << 10;

/// Entries of a shard that are visited at once.
const VISITED: usize = 64;

/// What was saved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Saved {
    /// Keys.
    pub keys: u64,
    /// Keys some of whose members have deadlines, which stock servers do not read.
    pub with_member_deadlines: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// A file that is written, with its checksum.
struct Output<'w> {
    to: &'w mut dyn Write,
    /// What is written of the accesses to a key: what the policy in force evicts by.
    accesses: Option<Recency>,
    bytes: Bytes,
    crc: Crc64,
    saved: Saved,
}

impl Output<'_> {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.bytes(&[mark::AUX]);
        self.bytes.string(name);
        self.bytes.string(value);
    }

    fn flush(&mut self, least: usize) -> io::Result<()> {
        if self.bytes.len() >= least {
            let bytes = self.bytes.take();
            self.crc.add(&bytes);
            self.saved.bytes += bytes.len() as u64;
            self.to.write_all(&bytes)?;
        }
        Ok(())
    }

    fn entry(&mut self, entries: &Entries, slot: Slot, now: &Now) -> io::Result<()> {
        let payload = || payload_of(entries, slot, now).unwrap_or_default();
        let (value, members) = dump::for_file(entries, slot, now, payload);
        if !members.is_empty() {
            self.saved.with_member_deadlines += 1;
            self.field(MEMBERS, &members);
        }
        if let Some(deadline) = value::own_deadline(entries, slot) {
            self.bytes.bytes(&[mark::DEADLINE_MS]);
            self.bytes.bytes(&now.wall_of(deadline).to_le_bytes());
        }
        self.access(entries.access(slot), now.time.tick);
        let (kind, value) = value.split_at(1);
        self.bytes.bytes(kind);
        self.bytes.string(entries.key(slot));
        self.bytes.bytes(value);
        self.saved.keys += 1;
        self.flush(PORTION)
    }

    fn access(&mut self, access: u32, clock: u64) {
        match self.accesses {
            None => {}
            Some(Recency::Clock) => {
                self.bytes.bytes(&[mark::IDLE]);
                self.bytes
                    .number(Recency::idle_seconds(access, clock).into());
            }
            Some(recency) => {
                let frequency = recency.frequency(access, clock).min(u8::MAX.into());
                self.bytes.bytes(&[mark::FREQUENCY, frequency as u8]);
            }
        }
    }

    fn end(mut self) -> io::Result<Saved> {
        self.bytes.bytes(&[mark::END]);
        self.flush(0)?;
        let checksum = self.crc.get();
        self.to.write_all(&checksum.to_le_bytes())?;
        self.saved.bytes += 8;
        Ok(self.saved)
    }
}

impl Keyspace {
    /// Writes all data to a file of the public format, while nobody else is inside. `fields` say
    /// who writes it, and when; `functions` are the codes of libraries. The file is not flushed.
    ///
    /// # Errors
    ///
    /// Those of `to`.
    pub fn save<'f>(
        &self,
        _alone: &Exclusive<'_>,
        time: Time,
        fields: &[(&str, &str)],
        functions: impl Iterator<Item = &'f [u8]>,
        to: &mut dyn Write,
    ) -> io::Result<Saved> {
        let now = Now::of(&self.timeline, time);
        self.append_all_expired(now);
        let policy = self.rules().policy();
        let evicts_by_access = policy.uses_idle_time() || policy.counts_frequency();
        let mut out = Output {
            to,
            accesses: evicts_by_access.then(|| self.recency()),
            bytes: Bytes::empty(),
            crc: Crc64::default(),
            saved: Saved::default(),
        };
        out.bytes.bytes(HEADER);
        for (name, value) in fields {
            out.field(name.as_bytes(), value.as_bytes());
        }
        for code in functions {
            out.bytes.bytes(&[mark::FUNCTION]);
            out.bytes.string(code);
        }
        for db in 0..self.databases() as u32 {
            self.save_database(db, &now, &mut out)?;
        }
        out.end()
    }

    fn save_database(&self, db: u32, now: &Now, out: &mut Output<'_>) -> io::Result<()> {
        let (mut keys, mut with_deadline) = (0, 0);
        for shard in &*self.shards {
            let hold = shard.lock();
            keys += hold.entries(db).len() as u64;
            with_deadline += hold.with_deadline(db) as u64;
        }
        if keys == 0 {
            return Ok(());
        }
        out.bytes.bytes(&[mark::DATABASE]);
        out.bytes.number(db.into());
        out.bytes.bytes(&[mark::SIZES]);
        out.bytes.number(keys);
        out.bytes.number(with_deadline);
        for shard in &*self.shards {
            let hold = shard.lock();
            let entries = hold.entries(db);
            let (mut cursor, mut slots) = (Some(0), Vec::with_capacity(VISITED));
            while let Some(from) = cursor {
                cursor = entries.scan(from, VISITED, |slot| slots.push(slot));
                for slot in slots.drain(..) {
                    out.entry(entries, slot, now)?;
                }
            }
        }
        Ok(())
    }
}
