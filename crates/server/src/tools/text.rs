//! Bytes, values and times as text.

use std::fmt::Write as _;

use tidewheel_keyspace::{SnapshotPart, SnapshotValue};

/// Bytes of a string that a short text shows.
const SHOWN_BYTES: usize = 64;

/// A short text of a value takes no more parts when it is that long.
const SHOWN_TEXT: usize = 160;

/// Bytes in quotes, so that they stay on their line, and within their column.
pub(super) fn quoted(bytes: &[u8], whole: bool) -> String {
    let shown = match whole {
        true => bytes,
        false => &bytes[..bytes.len().min(SHOWN_BYTES)],
    };
    match bytes.len() - shown.len() {
        0 => format!("\"{}\"", shown.escape_ascii()),
        more => format!("\"{}\"... ({more} more bytes)", shown.escape_ascii()),
    }
}

/// A wall time in milliseconds: `2026-11-22T17:02:04.259Z`.
pub(super) fn time(wall_ms: i64) -> String {
    const DAY_MS: i64 = 86_400_000;
    let (days, ms) = (wall_ms.div_euclid(DAY_MS), wall_ms.rem_euclid(DAY_MS));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z",
        ms % 1_000
    )
}

/// Year, month and day of a number of days since 1970. (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms".)
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let (era, of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A value: a string in quotes, or its parts in brackets. A short text has the first of them, and
/// says how many there are.
pub(super) fn value(value: &SnapshotValue, whole: bool) -> String {
    let mut text = Text {
        text: String::new(),
        whole,
        is_cut: false,
    };
    value.for_each(&mut |part| text.part(part));
    match value.type_name() {
        "string" => text.text,
        _ if text.is_cut => format!("[{}, ... {} in all]", text.text, value.len()),
        _ => format!("[{}]", text.text),
    }
}

struct Text {
    text: String,
    whole: bool,
    /// Parts were left out.
    is_cut: bool,
}

impl Text {
    fn part(&mut self, part: SnapshotPart<'_>) {
        if !self.whole && self.text.len() > SHOWN_TEXT {
            self.is_cut = true;
            return;
        }
        let quote = |bytes| quoted(bytes, self.whole);
        let text = match part {
            SnapshotPart::Text(bytes) | SnapshotPart::Element(bytes) => quote(bytes),
            SnapshotPart::Member(member, ends) => quote(member) + &until(ends),
            SnapshotPart::Field(field, value, ends) => {
                format!("{}: {}{}", quote(field), quote(value), until(ends))
            }
            SnapshotPart::Scored(member, score, ends) => {
                format!("{}: {score}{}", quote(member), until(ends))
            }
            SnapshotPart::Id(ms, seq) => format!("{ms}-{seq}"),
            SnapshotPart::EntryField(name, value) => {
                // It belongs to the id before it.
                let written = write!(self.text, " {}: {}", quote(name), quote(value));
                debug_assert!(written.is_ok(), "a String takes everything");
                return;
            }
            SnapshotPart::Group(name) => format!("group {}", quote(name)),
        };
        if !self.text.is_empty() {
            self.text.push_str(", ");
        }
        self.text.push_str(&text);
    }
}

fn until(wall_ms: Option<u64>) -> String {
    match wall_ms {
        Some(wall_ms) => format!(
            " until {}",
            time(i64::try_from(wall_ms).unwrap_or(i64::MAX))
        ),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (wall_ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (95_617_584_000_123, "5000-01-01T00:00:00.123Z"),
        ] {
            assert_eq!(time(wall_ms), expected);
        }
        assert_eq!(time(i64::MAX), "292278994-08-17T07:12:55.807Z");
        assert!(time(i64::MIN).starts_with('-'));
    }

    #[test]
    fn bytes_stay_on_their_line_and_in_their_column() {
        assert_eq!(quoted(b"a\t\n\"\0\xff", true), r#""a\t\n\"\x00\xff""#);
        let long = [b'x'; 70];
        assert!(quoted(&long, false).ends_with("x\"... (6 more bytes)"));
        assert_eq!(quoted(&long, true).len(), 72);
    }
}
