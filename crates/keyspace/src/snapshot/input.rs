//! A file that is read: its bytes are counted and summed.

use std::io::{self, Read};

use super::error::SnapshotError;
use crate::dump::Crc64;

/// Bytes that are asked for at once.
const BUFFER: usize = 64 << 10;

/// The bytes of a file.
pub(super) struct Input<'r> {
    from: &'r mut dyn Read,
    buffer: Vec<u8>,
    /// The next byte in the buffer.
    next: usize,
    /// The position of the buffer's first byte in the file.
    before: u64,
    crc: Crc64,
    /// The bytes of the buffer that are summed already.
    summed: usize,
}

impl std::fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input")
            .field("at", &self.at())
            .finish_non_exhaustive()
    }
}

impl<'r> Input<'r> {
    pub(super) fn new(from: &'r mut dyn Read) -> Self {
        Self {
            from,
            buffer: Vec::new(),
            next: 0,
            before: 0,
            crc: Crc64::default(),
            summed: 0,
        }
    }

    /// The position of the next byte.
    pub(super) fn at(&self) -> u64 {
        self.before + self.next as u64
    }

    /// The checksum of all bytes so far.
    pub(super) fn checksum(&mut self) -> u64 {
        self.sum();
        self.crc.get()
    }

    /// The next byte, which is read again.
    pub(super) fn peek(&mut self) -> Result<u8, SnapshotError> {
        Ok(self.some()?[0])
    }

    pub(super) fn byte(&mut self) -> Result<u8, SnapshotError> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let mut array = [0; N];
        let mut filled = 0;
        while filled < N {
            let there = self.some()?;
            let n = there.len().min(N - filled);
            array[filled..filled + n].copy_from_slice(&there[..n]);
            filled += n;
            self.next += n;
        }
        Ok(array)
    }

    /// Appends the next `len` bytes. A length that is not true allocates no more than there is.
    pub(super) fn append(&mut self, mut len: u64, into: &mut Vec<u8>) -> Result<(), SnapshotError> {
        while len > 0 {
            let there = self.some()?;
            let n = there.len().min(usize::try_from(len).unwrap_or(usize::MAX));
            into.extend_from_slice(&there[..n]);
            len -= n as u64;
            self.next += n;
        }
        Ok(())
    }

    /// Bytes that are there, at least one.
    fn some(&mut self) -> Result<&[u8], SnapshotError> {
        if self.next == self.buffer.len() {
            self.sum();
            self.before += self.next as u64;
            (self.next, self.summed) = (0, 0);
            self.buffer.resize(BUFFER, 0);
            let read = self.read();
            self.buffer.truncate(*read.as_ref().unwrap_or(&0));
            let at = self.before;
            match read {
                Ok(0) => return Err(SnapshotError::Ends { at }),
                Ok(_) => {}
                Err(why) => return Err(SnapshotError::Io { why, at }),
            }
        }
        Ok(&self.buffer[self.next..])
    }

    fn read(&mut self) -> io::Result<usize> {
        loop {
            match self.from.read(&mut self.buffer) {
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    fn sum(&mut self) {
        self.crc.add(&self.buffer[self.summed..self.next]);
        self.summed = self.next;
    }
}
