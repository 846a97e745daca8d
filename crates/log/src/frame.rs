//! One frame: a payload, and what tells that it is whole and in its place.

use crate::planted::{Fault, is_planted};

/// Frames begin at multiples of this.
pub(crate) const ALIGN: u64 = 8;
/// What stands in front of a payload.
pub(crate) const HEAD: usize = 56;

/// Where the CRC's own bytes end, and what it covers begins.
const COVERED: usize = 12;

/// When a frame's payload was made. The log only keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Engine time.
    pub tick: u64,
    /// Wall time.
    pub wall_ms: i64,
    /// Microseconds since the machine was started.
    pub boot_us: u64,
}

/// The random name of a segment. Whoever does not know it cannot write a payload that looks like a
/// frame of that segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id(pub(crate) [u8; 16]);

impl Id {
    /// What each frame of the segment begins with.
    pub(crate) fn marker(self) -> [u8; 8] {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        [a, b, c, d, e, f, g, h]
    }

    /// What the CRCs of its frames begin with.
    fn seed(self) -> u32 {
        crc32c::crc32c(&self.0)
    }
}

/// What stands in front of a payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) crc: u32,
    /// The CRC of the frame in front, or of the segment's header.
    pub(crate) previous: u32,
    /// Bytes of the payload.
    pub(crate) length: u64,
    /// How far the segment was on disk when the frame was written.
    pub(crate) synced: u64,
    pub(crate) moment: Moment,
}

impl Head {
    /// The head of a frame that is written at `offset`.
    pub(crate) fn of(
        id: Id,
        offset: u64,
        previous: u32,
        synced: u64,
        moment: Moment,
        payload: &[u8],
    ) -> Self {
        let length = payload.len() as u64;
        let mut head = Self {
            crc: 0,
            previous,
            length,
            synced,
            moment,
        };
        let crc = head_crc(id, offset, &head.bytes(id));
        let crc = crc32c::crc32c_append(crc, payload);
        head.crc = crc32c::crc32c_append(crc, padding(length));
        head
    }

    pub(crate) fn bytes(&self, id: Id) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..8].copy_from_slice(&id.marker());
        bytes[8..12].copy_from_slice(&self.crc.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.previous.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.length.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.synced.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.moment.tick.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.moment.wall_ms.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.moment.boot_us.to_le_bytes());
        bytes
    }

    /// Reads a head. `None` if it does not begin with the segment's marker.
    pub(crate) fn read(id: Id, bytes: &[u8]) -> Option<Self> {
        let head: &[u8; HEAD] = bytes.first_chunk()?;
        (head[..8] == id.marker()).then(|| Self {
            crc: u32::from_le_bytes(part(head, 8)),
            previous: u32::from_le_bytes(part(head, 12)),
            length: u64::from_le_bytes(part(head, 16)),
            synced: u64::from_le_bytes(part(head, 24)),
            moment: Moment {
                tick: u64::from_le_bytes(part(head, 32)),
                wall_ms: i64::from_le_bytes(part(head, 40)),
                boot_us: u64::from_le_bytes(part(head, 48)),
            },
        })
    }

    /// Bytes of the whole frame. `None` if no file is that long.
    pub(crate) fn frame_len(&self) -> Option<u64> {
        (self.length.checked_add(HEAD as u64)?).checked_next_multiple_of(ALIGN)
    }

    /// Whether these bytes are the frame that was written at this place.
    pub(crate) fn fits(&self, id: Id, offset: u64, frame: &[u8]) -> bool {
        let Some((head, rest)) = frame.split_first_chunk::<HEAD>() else {
            return false;
        };
        is_planted(Fault::NoChecksum)
            || crc32c::crc32c_append(head_crc(id, offset, head), rest) == self.crc
    }
}

/// The zeros behind a payload.
pub(crate) fn padding(length: u64) -> &'static [u8] {
    let padded = length.next_multiple_of(ALIGN);
    &[0; ALIGN as usize][..(padded - length) as usize]
}

/// The CRC of everything in front of the payload but itself. It begins with the segment's id and
/// the frame's place: a frame fits nowhere else, be it in a payload that is a copy of a segment.
fn head_crc(id: Id, offset: u64, head: &[u8; HEAD]) -> u32 {
    let crc = crc32c::crc32c_append(id.seed(), &offset.to_le_bytes());
    crc32c::crc32c_append(crc, &head[COVERED..])
}

/// Some bytes of a head or header. The places are constants within it.
pub(crate) fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}
