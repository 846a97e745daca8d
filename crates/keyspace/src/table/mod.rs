//! The one command table: every row, and how a name finds its row.

mod bitmap;
mod blocking;
mod connection;
mod diagnosis;
mod expiry;
mod geo;
mod geo_radius;
mod hash;
mod hyperloglog;
mod inspect;
mod key;
mod list;
mod members;
mod pubsub;
mod server;
mod set;
mod string;
mod transaction;
mod zset;
mod zset_combine;
mod zset_range;

use tidewheel_resp::short_word;

use crate::command::{Command, Rows};

/// The chapters of the table.
static CHAPTERS: &[&[Command]] = &[
    string::ROWS,
    bitmap::ROWS,
    hyperloglog::ROWS,
    hash::ROWS,
    set::ROWS,
    members::OF_HASHES,
    members::OF_SETS,
    members::OF_SORTED_SETS,
    members::ROWS,
    zset::ROWS,
    zset_range::ROWS,
    list::ROWS,
    zset_combine::ROWS,
    geo::ROWS,
    geo_radius::ROWS,
    blocking::ROWS,
    key::ROWS,
    expiry::ROWS,
    connection::ROWS,
    pubsub::ROWS,
    server::ROWS,
    diagnosis::ROWS,
    inspect::ROWS,
    transaction::ROWS,
];

/// Number of top-level rows.
const COUNT: usize = {
    let mut n = 0;
    let mut i = 0;
    while i < CHAPTERS.len() {
        n += CHAPTERS[i].len();
        i += 1;
    }
    n
};

/// All top-level rows, chapter after chapter.
static ROWS: [&Command; COUNT] = {
    let mut rows = [&CHAPTERS[0][0]; COUNT];
    let (mut n, mut i) = (0, 0);
    while i < CHAPTERS.len() {
        let mut j = 0;
        while j < CHAPTERS[i].len() {
            rows[n] = &CHAPTERS[i][j];
            n += 1;
            j += 1;
        }
        i += 1;
    }
    rows
};

/// All top-level rows.
#[must_use]
pub fn rows() -> &'static [&'static Command] {
    &ROWS
}

/// The table, as the commands see it that reply with its rows.
pub(crate) static TABLE: Rows = Rows {
    all: &ROWS,
    find: lookup,
};

/// A name of up to 24 bytes in lower case, as three words.
///
/// `byte | 0x20` is a lower-case letter only for letters. So the folded words of names that are
/// letters only are equal exactly if the names are equal without regard to case. An underscore
/// folds to the same byte as DEL, and nothing else does.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Folded {
    head: u64,
    tail: u64,
    rest: u64,
}

const FOLD: u64 = 0x2020_2020_2020_2020;
const NAME_MAX: usize = 24;
const DEL: u8 = 0x7f;

impl Folded {
    const fn of_row(name: &str) -> Self {
        let bytes = name.as_bytes();
        assert!(
            bytes.len() <= NAME_MAX,
            "a command's name is at most 24 letters"
        );
        let mut words = [0_u64; NAME_MAX / 8];
        let mut i = 0;
        while i < bytes.len() {
            assert!(
                bytes[i].is_ascii_lowercase() || bytes[i] == b'_',
                "a command's name is letters in lower case, and underscores"
            );
            words[i / 8] |= (bytes[i] as u64) << (i % 8 * 8);
            i += 1;
        }
        Self::from_words(words)
    }

    const fn from_words([head, tail, rest]: [u64; 3]) -> Self {
        Self {
            head: head | FOLD,
            tail: tail | FOLD,
            rest: rest | FOLD,
        }
    }

    fn of_call(name: &[u8]) -> Option<Self> {
        let Some((head, more)) = name.split_first_chunk::<8>() else {
            return Some(Self::from_words([short_word(name)?, 0, 0]));
        };
        let head = u64::from_le_bytes(*head);
        let Some((tail, more)) = more.split_first_chunk::<8>() else {
            return Some(Self::from_words([head, short_word(more)?, 0]));
        };
        let tail = u64::from_le_bytes(*tail);
        Some(Self::from_words([head, tail, short_word(more)?]))
    }

    const fn place(self, len: usize) -> usize {
        let words = self.head ^ self.tail.rotate_left(29) ^ self.rest.rotate_left(43);
        let mixed = (words ^ (len as u64) << 59).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - INDEX_BITS)) as usize
    }
}

const INDEX_BITS: u32 = 9;
const INDEX_LEN: usize = 1 << INDEX_BITS;

/// One place of the open-addressed index: `len == 0` is empty.
#[derive(Clone, Copy)]
struct Place {
    name: Folded,
    len: u8,
    row: u8,
    has_underscore: bool,
}

