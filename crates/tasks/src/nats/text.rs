//! Ids within subjects, and times as JetStream writes them.

use std::fmt::Write;

use crate::shape::timestamp::Timestamp;

/// A text of letters, digits, `-` and `_`, and `%` with two digits for each other byte: a token of
/// a subject, or a header.
pub(super) fn encoded(text: &str) -> String {
    let mut token = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            token.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(token, "%{byte:02X}");
        }
    }
    token
}

/// Decodes what was [`encoded`]. `None` if it was not.
pub(super) fn decoded(token: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// A point in time as `2026-11-22T17:02:04.259713Z`.
pub(super) fn rfc3339(at: Timestamp) -> String {
    let (seconds, us) = (at.0 / 1_000_000, at.0 % 1_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{us:06}Z")
}

/// The reverse, of UTC, with any number of digits after the second. What is less than a microsecond
/// is cut off.
pub(super) fn parsed(text: &str) -> Option<Timestamp> {
    let text = text.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let mut clock = clock.splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let days = days(date.next()??, date.next()??, date.next()??)?;
    let seconds = clock.next()?? * 3600 + clock.next()?? * 60 + clock.next()??;
    let digits: String = fraction.chars().chain("000000".chars()).take(6).collect();
    Some(Timestamp(
        (days * 86_400 + seconds) * 1_000_000 + digits.parse::<u64>().ok()?,
    ))
}

/// Year, month and day of a number of days since 1970. (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms".)
fn civil(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// The reverse.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_date =
        (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date {
        return None;
    }
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    Some(era * 146_097 + of_era - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_a_token_and_comes_back() {
        for text in ["a", "mail-7_x", "a.b", "*", ">", "ä 漢\n%41", ""] {
            let token = encoded(text);
            assert!(
                token
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_%".contains(&b))
            );
            assert_eq!(decoded(&token).as_deref(), Some(text));
        }
        for wrong in ["%", "%4", "%zz", "%FF"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_come_back() {
        assert_eq!(rfc3339(Timestamp(0)), "1970-01-01T00:00:00.000000Z");
        let leap = Timestamp(951_782_400_000_001);
        assert_eq!(rfc3339(leap), "2000-02-29T00:00:00.000001Z");
        for day in 0..60_000 {
            let at = Timestamp((day * 86_400 + day) * 1_000_000 + day);
            assert_eq!(parsed(&rfc3339(at)), Some(at));
        }
        let said = parsed("2026-11-22T17:02:04.259713856Z");
        assert_eq!(
            said.map(rfc3339).as_deref(),
            Some("2026-11-22T17:02:04.259713Z")
        );
        assert_eq!(
            parsed("2026-11-22T17:02:04Z").map(|at| at.0 % 1_000_000),
            Some(0)
        );
        for wrong in [
            "",
            "Z",
            "2026-13-01T00:00:00Z",
            "2026-11-22T17:02Z",
            "1-1-1T1:1:1Z",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
