//! A job as the bytes of one row, with a checksum of its own.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | checksum of all that follows, seeded with the job's id |
//! | 8 | due time in microseconds since 1970 |
//! | 4, 4 | lengths of the rare part and of the key |
//! | … | the rare part: empty, or see [`encode`] |
//! | … | the key, and then the value |

use std::time::{Duration, SystemTime};

use twox_hash::XxHash3_64;

use crate::core::routine::CatchUp;
use crate::durable::journal::{Place, Repeat, Status};
use crate::durable::stored::Stored;

/// Bytes before the rare part.
const FRONT: usize = 24;

/// The parts of a whole record.
pub(super) struct Parts<'a> {
    due_us: u64,
    rare: &'a [u8],
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
}

impl Parts<'_> {
    /// `None` if it is none that this program knows.
    pub(super) fn status(&self) -> Option<Status> {
        decode(self.due_us, self.rare)
    }
}

/// The bytes of a job.
pub(super) fn write<K: Stored, V: Stored>(id: u64, key: &K, value: &V, status: &Status) -> Vec<u8> {
    let mut tail = Vec::new();
    key.write(&mut tail);
    let key_len = tail.len();
    value.write(&mut tail);
    let (key, value) = tail.split_at(key_len);
    join(id, status, key, value)
}

/// The same job with another status. `None` if the old record is damaged: it must not get a right
/// checksum.
pub(super) fn with_status(id: u64, old: &[u8], status: &Status) -> Option<Vec<u8>> {
    let Parts { key, value, .. } = read(id, old)?;
    Some(join(id, status, key, value))
}

/// The parts of a record. `None` if it is damaged, or another job's.
pub(super) fn read(id: u64, record: &[u8]) -> Option<Parts<'_>> {
    let (checksum, rest) = record.split_first_chunk()?;
    if XxHash3_64::oneshot_with_seed(id, rest) != u64::from_le_bytes(*checksum) {
        return None;
    }
    split(record)
}

/// The key of a record that is damaged, if there is one: it may be what is damaged.
pub(super) fn key_of_damaged(record: &[u8]) -> &[u8] {
    split(record).map_or(&[], |parts| parts.key)
}

fn split(record: &[u8]) -> Option<Parts<'_>> {
    let (_checksum, rest) = record.split_first_chunk::<8>()?;
    let (due_us, rest) = rest.split_first_chunk()?;
    let (rare_len, rest) = rest.split_first_chunk()?;
    let (key_len, rest) = rest.split_first_chunk()?;
    let (rare, rest) = rest.split_at_checked(u32::from_le_bytes(*rare_len) as usize)?;
    let (key, value) = rest.split_at_checked(u32::from_le_bytes(*key_len) as usize)?;
    let due_us = u64::from_le_bytes(*due_us);
    Some(Parts {
        due_us,
        rare,
        key,
        value,
    })
}

fn join(id: u64, status: &Status, key: &[u8], value: &[u8]) -> Vec<u8> {
    let rare = encode(status);
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
    let mut record = Vec::with_capacity(FRONT + rare.len() + key.len() + value.len());
    record.extend([0; 8]);
    record.extend(micros(status.due).to_le_bytes());
    record.extend(length(&rare));
    record.extend(length(key));
    record.extend(rare);
    record.extend(key);
    record.extend(value);
    let checksum = XxHash3_64::oneshot_with_seed(id, &record[8..]);
    record[..8].copy_from_slice(&checksum.to_le_bytes());
    record
}

