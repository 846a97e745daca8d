//! Bitwise operations on strings. Shorter strings count as padded with zeros.

/// The operations of BITOP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BitOp {
    And,
    Or,
    Xor,
    /// The opposite of the only string.
    Not,
    /// Bits of the first string that no other one has.
    Diff,
    /// Bits that another string has, and the first one has not.
    Diff1,
    /// Bits of the first string that another one has too.
    AndOr,
    /// Bits that exactly one string has.
    One,
}

/// Strings are combined in pieces of this length, so that the result stays in the first cache.
const PIECE: usize = 4096;

impl BitOp {
    /// The operation of that name, in any case.
    pub(crate) fn of_name(name: &[u8]) -> Option<Self> {
        let all = [
            Self::And,
            Self::Or,
            Self::Xor,
            Self::Not,
            Self::Diff,
            Self::Diff1,
            Self::AndOr,
            Self::One,
        ];
        all.into_iter()
            .find(|op| op.name().as_bytes().eq_ignore_ascii_case(name))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::And => "AND",
            Self::Or => "OR",
            Self::Xor => "XOR",
            Self::Not => "NOT",
            Self::Diff => "DIFF",
            Self::Diff1 => "DIFF1",
            Self::AndOr => "ANDOR",
            Self::One => "ONE",
        }
    }

    /// The combination of some strings, as long as the longest one. There is at least one string.
    pub(crate) fn combine(self, strings: &[&[u8]]) -> Vec<u8> {
        let len = strings.iter().map(|string| string.len()).max();
        let len = len.unwrap_or(0);
        let mut result = Vec::with_capacity(len);
        for from in (0..len).step_by(PIECE) {
            let end = len.min(from + PIECE);
            // Zeroed piece by piece: so each byte of memory is written once.
            result.resize(end, 0);
            let parts = strings.iter().map(|string| {
                let end = string.len().min(end);
                string.get(from..end).unwrap_or_default()
            });
            self.fill(&mut result[from..], parts);
        }
        result
    }

    /// Fills a piece that is zero.
    fn fill<'s>(self, piece: &mut [u8], mut parts: impl Iterator<Item = &'s [u8]>) {
        let first = parts.next().unwrap_or_default();
        match self {
            Self::And => {
                or(piece, first);
                parts.for_each(|part| and(piece, part));
            }
            Self::Or => {
                or(piece, first);
                parts.for_each(|part| or(piece, part));
            }
            Self::Xor => {
                or(piece, first);
                parts.for_each(|part| each(piece, part, |a, b| a ^ b));
            }
            Self::Not => {
                or(piece, first);
                piece.iter_mut().for_each(|byte| *byte = !*byte);
            }
            Self::Diff => {
                parts.for_each(|part| or(piece, part));
                piece.iter_mut().for_each(|byte| *byte = !*byte);
                and(piece, first);
            }
            Self::Diff1 => {
                parts.for_each(|part| or(piece, part));
                each(piece, first, |a, b| a & !b);
            }
            Self::AndOr => {
                parts.for_each(|part| or(piece, part));
                and(piece, first);
            }
            Self::One => fill_with_single(piece, first, parts),
        }
    }
}

fn fill_with_single<'s>(piece: &mut [u8], first: &[u8], parts: impl Iterator<Item = &'s [u8]>) {
    let mut several = [0; PIECE];
    or(piece, first);
    for part in parts {
        for ((once, several), byte) in piece.iter_mut().zip(&mut several).zip(part) {
            *several |= *once & byte;
            *once |= byte;
        }
    }
    each(piece, &several, |once, several| once & !several);
}

fn or(piece: &mut [u8], part: &[u8]) {
    each(piece, part, |a, b| a | b);
}

fn and(piece: &mut [u8], part: &[u8]) {
    each(piece, part, |a, b| a & b);
    let len = part.len().min(piece.len());
    piece[len..].fill(0);
}

/// The compiler makes vector instructions of this loop.
fn each(piece: &mut [u8], part: &[u8], change: impl Fn(u8, u8) -> u8) {
    for (byte, other) in piece.iter_mut().zip(part) {
        *byte = change(*byte, *other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bit_of(op: BitOp, bits: &[bool]) -> bool {
        let rest = bits[1..].iter().any(|bit| *bit);
        match op {
            BitOp::And => bits.iter().all(|bit| *bit),
            BitOp::Or => bits[0] || rest,
            BitOp::Xor => bits.iter().filter(|bit| **bit).count() % 2 == 1,
            BitOp::Not => !bits[0],
            BitOp::Diff => bits[0] && !rest,
            BitOp::Diff1 => !bits[0] && rest,
            BitOp::AndOr => bits[0] && rest,
            BitOp::One => bits.iter().filter(|bit| **bit).count() == 1,
        }
    }

    fn bit(string: &[u8], at: usize) -> bool {
        string
            .get(at / 8)
            .is_some_and(|byte| byte >> (at % 8) & 1 == 1)
    }

    #[test]
    fn every_operation_combines_bit_by_bit_and_pads_with_zeros() {
        let long: Vec<u8> = (0..PIECE + 77).map(|i| (i * 37 % 251) as u8).collect();
        let strings = [&long[3..], &long[..100], b"", &long[9..PIECE + 20]];
        for name in ["and", "OR", "xor", "not", "diff", "DIFF1", "andor", "one"] {
            let op = BitOp::of_name(name.as_bytes()).expect("an operation");
            let strings = if op == BitOp::Not {
                &strings[..1]
            } else {
                &strings
            };
            let result = op.combine(strings);
            assert_eq!(result.len(), long.len() - 3);
            for at in 0..result.len() * 8 {
                let bits: Vec<_> = strings.iter().map(|string| bit(string, at)).collect();
                assert_eq!(bit(&result, at), bit_of(op, &bits), "{name} {bits:?}");
            }
        }
        assert_eq!(BitOp::of_name(b"nand"), None);
    }
}
