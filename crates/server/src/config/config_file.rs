//! The file that the server was started with.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::file::{FileSettings, read, text_of};

/// The file that the server was started with.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    /// The keys that flags or the environment have set.
    given: BTreeSet<&'static str>,
    /// What it said when it was read or written last. Who reads or writes it holds the lock.
    pub(crate) said: Mutex<FileSettings>,
}

impl ConfigFile {
    pub(crate) fn new(path: &Path, given: BTreeSet<&'static str>, said: FileSettings) -> Self {
        Self {
            // The program stays in its folder, but who reads the path may be in another.
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            given,
            said: Mutex::new(said),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it again.
    ///
    /// # Errors
    ///
    /// With all that is wrong.
    pub(crate) fn read(&self) -> Result<FileSettings, Vec<String>> {
        let text = self.text().map_err(|why| vec![why.to_string()])?;
        // So is a file that somebody has begun to write. It would take the password away.
        match text.trim().is_empty() {
            true => Err(vec!["it is empty".to_owned()]),
            false => read(&text),
        }
    }

    /// Returns its text. What is no file, such as a pipe, has been read to its end at the start.
    pub(crate) fn text(&self) -> io::Result<String> {
        match std::fs::metadata(&self.path)?.is_file() {
            true => text_of(&self.path),
            false => Err(io::Error::other("it is not a file")),
        }
    }

    /// Returns true if a flag or the environment has set this key: then the file did not.
    pub(crate) fn is_overruled(&self, key: &str) -> bool {
        self.given.contains(key)
    }
}
