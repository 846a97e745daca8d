//! A record as commands that a stock server knows, and that do the same whenever they are run.

use tidewheel_keyspace::{Record, Time, resolve};
use tidewheel_resp::{Args, parse_i64};

use super::super::super::{Outcome, Trouble};
use super::Printer;

/// The keys that a record names, and their databases.
pub(super) fn named_keys<'r>(record: &'r Record<'_>) -> Vec<(u32, &'r [u8])> {
    let words = record.words();
    let args = Args::from_slices(words);
    let Ok(row) = resolve(args) else {
        return Vec::new();
    };
    let positions = row.keys.positions(args);
    let mut keys: Vec<_> = positions.map(|at| (record.db(), words[at])).collect();
    if row.name == "move"
        && let Some(db) = words.get(2).and_then(|db| parse_i64(db))
        && let Ok(db) = u32::try_from(db)
    {
        keys.push((db, words[1]));
    }
    keys
}

/// Runs a record, and prints what does the same elsewhere.
pub(super) fn run(printer: &mut Printer<'_>, time: Time, db: u32, record: &Record<'_>) -> Outcome {
    let words = record.words();
    if words.first() == Some(&&b"FUNCTION"[..]) {
        return libraries(printer, &words[1..]);
    }
    // Settings, and the clock of expiry.
    if matches!(words.first(), Some(&(b"CONFIG" | b"EXPIRY"))) {
        return Ok(());
    }
    if let Err(reply) = printer.scratch.replay(record) {
        return Err(Trouble::Again {
            command: words
                .first()
                .copied()
                .unwrap_or_default()
                .escape_ascii()
                .to_string(),
            reply: reply.trim_ascii_end().escape_ascii().to_string(),
        });
    }
    let args = Args::from_slices(words);
    let Ok(row) = resolve(args) else {
        return Ok(());
    };
    let mut call = Call {
        printer,
        time,
        db,
        words,
    };
    match row.name {
        "set" => call.set(2),
        "setex" | "psetex" => call.set(3),
        "expire" | "pexpire" | "expireat" | "pexpireat" | "getex" => call.deadline(),
        "delex" | "delifeq" => call.write(&[b"DEL", words[1]]),
        "hgetdel" => call.remove_fields(),
        "hexpire" | "hpexpire" | "hexpireat" | "hpexpireat" | "hgetex" | "hsetex" | "sexpire"
        | "spexpire" | "sexpireat" | "spexpireat" | "zexpire" | "zpexpire" | "zexpireat"
        | "zpexpireat" | "expiremember" | "expirememberat" | "pexpirememberat" => {
            call.members(row.name)
        }
        "hpersist" if call.printer.field_deadlines => call.write(words),
        "hpersist" | "spersist" | "zpersist" => Ok(()),
        "xadd" => call.add_entry(),
        "xtrim" if has_word(words, &[b"DELREF", b"ACKED"]) => call.restate(words[1]),
        "restore" | "msetex" | "cl.throttle" | "xdelex" | "xackdel" => {
            let keys = row.keys.positions(args);
            keys.into_iter().try_for_each(|at| call.restate(words[at]))
        }
        name => {
            call.printer.has_timed_streams |= has_times(name);
            call.write(words)
        }
    }
}

/// All libraries, as they are from here on.
fn libraries(printer: &mut Printer<'_>, codes: &[&[u8]]) -> Outcome {
    printer.out.write(0, &[b"FUNCTION", b"FLUSH"])?;
    (codes.iter()).try_for_each(|code| printer.out.write(0, &[b"FUNCTION", b"LOAD", code]))
}

/// True for commands that note the time at which they run.
fn has_times(name: &str) -> bool {
    matches!(name, "xreadgroup" | "xclaim" | "xautoclaim") || name.starts_with("xgroup|")
}

fn has_word(words: &[&[u8]], any: &[&[u8]]) -> bool {
    let is_any = |word: &&[u8]| any.iter().any(|of| word.eq_ignore_ascii_case(of));
    words.iter().skip(2).any(is_any)
}