/// Built when compiling; at a load below a quarter most names are met at their first place.
static INDEX: [Place; INDEX_LEN] = {
    let mut index = [Place {
        name: Folded::from_words([0; 3]),
        len: 0,
        row: 0,
        has_underscore: false,
    }; INDEX_LEN];
    assert!(COUNT < INDEX_LEN / 2 && COUNT < 256, "widen the index");
    let mut i = 0;
    while i < COUNT {
        let name = Folded::of_row(ROWS[i].name);
        let len = ROWS[i].name.len();
        let mut at = name.place(len);
        while index[at].len != 0 {
            at = (at + 1) % INDEX_LEN;
        }
        index[at] = Place {
            name,
            len: len as u8,
            row: i as u8,
            has_underscore: has_underscore(ROWS[i].name),
        };
        i += 1;
    }
    index
};

const fn has_underscore(name: &str) -> bool {
    let mut i = 0;
    while i < name.len() {
        if name.as_bytes()[i] == b'_' {
            return true;
        }
        i += 1;
    }
    false
}

static GET: &Command = row_of("get");
static SET: &Command = row_of("set");

const fn row_of(name: &str) -> &'static Command {
    let wanted = Folded::of_row(name);
    let mut i = 0;
    while i < COUNT {
        let folded = Folded::of_row(ROWS[i].name);
        if folded.head == wanted.head && folded.tail == wanted.tail && folded.rest == wanted.rest {
            return ROWS[i];
        }
        i += 1;
    }
    panic!("no such row")
}

/// The top-level row of that name, whatever its case. Takes a few nanoseconds.
#[must_use]
#[inline]
pub fn lookup(name: &[u8]) -> Option<&'static Command> {
    // Most calls of most programs are these two: no hashing, no table.
    if let &[a, b, c] = name {
        match [a | 0x20, b | 0x20, c | 0x20] {
            [b'g', b'e', b't'] => return Some(GET),
            [b's', b'e', b't'] => return Some(SET),
            _ => {}
        }
    }
    lookup_in_index(name)
}

/// As [`lookup`], by the index.
#[inline(never)]
fn lookup_in_index(name: &[u8]) -> Option<&'static Command> {
    let folded = Folded::of_call(name)?;
    let mut at = folded.place(name.len());
    loop {
        let place = &INDEX[at];
        if place.len == 0 {
            return None;
        }
        if place.len as usize == name.len() && place.name == folded {
            let differs = place.has_underscore && name.contains(&DEL);
            return (!differs).then(|| ROWS[place.row as usize]);
        }
        at = (at + 1) % INDEX_LEN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Handler;

    #[test]
    fn every_row_is_found_in_any_case() {
        for row in rows() {
            let upper = row.name.to_ascii_uppercase();
            let mut mixed = upper.clone().into_bytes();
            mixed[0] |= 0x20;
            for name in [row.name.as_bytes(), upper.as_bytes(), &mixed] {
                assert_eq!(lookup(name).map(|r| r.name), Some(row.name));
            }
        }
    }

    #[test]
    fn near_misses_find_nothing() {
        let names: [&[u8]; 11] = [
            b"",
            b"ge",
            b"gett",
            b"get\0",
            b"g\x05t",
            b"set ",
            b"GETRANGEE",
            b"bitfield\x7fro",
            b"xyzzy",
            b"0",
            &[0xff; 40],
        ];
        for name in names {
            assert!(lookup(name).is_none(), "{name:?}");
        }
        for row in rows() {
            for at in 0..row.name.len() {
                let mut name = row.name.as_bytes().to_vec();
                // Only a letter's case bit may be ignored.
                let case = if name[at] == b'_' { 0x20 } else { 0 };
                for bit in [0x01, 0x02, 0x04, 0x08, 0x10, case, 0x40, 0x80] {
                    name[at] ^= bit;
                    let found = lookup(&name).map(|r| r.name.as_bytes());
                    let same = found == Some(&name[..]);
                    assert!(found.is_none() || same, "{name:?}");
                    name[at] ^= bit;
                }
            }
        }
    }

    #[test]
    fn names_are_unique_and_rows_are_documented() {
        let mut names: Vec<_> = rows().iter().map(|r| r.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows().len());
        for row in rows()
            .iter()
            .copied()
            .flat_map(|r| std::iter::once(r).chain(r.subcommands))
        {
            assert!(!row.summary.is_empty(), "{}", row.name);
            assert!(row.arity != 0, "{}", row.name);
            assert!(!row.complexity.is_empty(), "{}", row.name);
        }
        for row in rows() {
            for sub in row.subcommands {
                assert!(
                    sub.name.starts_with(&format!("{}|", row.name)),
                    "{}",
                    sub.name
                );
            }
        }
    }

    #[test]
    fn help_describes_the_subcommands_of_its_own_command() {
        let names = |rows: &[Command]| rows.iter().map(|row| row.name).collect::<Vec<_>>();
        for row in rows().iter().filter(|row| !row.subcommands.is_empty()) {
            let help = row.subcommand(b"help").expect("every container has help");
            match help.handler {
                Handler::Help(rows) => assert_eq!(names(rows), names(row.subcommands)),
                _ => assert_eq!(row.name, "debug", "who may not debug gets no help with it"),
            }
        }
    }
}
