//! What a file holds, in numbers, and whether it is sound.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::Path;

use tidewheel_keyspace::{
    Checksum, Fields, SnapshotError, SnapshotItem, SnapshotKey, SnapshotReader, SnapshotValues,
};

use super::{Outcome, Trouble, text};
use crate::persistence;
use crate::time::clock::Clock;

/// Databases that a server can have.
const DATABASES_MAX: u64 = 1 << 16;

/// What a file says of itself: so many fields are kept, and shown.
const FIELDS_MAX: usize = 64;

pub(super) fn run(path: &Path, out: &mut dyn Write) -> Outcome {
    check(super::open(path, true)?, out)
}

fn check(mut source: impl Read, out: &mut dyn Write) -> Outcome {
    let mut reader = SnapshotReader::new(&mut source)?;
    let mut found = Found::default();
    let read = found.all(&mut reader);
    let report = found.report(reader.version(), reader.at());
    // The bar goes before the report comes.
    drop(source);
    out.write_all(report.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Trouble::Output)?;
    read?;
    match found.unknown.first_key_value() {
        Some((&kind, &(_, at))) => Err(Trouble::Unknown { kind, at }),
        None => Ok(()),
    }
}

#[derive(Debug, Default)]
struct Found {
    fields: Fields,
    more_fields: u64,
    functions: u64,
    /// Keys by database and type.
    keys: BTreeMap<u64, BTreeMap<&'static str, u64>>,
    with_deadline: u64,
    dead: u64,
    with_member_deadlines: u64,
    empty: u64,
    /// Keys of unknown types: how many, and where the first stands.
    unknown: BTreeMap<u8, (u64, u64)>,
    checksum: Option<Checksum>,
    /// The time when the file is looked at, as its deadlines count it.
    now_ms: Option<i64>,
}

impl Found {
    fn all(&mut self, reader: &mut SnapshotReader<'_>) -> Result<(), SnapshotError> {
        let values = SnapshotValues::new(super::seed());
        while let Some(item) = reader.read_next()? {
            match item {
                SnapshotItem::Field(name, value) if self.fields.len() < FIELDS_MAX => {
                    self.fields.push((name, value));
                }
                SnapshotItem::Field(..) => self.more_fields += 1,
                SnapshotItem::Function(_) => self.functions += 1,
                SnapshotItem::Key(key) => self.key(&key, &values)?,
                SnapshotItem::End(checksum) => self.checksum = Some(checksum),
            }
        }
        Ok(())
    }

    fn key(&mut self, key: &SnapshotKey<'_>, values: &SnapshotValues) -> Result<(), SnapshotError> {
        let (number, at) = (key.db, key.at);
        if number >= DATABASES_MAX {
            return Err(SnapshotError::UnknownDatabase { number, at });
        }
        if !key.is_known() {
            let of_type = self.unknown.entry(key.kind).or_insert((0, at));
            of_type.0 += 1;
            return Ok(());
        }
        let value = values.read(key)?;
        if value.is_empty() {
            self.empty += 1;
            return Ok(());
        }
        let types = self.keys.entry(number).or_default();
        *types.entry(value.type_name()).or_default() += 1;
        self.with_member_deadlines += u64::from(value.has_member_deadlines());
        if let Some(wall_ms) = key.wall_ms {
            let now_ms = *self.now_ms.get_or_insert_with(|| now_ms(&self.fields));
            self.with_deadline += 1;
            self.dead += u64::from(wall_ms <= now_ms);
        }
        Ok(())
    }

    fn report(&self, version: u16, bytes: u64) -> String {
        let mut lines = Lines(String::new());
        lines.add("version", &version);
        for (name, value) in &self.fields {
            let shown = match &name[..] {
                b"ctime" => std::str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse::<i64>().ok())
                    .map(|seconds| text::time(seconds.saturating_mul(1000))),
                _ => None,
            };
            let shown = shown.unwrap_or_else(|| text::quoted(value, false));
            lines.add(&text::quoted(name, false), &shown);
        }
        if self.more_fields > 0 {
            lines.add("more fields", &self.more_fields);
        }
        for (db, types) in &self.keys {
            for (name, keys) in types {
                lines.add(&format!("db {db} {name}"), keys);
            }
        }
        let keys: u64 = self.keys.values().flat_map(BTreeMap::values).sum();
        lines.add("keys", &keys);
        lines.add("with deadlines", &self.with_deadline);
        lines.add("dead already", &self.dead);
        lines.add("with deadlines of members", &self.with_member_deadlines);
        if self.empty > 0 {
            lines.add("empty, not loaded", &self.empty);
        }
        for (kind, (keys, at)) in &self.unknown {
            let name = format!("type {kind}, not known");
            lines.add(&name, &format!("{keys}, the first at byte {at}"));
        }
        lines.add("functions", &self.functions);
        lines.add("bytes", &bytes);
        lines.add(
            "checksum",
            &match self.checksum {
                Some(Checksum::Right) => "right",
                Some(Checksum::None) => "none",
                None => "not reached",
            },
        );
        lines.0
    }
}

