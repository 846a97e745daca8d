//! The file that a tool reads, and how much of it was read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const TEMPLATE: &str = "{bar:40} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";

/// A file that is read. On a terminal, a bar on standard error shows how much of it.
#[derive(Debug)]
pub(super) struct Source {
    file: File,
    bar: ProgressBar,
}

impl Source {
    pub(super) fn open(path: &Path, shows_progress: bool) -> io::Result<Self> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        // Standard error that is no terminal hides it by itself.
        let target = match shows_progress {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(len), target);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        Ok(Self { file, bar })
    }
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.bar.inc(read as u64);
        Ok(read)
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
