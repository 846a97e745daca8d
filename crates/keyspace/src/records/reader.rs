//! Reads records. It trusts no length.

use std::fmt;

use super::{COMMAND, GROUP, WHEN, When};
use crate::time::Time;

/// The bytes are no records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DamagedRecords {
    /// The position of the first byte that makes no sense.
    pub at: usize,
}

impl fmt::Display for DamagedRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no record begins at byte {}", self.at)
    }
}

impl std::error::Error for DamagedRecords {}

/// One record: a command that has changed data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<'a> {
    when: When,
    words: Vec<&'a [u8]>,
    is_last_of_group: bool,
}

impl<'a> Record<'a> {
    /// The database in which it ran.
    #[must_use]
    pub fn db(&self) -> u32 {
        self.when.db
    }

    /// The command's words.
    #[must_use]
    pub fn words(&self) -> &[&'a [u8]] {
        &self.words
    }

    /// True if what came before it can be seen without it no longer: it is alone, or the last of
    /// those that are one.
    #[must_use]
    pub fn ends_group(&self) -> bool {
        self.is_last_of_group
    }

    /// The time at which it ran, for a clock that shows engine time.
    #[must_use]
    pub fn time(&self) -> Time {
        let When {
            tick,
            micros,
            wall_ms,
            ..
        } = self.when;
        Time {
            tick,
            micros: micros.into(),
            wall_offset_ms: wall_ms.saturating_sub_unsigned(tick),
        }
    }
}

/// Reads records one after another. After an error it ends.
#[derive(Debug)]
pub struct RecordReader<'a> {
    bytes: &'a [u8],
    at: usize,
    when: Option<When>,
    /// The end of the group that is being read.
    group: Option<usize>,
}

impl<'a> RecordReader<'a> {
    /// A reader of what was [taken](crate::Keyspace::take_records) at once.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            when: None,
            group: None,
        }
    }

    fn read(&mut self) -> Option<Record<'a>> {
        loop {
            match self.take(1)?[0] {
                WHEN => self.when = Some(self.moment()?),
                GROUP if self.group.is_none() => {
                    let len = self.length()?;
                    self.group = Some(self.at + len);
                }
                COMMAND => return self.command(),
                _ => return None,
            }
        }
    }

    fn moment(&mut self) -> Option<When> {
        Some(When {
            tick: u64::from_le_bytes(self.array()?),
            micros: u16::from_le_bytes(self.array()?),
            wall_ms: i64::from_le_bytes(self.array()?),
            db: u32::try_from(self.number()?).ok()?,
        })
    }

    fn command(&mut self) -> Option<Record<'a>> {
        let when = self.when?;
        // Each word takes a byte at least.
        let n = self.length()?;
        let mut words = Vec::with_capacity(n);
        for _ in 0..n {
            let len = self.length()?;
            words.push(self.take(len)?);
        }
        if self.group.is_some_and(|end| self.at > end) {
            return None;
        }
        self.group = self.group.filter(|end| self.at < *end);
        Some(Record {
            when,
            words,
            is_last_of_group: self.group.is_none(),
        })
    }

    /// A number of bytes that are there.
    fn length(&mut self) -> Option<usize> {
        let number = usize::try_from(self.number()?).ok()?;
        (number <= self.bytes.len() - self.at).then_some(number)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(n)?)?;
        self.at += n;
        Some(taken)
    }
}

impl<'a> Iterator for RecordReader<'a> {
    type Item = Result<Record<'a>, DamagedRecords>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.bytes.len() {
            return None;
        }
        let at = self.at;
        let record = self.read().ok_or(DamagedRecords { at });
        if record.is_err() {
            self.at = self.bytes.len();
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Encoder;
    use super::*;
    use crate::time::Now;

    fn now(tick: u64, micros: u32) -> Now {
        let time = Time {
            tick,
            micros,
            wall_offset_ms: 5,
        };
        Now {
            tick,
            micros: micros.into(),
            time,
        }
    }

    fn words<'w>(of: &[&'w str]) -> std::vec::IntoIter<&'w [u8]> {
        let words: Vec<_> = of.iter().map(|word| word.as_bytes()).collect();
        words.into_iter()
    }

    fn show(bytes: &[u8]) -> Vec<String> {
        let show = |record: Result<Record<'_>, DamagedRecords>| match record {
            Err(damaged) => format!("damaged at {}", damaged.at),
            Ok(record) => {
                let time = record.time();
                format!(
                    "{}.{:03}+{} db{}{} {}",
                    time.tick,
                    time.micros,
                    time.wall_offset_ms,
                    record.db(),
                    if record.ends_group() { "" } else { ".." },
                    String::from_utf8_lossy(&record.words().join(&b' '))
                )
            }
        };
        RecordReader::new(bytes).map(show).collect()
    }

    #[test]
    fn records_are_read_as_they_were_written_each_at_its_time() {
        let (mut queue, mut group, mut bytes) =
            (Encoder::default(), Encoder::default(), Vec::new());
        queue.command(&now(7, 999), 0, words(&["SET", "k", "v"]));
        queue.command(&now(7, 999), 0, words(&["DEL", "k"]));
        group.command(&now(8, 0), 3, words(&["INCR", "a"]));
        group.command(&now(9, 0), 3, words(&["INCR", "b"]));
        queue.group(&group);
        queue.command(&now(9, 0), 3, words(&["SET", "", &"v".repeat(300)]));
        queue.take(&mut bytes);
        assert_eq!(
            show(&bytes),
            [
                "7.999+5 db0 SET k v",
                "7.999+5 db0 DEL k",
                "8.000+5 db3.. INCR a",
                "9.000+5 db3 INCR b",
                &format!("9.000+5 db3 SET  {}", "v".repeat(300)),
            ]
        );
        assert!(queue.is_empty());
        queue.command(&now(9, 0), 3, words(&["DEL", "k"]));
        queue.take(&mut bytes);
        assert_eq!(show(&bytes), ["9.000+5 db3 DEL k"], "it begins with a time");
    }

    #[test]
    fn a_cut_record_is_damaged_where_it_begins() {
        let (mut queue, mut bytes) = (Encoder::default(), Vec::new());
        queue.command(&now(7, 1), 0, words(&["SET", "k", "v"]));
        let first = queue.bytes().len();
        queue.command(&now(7, 1), 0, words(&["DEL", "k"]));
        queue.take(&mut bytes);
        for cut in first + 1..bytes.len() {
            let shown = show(&bytes[..cut]);
            assert_eq!(shown[1..], [format!("damaged at {first}")]);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic_or_read_on_for_ever(bytes in proptest::collection::vec(0_u8..8, 0..200)) {
            prop_assert!(RecordReader::new(&bytes).count() <= bytes.len());
        }
    }
}
