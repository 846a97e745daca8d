//! Reads and writes integer fields of a string, and collects the changes before they reach the
//! string.

use std::collections::BTreeMap;

use super::Field;

const WORD: u64 = 8;

/// A string of bytes, and its changed words. Behind its end there are zeros.
#[derive(Debug)]
pub(crate) struct Patch<'s> {
    bytes: &'s [u8],
    /// By the number of the word: a field lies in one or two.
    words: BTreeMap<u64, u64>,
}

impl<'s> Patch<'s> {
    pub(crate) fn new(bytes: &'s [u8]) -> Self {
        Self {
            bytes,
            words: BTreeMap::new(),
        }
    }

    /// The number in a field that begins at the bit `offset`.
    pub(crate) fn get(&self, field: Field, offset: u64) -> i64 {
        let raw = self.window(offset) >> Self::shift(field, offset);
        field.number(field.raw(raw as i64))
    }

    /// Writes a number that fits the field.
    pub(crate) fn set(&mut self, field: Field, offset: u64, number: i64) {
        let shift = Self::shift(field, offset);
        let mask = u128::from(field.raw(-1)) << shift;
        let raw = u128::from(field.raw(number)) << shift;
        let window = self.window(offset) & !mask | raw;
        let word = offset / 64;
        self.words.insert(word, (window >> 64) as u64);
        if mask as u64 != 0 {
            self.words.insert(word + 1, window as u64);
        }
    }

    /// The changes: the numbers of words, and the new words.
    pub(crate) fn into_words(self) -> BTreeMap<u64, u64> {
        self.words
    }

    /// Writes changed words into a string that is long enough for the fields in them.
    pub(crate) fn write(words: &BTreeMap<u64, u64>, bytes: &mut [u8]) {
        for (word, value) in words {
            let start = (word * WORD) as usize;
            let place = bytes.iter_mut().skip(start);
            place
                .zip(value.to_be_bytes())
                .for_each(|(byte, new)| *byte = new);
        }
    }

    /// The word that the offset is in, and the next one.
    fn window(&self, offset: u64) -> u128 {
        let word = offset / 64;
        u128::from(self.word(word)) << 64 | u128::from(self.word(word + 1))
    }

    fn word(&self, word: u64) -> u64 {
        if let Some(value) = self.words.get(&word) {
            return *value;
        }
        let start = (word * WORD) as usize;
        let mut value = [0; WORD as usize];
        let stored = self.bytes.get(start..).unwrap_or_default();
        value
            .iter_mut()
            .zip(stored)
            .for_each(|(byte, stored)| *byte = *stored);
        u64::from_be_bytes(value)
    }

    /// The distance of a field from the lowest bit of its two words.
    fn shift(field: Field, offset: u64) -> u32 {
        128 - (offset % 64) as u32 - field.bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(text: &str) -> Field {
        Field::parse(text.as_bytes()).expect("a type")
    }

    #[test]
    fn a_field_of_any_width_at_any_offset_reads_back_and_spares_its_neighbours() {
        for bits in 1..=64 {
            for offset in 0..130 {
                let ones = [0xff; 40];
                let field = Field { signed: true, bits };
                let mut patch = Patch::new(&ones);
                patch.set(field, offset, 0);
                assert_eq!(patch.get(field, offset), 0);
                let words = patch.into_words();
                let mut bytes = ones;
                Patch::write(&words, &mut bytes);
                let zeros: u32 = bytes.iter().map(|byte| byte.count_zeros()).sum();
                assert_eq!(zeros, bits, "{bits} bits at {offset}");
                assert_eq!(Patch::new(&bytes).get(field, offset), 0);
            }
        }
    }

    #[test]
    fn later_reads_see_earlier_writes_and_zeros_behind_the_end() {
        let mut patch = Patch::new(b"A");
        assert_eq!(patch.get(field("u8"), 0), 65);
        assert_eq!(patch.get(field("u16"), 0), 65 << 8);
        assert_eq!(patch.get(field("i64"), 1 << 40), 0);
        patch.set(field("i5"), 6, -3);
        assert_eq!(patch.get(field("i5"), 6), -3);
        assert_eq!(patch.get(field("u5"), 6), 29);
        let mut bytes = b"A\0".to_vec();
        Patch::write(&patch.into_words(), &mut bytes);
        assert_eq!(bytes, [0x43, 0xa0]);
    }
}
