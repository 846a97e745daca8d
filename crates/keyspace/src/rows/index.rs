//! The index from names to rows. It is built when compiling.

use tidewheel_resp::{Args, short_word};

use super::command::Command;
use super::{CHAPTERS, text};

/// Number of rows, those of subcommands among them.
pub const COUNT: usize = {
    let mut n = 0;
    let mut i = 0;
    while i < CHAPTERS.len() {
        n += CHAPTERS[i].len();
        i += 1;
    }
    n
};

/// All rows, chapter after chapter, each at the place that its number says.
pub(super) static ROWS: [Command; COUNT] = {
    let mut rows = [CHAPTERS[0][0]; COUNT];
    let (mut n, mut i, mut parent) = (0, 0, 0);
    while i < CHAPTERS.len() {
        let mut j = 0;
        while j < CHAPTERS[i].len() {
            rows[n] = CHAPTERS[i][j];
            rows[n].number = n as u16;
            if has(rows[n].name, b'|') {
                rows[parent].subcommands += 1;
            } else {
                parent = n;
            }
            n += 1;
            j += 1;
        }
        i += 1;
    }
    rows
};

/// The rows that are not subcommands'.
pub fn rows() -> impl Iterator<Item = &'static Command> + Clone {
    ROWS.iter().filter(|row| !has(row.name, b'|'))
}

/// All rows: each command before its subcommands.
#[must_use]
pub fn all_rows() -> &'static [Command] {
    &ROWS
}

/// The number of the row of that full name, when compiling.
///
/// # Panics
///
/// If there is none.
#[must_use]
pub const fn number_of(name: &str) -> usize {
    let (parent, _) = text::split(name.as_bytes(), b'|');
    let folded = Folded::of_row(parent);
    let mut at = folded.place(parent.len());
    while INDEX[at].len != 0 {
        let mut number = INDEX[at].row as usize;
        if text::is(parent, ROWS[number].name) {
            while number < COUNT && !text::is(name.as_bytes(), ROWS[number].name) {
                number += 1;
            }
            assert!(number < COUNT, "no such subcommand");
            return number;
        }
        at = (at + 1) % INDEX_LEN;
    }
    panic!("no such row")
}

const fn has(name: &str, wanted: u8) -> bool {
    let mut i = 0;
    while i < name.len() {
        if name.as_bytes()[i] == wanted {
            return true;
        }
        i += 1;
    }
    false
}

/// Functions that depend on the other rows.
impl Command {
    /// Its subcommands.
    #[must_use]
    pub fn subcommands(&self) -> &'static [Self] {
        let first = usize::from(self.number) + 1;
        &ROWS[first..first + usize::from(self.subcommands)]
    }

    /// The subcommand of that name (case-insensitive), without its parent's name.
    #[must_use]
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static Self> {
        self.subcommands()
            .iter()
            .find(|sub| sub.short_name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// The row that a call of this one means: its subcommand, if the call names one. `None` if
    /// there is none of that name.
    #[inline]
    pub(crate) fn for_call(&'static self, args: Args<'_>) -> Option<&'static Self> {
        match (self.subcommands, args.get(1)) {
            (0, _) | (_, None) => Some(self),
            (_, Some(name)) => self.subcommand(name),
        }
    }

    /// The parent's row, of a subcommand.
    #[must_use]
    pub fn parent(&self) -> Option<&'static Self> {
        let (parent, _) = self.name.split_once('|')?;
        lookup(parent.as_bytes())
    }
}

/// A name of up to 24 bytes in lower case, as three words.
///
/// `byte | 0x20` is a lower-case letter only for letters. So the folded words of names that are
/// letters only are equal exactly if the names are equal without regard to case. An underscore
/// folds to the same byte as DEL, a dot to the same as 14: such names are compared whole.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Folded {
    head: u64,
    tail: u64,
    rest: u64,
}

const FOLD: u64 = 0x2020_2020_2020_2020;
const NAME_MAX: usize = 24;

impl Folded {
    const fn of_row(bytes: &[u8]) -> Self {
        assert!(
            bytes.len() <= NAME_MAX,
            "a command's name is at most 24 letters"
        );
        let mut words = [0_u64; NAME_MAX / 8];
        let mut i = 0;
        while i < bytes.len() {
            assert!(
                bytes[i].is_ascii_lowercase() || matches!(bytes[i], b'_' | b'.'),
                "a command's name is letters in lower case, underscores and dots"
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
struct IndexSlot {
    name: Folded,
    len: u8,
    row: u16,
    /// Other bytes than letters fold to the same as those of its name.
    is_folded_by_others: bool,
}

/// Built when compiling; at a load below a quarter most names are met at their first place.
static INDEX: [IndexSlot; INDEX_LEN] = {
    let mut index = [IndexSlot {
        name: Folded::from_words([0; 3]),
        len: 0,
        row: 0,
        is_folded_by_others: false,
    }; INDEX_LEN];
    assert!(COUNT < INDEX_LEN, "widen the index");
    let mut i = 0;
    while i < COUNT {
        let row = &ROWS[i];
        i += 1;
        if has(row.name, b'|') {
            continue;
        }
        let name = Folded::of_row(row.name.as_bytes());
        let len = row.name.len();
        let mut at = name.place(len);
        while index[at].len != 0 {
            at = (at + 1) % INDEX_LEN;
        }
        index[at] = IndexSlot {
            name,
            len: len as u8,
            row: row.number,
            is_folded_by_others: has(row.name, b'_') || has(row.name, b'.'),
        };
    }
    index
};

static GET: &Command = &ROWS[number_of("get")];
static SET: &Command = &ROWS[number_of("set")];

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
            let row = &ROWS[place.row as usize];
            let differs =
                place.is_folded_by_others && !name.eq_ignore_ascii_case(row.name.as_bytes());
            return (!differs).then_some(row);
        }
        at = (at + 1) % INDEX_LEN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut names: Vec<_> = all_rows().iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all_rows().len());
        for (number, row) in all_rows().iter().enumerate() {
            let name = row.name;
            assert_eq!((usize::from(row.number), number_of(name)), (number, number));
            assert!(
                !row.summary.is_empty() && !row.complexity.is_empty(),
                "{name}"
            );
            // Reads the syntax of each row.
            assert!(row.arity != 0 && row.arguments().len() < 20, "{name}");
        }
    }

    #[test]
    fn subcommands_stand_behind_their_command() {
        let mut seen = 0;
        for row in rows() {
            for sub in row.subcommands() {
                assert_eq!(sub.parent().map(|parent| parent.name), Some(row.name));
            }
            let help = row.subcommand(b"help");
            assert_eq!(help.is_some(), row.has_subcommands(), "{}", row.name);
            seen += 1 + row.subcommands().len();
        }
        assert_eq!(seen, COUNT);
    }
}
