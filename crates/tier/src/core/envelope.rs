//! The envelope is the form in which the engine keeps a value.
//!
//! | bytes | |
//! |---|---|
//! | 1 | the mark of an envelope |
//! | 1 | its version |
//! | 1 | flags: absent, compressed |
//! | 4 | grace: for how many milliseconds before its end the value is past its soft deadline |
//! | 4 | kept: for how many milliseconds after its end it stays, for a loader that fails |
//! | 16 | the envelope's own id |
//! | 8 | the version of the namespace |
//! | 1 | how many tags |
//! | per tag: 2, n, 8 | the length of its name, its name, its version |
//! | … | what the codec wrote |
//! | 8 | the checksum of all of it |
//!
//! Numbers are big-endian. There is no point in time in it: all are lengths, counted from the end
//! that the engine keeps. Scripts read the two lengths and the id at their fixed places, and do not
//! look at the checksum.

use twox_hash::XxHash3_64;

/// The first byte.
const MARK: u8 = 0x7d;

/// The second byte.
const VERSION: u8 = 2;

const ABSENT: u8 = 1;
const COMPRESSED: u8 = 2;

/// Most tags of a value.
pub(crate) const TAGS_MAX: usize = 32;

/// The longest tag.
pub(crate) const TAG_BYTES_MAX: usize = u16::MAX as usize;

/// An envelope that was opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Envelope<'a> {
    pub(crate) is_absent: bool,
    pub(crate) is_compressed: bool,
    pub(crate) grace_ms: u32,
    pub(crate) kept_ms: u32,
    pub(crate) id: u128,
    pub(crate) space: u64,
    pub(crate) tags: Vec<(&'a str, u64)>,
    pub(crate) payload: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Writes it.
    pub(crate) fn seal(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(48 + self.payload.len());
        let flag = |is: bool, flag| if is { flag } else { 0 };
        let flags = flag(self.is_absent, ABSENT) | flag(self.is_compressed, COMPRESSED);
        out.extend_from_slice(&[MARK, VERSION, flags]);
        out.extend_from_slice(&self.grace_ms.to_be_bytes());
        out.extend_from_slice(&self.kept_ms.to_be_bytes());
        out.extend_from_slice(&self.id.to_be_bytes());
        out.extend_from_slice(&self.space.to_be_bytes());
        out.push(self.tags.len().min(TAGS_MAX) as u8);
        for (name, version) in self.tags.iter().take(TAGS_MAX) {
            let name = &name.as_bytes()[..name.len().min(TAG_BYTES_MAX)];
            out.extend_from_slice(&(name.len() as u16).to_be_bytes());
            out.extend_from_slice(name);
            out.extend_from_slice(&version.to_be_bytes());
        }
        out.extend_from_slice(self.payload);
        let checksum = XxHash3_64::oneshot(&out);
        out.extend_from_slice(&checksum.to_be_bytes());
        out
    }

    /// The id of what scripts take for an envelope, whether it is whole or not.
    pub(crate) fn id_of(bytes: &[u8]) -> Option<u128> {
        let fixed: &[u8; 36] = bytes.first_chunk()?;
        let id = fixed[11..].first_chunk()?;
        (fixed[0] == MARK).then(|| u128::from_be_bytes(*id))
    }

    /// Reads one; `None` if the bytes are none, or not as they were written.
    pub(crate) fn open(bytes: &'a [u8]) -> Option<Self> {
        let (mut rest, checksum) = bytes.split_last_chunk()?;
        if XxHash3_64::oneshot(rest) != u64::from_be_bytes(*checksum) {
            return None;
        }
        let [MARK, VERSION, flags] = take(&mut rest)? else {
            return None;
        };
        let grace_ms = u32::from_be_bytes(take(&mut rest)?);
        let kept_ms = u32::from_be_bytes(take(&mut rest)?);
        let id = u128::from_be_bytes(take(&mut rest)?);
        let space = u64::from_be_bytes(take(&mut rest)?);
        let [count] = take(&mut rest)?;
        let mut tags = Vec::new();
        for _ in 0..count {
            let length = u16::from_be_bytes(take(&mut rest)?);
            let (name, after) = rest.split_at_checked(usize::from(length))?;
            rest = after;
            let version = u64::from_be_bytes(take(&mut rest)?);
            tags.push((std::str::from_utf8(name).ok()?, version));
        }
        Some(Self {
            is_absent: flags & ABSENT != 0,
            is_compressed: flags & COMPRESSED != 0,
            grace_ms,
            kept_ms,
            id,
            space,
            tags,
            payload: rest,
        })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope<'a>(tags: Vec<(&'a str, u64)>, payload: &'a [u8]) -> Envelope<'a> {
        Envelope {
            is_absent: false,
            is_compressed: true,
            grace_ms: 7,
            kept_ms: u32::MAX,
            id: 1 << 100,
            space: 9,
            tags,
            payload,
        }
    }

    #[test]
    fn what_was_sealed_opens() {
        let sealed = envelope(vec![("a", 1), ("", u64::MAX)], b"value").seal();
        let opened = Envelope::open(&sealed).expect("an envelope");
        assert_eq!(opened, envelope(vec![("a", 1), ("", u64::MAX)], b"value"));
        assert_eq!(sealed[3..7], [0, 0, 0, 7], "where the scripts read it");
    }

    #[test]
    fn bytes_that_are_not_as_they_were_written_are_no_envelope() {
        let sealed = envelope(vec![("tag", 1)], b"value").seal();
        for length in 0..sealed.len() {
            assert_eq!(Envelope::open(&sealed[..length]), None);
            let is_taken_for_one = length >= 36;
            assert_eq!(
                Envelope::id_of(&sealed[..length]).is_some(),
                is_taken_for_one
            );
        }
        for place in 0..sealed.len() {
            for bit in 0..8 {
                let mut changed = sealed.clone();
                changed[place] ^= 1 << bit;
                assert_eq!(Envelope::open(&changed), None);
            }
        }
        assert_eq!(Envelope::id_of(&sealed), Some(1 << 100));
        let other = b"another program's value, which is as long as an envelope";
        assert_eq!(
            (Envelope::open(other), Envelope::id_of(other)),
            (None, None)
        );
        for count in [b"".as_slice(), &[MARK; 60], &[0xff; 60]] {
            let checksum = XxHash3_64::oneshot(count).to_be_bytes();
            assert_eq!(Envelope::open(&[count, &checksum].concat()), None);
        }
    }
}
