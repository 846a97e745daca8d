//! Writes words so that a file's line gives them back.

use std::fmt::Write as _;

/// Returns the line that sets a key to this value.
pub(super) fn line(name: &str, value: &str) -> String {
    format!("{name} {}", quoted(value.as_bytes(), is_plain_in_a_value))
}

/// Returns a word as a line can hold it.
pub(super) fn word(word: &[u8]) -> String {
    quoted(word, |letter| letter != b' ' && is_plain_in_a_value(letter))
}

/// Letters that mean themselves, also a blank between two words.
fn is_plain_in_a_value(letter: u8) -> bool {
    (letter.is_ascii_graphic() || letter == b' ') && !matches!(letter, b'"' | b'\'' | b'\\')
}

/// Returns the bytes as they are, or in quotes if they would be read as others.
fn quoted(bytes: &[u8], is_plain: impl Fn(u8) -> bool) -> String {
    let blanks = |pair: &[u8]| pair == b"  ";
    let stays = !bytes.is_empty()
        && bytes.iter().all(|letter| is_plain(*letter))
        && bytes.trim_ascii() == bytes
        && !bytes.windows(2).any(blanks);
    if stays {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut text = "\"".to_owned();
    for letter in bytes {
        match letter {
            b'"' | b'\\' => text.extend(['\\', char::from(*letter)]),
            b'\'' => text.push('\''),
            letter if is_plain_in_a_value(*letter) => text.push(char::from(*letter)),
            letter => drop(write!(text, "\\x{letter:02x}")),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::read;

    #[test]
    fn a_value_is_read_back_as_it_was() {
        for value in [
            "",
            " ",
            "a",
            "a b",
            "a  b",
            " a",
            "a ",
            "#",
            "it's",
            "\"",
            "\\",
            "\\x41",
            "a\nb\r\tc\0",
            "häßlich",
            "'",
            "''",
            "\"\"",
        ] {
            let text = line("requirepass", value);
            assert!(!text.contains('\n'), "{text}");
            let file = read(&text).expect(&text);
            assert_eq!(file.settings.password.text(), value, "{text}");
        }
        assert_eq!(line("save", "900 1 300 10"), "save 900 1 300 10");
        assert_eq!(word(b"~a b\xff"), "\"~a b\\xff\"");
    }
}
