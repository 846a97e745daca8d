//! Writes records.

use super::{COMMAND, GROUP, WHEN, When};
use crate::time::Now;

/// Records in a row.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    bytes: Vec<u8>,
    /// The moment of the last one.
    when: Option<When>,
}

impl Encoder {
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends a command.
    pub(crate) fn command<'w>(
        &mut self,
        now: &Now,
        db: u32,
        words: impl ExactSizeIterator<Item = &'w [u8]>,
    ) {
        self.moment(When {
            tick: now.tick,
            micros: u16::try_from(now.micros).unwrap_or(999),
            wall_ms: now.wall_ms(),
            db,
        });
        self.bytes.push(COMMAND);
        self.number(words.len() as u64);
        for word in words {
            self.number(word.len() as u64);
            self.bytes.extend_from_slice(word);
        }
    }

    /// Appends records that are one.
    pub(super) fn group(&mut self, of: &Self) {
        self.bytes.push(GROUP);
        self.number(of.bytes.len() as u64);
        self.bytes.extend_from_slice(&of.bytes);
        self.when = of.when;
    }

    /// Appends what another one has written.
    pub(super) fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
        self.when = other.when.or(self.when);
    }

    /// Hands over what was written, and begins anew in the memory of `into`.
    pub(super) fn take(&mut self, into: &mut Vec<u8>) {
        into.clear();
        std::mem::swap(&mut self.bytes, into);
        self.when = None;
    }

    fn moment(&mut self, when: When) {
        if self.when == Some(when) {
            return;
        }
        self.when = Some(when);
        self.bytes.push(WHEN);
        self.bytes.extend_from_slice(&when.tick.to_le_bytes());
        self.bytes.extend_from_slice(&when.micros.to_le_bytes());
        self.bytes.extend_from_slice(&when.wall_ms.to_le_bytes());
        self.number(when.db.into());
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}
