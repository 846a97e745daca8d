//! The header of a segment, and how a segment comes to be.

use std::io;

use crate::folder::{File, Folder, write_all};
use crate::frame::{Id, part};
use crate::names::segment_name;
use crate::planted::{Fault, is_planted};

/// A header takes as much as a page, so that no later write touches it. Frames follow.
pub(crate) const HEADER: u64 = 4096;

const MAGIC: [u8; 12] = *b"tidewheellog";
const VERSION: u32 = 1;
const TEXT: usize = 80;
const CRC: usize = HEADER as usize - 4;

/// The most bytes that a caller may put into the header of a segment.
pub const MAX_TEXT: usize = CRC - TEXT;

/// The header of a segment.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) number: u64,
    pub(crate) id: Id,
    /// The id of the segment in front.
    pub(crate) previous: Id,
    /// How much of that segment was on disk when this one was made.
    pub(crate) length: u64,
    /// Whether that is all of it. If not, what was written behind `length` may be lost: nothing of
    /// this segment is applied after it.
    pub(crate) is_all: bool,
    /// The caller's bytes.
    pub(crate) text: Vec<u8>,
}

/// Why bytes are no header.
#[derive(Debug)]
pub(crate) enum NoHeader {
    Magic,
    Version(u32),
    Crc,
}

impl Header {
    /// The header of a segment that follows none.
    pub(crate) fn first<D: Folder>(folder: &D, number: u64, text: &[u8]) -> Self {
        Self {
            number,
            id: Id(folder.random()),
            previous: Id([0; 16]),
            length: 0,
            is_all: true,
            text: text.to_owned(),
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEADER as usize];
        bytes[..12].copy_from_slice(&MAGIC);
        bytes[12..16].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.id.0);
        bytes[40..56].copy_from_slice(&self.previous.0);
        bytes[56..64].copy_from_slice(&self.length.to_le_bytes());
        bytes[64] = u8::from(self.is_all);
        bytes[72..80].copy_from_slice(&(self.text.len() as u64).to_le_bytes());
        bytes[TEXT..TEXT + self.text.len()].copy_from_slice(&self.text);
        let crc = crc32c::crc32c(&bytes[..CRC]);
        bytes[CRC..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, NoHeader> {
        if !bytes.starts_with(&MAGIC) {
            return Err(NoHeader::Magic);
        }
        if bytes.len() != HEADER as usize {
            return Err(NoHeader::Crc);
        }
        match u32::from_le_bytes(part(bytes, 12)) {
            VERSION => {}
            version => return Err(NoHeader::Version(version)),
        }
        let length = u64::from_le_bytes(part(bytes, 72));
        let text = usize::try_from(length)
            .ok()
            .and_then(|length| bytes[TEXT..CRC].get(..length));
        match text {
            Some(text) if crc(bytes) == crc32c::crc32c(&bytes[..CRC]) => Ok(Self {
                number: u64::from_le_bytes(part(bytes, 16)),
                id: Id(part(bytes, 24)),
                previous: Id(part(bytes, 40)),
                length: u64::from_le_bytes(part(bytes, 56)),
                is_all: bytes[64] == 1,
                text: text.to_owned(),
            }),
            _ => Err(NoHeader::Crc),
        }
    }

    /// The CRC that the first frame follows.
    pub(crate) fn crc(&self) -> u32 {
        crc(&self.bytes())
    }

    /// Makes the segment. It is on disk then, with its name.
    ///
    /// After an error there may be a segment without frames, which recovery ignores.
    pub(crate) fn create<D: Folder>(&self, folder: &D) -> io::Result<D::File> {
        let name = segment_name(self.number);
        match folder.remove(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = folder.create_new(&name)?;
        let written = write_all(&file, 0, &self.bytes()).and_then(|()| file.sync_data());
        let named = written.and_then(|()| match is_planted(Fault::SegmentNameNotSynced) {
            true => Ok(()),
            false => folder.sync(),
        });
        if named.is_err() {
            let _ = folder.remove(&name);
        }
        named.map(|()| file)
    }
}

fn crc(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(part(bytes, CRC))
}
