//! What the log asks of a file system.

use std::io;

/// A folder that holds a log's files.
///
/// A name that was created, renamed or removed is on disk after the next [`sync`](Self::sync), and
/// may be there or not until then.
pub trait Folder {
    /// An open file. It stays usable when its name is gone.
    type File: File;

    /// Held while nobody else may use the folder. Its drop gives the folder back.
    type Lock;

    /// Takes the folder for this process.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if somebody has it.
    fn lock(&self) -> io::Result<Self::Lock>;

    /// The names of all files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates a file to read and to write.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if the name is taken, be it by a link that leads nowhere.
    fn create_new(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file to read and to write.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Gives a file another name. Who has that name loses it at the same instant.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a name.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns when all names are on disk as they are now.
    fn sync(&self) -> io::Result<()>;

    /// Bytes that nobody can guess.
    fn random(&self) -> [u8; 16];
}

/// An open file. Several threads may use it.
pub trait File: Send + Sync {
    /// How many bytes it has.
    fn len(&self) -> io::Result<u64>;

    /// True if it has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads at most so many bytes, and says how many. None are there behind the end.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Writes some of the bytes, and says how many.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Cuts the file to a length that is not greater than its own.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Returns when the file's bytes and its length are on disk. A file whose name is gone is not.
    ///
    /// After an error nothing is known of what was written since the last success, and another call
    /// may succeed although it is lost.
    fn sync_data(&self) -> io::Result<()>;
}

/// Writes all bytes, however short the writes are.
pub(crate) fn write_all<F: File>(file: &F, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(offset, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                bytes = bytes.get(written..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
