//! Elements of the public packed form (a listpack): short texts and whole numbers in a row.
//!
//! Each element has its length behind it, in groups of seven bits, the highest first; all groups
//! but the first have their highest bit set. So a row is read from either end.

/// A text, or a whole number that stands for its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element<'a> {
    /// A text.
    Bytes(&'a [u8]),
    /// A whole number.
    Integer(i64),
}

impl Element<'_> {
    /// True if it stands for this text.
    #[inline]
    pub(super) fn is(&self, text: &[u8]) -> bool {
        match self {
            Self::Bytes(bytes) => *bytes == text,
            Self::Integer(number) => whole_number(text) == Some(*number),
        }
    }

    pub(super) fn integer(&self) -> Option<i64> {
        match self {
            Self::Bytes(_) => None,
            Self::Integer(number) => Some(*number),
        }
    }
}

/// The number that a text spells in the only way in which numbers are written.
#[inline]
fn whole_number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    match digits {
        [b'0'] if text.len() == 1 => Some(0),
        [b'1'..=b'9', ..] if text.len() <= 20 => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// Bytes of the length behind an element of that many bytes.
#[inline]
fn back_bytes(len: usize) -> usize {
    match len {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}

/// Bytes in front of an element's text, and bytes of the text or the number. `None` if no element
/// begins like this.
#[inline]
fn head(bytes: &[u8]) -> Option<(usize, usize)> {
    let first = *bytes.first()?;
    Some(match first {
        0..=0x7f => (1, 0),
        0x80..=0xbf => (1, usize::from(first & 0x3f)),
        0xc0..=0xdf => (2, 0),
        0xe0..=0xef => (
            2,
            usize::from(first & 0xf) << 8 | usize::from(*bytes.get(1)?),
        ),
        0xf0 => {
            let len = bytes.get(1..5)?.try_into().ok()?;
            (5, u32::from_le_bytes(len) as usize)
        }
        0xf1 => (1, 2),
        0xf2 => (1, 3),
        0xf3 => (1, 4),
        0xf4 => (1, 8),
        0xf5..=0xff => return None,
    })
}

/// Bytes of the first element, with its length behind it.
#[inline]
pub(super) fn size(bytes: &[u8]) -> Option<usize> {
    let (front, text) = head(bytes)?;
    let len = front.checked_add(text)?;
    Some(len + back_bytes(len))
}

/// Reads the first element. Returns it, and the bytes behind it.
#[inline]
pub(super) fn read(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (front, text) = head(bytes)?;
    let end = front.checked_add(text)?;
    let rest = bytes.get(end + back_bytes(end)..)?;
    let text = bytes.get(front..end)?;
    let element = match bytes[0] {
        first @ 0..=0x7f => Element::Integer(first.into()),
        0x80..=0xbf | 0xe0..=0xf0 => Element::Bytes(text),
        first @ 0xc0..=0xdf => {
            let number = u16::from_be_bytes([first & 0x1f, *bytes.get(1)?]);
            Element::Integer(i64::from(number << 3) << 48 >> 51)
        }
        _ => Element::Integer(signed(text)),
    };
    Some((element, rest))
}

/// As [`read`], of bytes from outside: the length behind must be the element's.
pub(super) fn read_checked(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (element, rest) = read(bytes)?;
    let whole = &bytes[..bytes.len() - rest.len()];
    let (front, text) = head(bytes)?;
    let mut back = Vec::with_capacity(5);
    write_back(&mut back, front + text);
    whole.ends_with(&back).then_some((element, rest))
}

/// A signed number of up to eight bytes, the lowest first.
fn signed(bytes: &[u8]) -> i64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    let unused = 64 - 8 * bytes.len() as u32;
    i64::from_le_bytes(all) << unused >> unused
}

/// Where the element begins that ends at `end`.
#[inline]
pub(super) fn before(bytes: &[u8], end: usize) -> Option<usize> {
    let (mut len, mut groups) = (0_usize, 0);
    loop {
        let byte = *bytes.get(end.checked_sub(groups + 1)?)?;
        len |= usize::from(byte & 0x7f) << (7 * groups);
        groups += 1;
        if byte < 0x80 {
            return end.checked_sub(len + groups);
        }
        if groups == 5 {
            return None;
        }
    }
}

/// Appends an element; a whole number as such.
#[inline]
pub(super) fn write(to: &mut Vec<u8>, text: &[u8]) {
    if let Some(number) = whole_number(text) {
        return write_integer(to, number);
    }
    let front = to.len();
    let len = text.len();
    match len {
        0..0x40 => to.push(0x80 | len as u8),
        0x40..0x1000 => to.extend_from_slice(&(0xe000 | len as u16).to_be_bytes()),
        _ => {
            to.push(0xf0);
            to.extend_from_slice(&(len as u32).to_le_bytes());
        }
    }
    to.extend_from_slice(text);
    write_back(to, to.len() - front);
}

/// Appends a whole number.
#[inline]
pub(super) fn write_integer(to: &mut Vec<u8>, number: i64) {
    let front = to.len();
    let (mark, len) = match number {
        0..0x80 => {
            to.extend_from_slice(&[number as u8, 1]);
            return;
        }
        -0x1000..0x1000 => {
            let [high, low] = (0xc000 | number as u16 & 0x1fff).to_be_bytes();
            to.extend_from_slice(&[high, low, 2]);
            return;
        }
        -0x8000..0x8000 => (0xf1, 2),
        -0x80_0000..0x80_0000 => (0xf2, 3),
        -0x8000_0000..0x8000_0000 => (0xf3, 4),
        _ => (0xf4, 8),
    };
    to.push(mark);
    to.extend_from_slice(&number.to_le_bytes()[..len]);
    write_back(to, to.len() - front);
}

fn write_back(to: &mut Vec<u8>, len: usize) {
    let n = back_bytes(len);
    for i in 0..n {
        let group = (len >> (7 * (n - 1 - i))) as u8 & 0x7f;
        to.push(if i == 0 { group } else { group | 0x80 });
    }
}

/// Bytes of a whole number as an element.
pub(super) fn integer_size(number: i64) -> usize {
    match number {
        0..0x80 => 2,
        -0x1000..0x1000 => 3,
        -0x8000..0x8000 => 4,
        -0x80_0000..0x80_0000 => 5,
        -0x8000_0000..0x8000_0000 => 6,
        _ => 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_from_either_end() {
        let texts: [&[u8]; 14] = [
            b"",
            b"0",
            b"-0",
            b"01",
            b"127",
            b"128",
            b"-4096",
            b"4096",
            b"-32769",
            b"8388608",
            b"-9223372036854775808",
            b"9223372036854775808",
            &[b'x'; 70],
            &[b'y'; 20_000],
        ];
        let mut row = Vec::new();
        let mut starts = Vec::new();
        for text in texts {
            starts.push(row.len());
            write(&mut row, text);
        }
        let mut rest = &row[..];
        for text in texts {
            let (element, behind) = read_checked(rest).expect("an element");
            assert!(element.is(text), "{element:?}");
            assert_eq!(size(rest), Some(rest.len() - behind.len()));
            if let Element::Integer(number) = element {
                assert_eq!(number.to_string().as_bytes(), text);
                assert_eq!(size(rest), Some(integer_size(number)));
            }
            rest = behind;
        }
        let mut end = row.len();
        for start in starts.into_iter().rev() {
            end = before(&row, end).expect("an element");
            assert_eq!(end, start);
        }
        assert_eq!(before(&row, 0), None);
    }
}
