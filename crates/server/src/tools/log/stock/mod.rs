//! A log as commands, from which a stock server makes the same data.
//!
//! A server that loads an append-only file removes nothing because time passes: all deadlines in
//! the file may lie behind it. So whatever has died is removed by a command, where it was dead. To
//! know that, and to know what a command has made of relative times, the log is replayed into a
//! keyspace of this program's own, record by record, each at its own time.
//!
//! 1. The base: each key as RESTORE.
//! 2. Before a record: what is dead by its time of the keys that it names, as DEL, HDEL, SREM or
//!    ZREM.
//! 3. The record, as it was sent, or as what it has done, with absolute times (`translate.rs`).
//!    Records that are one stand between MULTI and EXEC.
//! 4. At the end: what is dead by the last frame. Streams with groups, as RESTORE: the times in
//!    them would be those at which the file is loaded.
//!
//! | file | idea |
//! |---|---|
//! | `translate.rs` | a record as commands |
//! | `scratch.rs` | the keyspace into which the log is replayed |
//! | `commands.rs` | writes commands |

mod commands;
mod scratch;
mod translate;

use std::fs::File;
use std::io::Write;
use std::path::Path;

use tidewheel_keyspace::{Dead, Fields, Record, SnapshotItem, SnapshotReader, Time};
use tidewheel_log::{LogReader, RealFolder};

use self::commands::Commands;
use self::scratch::Scratch;
use super::super::{Outcome, Trouble};
use crate::persistence::log::moment_of_base;

/// Members in one command.
const MEMBERS_MAX: usize = 1000;

pub(super) fn print(
    folder: &Path,
    log: &mut LogReader<RealFolder>,
    field_deadlines: bool,
    out: &mut dyn Write,
) -> Outcome {
    let mut printer = Printer {
        scratch: Scratch::new(),
        out: Commands::new(out),
        field_deadlines,
        left_out: LeftOut::default(),
        has_timed_streams: false,
        in_group: false,
    };
    // What was found before an error is printed, too.
    let printed = printer.all(folder, log);
    printer.out.flush()?;
    printed?;
    printer.left_out.say();
    Ok(())
}

struct Printer<'o> {
    scratch: Scratch,
    out: Commands<'o>,
    /// The other server knows deadlines of fields.
    field_deadlines: bool,
    left_out: LeftOut,
    /// Streams may have times of the moment at which the commands are run.
    has_timed_streams: bool,
    in_group: bool,
}

/// Deadlines that have no form elsewhere.
#[derive(Debug, Default)]
struct LeftOut {
    of_members: u64,
    of_fields: u64,
}

impl LeftOut {
    fn say(&self) {
        if self.of_members > 0 {
            super::say(&format!(
                "{} deadlines of members of sets and sorted sets are left out: other servers have none. What had \
                 died by the last frame is removed",
                self.of_members
            ));
        }
        if self.of_fields > 0 {
            super::say(&format!(
                "{} deadlines of fields are left out (--without-field-deadlines). What had died by the last frame \
                 is removed",
                self.of_fields
            ));
        }
    }
}

