//! The layout of one entry: header, deadline, key and value in one block.
//!
//! ```text
//! byte 0      flags: 0x01 in use · 0x06 deadline form · 0x08 the value is an object · 0xf0 the tag
//! bytes 1–3   the caller's access history
//! deadline    form 1: registration (1) + 48-bit deadline (6); form 2: registration (1) + u64 (8)
//! key length  LEB128
//! value       LEB128 length, or the object's number (4 bytes) after the key
//! key bytes, value bytes
//! ```
//!
//! An entry with a 16-byte key, a 32-byte value and a deadline has 61 bytes, of which 13 are the
//! header.

use tidewheel_timer::Timer;

const IN_USE: u8 = 0x01;
const FORM_SHIFT: u8 = 1;
const FORM: u8 = 0x06;
const OBJECT: u8 = 0x08;
const TAG_SHIFT: u8 = 4;

/// First byte of the deadline's fields: the registration.
const REGISTRATION_AT: usize = 4;

/// The deadline itself.
const DEADLINE_AT: usize = REGISTRATION_AT + 1;

/// The bits of the wheel's registration that an entry keeps: quarters of a second. They tell in
/// which of the last 65 s before its deadline a timer is registered. So if it gets an earlier
/// deadline which is still after that, the wheel need not be told.
pub(crate) const REGISTRATION_BITS: u32 = 0xff00;

/// The forms in which an entry keeps its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Form {
    /// No room for one.
    None = 0,
    /// 48 bits; all ones stands for "none at present".
    Short = 1,
    /// 64 bits.
    Long = 2,
}

/// Stands for "none at present" where a deadline may be. No entry has it as its deadline: see
/// [`set_deadline`].
pub(crate) const NO_END: u64 = (1 << 48) - 1;

impl Form {
    /// The smallest form that can hold the deadline.
    pub(crate) fn of(deadline: Option<u64>) -> Self {
        match deadline {
            None => Self::None,
            Some(deadline) if deadline < NO_END => Self::Short,
            Some(_) => Self::Long,
        }
    }

    /// Returns whether the deadline fits. A wide form can hold a deadline that a narrow one could.
    pub(crate) fn holds(self, deadline: Option<u64>) -> bool {
        self as u8 >= Self::of(deadline) as u8
    }

    /// As [`holds`](Self::holds), of a deadline as it is stored.
    #[inline(always)]
    pub(crate) fn holds_end(self, end: u64) -> bool {
        match self {
            Self::None => end == NO_END,
            Self::Short => end <= NO_END,
            Self::Long => true,
        }
    }

    #[inline(always)]
    fn bytes(self) -> usize {
        // A table, since every access to an entry needs it.
        const BYTES: [u8; 3] = [0, 7, 9];
        BYTES[self as usize].into()
    }
}

/// Where the parts of an entry lie in its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) key_at: usize,
    pub(crate) key_len: usize,
    pub(crate) value_len: usize,
}

/// A header, read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) layout: Layout,
    pub(crate) is_object: bool,
    pub(crate) tag: u8,
    pub(crate) access: u32,
    /// The deadline, or [`NO_END`].
    pub(crate) end: u64,
}

impl Layout {
    pub(crate) fn value_at(&self) -> usize {
        self.key_at + self.key_len
    }
}

fn varint_len(n: usize) -> usize {
    match n {
        0..=0x7f => 1,
        0x80..=0x3fff => 2,
        0x4000..=0x1f_ffff => 3,
        0x20_0000..=0xfff_ffff => 4,
        _ => 5,
    }
}

fn put_varint(block: &mut [u8], mut at: usize, mut n: usize) -> usize {
    while n >= 0x80 {
        block[at] = n as u8 | 0x80;
        n >>= 7;
        at += 1;
    }
    block[at] = n as u8;
    at + 1
}

#[inline]
fn varint(block: &[u8], at: usize) -> (usize, usize) {
    let first = block[at];
    if first < 0x80 {
        return (first as usize, at + 1);
    }
    let mut n = (first & 0x7f) as usize;
    let mut shift = 7;
    let mut at = at + 1;
    loop {
        let byte = block[at];
        n |= ((byte & 0x7f) as usize) << shift;
        at += 1;
        if byte < 0x80 {
            return (n, at);
        }
        shift += 7;
    }
}

/// Bytes of an entry with these parts; an object counts 4.
pub(crate) fn bytes(form: Form, key_len: usize, value_len: Option<usize>) -> usize {
    REGISTRATION_AT
        + form.bytes()
        + varint_len(key_len)
        + value_len.map_or(0, varint_len)
        + key_len
        + value_len.unwrap_or(4)
}

