//! The manifest: which base is in force, and which segments follow it.

use std::io;

use crate::error::OpenError;
use crate::folder::{File, Folder, write_all};
use crate::names::{MANIFEST, NEW_MANIFEST, base_name, base_of, number};
use crate::planted::{Fault, is_planted};
use crate::window::Window;

const FIRST_LINE: &str = "tidewheel-log manifest ";
const VERSION: u32 = 1;
/// No manifest is longer.
const MAX_LEN: u64 = 4096;

/// Which base is in force, and which segments follow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// False for a log that begins with no data.
    pub(crate) has_base: bool,
    pub(crate) first: u64,
    /// The newest one that may have frames. Those behind it have none.
    pub(crate) last: u64,
}

impl Manifest {
    /// The name of the base.
    pub(crate) fn base(&self) -> Option<String> {
        self.has_base.then(|| base_name(self.first))
    }

    /// The number in the base's name.
    pub(crate) fn base_number(&self) -> Option<u64> {
        self.has_base.then_some(self.first)
    }

    pub(crate) fn text(&self) -> String {
        let base = self.base().unwrap_or_else(|| "none".to_owned());
        let (first, last) = (self.first, self.last);
        let lines = format!("{FIRST_LINE}{VERSION}\nbase {base}\nfirst {first}\nlast {last}\n");
        format!("{lines}crc32c {:08x}\n", crc32c::crc32c(lines.as_bytes()))
    }

    /// Reads a manifest, which must be as [`text`](Self::text) writes it, to the byte.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, OpenError> {
        let damaged = |what| OpenError::damaged(MANIFEST.to_owned(), 0, what);
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is no text"))?;
        let mut lines = text.lines();
        let version = lines.next().and_then(|line| line.strip_prefix(FIRST_LINE));
        let version: u32 = (version.and_then(|version| version.parse().ok()))
            .ok_or_else(|| damaged("its first line is not that of a manifest"))?;
        if version != VERSION {
            let file = MANIFEST.to_owned();
            return Err(OpenError::UnknownVersion { file, version });
        }
        let base = lines.next().and_then(|line| line.strip_prefix("base "));
        let first = lines.next().and_then(|line| line.strip_prefix("first "));
        let last = lines.next().and_then(|line| line.strip_prefix("last "));
        let numbers = first.and_then(number).zip(last.and_then(number));
        let read = numbers.map(|(first, last)| Self {
            has_base: base.and_then(base_of).is_some(),
            first,
            last,
        });
        read.filter(|read| read.text() == text)
            .ok_or_else(|| damaged("its checksum or its lines are wrong"))
    }

    /// Reads the folder's manifest. `None` if it has none.
    pub(crate) fn load<D: Folder>(folder: &D) -> Result<Option<Self>, OpenError> {
        let io = || OpenError::io(MANIFEST);
        let file = match folder.open(MANIFEST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(io())?,
        };
        let mut window = Window::new(file).map_err(io())?;
        if window.len() > MAX_LEN {
            let what = "it is longer than any manifest";
            return Err(OpenError::damaged(MANIFEST.to_owned(), MAX_LEN, what));
        }
        let bytes = window.get(0, window.len()).map_err(io())?;
        Self::parse(bytes).map(Some)
    }

    /// Puts this manifest in force. After an error either one may be.
    ///
    /// It may be called again: each call writes a file of its own.
    pub(crate) fn store<D: Folder>(&self, folder: &D) -> io::Result<()> {
        match folder.remove(NEW_MANIFEST) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = folder.create_new(NEW_MANIFEST)?;
        write_all(&file, 0, self.text().as_bytes())?;
        if !is_planted(Fault::ManifestNotSynced) {
            file.sync_data()?;
        }
        folder.rename(NEW_MANIFEST, MANIFEST)?;
        if is_planted(Fault::ManifestNameNotSynced) {
            return Ok(());
        }
        folder.sync()
    }
}
