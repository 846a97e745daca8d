//! Writes all data at once, while nobody else is inside.

use std::io::{self, Write};

use super::output::{Head, Output, Saved, Setting};
use crate::gate::Exclusive;
use crate::keyspace::Keyspace;
use crate::time::{Now, Time};

/// Entries of a shard that are visited at once.
const VISITED: usize = 64;

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
        let setting = Setting::of(self, now);
        let mut out = Output::new(to, &setting);
        for (name, value) in fields {
            out.field(name.as_bytes(), value.as_bytes());
        }
        functions.for_each(|code| out.function(code));
        for db in 0..self.databases() as u32 {
            self.save_database(db, &mut out)?;
        }
        out.end()
    }

    fn save_database(&self, db: u32, out: &mut Output<'_>) -> io::Result<()> {
        for shard in &*self.shards {
            let hold = shard.lock();
            let entries = hold.entries(db);
            if entries.is_empty() {
                continue;
            }
            out.select(db);
            let (mut cursor, mut slots) = (Some(0), Vec::with_capacity(VISITED));
            while let Some(from) = cursor {
                cursor = entries.scan(from, VISITED, |slot| slots.push(slot));
                for slot in slots.drain(..) {
                    let head = Head::of(entries, slot);
                    out.entry(head, entries.key(slot), &entries.value(slot))?;
                }
            }
        }
        Ok(())
    }
}
