//! Writes lengths and strings of a payload.

use tidewheel_resp::parse_i64;

use super::envelope::seal;
use crate::time::Now;

/// Writes values; has the bytes so far, of a payload the type first.
#[derive(Debug)]
pub(crate) struct Writer(Vec<u8>);

/// Room for lengths, version and checksum.
const AROUND: usize = 32;

/// The most digits of a number that is written in four bytes.
const INTEGER_DIGITS_MAX: usize = 11;

impl Writer {
    /// Nothing yet.
    pub(crate) fn empty() -> Self {
        Self(Vec::new())
    }

    /// Makes room for that many bytes, and what stands around them.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.0.reserve(bytes + AROUND);
    }

    /// Begins a value: its type.
    pub(crate) fn kind(&mut self, kind: u8) {
        self.0.push(kind);
    }

    /// The bytes so far.
    pub(crate) fn written(&self) -> &[u8] {
        &self.0
    }

    /// Begins anew, in the same memory.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The whole payload.
    pub(super) fn seal(self, version: u16) -> Vec<u8> {
        seal(self.0, version)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// A deadline as wall time; 0 is none.
    pub(crate) fn deadline(&mut self, deadline: Option<u64>, now: &Now) {
        let wall_ms = deadline.map_or(0, |deadline| now.wall_of(deadline).max(1));
        self.bytes(&wall_ms.to_le_bytes());
    }

    /// Leaves room for a number that is not known yet. Returns where.
    pub(super) fn number_later(&mut self) -> usize {
        self.0.push(0x80);
        self.0.extend_from_slice(&[0; 4]);
        self.0.len()
    }

    /// Writes the number into the room that was left.
    pub(super) fn number_at(&mut self, end: usize, number: u32) {
        self.0[end - 4..end].copy_from_slice(&number.to_be_bytes());
    }

    /// A string; a whole number of 32 bits as such.
    pub(crate) fn string(&mut self, bytes: &[u8]) {
        let short = bytes.len() <= INTEGER_DIGITS_MAX;
        let integer = short.then(|| parse_i64(bytes)).flatten();
        match integer.and_then(|number| i32::try_from(number).ok()) {
            Some(number) => self.integer(number),
            None => {
                self.number(bytes.len() as u64);
                self.0.extend_from_slice(bytes);
            }
        }
    }

    pub(crate) fn number(&mut self, number: u64) {
        let first = |mark: u8, high: u64| mark | high as u8;
        match number {
            0..0x40 => self.0.push(number as u8),
            0x40..0x4000 => self.0.extend([first(0x40, number >> 8), number as u8]),
            0x4000..0x1_0000_0000 => {
                self.0.push(0x80);
                self.0.extend_from_slice(&(number as u32).to_be_bytes());
            }
            _ => {
                self.0.push(0x81);
                self.0.extend_from_slice(&number.to_be_bytes());
            }
        }
    }

    fn integer(&mut self, number: i32) {
        if let Ok(number) = i8::try_from(number) {
            self.0.extend([0xc0, number as u8]);
        } else if let Ok(number) = i16::try_from(number) {
            self.0.push(0xc1);
            self.0.extend_from_slice(&number.to_le_bytes());
        } else {
            self.0.push(0xc2);
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }
}
