//! Lua's patterns, matched with bounded depth and counted steps.
//!
//! A pattern is matched item by item. Where an item may match in several ways, the rest of the
//! pattern is tried for each, so a pattern with k repetitions may take as many steps as the k-th
//! power of the text's length. Each item tried is a step. The depth is at most the number of
//! items.

use crate::error::Raise;
use crate::state::State;

/// The most captures.
const CAPTURES_MAX: usize = 32;

/// How deeply matching nests.
const DEPTH_MAX: usize = 200;

/// Steps between two reports to the engine.
const STEPS: u32 = 1_024;

/// Why a pattern cannot be matched.
#[derive(Debug)]
pub(super) enum Problem {
    Text(&'static str),
    Killed,
}

impl From<Raise> for Problem {
    fn from(_: Raise) -> Self {
        Self::Killed
    }
}

/// A match: from `start` to `end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matched {
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Clone, Copy, Debug)]
enum Extent {
    Open,
    Position,
    Len(usize),
}

pub(super) struct Matcher<'a> {
    state: &'a State,
    text: &'a [u8],
    pattern: &'a [u8],
    captures: [(usize, Extent); CAPTURES_MAX],
    count: usize,
    depth: usize,
    steps: u32,
}

type Found = Result<Option<usize>, Problem>;

impl<'a> Matcher<'a> {
    pub(super) fn new(state: &'a State, text: &'a [u8], pattern: &'a [u8]) -> Self {
        // A pattern ends with its first zero.
        let end = pattern.iter().position(|byte| *byte == 0);
        Self {
            state,
            text,
            pattern: &pattern[..end.unwrap_or(pattern.len())],
            captures: [(0, Extent::Open); CAPTURES_MAX],
            count: 0,
            depth: DEPTH_MAX,
            steps: 0,
        }
    }

    /// The first match that begins at `from`, or behind it if the pattern is not anchored.
    pub(super) fn find(&mut self, from: usize, anchored: bool) -> Result<Option<Matched>, Problem> {
        for start in from..=self.text.len() {
            self.count = 0;
            if let Some(end) = self.rest(start, 0)? {
                return Ok(Some(Matched { start, end }));
            }
            if anchored {
                break;
            }
        }
        Ok(None)
    }

