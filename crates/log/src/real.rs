//! A folder of the operating system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::folder::{self, Folder};
use crate::names::LOCK;

/// A folder of the operating system.
#[derive(Clone, Debug)]
pub struct RealFolder {
    path: PathBuf,
    /// Files are opened to be read, and not to be written.
    only_reads: bool,
}

impl RealFolder {
    /// The folder at this path. Makes it if it is not there.
    ///
    /// # Errors
    ///
    /// If it cannot be made, or its name cannot be brought to disk.
    pub fn new(path: &Path) -> io::Result<Self> {
        if !path.is_dir() {
            let parent = match path.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            if !parent.is_dir() {
                Self::new(parent)?;
            }
            fs::create_dir(path)?;
            File::open(parent)?.sync_all()?;
        }
        Ok(Self {
            path: path.to_owned(),
            only_reads: false,
        })
    }

    /// Takes a file of the folder for this process, and makes it if it is not there. Who drops it
    /// gives it back, and so does the system when the process ends.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if somebody has it.
    pub fn lock_file(&self, name: &str) -> io::Result<File> {
        let lock = match self.create_new(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.open(name)?.file,
            created => created?.file,
        };
        match lock.try_lock() {
            Ok(()) => Ok(lock),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The folder at this path, for [`LogReader`](crate::LogReader): it needs no right to write
    /// there. Nothing is made if it is not there.
    pub fn read_only(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            only_reads: true,
        }
    }
}

impl Folder for RealFolder {
    type File = RealFile;
    type Lock = File;

    fn lock(&self) -> io::Result<File> {
        self.lock_file(LOCK)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // Our names are text.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn create_new(&self, name: &str) -> io::Result<RealFile> {
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)?;
        Ok(RealFile { file, path })
    }

    fn open(&self, name: &str) -> io::Result<RealFile> {
        let path = self.path.join(name);
        // To open a pipe would wait for who is at its other end, and a link leads out of the
        // folder.
        if !fs::symlink_metadata(&path)?.is_file() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is no regular file",
            ));
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(!self.only_reads).open(&path)?;
        Ok(RealFile { file, path })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn random(&self) -> [u8; 16] {
        // Each hasher has keys of its own, made of the system's random numbers.
        let half = || RandomState::new().hash_one(0_u8).to_le_bytes();
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&half());
        bytes[8..].copy_from_slice(&half());
        bytes
    }
}

/// A file of a folder of the operating system.
#[derive(Debug)]
pub struct RealFile {
    file: File,
    /// Where it is, as far as we know.
    path: PathBuf,
}

impl folder::File for RealFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(&self.file, into, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        FileExt::write_at(&self.file, bytes, offset)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()?;
        // Somebody may have removed it: the disk gives its room back when it is closed. Or its
        // folder was moved: the next start does not find it. Numbers of files are not compared,
        // since not every file system keeps them.
        let is_there = self.file.metadata()?.nlink() > 0 && fs::exists(&self.path).unwrap_or(true);
        match is_there {
            true => Ok(()),
            false => Err(io::Error::new(
                io::ErrorKind::NotFound,
                "a file that is written was removed, or its folder was moved",
            )),
        }
    }
}
