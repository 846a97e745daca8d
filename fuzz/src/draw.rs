//! Commands in words, as the fuzzer draws them: few keys and members of each type, so that commands
//! meet.
//!
//! A word `@+50` or `@s+2` is a wall time: so many milliseconds or seconds from now.

use arbitrary::Unstructured;

/// Where choices come from. When it is used up, each choice is the first.
pub struct Draw<'a, 'u>(pub &'a mut Unstructured<'u>);

impl Draw<'_, '_> {
    /// A number below `n`.
    pub fn below(&mut self, n: u8) -> u8 {
        self.0.arbitrary::<u8>().unwrap_or(0) % n
    }

    /// Whether something happens that does so once in `n` times.
    pub fn once_in(&mut self, n: u8) -> bool {
        self.below(n) == n - 1
    }

    /// One of some words.
    pub fn pick<'t>(&mut self, words: &[&'t str]) -> &'t str {
        words[usize::from(self.below(words.len() as u8))]
    }

    /// A number around zero.
    pub fn near(&mut self, most: i64) -> i64 {
        let byte = self.0.arbitrary::<i8>().unwrap_or(0);
        i64::from(byte) % (most + 1)
    }

    /// The name of a key that should hold a type; rarely another one's.
    pub fn key(&mut self, letter: &str) -> String {
        let n = self.below(64);
        match n {
            62 => format!("{}0", self.pick(&["h", "l", "s", "z", "b", "p"])),
            63 => "key:4".to_owned(),
            n => format!("{letter}{}", n % 3),
        }
    }

    /// A member or an element: a small number, a word, a long word.
    pub fn member(&mut self) -> String {
        match self.below(64) {
            n @ 0..20 => n.to_string(),
            n @ 20..60 => format!("m{n}"),
            n => format!("{}{n}", "long".repeat(20)),
        }
    }

    /// One to three of them.
    pub fn members(&mut self) -> Vec<String> {
        (0..=self.below(3)).map(|_| self.member()).collect()
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
        match self.below(16) {
            0..3 => self.hash(),
            3..5 => self.list(),
            5..7 => self.set(),
            7..10 => self.zset(),
            10..12 => self.member_deadline(),
            12 => self.geo(),
            13 => self.bits(),
            14 => self.log(),
            _ => self.sort(),
        }
    }
}

/// The words of a command at a wall time.
pub fn spell(line: &str, wall_ms: i64) -> Vec<String> {
    let word = |word: &str| match word.strip_prefix('@') {
        None => word.to_owned(),
        Some(rest) => match rest.strip_prefix('s') {
            Some(seconds) => (wall_ms / 1000 + seconds.parse::<i64>().unwrap_or(0)).to_string(),
            None => (wall_ms + rest.parse::<i64>().unwrap_or(0)).to_string(),
        },
    };
    line.split_whitespace().map(word).collect()
}
