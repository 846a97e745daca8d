//! The value of `expired-stream`: which databases keep what expires in which stream.

use std::fmt;

use tidewheel_keyspace::ExpiredStream;

use super::value::integer;

/// The word for entries that show values.
const VALUES: &str = "values";

const FORM: &str = "write database, name and length, and 'values' if entries are to have them";

/// The streams, in the order in which they were written; no two are for one database.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ExpiredStreams(pub(crate) Vec<ExpiredStream>);

impl ExpiredStreams {
    /// Reads `database name length [values]`, any number of times.
    pub(crate) fn parse(text: &str, databases_max: u64) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace().peekable();
        let mut streams: Vec<ExpiredStream> = Vec::new();
        while let Some(db) = words.next() {
            let db = integer(db, 0, databases_max - 1).map_err(|why| format!("database: {why}"))?;
            let (Some(name), Some(len)) = (words.next(), words.next()) else {
                return Err(FORM.to_owned());
            };
            let max_len =
                integer(len, 1, i64::MAX as u64).map_err(|why| format!("length: {why}"))?;
            let values = words.next_if(|word| word.eq_ignore_ascii_case(VALUES));
            let db = db as u32;
            if streams.iter().any(|other| other.db == db) {
                return Err(format!("database {db} has two streams"));
            }
            streams.push(ExpiredStream {
                db,
                name: name.as_bytes().into(),
                max_len,
                values: values.is_some(),
            });
        }
        Ok(Self(streams))
    }
}

impl fmt::Display for ExpiredStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, stream) in self.0.iter().enumerate() {
            let gap = if i == 0 { "" } else { " " };
            let name = String::from_utf8_lossy(&stream.name);
            write!(f, "{gap}{} {name} {}", stream.db, stream.max_len)?;
            if stream.values {
                write!(f, " {VALUES}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_read_and_written_back() {
        for (text, written) in [
            ("", ""),
            ("  ", ""),
            ("0 gone 1000", "0 gone 1000"),
            ("0 gone 1000 VALUES", "0 gone 1000 values"),
            ("3 values 1 values 0 a 2", "3 values 1 values 0 a 2"),
        ] {
            let streams = ExpiredStreams::parse(text, 16).expect(text);
            assert_eq!(streams.to_string(), written);
            assert_eq!(ExpiredStreams::parse(written, 16), Ok(streams));
        }
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        for text in [
            "gone",
            "0 gone",
            "0 gone many",
            "0 gone 0",
            "0 gone -1",
            "16 gone 10",
            "-1 gone 10",
            "0 gone 10 all",
            "0 gone 10 0 other 10",
            "0 gone 10 values values",
        ] {
            assert!(ExpiredStreams::parse(text, 16).is_err(), "{text}");
        }
    }
}