/// A record that has run.
struct Call<'p, 'o, 'w> {
    printer: &'p mut Printer<'o>,
    time: Time,
    db: u32,
    words: &'w [&'w [u8]],
}

impl Call<'_, '_, '_> {
    fn write(&mut self, words: &[&[u8]]) -> Outcome {
        self.printer.out.write(self.db, words)
    }

    fn restate(&mut self, key: &[u8]) -> Outcome {
        self.printer.restate(self.time, self.db, key)
    }

    /// It has set the key to the value at this word. Under which conditions does not matter.
    fn set(&mut self, value: usize) -> Outcome {
        let (key, value) = (self.words[1], self.words[value]);
        match self.printer.scratch.deadline(self.time, self.db, key) {
            -2 => self.write(&[b"DEL", key]),
            -1 => self.write(&[b"SET", key, value]),
            wall_ms => self.write(&[b"SET", key, value, b"PXAT", wall_ms.to_string().as_bytes()]),
        }
    }

    /// It has changed the key's deadline, or removed the key because that has passed.
    fn deadline(&mut self) -> Outcome {
        let key = self.words[1];
        match self.printer.scratch.deadline(self.time, self.db, key) {
            -2 => self.write(&[b"DEL", key]),
            -1 => self.write(&[b"PERSIST", key]),
            wall_ms => self.write(&[b"PEXPIREAT", key, wall_ms.to_string().as_bytes()]),
        }
    }

    /// It has removed the fields that it names.
    fn remove_fields(&mut self) -> Outcome {
        let fields = named_members(self.words, 1);
        let (db, key) = (self.db, self.words[1]);
        self.printer.remove_members(db, key, "hash", &fields)
    }

    /// It has changed deadlines of members that it names, or removed these because they have
    /// passed. HSETEX has set fields, too.
    fn members(&mut self, name: &str) -> Outcome {
        let (time, db, key) = (self.time, self.db, self.words[1]);
        let (step, members) = match name {
            "hsetex" => (2, named_members(self.words, 2)),
            "expiremember" | "expirememberat" | "pexpirememberat" => (1, vec![self.words[2]]),
            _ => (1, named_members(self.words, 1)),
        };
        let of = self.printer.scratch.type_name(time, db, key);
        if of == "none" {
            return self.write(&[b"DEL", key]);
        }
        let names: Vec<&[u8]> = members.iter().copied().step_by(step).collect();
        let scratch = &mut self.printer.scratch;
        let found = scratch.member_deadlines(time, db, (key, &of), &names);
        let each = names.iter().copied().zip(found);
        if name == "hsetex" {
            self.write(&[&[&b"HSET"[..], key], &members[..]].concat())?;
        }
        let with = |wanted: i64| {
            let of = each.clone().filter(move |(_, wall_ms)| *wall_ms == wanted);
            of.map(|(member, _)| member).collect::<Vec<_>>()
        };
        self.printer.remove_members(db, key, &of, &with(-2))?;
        let without = with(-1);
        if name == "hgetex" && !without.is_empty() && self.printer.field_deadlines {
            let number = without.len().to_string();
            let head = [b"HPERSIST", key, b"FIELDS", number.as_bytes()];
            self.write(&[&head, &without[..]].concat())?;
        }
        let deadlines = each.filter(|(_, wall_ms)| *wall_ms >= 0).collect();
        self.printer.member_deadlines(db, key, &of, deadlines)
    }

    /// It has appended an entry, whose id is known by now, and may have trimmed the stream.
    fn add_entry(&mut self) -> Outcome {
        let key = self.words[1];
        let Some(options) = AddOptions::read(self.words) else {
            return self.restate(key);
        };
        let id = self.printer.scratch.last_id(self.time, self.db, key);
        let Some(id) = id.filter(|_| !options.has_references) else {
            return self.restate(key);
        };
        let fields = &self.words[options.id_at + 1..];
        self.write(&[&[&b"XADD"[..], key, &id], fields].concat())?;
        match options.trimming {
            Some((strategy, threshold)) => self.write(&[b"XTRIM", key, strategy, b"=", threshold]),
            None => Ok(()),
        }
    }
}

