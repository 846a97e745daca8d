//! Counts and finds bits, a word at a time.

use std::ops::Range;

/// The number of ones among these bits. They lie within the bytes.
pub(crate) fn count(bytes: &[u8], bits: Range<u64>) -> u64 {
    if bits.is_empty() {
        return 0;
    }
    let whole = &bytes[touched(&bits)];
    let (Some(first), Some(last)) = (whole.first(), whole.last()) else {
        return 0;
    };
    let before = first & !(0xff >> (bits.start % 8));
    let after = last & after_end(bits.end);
    ones(whole) - u64::from(before.count_ones()) - u64::from(after.count_ones())
}

/// The first bit of that value among these bits. They lie within the bytes.
pub(crate) fn find(bytes: &[u8], wanted: bool, bits: Range<u64>) -> Option<u64> {
    if bits.is_empty() {
        return None;
    }
    let skipped = if wanted { 0 } else { 0xff };
    let range = touched(&bits);
    let (first, rest) = bytes[range.clone()].split_first()?;
    let candidates = (first ^ skipped) & (0xff >> (bits.start % 8));
    let (byte, candidates) = if candidates == 0 {
        let at = first_other(rest, skipped)?;
        (range.start + 1 + at, rest[at] ^ skipped)
    } else {
        (range.start, candidates)
    };
    let bit = byte as u64 * 8 + u64::from(candidates.leading_zeros());
    (bit < bits.end).then_some(bit)
}

/// The bytes that have these bits.
fn touched(bits: &Range<u64>) -> Range<usize> {
    (bits.start / 8) as usize..bits.end.div_ceil(8) as usize
}

/// The bits of the last byte that lie at `end` or behind it.
fn after_end(end: u64) -> u8 {
    match end % 8 {
        0 => 0,
        used => 0xff >> used,
    }
}

fn ones(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let (words, rest) = rest.as_chunks::<8>();
    let of_words = words.iter().map(|word| u64::from_ne_bytes(*word));
    let of_rest = rest.iter().map(|byte| u64::from(byte.count_ones()));
    let of_small = of_words
        .map(|word| u64::from(word.count_ones()))
        .chain(of_rest);
    ones_of_blocks(blocks) + of_small.sum::<u64>()
}

/// Words that are counted side by side, in vector registers.
const LANES: usize = 4;
const VECTOR: usize = LANES * 8;
/// Bytes of eight vectors.
const BLOCK: usize = 8 * VECTOR;

type Vector = [u64; LANES];

/// The ones of eight vectors at a time: full adders sum them bit by bit, and only the eights are
/// counted in each block.
///
/// Source: R. Harley and D. Seal, in H. S. Warren, "Hacker's Delight", 2nd edition, 2012, section
/// 5-2.
fn ones_of_blocks(blocks: &[[u8; BLOCK]]) -> u64 {
    let (mut ones, mut twos, mut fours) = (Vector::default(), Vector::default(), Vector::default());
    let mut eights = 0;
    for block in blocks {
        let (vectors, _) = block.as_chunks::<VECTOR>();
        let mut pair = [Vector::default(); 2];
        for (half, four) in vectors.as_chunks::<4>().0.iter().enumerate() {
            let [a, b, c, d] = four.each_ref().map(vector);
            let two_a = add(&mut ones, a, b);
            let two_b = add(&mut ones, c, d);
            pair[half] = add(&mut twos, two_a, two_b);
        }
        eights += count_of(add(&mut fours, pair[0], pair[1]));
    }
    8 * eights + 4 * count_of(fours) + 2 * count_of(twos) + count_of(ones)
}

fn vector(bytes: &[u8; VECTOR]) -> Vector {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|i| u64::from_ne_bytes(words[i]))
}

/// Adds two bits to each bit of a sum. Returns what is carried.
#[inline(always)]
fn add(sum: &mut Vector, a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|i| {
        let half = a[i] ^ b[i];
        let carry = a[i] & b[i] | half & sum[i];
        sum[i] ^= half;
        carry
    })
}

fn count_of(vector: Vector) -> u64 {
    vector.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// The position of the first byte that differs from `skipped`.
fn first_other(bytes: &[u8], skipped: u8) -> Option<usize> {
    let skipped_word = [skipped; 8];
    let (words, _) = bytes.as_chunks::<8>();
    let same = words.iter().take_while(|word| **word == skipped_word);
    let start = same.count() * 8;
    let at = bytes[start..].iter().position(|byte| *byte != skipped)?;
    Some(start + at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bit(bytes: &[u8], at: u64) -> bool {
        bytes[(at / 8) as usize] >> (7 - at % 8) & 1 == 1
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![3 => Just(0), 3 => Just(0xff), 1 => any::<u8>()];
        proptest::collection::vec(byte, 0..40)
    }

    #[test]
    fn bits_of_a_long_string_are_counted_as_one_by_one() {
        let bytes: Vec<u8> = (0..5 * BLOCK as u32)
            .map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8)
            .collect();
        for len in (0..40)
            .chain(BLOCK - 9..BLOCK + 9)
            .chain([bytes.len() - 1, bytes.len()])
        {
            let ones: u64 = bytes[..len].iter().map(|b| u64::from(b.count_ones())).sum();
            assert_eq!(count(&bytes, 0..len as u64 * 8), ones, "{len} bytes");
        }
        let full = [0xff; 3 * BLOCK];
        assert_eq!(
            count(&full, 3..full.len() as u64 * 8),
            full.len() as u64 * 8 - 3
        );
    }

    proptest! {
        #[test]
        fn bits_are_counted_and_found_as_one_by_one(bytes in bytes(), a in 0_u64..400, b in 0_u64..400) {
            let len = bytes.len() as u64 * 8;
            let range = a.min(len)..b.min(len);
            let ones = range.clone().filter(|at| bit(&bytes, *at)).count();
            prop_assert_eq!(count(&bytes, range.clone()), ones as u64);
            for wanted in [false, true] {
                let first = range.clone().find(|at| bit(&bytes, *at) == wanted);
                prop_assert_eq!(find(&bytes, wanted, range.clone()), first);
            }
        }
    }
}
