//! Commands in words, drawn from bytes: few keys and members of each type, so that commands meet.
//!
//! A drawn command is a line of text. Some words stand for what text cannot say; [`spell`] writes
//! them out:
//!
//! - `@+50` or `@s+2`: a wall time, so many milliseconds or seconds from now. `@max` and `@maxs`:
//!   the longest time from now that does not overflow.
//! - `~v300`: the letter `v`, 300 times. `~x0d0a`: bytes in hexadecimal digits, maybe none.
//! - `%call,GET,=K1;last`: the Lua of a [script](crate::Script).

use crate::hex::{hex, unhex};
use crate::script::Script;

/// Where choices come from. When it is used up, each choice is the first.
#[derive(Debug)]
pub struct Draw<'a> {
    bytes: &'a [u8],
    /// Members and elements are drawn from so many.
    members: u16,
    /// Most commands are of these groups, and of their keys: so they meet.
    focus: [u8; 2],
}

/// The groups of commands, and the first letters of their keys; `k` stands for strings.
const GROUPS: [(Group, &[&str]); 9] = [
    (|draw| draw.text(), &["k"]),
    (|draw| draw.any(), &["k", "h", "l", "s", "z", "b", "p", "x"]),
    (|draw| draw.hash(), &["h"]),
    (|draw| draw.list(), &["l"]),
    (|draw| draw.set(), &["s"]),
    (|draw| draw.zset(), &["z"]),
    (|draw| draw.member_deadline(), &["h", "s", "z"]),
    (|draw| draw.stream(), &["x"]),
    (|draw| draw.rare(), &["z", "b", "p", "l", "s"]),
];

/// Draws a command of a group.
type Group = for<'d, 'a> fn(&'d mut Draw<'a>) -> String;

/// The group for keys of any type.
const ANY: u8 = 1;

impl<'a> Draw<'a> {
    /// Choices from these bytes. The first ones say how many members commands share, and which
    /// commands come most often.
    pub fn new(bytes: &'a [u8]) -> Self {
        let (members, focus) = (0, [0; 2]);
        let mut draw = Self {
            bytes,
            members,
            focus,
        };
        draw.members = [64, 64, 16, 400][usize::from(draw.below(4))];
        draw.focus = [0; 2].map(|_| draw.below(GROUPS.len() as u8));
        draw
    }