/// What stands behind the number that follows the word FIELDS or MEMBERS, which has `step` words
/// for each member.
fn named_members<'w>(words: &[&'w [u8]], step: usize) -> Vec<&'w [u8]> {
    let is_head = |word: &&[u8]| {
        word.eq_ignore_ascii_case(b"FIELDS") || word.eq_ignore_ascii_case(b"MEMBERS")
    };
    let head = words.iter().skip(2).position(is_head);
    let Some(number_at) = head.map(|head| head + 3) else {
        return Vec::new();
    };
    let number = words.get(number_at).and_then(|number| parse_i64(number));
    let number = number.and_then(|number| usize::try_from(number).ok());
    let members = words.iter().skip(number_at + 1).copied();
    members
        .take(number.unwrap_or(0).saturating_mul(step))
        .collect()
}

/// The options of XADD.
#[derive(Debug, Default)]
struct AddOptions<'w> {
    id_at: usize,
    /// Exact trimming: MAXLEN or MINID, and its threshold. What was approximate has trimmed
    /// nothing, or was recorded otherwise.
    trimming: Option<(&'w [u8], &'w [u8])>,
    /// It may have removed references to entries.
    has_references: bool,
}

impl<'w> AddOptions<'w> {
    fn read(words: &[&'w [u8]]) -> Option<Self> {
        let mut options = Self::default();
        let mut at = 2;
        loop {
            let word = *words.get(at)?;
            match &*word.to_ascii_uppercase() {
                b"NOMKSTREAM" | b"KEEPREF" => at += 1,
                b"DELREF" | b"ACKED" => {
                    options.has_references = true;
                    at += 1;
                }
                b"LIMIT" => at += 2,
                b"MAXLEN" | b"MINID" => {
                    let operator = *words.get(at + 1)?;
                    let has_operator = matches!(operator, b"=" | b"~");
                    at += 1 + usize::from(has_operator);
                    let threshold = *words.get(at)?;
                    options.trimming = (operator != b"~").then_some((word, threshold));
                    at += 1;
                }
                _ => {
                    options.id_at = at;
                    return Some(options);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<&[u8]> {
        line.split(' ').map(str::as_bytes).collect()
    }

    #[test]
    fn members_are_those_behind_their_number() {
        for (line, step, expected) in [
            ("HEXPIRE k 9 NX FIELDS 2 f g", 1, "f g"),
            ("SEXPIRE members 9 members 1 m more", 1, "m"),
            ("HSETEX fields EX 9 FIELDS 1 f v", 2, "f v"),
            ("HEXPIRE k 9 FIELDS 99999999999999999999 f", 1, ""),
            ("HEXPIRE k 9 FIELDS 9223372036854775807 f", 2, "f"),
            ("HEXPIRE k 9 FIELDS", 1, ""),
        ] {
            let (words, expected) = (words(line), words(expected));
            let found = named_members(&words, step);
            let expected: &[&[u8]] = if expected == [b""] { &[] } else { &expected };
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn the_id_of_an_entry_stands_behind_the_options() {
        for (line, id_at, trimming) in [
            ("XADD k * f v", 2, None),
            ("XADD k NOMKSTREAM maxlen = 5 * f v", 6, Some("maxlen 5")),
            ("XADD k MINID 5 5-* f v", 4, Some("MINID 5")),
            ("XADD k MAXLEN ~ 5 LIMIT 3 1-1 f v", 7, None),
        ] {
            let words = words(line);
            let options = AddOptions::read(&words).expect("an id");
            assert_eq!(options.id_at, id_at, "{line}");
            let found = options.trimming.map(|(of, by)| [of, b" ", by].concat());
            assert_eq!(found.as_deref(), trimming.map(str::as_bytes), "{line}");
        }
        let acked = words("XADD k ACKED MAXLEN 5 * f v");
        assert!(AddOptions::read(&acked).expect("an id").has_references);
        assert!(AddOptions::read(&words("XADD k MAXLEN =")).is_none());
        assert!(AddOptions::read(&words("XADD k")).is_none());
    }
}