/// Writes an entry's header and key; returns where its value's bytes go.
pub(crate) fn write(
    block: &mut [u8],
    tag: u8,
    access: u32,
    form: Form,
    key: &[u8],
    value_len: Option<usize>,
) -> usize {
    let object = if value_len.is_none() { OBJECT } else { 0 };
    block[0] = IN_USE | (form as u8) << FORM_SHIFT | object | tag << TAG_SHIFT;
    set_access(block, access);
    let mut at = put_varint(block, REGISTRATION_AT + form.bytes(), key.len());
    if let Some(len) = value_len {
        at = put_varint(block, at, len);
    }
    block[at..at + key.len()].copy_from_slice(key);
    if form != Form::None {
        set_deadline(block, None);
    }
    at + key.len()
}

#[inline]
pub(crate) fn form(block: &[u8]) -> Form {
    match (block[0] & FORM) >> FORM_SHIFT {
        0 => Form::None,
        1 => Form::Short,
        _ => Form::Long,
    }
}

#[inline]
pub(crate) fn is_object(block: &[u8]) -> bool {
    block[0] & OBJECT != 0
}

#[inline]
pub(crate) fn tag(block: &[u8]) -> u8 {
    block[0] >> TAG_SHIFT
}

pub(crate) fn set_tag(block: &mut [u8], tag: u8) {
    block[0] = block[0] & ((1 << TAG_SHIFT) - 1) | tag << TAG_SHIFT;
}

#[inline]
pub(crate) fn access(block: &[u8]) -> u32 {
    u32::from_le_bytes([block[1], block[2], block[3], 0])
}

#[inline]
pub(crate) fn set_access(block: &mut [u8], access: u32) {
    block[1..4].copy_from_slice(&access.to_le_bytes()[..3]);
}

// Every access to an entry goes through it. The compiler does not inline it by itself.
#[inline(always)]
pub(crate) fn layout(block: &[u8]) -> Layout {
    let (key_len, at) = varint(block, REGISTRATION_AT + form(block).bytes());
    let (value_len, key_at) = if is_object(block) {
        (4, at)
    } else {
        varint(block, at)
    };
    Layout {
        key_at,
        key_len,
        value_len,
    }
}

/// The header in the first 16 bytes, if it is of the commonest shapes: a key's length of one byte,
/// a value's length of one or two, and no long deadline. It takes two loads and few branches.
#[inline(always)]
pub(crate) fn short_head(first: &[u8; 16]) -> Option<Head> {
    const LONG_KEY: u64 = 0x80;
    const LONG_VALUE: u64 = 0x8000;
    const SHORT: u64 = (Form::Short as u64) << FORM_SHIFT;
    let word = u128::from_le_bytes(*first);
    let (low, high) = (word as u64, (word >> 64) as u64);
    let (lengths, lengths_at, end) = match low & FORM as u64 {
        0 => (low >> 32, REGISTRATION_AT, NO_END),
        SHORT => (high >> 24, 11, (low >> 40 | high << 24) & NO_END),
        _ => return None,
    };
    let is_object = low & u64::from(OBJECT) != 0;
    // Of an object the second byte is the key's first. The few that look like a length are read the
    // long way.
    let (key_at, value_len) = match lengths & (LONG_KEY | LONG_VALUE) {
        0 if is_object => (lengths_at + 1, 4),
        0 => (lengths_at + 2, (lengths >> 8 & 0x7f) as usize),
        LONG_VALUE if !is_object => (lengths_at + 3, two_bytes(lengths >> 8)?),
        _ => return None,
    };
    Some(Head {
        layout: Layout {
            key_at,
            key_len: (lengths & 0x7f) as usize,
            value_len,
        },
        is_object,
        tag: low as u8 >> TAG_SHIFT,
        access: low as u32 >> 8,
        end,
    })
}

/// A length of two bytes, if it takes no more.
#[inline(always)]
fn two_bytes(bytes: u64) -> Option<usize> {
    let (first, second) = (bytes & 0x7f, bytes >> 8 & 0xff);
    (second < 0x80).then_some((first | second << 7) as usize)
}

/// A header of any shape.
#[inline(always)]
pub(crate) fn head(block: &[u8]) -> Head {
    let first = block.first_chunk();
    first
        .and_then(short_head)
        .unwrap_or_else(|| long_head(block))
}

#[inline(never)]
fn long_head(block: &[u8]) -> Head {
    Head {
        layout: layout(block),
        is_object: is_object(block),
        tag: tag(block),
        access: access(block),
        end: deadline(block).unwrap_or(NO_END),
    }
}

