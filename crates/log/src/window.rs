//! A part of a file in memory, for those who read it from its beginning to its end.

use std::io;

use crate::folder::File;

/// How much is read at once, unless a frame is longer.
const CHUNK: u64 = 256 * 1024;

/// A part of a file in memory.
#[derive(Debug)]
pub(crate) struct Window<F> {
    file: F,
    /// Of the file, when it was opened.
    len: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl<F: File> Window<F> {
    pub(crate) fn new(file: F) -> io::Result<Self> {
        Ok(Self {
            len: file.len()?,
            file,
            start: 0,
            bytes: Vec::new(),
        })
    }

    /// Bytes of the file.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn file(&self) -> &F {
        &self.file
    }

    /// The bytes at a place. All of them must be within the file.
    pub(crate) fn get(&mut self, offset: u64, length: u64) -> io::Result<&[u8]> {
        let end = offset.checked_add(length).filter(|&end| end <= self.len);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        if offset < self.start || end > self.start + self.bytes.len() as u64 {
            self.read(offset, length.max(CHUNK).min(self.len - offset))?;
        }
        let from = (offset - self.start) as usize;
        (self.bytes.get(from..from + length as usize))
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn read(&mut self, offset: u64, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        if length <= CHUNK as usize {
            // The memory of a long frame is not kept.
            self.bytes.shrink_to(CHUNK as usize);
        }
        self.start = offset;
        self.bytes.truncate(length);
        let more = length - self.bytes.len();
        if self.bytes.try_reserve_exact(more).is_err() {
            self.bytes.clear();
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.resize(length, 0);
        let mut filled = 0;
        while filled < length {
            match (self.file).read_at(offset + filled as u64, &mut self.bytes[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.bytes.clear();
                    return Err(error);
                }
            }
        }
        self.bytes.truncate(filled);
        Ok(())
    }
}