/// The bytes of a status that is not the usual one: where it waits (1), attempt (4), period in
/// milliseconds or 0 (8), what is done about missed runs (1 and 4), whether there is an error (1),
/// and its text. None for the usual one.
fn encode(status: &Status) -> Vec<u8> {
    if *status == Status::at(status.due) {
        return Vec::new();
    }
    let place: u8 = match status.place {
        Place::Keyed => 0,
        Place::Unkeyed => 1,
        Place::Dead => 2,
    };
    let (period_ms, catch_up) = status.repeat.map_or((0, CatchUp::Skip), |repeat| {
        let ms = u64::try_from(repeat.period.as_millis()).unwrap_or(u64::MAX);
        (ms.max(1), repeat.catch_up)
    });
    let (kind, most): (u8, u32) = match catch_up {
        CatchUp::Skip => (0, 0),
        CatchUp::Burst(most) => (1, most),
        CatchUp::Delay => (2, 0),
    };
    let mut bytes = vec![place];
    bytes.extend(status.attempt.to_le_bytes());
    bytes.extend(period_ms.to_le_bytes());
    bytes.push(kind);
    bytes.extend(most.to_le_bytes());
    bytes.push(u8::from(status.error.is_some()));
    bytes.extend(status.error.as_deref().unwrap_or_default().as_bytes());
    bytes
}

fn decode(due_us: u64, mut rare: &[u8]) -> Option<Status> {
    let due = SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(due_us));
    let mut status = Status::at(due?);
    if rare.is_empty() {
        return Some(status);
    }
    status.place = match byte(&mut rare)? {
        0 => Place::Keyed,
        1 => Place::Unkeyed,
        2 => Place::Dead,
        _ => return None,
    };
    status.attempt = u32::from_le_bytes(*front(&mut rare)?);
    let period_ms = u64::from_le_bytes(*front(&mut rare)?);
    let kind = byte(&mut rare)?;
    let most = u32::from_le_bytes(*front(&mut rare)?);
    let catch_up = match kind {
        0 => CatchUp::Skip,
        1 => CatchUp::Burst(most),
        2 => CatchUp::Delay,
        _ => return None,
    };
    let period = Duration::from_millis(period_ms);
    status.repeat = (period_ms > 0).then(|| Repeat::every(period, catch_up));
    let has_error = byte(&mut rare)? == 1;
    let text = std::str::from_utf8(rare).ok()?;
    status.error = has_error.then(|| text.to_owned());
    Some(status)
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    front(bytes).map(|[byte]| *byte)
}

/// Takes so many bytes off the front.
fn front<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (front, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(front)
}

/// Microseconds since 1970, rounded up: nothing runs early after a restart either.
fn micros(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    u64::try_from(nanos.div_ceil(1000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_comes_back_and_what_is_cut_off_does_not() {
        let due = SystemTime::UNIX_EPOCH + Duration::from_micros(7);
        assert_eq!(decode(7, &encode(&Status::at(due))), Some(Status::at(due)));
        for place in [Place::Keyed, Place::Unkeyed, Place::Dead] {
            for catch_up in [CatchUp::Skip, CatchUp::Burst(9), CatchUp::Delay] {
                let status = Status {
                    attempt: 3,
                    error: Some("ä".to_owned()),
                    place,
                    repeat: Some(Repeat::every(Duration::from_millis(250), catch_up)),
                    ..Status::at(due)
                };
                let bytes = encode(&status);
                assert_eq!(decode(7, &bytes), Some(status));
                for end in 1..19 {
                    assert_eq!(decode(7, &bytes[..end]), None);
                }
            }
        }
        assert_eq!(decode(7, &[9; 30]), None);
    }

    #[test]
    fn no_byte_of_a_record_can_change_unnoticed() {
        let due = SystemTime::UNIX_EPOCH + Duration::from_micros(7);
        let status = Status {
            error: Some("no answer".to_owned()),
            ..Status::at(due)
        };
        let record = write(5, &"key".to_owned(), &"value".to_owned(), &status);
        let parts = read(5, &record).expect("whole");
        assert_eq!((parts.key, parts.value), (&b"key"[..], &b"value"[..]));
        assert_eq!(parts.status(), Some(status));
        assert!(read(6, &record).is_none(), "another job's");
        for at in 0..record.len() {
            for bit in 0..8 {
                let mut damaged = record.clone();
                damaged[at] ^= 1 << bit;
                assert!(read(5, &damaged).is_none());
                assert!(with_status(5, &damaged, &Status::at(due)).is_none());
                key_of_damaged(&damaged);
            }
            assert!(read(5, &record[..at]).is_none());
        }
    }
}