/// Returns whether two strings are equal. The usual lengths of keys take two comparisons, and no
/// call.
#[inline(always)]
pub(crate) fn are_equal(one: &[u8], other: &[u8]) -> bool {
    /// Returns whether the first N bytes and the last N are equal; `None` for shorter strings.
    #[inline(always)]
    fn ends<const N: usize>(one: &[u8], other: &[u8]) -> Option<bool> {
        let firsts = one.first_chunk::<N>()? == other.first_chunk()?;
        let lasts = one.last_chunk::<N>()? == other.last_chunk()?;
        Some(firsts & lasts)
    }
    if one.len() != other.len() {
        return false;
    }
    let equal = match one.len() {
        16..=32 => ends::<16>(one, other),
        8..=15 => ends::<8>(one, other),
        _ => None,
    };
    equal.unwrap_or_else(|| one == other)
}

/// Bytes of the entry.
pub(crate) fn extent(block: &[u8]) -> usize {
    let layout = layout(block);
    layout.value_at() + layout.value_len
}

/// The live deadline; `None` when the entry has none.
#[inline]
pub(crate) fn deadline(block: &[u8]) -> Option<u64> {
    let form = form(block);
    if form == Form::None {
        return None;
    }
    // In the short form the last two of these eight bytes are not the deadline's: they are masked.
    let bytes: &[u8; 8] = block[DEADLINE_AT..].first_chunk()?;
    let deadline = match form {
        Form::Long => u64::from_le_bytes(*bytes),
        _ => u64::from_le_bytes(*bytes) & NO_END,
    };
    (deadline != NO_END).then_some(deadline)
}

/// The live deadline and its registration; `None` when the entry has none.
#[inline]
pub(crate) fn timer(block: &[u8]) -> Option<Timer> {
    let deadline = deadline(block)?;
    Some(Timer {
        deadline,
        registration: u32::from(block[REGISTRATION_AT]) << 8,
    })
}

/// A deadline as it is stored, or [`NO_END`]. The deadline 2^48 − 1 is stored one tick later, in
/// the long form, since its bits stand for "none".
#[inline(always)]
pub(crate) fn end_of(deadline: Option<u64>) -> u64 {
    match deadline {
        None => NO_END,
        Some(NO_END) => NO_END + 1,
        Some(deadline) => deadline,
    }
}

/// Stores a deadline that the entry's form holds.
#[inline]
pub(crate) fn set_deadline(block: &mut [u8], deadline: Option<u64>) {
    set_end(block, form(block), end_of(deadline));
}

/// Stores a deadline in the entry's form, which holds it.
#[inline(always)]
pub(crate) fn set_end(block: &mut [u8], form: Form, end: u64) {
    let at = DEADLINE_AT;
    let bytes = end.to_le_bytes();
    match form {
        Form::None => {}
        Form::Short => block[at..at + 6].copy_from_slice(&bytes[..6]),
        Form::Long => block[at..at + 8].copy_from_slice(&bytes),
    }
}

pub(crate) fn set_registration(block: &mut [u8], registration: u32) {
    block[REGISTRATION_AT] = (registration >> 8) as u8;
}

/// Changes the value's length where that leaves the key where it is; returns whether it did.
pub(crate) fn resize_value(block: &mut [u8], old: &Layout, new_len: usize) -> bool {
    if varint_len(old.value_len) != varint_len(new_len) || old.value_at() + new_len > block.len() {
        return false;
    }
    put_varint(block, old.key_at - varint_len(old.value_len), new_len);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_the_same_at_once_and_part_by_part() {
        let deadlines = [None, Some(0), Some(1 << 47), Some(NO_END), Some(u64::MAX)];
        let keys = (0..40).chain([127, 128, 300]);
        for key_len in keys {
            for value_len in [
                None,
                Some(0),
                Some(7),
                Some(127),
                Some(128),
                Some(2_000),
                Some(20_000),
            ] {
                for (tag, deadline) in (0..).zip(deadlines) {
                    // Such bytes look like a long length, where an object's key begins.
                    let key = vec![0x80 | tag; key_len];
                    let form = Form::of(deadline);
                    let mut block = vec![0xee; bytes(form, key_len, value_len)];
                    write(&mut block, tag, 0xab_cdef, form, &key, value_len);
                    if deadline.is_some() {
                        set_deadline(&mut block, deadline);
                    }
                    assert_eq!(head(&block), long_head(&block));
                }
            }
        }
    }

    #[test]
    fn strings_of_every_length_are_equal_only_to_themselves() {
        for len in 0..70 {
            let one: Vec<u8> = (0..len).collect();
            assert!(are_equal(&one, &one.clone()));
            assert!(!are_equal(&one, &[&one[..], b"x"].concat()));
            for at in 0..one.len() {
                let mut other = one.clone();
                other[at] ^= 0x80;
                assert!(!are_equal(&one, &other), "{at} of {len}");
            }
        }
    }
}