impl Printer<'_> {
    fn all(&mut self, folder: &Path, log: &mut LogReader<RealFolder>) -> Outcome {
        let mut last = None;
        if let Some(base) = log.base() {
            last = Some(self.base(&folder.join(base))?);
        }
        self.scratch.begin_replaying();
        while let Some(frame) = log.next_frame()? {
            super::each_record(&frame, &mut |record| self.record(record))?;
            let moment = frame.moment;
            last = Some(Time {
                tick: moment.tick,
                micros: 0,
                wall_offset_ms: moment.wall_ms.saturating_sub_unsigned(moment.tick),
            });
        }
        match last {
            Some(time) => self.end(time),
            None => Ok(()),
        }
    }

    /// Prints the base, and returns the moment that it shows.
    fn base(&mut self, path: &Path) -> Result<Time, Trouble> {
        let open = || File::open(path).map_err(Trouble::Open);
        self.scratch.load(&mut open()?)?;
        let mut file = open()?;
        let mut reader = SnapshotReader::new(&mut file)?;
        let (mut fields, mut time) = (Fields::new(), None);
        while let Some(item) = reader.read_next()? {
            match item {
                SnapshotItem::Field(name, value) => fields.push((name, value)),
                SnapshotItem::Function(code) => {
                    self.out.write(0, &[b"FUNCTION", b"LOAD", &code])?;
                }
                SnapshotItem::Key(key) => {
                    let time = match time {
                        Some(time) => time,
                        None => *time.insert(base_moment(&fields)?),
                    };
                    let db = u32::try_from(key.db).unwrap_or(u32::MAX);
                    self.restate(time, db, &key.key)?;
                }
                SnapshotItem::End(_) => {}
            }
        }
        base_moment(&fields)
    }

    fn record(&mut self, record: &Record<'_>) -> Outcome {
        if !self.in_group && !record.ends_group() {
            self.in_group = true;
            self.out.begin_group();
        }
        let (time, db) = (record.time(), record.db());
        for (db, key) in translate::named_keys(record) {
            self.bury(time, db, key)?;
        }
        translate::run(self, time, db, record)?;
        if record.ends_group() && self.in_group {
            self.in_group = false;
            self.out.end_group()?;
        }
        Ok(())
    }

    /// Prints the removal of what is dead of a key.
    fn bury(&mut self, time: Time, db: u32, key: &[u8]) -> Outcome {
        match self.scratch.dead(time, db, key) {
            None => Ok(()),
            Some((_, Dead::Key)) => self.out.write(db, &[b"DEL", key]),
            Some((type_name, Dead::Members(members))) => {
                let members: Vec<&[u8]> = members.iter().map(|member| &**member).collect();
                self.remove_members(db, key, type_name, &members)
            }
        }
    }

    fn remove_members(&mut self, db: u32, key: &[u8], of: &str, members: &[&[u8]]) -> Outcome {
        let command: &[u8] = match of {
            "hash" => b"HDEL",
            "set" => b"SREM",
            _ => b"ZREM",
        };
        for some in members.chunks(MEMBERS_MAX) {
            self.out.write(db, &[&[command, key], some].concat())?;
        }
        Ok(())
    }

    /// Prints a key as it is now, in place of what there was.
    fn restate(&mut self, time: Time, db: u32, key: &[u8]) -> Outcome {
        let Some(portable) = self.scratch.portable(time, db, key) else {
            return self.out.write(db, &[b"DEL", key]);
        };
        let deadline = portable
            .wall_ms
            .map_or(0, |wall_ms| wall_ms.max(1))
            .to_string();
        let payload = &portable.payload;
        let words = [
            b"RESTORE",
            key,
            deadline.as_bytes(),
            payload,
            b"REPLACE",
            b"ABSTTL",
        ];
        self.out.write(db, &words)?;
        let deadlines: Vec<(&[u8], i64)> = (portable.deadlines.iter())
            .map(|(member, wall_ms)| (&**member, *wall_ms))
            .collect();
        self.member_deadlines(db, key, portable.type_name, deadlines)
    }

    /// Prints deadlines of members, where they have a form.
    fn member_deadlines(
        &mut self,
        db: u32,
        key: &[u8],
        of: &str,
        mut deadlines: Vec<(&[u8], i64)>,
    ) -> Outcome {
        if of != "hash" {
            self.left_out.of_members += deadlines.len() as u64;
            return Ok(());
        }
        if !self.field_deadlines {
            self.left_out.of_fields += deadlines.len() as u64;
            return Ok(());
        }
        deadlines.sort_by_key(|(_, wall_ms)| *wall_ms);
        for same in deadlines.chunk_by(|(_, one), (_, other)| one == other) {
            for some in same.chunks(MEMBERS_MAX) {
                let (wall_ms, number) = (some[0].1.to_string(), some.len().to_string());
                let mut words = vec![&b"HPEXPIREAT"[..], key, wall_ms.as_bytes(), b"FIELDS"];
                words.push(number.as_bytes());
                words.extend(some.iter().map(|(field, _)| *field));
                self.out.write(db, &words)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, time: Time) -> Outcome {
        let (mut due, mut streams) = (Vec::new(), Vec::new());
        let has_timed_streams = self.has_timed_streams;
        self.scratch.look_at_all(time, &mut |seen| {
            if seen.is_due {
                due.push((seen.db, Box::<[u8]>::from(seen.key)));
            } else if has_timed_streams && seen.type_name == "stream" {
                streams.push((seen.db, Box::<[u8]>::from(seen.key)));
            }
        });
        for (db, key) in due {
            self.bury(time, db, &key)?;
        }
        for (db, key) in streams {
            if self.scratch.has_groups(time, db, &key) {
                self.restate(time, db, &key)?;
            }
        }
        Ok(())
    }
}

fn base_moment(fields: &Fields) -> Result<Time, Trouble> {
    moment_of_base(fields).ok_or(Trouble::Refused(
        "the base says no time, so it is none of a log",
    ))
}
