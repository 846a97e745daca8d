//! Reading a log that somebody else may be writing.

use std::fmt;

use crate::error::OpenError;
use crate::folder::Folder;
use crate::names::MANIFEST;
use crate::open::{Frame, Opened};

/// A log that is only read.
///
/// It does not take the folder, so the process that writes the log goes on, and nothing is changed.
/// What that process appends after this was made may be missing, and its last frame may be half
/// written: that is a torn end. If it puts a new base in force meanwhile, files that are still to
/// be read may be gone, which is an error; another reader then finds the new ones.
pub struct LogReader<D: Folder>(Opened<D>);

impl<D: Folder> LogReader<D> {
    /// Looks what is there.
    ///
    /// # Errors
    ///
    /// Those of [`Log::open`](crate::Log::open), but for [`OpenError::Locked`].
    /// [`OpenError::Missing`] if there is no log.
    pub fn new(folder: D) -> Result<Self, OpenError> {
        let opened = Opened::read(folder, None)?;
        match opened.is_new() {
            true => Err(OpenError::Missing {
                file: MANIFEST.to_owned(),
                why: "no log is here",
            }),
            false => Ok(Self(opened)),
        }
    }

    /// The name of the base, as [`Opened::base`] says it.
    pub fn base(&self) -> Option<String> {
        self.0.base()
    }

    /// The next frame, as [`Opened::next_frame`] gives it.
    ///
    /// # Errors
    ///
    /// Those of [`Opened::next_frame`].
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, OpenError> {
        self.0.next_frame()
    }

    /// The bytes of a torn end: known when all frames have been read.
    pub fn cut(&self) -> u64 {
        self.0.cut()
    }
}

impl<D: Folder + fmt::Debug> fmt::Debug for LogReader<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogReader").field(self.0.folder()).finish()
    }
}