    /// Whether all bytes are used up.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            None => 0,
            Some((first, rest)) => {
                self.bytes = rest;
                *first
            }
        }
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u8) -> u8 {
        self.byte() % n
    }

    /// Whether something happens that does so once in `n` times.
    pub fn once_in(&mut self, n: u8) -> bool {
        self.below(n) == n - 1
    }

    /// One of some words.
    pub fn pick<'t>(&mut self, words: &[&'t str]) -> &'t str {
        words[usize::from(self.below(words.len() as u8))]
    }

    /// A number of `N` bytes.
    pub fn wide<const N: usize>(&mut self) -> i64 {
        (0..N).fold(0, |number, _| number << 8 | i64::from(self.byte()))
    }

    /// Up to `most` bytes.
    pub fn bytes(&mut self, most: u8) -> &'a [u8] {
        let len = usize::from(self.below(most)).min(self.bytes.len());
        let (bytes, rest) = self.bytes.split_at(len);
        self.bytes = rest;
        bytes
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// At most so many of something.
    pub fn few<T>(&mut self, most: u8, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| one(self)).collect()
    }

    /// A number around zero.
    pub fn near(&mut self, most: i64) -> i64 {
        i64::from(self.byte() as i8) % (most + 1)
    }

    /// The name of a key that should hold a type; rarely another one's.
    pub fn key(&mut self, letter: &str) -> String {
        match self.below(64) {
            63 => format!("{}0", self.pick(&["h", "l", "s", "z", "b", "p", "x"])),
            62 => "key:4".to_owned(),
            n => format!("{letter}{}", [0, 0, 1, 2][usize::from(n % 4)]),
        }
    }

    /// The name of a key that should hold a string: an empty one, a binary one, long ones.
    pub fn text_key(&mut self) -> String {
        match self.below(64) {
            63 => self.key("h"),
            n @ 0..30 => format!("key:{}", 4 + n % 3),
            n => match n % 12 {
                0 => "~x".to_owned(),
                1 => "~x000d0a2a".to_owned(),
                2 => "~k300".to_owned(),
                3 => "~l5000".to_owned(),
                n => format!("key:{n}"),
            },
        }
    }

    /// The name of a key of any type.
    pub fn any_key(&mut self) -> String {
        let group = match self.below(8) {
            0 => ANY,
            n => self.focus[usize::from(n % 2)],
        };
        match self.pick(GROUPS[usize::from(group)].1) {
            "k" => self.text_key(),
            letter => self.key(letter),
        }
    }

    /// A member or an element: a small number, a word, a long word. A few come often.
    pub fn member(&mut self) -> String {
        let n = match self.byte() {
            n @ 128.. => [3, 7, 11, 15, 22, 33, 44, 55][usize::from(n % 8)],
            n if self.members > 256 => u16::from(n) * 256 + u16::from(self.byte()),
            n => u16::from(n),
        };
        spell_member(n % self.members)
    }

    /// Some of them: one to four, or in a wide range a long row.
    pub fn members(&mut self) -> Vec<String> {
        match self.members {
            256.. => {
                let (first, n) = (self.wide::<2>() as u16, u16::from(self.below(50)));
                let row = (0..=n).map(|i| first.wrapping_add(i) % self.members);
                row.map(spell_member).collect()
            }
            _ => (0..=self.below(4)).map(|_| self.member()).collect(),
        }
    }

    /// What a string holds: a number, a few bytes, or many.
    pub fn value(&mut self) -> String {
        match self.below(8) {
            0..3 => self.near(120).to_string(),
            3 => self.wide::<8>().to_string(),
            4 => format!("~v{}", self.wide::<2>() as u16 % 5_000),
            5 => "tail".to_owned(),
            _ => hex(self.bytes(16)),
        }
    }

    /// A time to live in the words of SET, mostly short.
    pub fn lifetime(&mut self, other: &'static str) -> String {
        match self.below(8) {
            0 => other.to_owned(),
            1 => "EX 1".to_owned(),
            2 => format!("PXAT @{:+}", self.near(60)),
            3 => format!("EXAT @s{:+}", self.near(3)),
            4 | 5 => format!("PX {}", self.below(80)),
            _ => String::new(),
        }
    }

    /// A command that the model knows.
    pub fn line(&mut self) -> String {
        let group = match self.below(8) {
            0 => ANY,
            1 => self.below(GROUPS.len() as u8),
            n => self.focus[usize::from(n % 2)],
        };
        GROUPS[usize::from(group)].0(self)
    }

    fn rare(&mut self) -> String {
        match self.below(4) {
            0 => self.geo(),
            1 => self.bits(),
            2 => self.log(),
            _ => self.sort(),
        }
    }
}

fn spell_member(n: u16) -> String {
    match n % 64 {
        0..20 => n.to_string(),
        20..60 => format!("m{n}"),
        _ => format!("{}{n}", "long".repeat(20)),
    }
}

/// The words of a command at a wall time.
pub fn spell(line: &str, wall_ms: i64) -> Vec<Vec<u8>> {
    let words = line.split_whitespace();
    words.map(|word| spell_word(word, wall_ms)).collect()
}

/// One of them.
pub(crate) fn spell_word(word: &str, wall_ms: i64) -> Vec<u8> {
    let number = |text: &str| text.parse::<i64>().expect("a number");
    let time = |word: &str| match word {
        "max" => i64::MAX - wall_ms,
        "maxs" => (i64::MAX - wall_ms) / 1000,
        _ => match word.strip_prefix('s') {
            Some(seconds) => wall_ms / 1000 + number(seconds),
            None => wall_ms + number(word),
        },
    };
    match word.split_at_checked(1) {
        Some(("@", rest)) => time(rest).to_string().into_bytes(),
        Some(("~", rest)) => match rest.strip_prefix('x') {
            Some(digits) => unhex(digits),
            None => vec![rest.as_bytes()[0]; number(&rest[1..]) as usize],
        },
        Some(("%", rest)) if !rest.is_empty() => {
            let script = Script::parse(rest).expect("a script");
            script.spell(|word| spell_word(word, wall_ms)).into_bytes()
        }
        _ => word.as_bytes().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::spell;
    use crate::hex::hex;

    #[test]
    fn words_stand_for_times_and_for_bytes_that_text_cannot_say() {
        let words = |line| spell(line, 5_500);
        assert_eq!(words("GET  key:4"), [b"GET".to_vec(), b"key:4".to_vec()]);
        assert_eq!(words("@-7 @s+2"), [b"5493", &b"7"[..]]);
        assert_eq!(words("@max"), [(i64::MAX - 5_500).to_string().as_bytes()]);
        assert_eq!(words("~v3 ~x"), [b"vvv", &b""[..]]);
        assert_eq!(words(&hex(b"\0\r\n")), [b"\0\r\n"]);
    }
}
