//! Replaces a file as a whole: after a crash there is the old one or the new one.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// Replaces a file by one with these bytes.
pub(crate) fn replace_file(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    let path = path.as_ref();
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let written = File::create_new(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    });
    if let Err(why) = written {
        // The error that counts is the first one.
        let _ = std::fs::remove_file(&beside);
        return Err(why);
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