    /// How many captures the last match has.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn whole(&self, found: Matched) -> &'a [u8] {
        &self.text[found.start..found.end]
    }

    /// A capture's bytes, or the place that it is, from 1. The first of none is the whole match.
    pub(super) fn capture(
        &self,
        at: usize,
        found: Matched,
    ) -> Result<Result<&'a [u8], usize>, Problem> {
        if at >= self.count {
            return match at {
                0 => Ok(Ok(self.whole(found))),
                _ => Err(Problem::Text("invalid capture index")),
            };
        }
        match self.captures[at] {
            (start, Extent::Len(len)) => Ok(Ok(&self.text[start..start + len])),
            (start, Extent::Position) => Ok(Err(start + 1)),
            (_, Extent::Open) => Err(Problem::Text("unfinished capture")),
        }
    }

    fn step(&mut self) -> Result<(), Problem> {
        self.steps += 1;
        if self.steps >= STEPS {
            self.steps = 0;
            self.state.step(STEPS as usize)?;
        }
        Ok(())
    }

    /// Matches the pattern from `p` on with the text from `s` on; where the match ends.
    fn rest(&mut self, s: usize, p: usize) -> Found {
        self.depth = self
            .depth
            .checked_sub(1)
            .ok_or(Problem::Text("pattern too complex"))?;
        let found = self.items(s, p);
        self.depth += 1;
        found
    }

    fn items(&mut self, mut s: usize, mut p: usize) -> Found {
        loop {
            self.step()?;
            let Some(&item) = self.pattern.get(p) else {
                return Ok(Some(s));
            };
            match (item, self.pattern.get(p + 1)) {
                (b'(', Some(b')')) => return self.open(s, p + 2, Extent::Position),
                (b'(', _) => return self.open(s, p + 1, Extent::Open),
                (b')', _) => return self.close(s, p + 1),
                (b'$', None) => return Ok((s == self.text.len()).then_some(s)),
                (b'%', Some(b'b')) => match self.balanced(s, p + 2)? {
                    Some(end) => (s, p) = (end, p + 4),
                    None => return Ok(None),
                },
                (b'%', Some(b'f')) => match self.frontier(s, p + 2)? {
                    Some(next) => p = next,
                    None => return Ok(None),
                },
                (b'%', Some(digit @ b'0'..=b'9')) => match self.again(s, *digit)? {
                    Some(end) => (s, p) = (end, p + 2),
                    None => return Ok(None),
                },
                _ => {
                    let end = self.class_end(p)?;
                    match self.pattern.get(end) {
                        Some(b'?') => {
                            if self.is_single(s, p, end)
                                && let Some(found) = self.rest(s + 1, end + 1)?
                            {
                                return Ok(Some(found));
                            }
                            p = end + 1;
                        }
                        Some(b'*') => return self.most(s, p, end),
                        Some(b'+') if self.is_single(s, p, end) => {
                            return self.most(s + 1, p, end);
                        }
                        Some(b'+') => return Ok(None),
                        Some(b'-') => return self.least(s, p, end),
                        _ if self.is_single(s, p, end) => (s, p) = (s + 1, end),
                        _ => return Ok(None),
                    }
                }
            }
        }
    }

    /// As many of an item as possible, then the rest.
    fn most(&mut self, s: usize, p: usize, end: usize) -> Found {
        let mut count = 0;
        while self.is_single(s + count, p, end) {
            self.step()?;
            count += 1;
        }
        loop {
            if let Some(found) = self.rest(s + count, end + 1)? {
                return Ok(Some(found));
            }
            match count.checked_sub(1) {
                Some(fewer) => count = fewer,
                None => return Ok(None),
            }
        }
    }

    /// As few of an item as possible, then the rest.
    fn least(&mut self, mut s: usize, p: usize, end: usize) -> Found {
        loop {
            if let Some(found) = self.rest(s, end + 1)? {
                return Ok(Some(found));
            }
            if !self.is_single(s, p, end) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn open(&mut self, s: usize, p: usize, extent: Extent) -> Found {
        let Some(slot) = self.captures.get_mut(self.count) else {
            return Err(Problem::Text("too many captures"));
        };
        *slot = (s, extent);
        self.count += 1;
        let found = self.rest(s, p)?;
        if found.is_none() {
            self.count -= 1;
        }
        Ok(found)
    }

    fn close(&mut self, s: usize, p: usize) -> Found {
        let open = self.captures[..self.count]
            .iter()
            .rposition(|(_, extent)| matches!(extent, Extent::Open))
            .ok_or(Problem::Text("invalid pattern capture"))?;
        self.captures[open].1 = Extent::Len(s - self.captures[open].0);
        let found = self.rest(s, p)?;
        if found.is_none() {
            self.captures[open].1 = Extent::Open;
        }
        Ok(found)
    }

    /// `%bxy`: from x to the y that balances it.
    fn balanced(&mut self, s: usize, p: usize) -> Found {
        let (Some(&open), Some(&close)) = (self.pattern.get(p), self.pattern.get(p + 1)) else {
            return Err(Problem::Text("unbalanced pattern"));
        };
        if self.text.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1_usize;
        for at in s + 1..self.text.len() {
            self.step()?;
            let byte = self.text[at];
            if byte == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(at + 1));
                }
            } else if byte == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// `%f[set]`: between a byte that is not of the set and one that is. Returns where the pattern
    /// goes on.
    fn frontier(&mut self, s: usize, p: usize) -> Found {
        if self.pattern.get(p) != Some(&b'[') {
            return Err(Problem::Text("missing '[' after '%f' in pattern"));
        }
        let end = self.class_end(p)?;
        let before = match s {
            0 => 0,
            _ => self.text[s - 1],
        };
        let after = self.text.get(s).copied().unwrap_or(0);
        let is_between = !self.in_set(before, p, end - 1) && self.in_set(after, p, end - 1);
        Ok(is_between.then_some(end))
    }

    /// `%1`: what a capture matched, once more.
    fn again(&mut self, s: usize, digit: u8) -> Found {
        let capture = usize::from(digit)
            .checked_sub(usize::from(b'1'))
            .filter(|at| *at < self.count)
            .map(|at| self.captures[at]);
        match capture {
            Some((start, Extent::Len(len))) => {
                let bytes = &self.text[start..start + len];
                self.state.step(len / 64)?;
                Ok(self.text[s..].starts_with(bytes).then_some(s + len))
            }
            Some((_, Extent::Position)) => Ok(None),
            _ => Err(Problem::Text("invalid capture index")),
        }
    }

    /// Where the single item at `p` ends.
    fn class_end(&mut self, p: usize) -> Result<usize, Problem> {
        match self.pattern[p] {
            b'%' if p + 1 >= self.pattern.len() => {
                Err(Problem::Text("malformed pattern (ends with '%')"))
            }
            b'%' => Ok(p + 2),
            b'[' => {
                let mut at = p + 1;
                if self.pattern.get(at) == Some(&b'^') {
                    at += 1;
                }
                // The first byte is of the set, also if it is `]`.
                let mut is_first = true;
                loop {
                    self.step()?;
                    match self.pattern.get(at) {
                        None => return Err(Problem::Text("malformed pattern (missing ']')")),
                        Some(b']') if !is_first => return Ok(at + 1),
                        Some(b'%') => at += 2,
                        Some(_) => at += 1,
                    }
                    is_first = false;
                }
            }
            _ => Ok(p + 1),
        }
    }

    /// Whether the byte at `s` is what the item from `p` to `end` matches.
    fn is_single(&self, s: usize, p: usize, end: usize) -> bool {
        let Some(&byte) = self.text.get(s) else {
            return false;
        };
        match self.pattern[p] {
            b'.' => true,
            b'%' => is_of(byte, self.pattern[p + 1]),
            b'[' => self.in_set(byte, p, end - 1),
            other => other == byte,
        }
    }

    /// Whether a byte is of the set whose brackets are at `p` and `end`.
    fn in_set(&self, byte: u8, p: usize, end: usize) -> bool {
        let (mut at, negated) = match self.pattern.get(p + 1) {
            Some(b'^') => (p + 2, true),
            _ => (p + 1, false),
        };
        while at < end {
            let item = self.pattern[at];
            if item == b'%' {
                if is_of(byte, self.pattern[at + 1]) {
                    return !negated;
                }
                at += 2;
            } else if self.pattern.get(at + 1) == Some(&b'-') && at + 2 < end {
                if (item..=self.pattern[at + 2]).contains(&byte) {
                    return !negated;
                }
                at += 3;
            } else {
                if item == byte {
                    return !negated;
                }
                at += 1;
            }
        }
        negated
    }
}

/// Whether a byte is of the class that a letter names; an upper-case one names its opposite.
fn is_of(byte: u8, class: u8) -> bool {
    let is = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => matches!(byte, b' ' | 9..=13),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is != class.is_ascii_uppercase()
}
