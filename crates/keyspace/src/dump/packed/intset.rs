//! Intsets: sets of whole numbers. Width of a number, count, and the numbers in ascending order.

use super::{Element, Malformed, signed};
use crate::dump::reader::PayloadReader;

const HEADER: usize = 8;

pub(in crate::dump) fn read(
    bytes: &[u8],
) -> Result<impl Iterator<Item = Result<Element<'_>, Malformed>>, Malformed> {
    let mut reader = PayloadReader::new(bytes);
    let width = u32::from_le_bytes(reader.array()?) as usize;
    let number = u32::from_le_bytes(reader.array()?) as usize;
    let numbers = reader.rest();
    if !matches!(width, 2 | 4 | 8) || number.checked_mul(width) != Some(numbers.len()) {
        return Err(Malformed);
    }
    let mut last = None;
    Ok(numbers.chunks_exact(width).map(move |bytes| {
        let number = signed(bytes);
        let ascends = last.replace(number).is_none_or(|last| last < number);
        ascends.then_some(Element::Integer(number)).ok_or(Malformed)
    }))
}

/// Ascending numbers, in the least width that has room for all.
pub(in crate::dump) fn write(numbers: &[i64]) -> Vec<u8> {
    let ends = numbers.first().into_iter().chain(numbers.last());
    let widths = ends.map(|number| match *number {
        -0x8000..0x8000 => 2,
        -0x8000_0000..0x8000_0000 => 4,
        _ => 8,
    });
    let width = widths.max().unwrap_or(2);
    let mut bytes = Vec::with_capacity(HEADER + width * numbers.len());
    bytes.extend_from_slice(&(width as u32).to_le_bytes());
    bytes.extend_from_slice(&(numbers.len() as u32).to_le_bytes());
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes()[..width]);
    }
    bytes
}
