//! Turns short words of a call into numbers, whatever their case. One comparison of numbers then
//! recognizes an option or a name.

use tidewheel_resp::short_word;

/// The bit that makes a letter a small one, in each of seven bytes.
const FOLD: u64 = 0x0020_2020_2020_2020;

/// A word that a call has given: its bytes, with capital letters as small ones, and its length in
/// the highest byte. 0 for one of more than seven bytes.
#[inline(always)]
pub(crate) fn folded(word: &[u8]) -> u64 {
    match short_word(word) {
        Some(bytes) if word.len() < 8 => bytes | FOLD | (word.len() as u64) << 56,
        _ => 0,
    }
}

/// The same of a name, which has letters only. Two bytes become the same small letter: it, and its
/// capital. So a word is this name exactly if the numbers are equal.
pub(crate) const fn named(name: &str) -> u64 {
    let name = name.as_bytes();
    assert!(name.len() < 8, "a name has up to seven letters");
    let mut word = (name.len() as u64) << 56 | FOLD;
    let mut i = 0;
    while i < name.len() {
        assert!(name[i].is_ascii_alphabetic(), "a name is letters");
        word |= (name[i] as u64) << (8 * i);
        i += 1;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_equal_to_a_name_if_its_letters_are() {
        for name in ["EX", "PXAT", "GET", "KEEPTTL"] {
            let mut word = name.as_bytes().to_vec();
            for at in 0..word.len() {
                for byte in 0..=255 {
                    let kept = std::mem::replace(&mut word[at], byte);
                    let is_equal = folded(&word) == named(name);
                    assert_eq!(is_equal, word.eq_ignore_ascii_case(name.as_bytes()));
                    word[at] = kept;
                }
            }
            for more in [b"\0" as &[u8], b" ", b"x", b"xxxxxxx"] {
                assert_ne!(folded(&[&word, more].concat()), named(name));
            }
            assert_ne!(folded(&word[1..]), named(name));
        }
    }
}
