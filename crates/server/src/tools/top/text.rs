//! Numbers, times and names as a viewer reads them, in columns.
//!
//! Nothing that a server sends reaches the terminal as it came: a name could carry escape
//! sequences. What is shown is ASCII and the few signs of this folder, one column each.

use std::time::Duration;

use indicatif::{HumanBytes, HumanCount, HumanDuration};

use crate::tools::text::quoted;

/// Letters that are kept of a text.
const SHOWN_MAX: usize = 500;

/// A name in quotes, without what has no place on a line.
pub(super) fn name(bytes: &[u8]) -> String {
    quoted(bytes, false)
}

/// A text of a server, without what has no place on a line.
pub(super) fn plain(text: &str) -> String {
    let mut shown = String::new();
    for letter in text.chars().take(SHOWN_MAX) {
        match letter {
            ' '..='~' => shown.push(letter),
            other => shown.extend(other.escape_default()),
        }
    }
    cut(&shown, SHOWN_MAX)
}

/// A text that has at most so many columns.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if text.chars().nth(columns).is_none() {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(columns.saturating_sub(1)).collect();
    if columns > 0 {
        short.push('…');
    }
    short
}

/// `1,234,567`.
pub(super) fn count(number: f64) -> String {
    HumanCount(number.max(0.0).round() as u64).to_string()
}

/// `1.43 MiB`.
pub(super) fn bytes(number: f64) -> String {
    HumanBytes(number.max(0.0) as u64).to_string()
}

/// `98.1 %`.
pub(super) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// `95µs`, `1.5ms`, `12.0s`, `3m`, `2d`.
pub(super) fn time(time: Duration) -> String {
    match time.as_secs() {
        0 if time.is_zero() => "0".to_owned(),
        0 if time < Duration::from_millis(1) => format!("{:.0?}", time),
        0..60 => format!("{time:.1?}"),
        _ => format!("{:#}", HumanDuration(time)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_server_is_an_escape_sequence() {
        for hostile in [
            "\x1b[2J",
            "a\nb",
            "\u{9b}31m",
            "漢字",
            "\u{202e}x",
            "e\u{301}",
        ] {
            for shown in [plain(hostile), name(hostile.as_bytes())] {
                assert!(
                    shown.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
                    "{shown}"
                );
            }
        }
        assert_eq!(name(b"\xff\x1b"), r#""\xff\x1b""#);
        assert!(plain(&"x".repeat(10 << 20)).chars().count() <= SHOWN_MAX);
        assert!(name(&vec![b'x'; 10 << 20]).len() < 100);
    }

    #[test]
    fn a_text_is_cut_at_its_column() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("abcd", 1), "…");
        assert_eq!(cut("abcd", 0), "");
    }

    #[test]
    fn times_are_short() {
        let said = [
            0,
            95_400,
            1_500_000,
            12_000_000_000,
            180_000_000_000,
            200_000_000_000_000,
        ];
        let said = said.map(|ns| time(Duration::from_nanos(ns)));
        assert_eq!(said, ["0", "95µs", "1.5ms", "12.0s", "3m", "2d"]);
    }
}
