//! Bits in strings of bytes. Bit 0 is the highest bit of the first byte.

mod combine;
mod field;
mod patch;
mod scan;

pub(crate) use self::combine::BitOp;
pub(crate) use self::field::{Field, OnOverflow};
pub(crate) use self::patch::Patch;
pub(crate) use self::scan::{count, find};
