//! A file of the log's folder, which is read or written from its beginning to its end.

use std::io::{self, Read, Write};

use tidewheel_log::File;

/// A file, and the place that comes next.
#[derive(Debug)]
pub(super) struct InOrder<F> {
    pub(super) file: F,
    at: u64,
}

impl<F: File> InOrder<F> {
    pub(super) fn new(file: F) -> Self {
        Self { file, at: 0 }
    }
}

impl<F: File> Read for InOrder<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(self.at, into)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl<F: File> Write for InOrder<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write_at(self.at, bytes)?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
