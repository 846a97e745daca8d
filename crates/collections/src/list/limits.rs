//! The limits of a packed list, and of a chunk of a large one: the setting
//! `list-max-listpack-size`.

use super::packed::PackedList;
use super::run::{RunSize, len_bytes};

/// Bytes for the settings −1 to −5.
const BYTES: [usize; 5] = [4096, 8192, 16_384, 32_768, 65_536];

/// The most bytes where the setting counts elements.
const SAFE_BYTES: usize = 8192;

/// Bytes that the public encoding has beside its elements.
const HEADER: usize = 7;

/// Bytes in the public encoding, if all elements are about as long: it has a length on either side
/// of each.
fn public_bytes(size: RunSize) -> usize {
    let front = match size.data / size.count.max(1) {
        0..64 => 1,
        64..4096 => 2,
        _ => 5,
    };
    let back = len_bytes(size.data / size.count.max(1) + front);
    HEADER + size.data + size.count * (front + back)
}

/// The most bytes and elements of a packed list, and of each chunk of a large one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListLimits {
    bytes: usize,
    elements: usize,
}

impl ListLimits {
    /// Reads the setting: a positive number counts elements, −1 to −5 stand for 4 to 64 KiB.
    #[must_use]
    pub fn new(setting: i64) -> Self {
        if setting >= 0 {
            return Self {
                bytes: SAFE_BYTES,
                elements: usize::try_from(setting).unwrap_or(usize::MAX).max(1),
            };
        }
        let size = setting.unsigned_abs().min(BYTES.len() as u64) as usize;
        Self {
            bytes: BYTES[size - 1],
            elements: usize::MAX,
        }
    }

    /// Returns whether a list stays packed that has `size` and gets `added`. It is measured as the
    /// public server measures it, so that the encodings have the same names.
    pub(super) fn packs(&self, size: RunSize, added: RunSize) -> bool {
        let bytes = public_bytes(size) + added.data;
        let sum = size + added;
        bytes <= self.bytes && sum.count <= self.elements && PackedList::can_count(sum)
    }

    /// Returns whether a large list of one chunk becomes packed: half of the limit, so that it does
    /// not go back at once.
    pub(super) fn packs_again(&self, size: RunSize) -> bool {
        let bytes = if self.elements < usize::MAX {
            // Half of the elements, whatever their bytes.
            HEADER + size.data <= self.bytes
        } else {
            public_bytes(size) <= self.bytes / 2
        };
        bytes && size.count <= self.elements / 2 && PackedList::can_count(size)
    }

    /// Returns whether a chunk may have this size. One element may always be alone.
    pub(super) fn holds(&self, size: RunSize) -> bool {
        size.count <= 1 || (size.bytes() <= self.bytes && size.count <= self.elements)
    }

    /// Returns whether two chunks of this size in all become one.
    pub(super) fn joins(&self, size: RunSize) -> bool {
        size.bytes() <= self.bytes / 4 * 3
            && size.count <= self.elements.div_ceil(4).saturating_mul(3)
            && self.holds(size)
    }

    /// The most bytes of a chunk of several elements.
    pub(super) fn room(&self) -> usize {
        self.bytes
    }
}

impl Default for ListLimits {
    /// The public server's: 8 KiB.
    fn default() -> Self {
        Self::new(-2)
    }
}