/// The present, as the deadlines of a file count it.
fn now_ms(fields: &Fields) -> i64 {
    let clock = Clock::start();
    let time = clock.now();
    let now = persistence::Anchor::new(&clock, time);
    persistence::offset_of(fields, &now, time).saturating_add_unsigned(time.tick)
}

/// Lines of a name and a value each.
struct Lines(String);

impl Lines {
    fn add(&mut self, name: &str, value: &dyn std::fmt::Display) {
        let written = writeln!(self.0, "{name:<26} {value}");
        debug_assert!(written.is_ok(), "a String takes everything");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::sample::{FILE, empty_collections, of_module};

    fn checked(file: &[u8]) -> (String, Outcome) {
        let mut out = Vec::new();
        let outcome = check(file, &mut out);
        (String::from_utf8(out).expect("text"), outcome)
    }

    fn line(report: &str, name: &str) -> String {
        let mut lines = report.lines();
        let line = lines.find(|line| line.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {report}"));
        line[name.len()..].trim().to_owned()
    }

    #[test]
    fn it_says_what_a_file_holds() {
        let (report, outcome) = checked(FILE);
        assert!(outcome.is_ok(), "{report}");
        for (name, value) in [
            ("version", "12"),
            ("\"redis-ver\"", "\"7.4.0\""),
            ("\"ctime\"", "2023-11-14T22:13:20.000Z"),
            ("db 0 string", "2"),
            ("db 0 list", "1"),
            ("db 3 hash", "1"),
            ("keys", "4"),
            ("with deadlines  ", "2"),
            ("dead already", "1"),
            ("with deadlines of members", "1"),
            ("functions", "1"),
            ("checksum", "none"),
        ] {
            assert_eq!(line(&report, name), value, "{name}");
        }
        assert_eq!(line(&report, "bytes"), FILE.len().to_string());
    }

    #[test]
    fn each_cut_of_a_file_is_told_with_its_place() {
        for cut in 0..FILE.len() {
            let (_, outcome) = checked(&FILE[..cut]);
            let why = outcome.expect_err("it is cut").to_string();
            assert_eq!(why, format!("it ends too early, at byte {cut}"));
        }
    }

    #[test]
    fn no_change_of_a_byte_is_a_panic() {
        for at in 0..FILE.len() {
            for byte in [0, 1, 0x3f, 0x7f, 0x80, 0x81, 0xc0, 0xc3, 0xff] {
                let mut file = FILE.to_vec();
                file[at] = byte;
                let (report, outcome) = checked(&file);
                assert!(outcome.is_err() || line(&report, "checksum") != "not reached");
            }
        }
    }

    #[test]
    fn collections_without_members_are_counted_apart() {
        let file = empty_collections();
        let (report, outcome) = checked(&file);
        assert!(outcome.is_ok(), "{outcome:?}");
        assert_eq!(line(&report, "empty, not loaded"), "5");
        assert_eq!(line(&report, "keys"), "1");
    }

    #[test]
    fn a_module_s_values_are_named_by_their_number_and_place() {
        let (report, outcome) = checked(&of_module());
        assert_eq!(line(&report, "type 7, not known"), "2, the first at byte 9");
        assert_eq!(line(&report, "keys"), "1");
        let why = outcome.expect_err("it is not loaded").to_string();
        assert!(why.starts_with("at byte 9 a value has the type 7"), "{why}");
    }

    #[test]
    fn a_type_of_which_nothing_is_known_ends_it() {
        let (_, outcome) = checked(b"REDIS0012\x06\x01k");
        let why = outcome.expect_err("unknown").to_string();
        assert_eq!(
            why,
            "at byte 9 a value has the type 6, which is not known here"
        );
    }

    #[test]
    fn a_file_says_as_much_of_itself_as_it_likes() {
        let mut file = b"REDIS0003".to_vec();
        for _ in 0..FIELDS_MAX + 3 {
            file.extend(b"\xfa\x01a\x01b");
        }
        file.push(0xff);
        let (report, outcome) = checked(&file);
        assert!(outcome.is_ok());
        assert_eq!(line(&report, "more fields"), "3");
    }
}
