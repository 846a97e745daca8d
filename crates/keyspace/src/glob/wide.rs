//! Matches patterns that nearly match in many places, sixty-four elements at a time.
//!
//! A pattern is a row of *parts* between its `*`s, and a part a row of elements that take one byte
//! each. The first part lies at the text's start, the last one at its end, and each other one at
//! the first place behind the one before. To find that place, a bit for each element says whether
//! the part matches up to it where the text has been read so far; the next byte shifts the bits and
//! keeps those whose element takes the byte. Source: Baeza-Yates and Gonnet, "A New Approach to
//! Text Searching" (1992).

use super::{STARS_MAX, match_one};

/// The most work of one match, in words of sixty-four elements and bytes of the pattern. Patterns
/// and texts that need more are both very long; they do not match.
const WORK_MAX: usize = 1 << 22;

/// Elements of a word.
const WORD: usize = 64;

/// As [`glob_match`](super::glob_match).
#[cold]
#[inline(never)]
pub(super) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let mut matching = WideMatch {
        pattern,
        left: WORK_MAX,
    };
    matching.run(text).unwrap_or(false)
}

struct WideMatch<'a> {
    pattern: &'a [u8],
    /// Work that may still be done.
    left: usize,
}

impl WideMatch<'_> {
    /// `None` if it takes too much work, or an element takes no byte at all.
    fn run(&mut self, text: &[u8]) -> Option<bool> {
        let (first, mut p) = self.part(0, text.len())?;
        if p == self.pattern.len() {
            return Some(first.len() == text.len() && self.takes(&first, text));
        }
        if first.len() > text.len() || !self.takes(&first, &text[..first.len()]) {
            return Some(false);
        }
        let mut rest = &text[first.len()..];
        for stars in 0.. {
            while self.pattern.get(p) == Some(&b'*') {
                p += 1;
            }
            let (part, end) = self.part(p, rest.len())?;
            if part.is_empty() {
                return Some(true);
            }
            if stars == STARS_MAX {
                break;
            }
            if end == self.pattern.len() {
                let at = rest.len().checked_sub(part.len())?;
                return Some(self.takes(&part, &rest[at..]));
            }
            rest = &rest[self.find(&part, end - p, rest)?..];
            p = end;
        }
        Some(false)
    }

    /// The places of the elements from `p` on to the next `*` or the end, and where that is. `None`
    /// if there are more than bytes that they could take.
    fn part(&mut self, mut p: usize, most: usize) -> Option<(Vec<usize>, usize)> {
        let mut part = Vec::new();
        while self.pattern.get(p).is_some_and(|byte| *byte != b'*') {
            let (next, _) = match_one(self.pattern, p, 0)?;
            self.left = self.left.checked_sub(next - p)?;
            if part.len() == most {
                return None;
            }
            part.push(p);
            p = next;
        }
        Some((part, p))
    }

    /// True if each element takes its byte.
    fn takes(&self, part: &[usize], text: &[u8]) -> bool {
        let mut pairs = part.iter().zip(text);
        pairs.all(|(&p, &byte)| self.takes_one(p, byte))
    }

    fn takes_one(&self, p: usize, byte: u8) -> bool {
        match_one(self.pattern, p, byte).is_some_and(|(_, takes)| takes)
    }

    /// The end of the first match of `part`. The part has `bytes` bytes of the pattern.
    fn find(&mut self, part: &[usize], bytes: usize, text: &[u8]) -> Option<usize> {
        let words = part.len().div_ceil(WORD);
        let mut masks: [Option<Vec<u64>>; 256] = [const { None }; 256];
        let mut state = vec![0_u64; words];
        let last = part.len() - 1;
        for (i, &byte) in text.iter().enumerate() {
            self.left = self.left.checked_sub(words)?;
            let mask = &mut masks[usize::from(byte)];
            if mask.is_none() {
                self.left = self.left.checked_sub(bytes)?;
            }
            let mask = mask.get_or_insert_with(|| self.mask(part, byte));
            let mut carry = 1;
            for (word, mask) in state.iter_mut().zip(mask) {
                let out = *word >> (WORD - 1);
                *word = (*word << 1 | carry) & *mask;
                carry = out;
            }
            if state[last / WORD] >> (last % WORD) & 1 == 1 {
                return Some(i + 1);
            }
        }
        None
    }

    /// A bit for each element that takes a byte.
    fn mask(&self, part: &[usize], byte: u8) -> Vec<u64> {
        let word = |elements: &[usize]| {
            let bits = elements.iter().enumerate();
            bits.fold(0, |word, (i, &p)| {
                word | u64::from(self.takes_one(p, byte)) << i
            })
        };
        part.chunks(WORD).map(word).collect()
    }
}
