//! A record as the bytes of one row, with a checksum of its own.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | checksum of all that follows, seeded with the record's name |
//! | 4 | length of the id |
//! | … | the id, and then the value |

use std::sync::Arc;

use twox_hash::XxHash3_64;

use crate::file::journal::Record;

/// Bytes before the id.
const FRONT: usize = 12;

/// The bytes of a row.
pub(super) fn write(record: &Record) -> Vec<u8> {
    let length = u32::try_from(record.id.len()).unwrap_or(u32::MAX);
    let mut row = Vec::with_capacity(FRONT + record.id.len() + record.value.len());
    row.extend([0; 8]);
    row.extend(length.to_le_bytes());
    row.extend(record.id.as_bytes());
    row.extend(&record.value);
    let checksum = XxHash3_64::oneshot_with_seed(record.name, &row[8..]);
    row[..8].copy_from_slice(&checksum.to_le_bytes());
    row
}

/// True if a row is as it was written.
pub(super) fn is_whole(name: u64, row: &[u8]) -> bool {
    row.split_first_chunk().is_some_and(|(checksum, rest)| {
        XxHash3_64::oneshot_with_seed(name, rest) == u64::from_le_bytes(*checksum)
    })
}

/// The record of a row. `None` if it is damaged, or another one's.
pub(super) fn read(name: u64, row: &[u8]) -> Option<Record> {
    let (id, value) = split(row).filter(|_| is_whole(name, row))?;
    Some(Record {
        name,
        id: Arc::from(str::from_utf8(id).ok()?),
        value: value.to_vec(),
    })
}

/// The id in a row that is damaged, as far as it is text: it may be what is damaged.
pub(super) fn id_of_damaged(row: &[u8]) -> String {
    let id = split(row).map_or(&[][..], |(id, _)| id);
    String::from_utf8_lossy(id).into_owned()
}

fn split(row: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_checksum, rest) = row.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_of_a_row_can_change_unnoticed() {
        let record = Record {
            name: 5,
            id: Arc::from("mail-7"),
            value: b"to: you".to_vec(),
        };
        let row = write(&record);
        assert_eq!(read(5, &row), Some(record));
        assert_eq!(read(6, &row), None, "another one's");
        for at in 0..row.len() {
            for bit in 0..8 {
                let mut damaged = row.clone();
                damaged[at] ^= 1 << bit;
                assert!(!is_whole(5, &damaged));
                assert_eq!(read(5, &damaged), None);
                id_of_damaged(&damaged);
            }
            assert_eq!(read(5, &row[..at]), None);
        }
    }
}
