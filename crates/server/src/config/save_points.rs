//! When the server takes a snapshot by itself: after so many seconds, if so much has changed.

use std::fmt;

/// Pairs of seconds and changes; none: never by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavePoints(Vec<(u64, u64)>);

const INVALID: &str = "Invalid save parameters";

impl Default for SavePoints {
    fn default() -> Self {
        Self(vec![(3600, 1), (300, 100), (60, 10_000)])
    }
}

impl SavePoints {
    /// Reads `seconds changes`, any number of times.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        if !words.len().is_multiple_of(2) {
            return Err(INVALID.to_owned());
        }
        let number = |word: &str| word.parse::<u32>().map_err(|_| INVALID.to_owned());
        let point = |two: &[&str]| match (number(two[0])?, number(two[1])?) {
            (0, _) => Err(INVALID.to_owned()),
            (seconds, changes) => Ok((seconds.into(), changes.into())),
        };
        words
            .chunks_exact(2)
            .map(point)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// True if the server keeps its data by snapshots.
    pub(crate) fn are_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// True if a snapshot is due, so long after the last one, and after so many changes.
    pub(crate) fn are_reached(&self, seconds: u64, changes: u64) -> bool {
        let mut points = self.0.iter();
        points.any(|(least_s, least)| seconds >= *least_s && changes >= *least.max(&1))
    }
}

impl fmt::Display for SavePoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (seconds, changes)) in self.0.iter().enumerate() {
            let blank = if i > 0 { " " } else { "" };
            write!(f, "{blank}{seconds} {changes}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_written_as_they_are_read() {
        for text in ["", "60 1", "3600 1 300 100 60 10000"] {
            let points = SavePoints::parse(text).expect("right");
            assert_eq!(points.to_string(), text);
        }
        assert_eq!(
            SavePoints::parse(&SavePoints::default().to_string()),
            Ok(SavePoints::default())
        );
        for text in ["60", "0 1", "60 -1", "x 1", "60 1 300"] {
            assert_eq!(SavePoints::parse(text), Err(INVALID.to_owned()), "{text}");
        }
    }

    #[test]
    fn one_of_them_is_enough_and_without_a_change_none_is() {
        let points = SavePoints::parse("60 10 10 100").expect("right");
        for (seconds, changes, reached) in [
            (60, 9, false),
            (60, 10, true),
            (10, 99, false),
            (10, 100, true),
            (9, 1000, false),
        ] {
            assert_eq!(points.are_reached(seconds, changes), reached);
        }
        let eager = SavePoints::parse("1 0").expect("right");
        assert!(!eager.are_reached(100, 0) && eager.are_reached(1, 1));
    }
}
