//! The keys and values that every workload stores, and the requests that carry them.
//!
//! A key is 16 bytes: four of its kind, then twelve hex digits of its number. A value is 32 bytes
//! that follow from the key, so that a reader can tell a wrong value from a right one.

use crate::rng::mix;

pub(crate) const KEY_BYTES: usize = 16;
pub(crate) const VALUE_BYTES: usize = 32;
/// Key and value together: what a figure called "overhead" leaves out.
pub(crate) const PAYLOAD_BYTES: usize = KEY_BYTES + VALUE_BYTES;

const KIND_BYTES: usize = 4;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// The first bytes of a key that stays for the whole experiment, or falls due during it.
const LIVE: &[u8; KIND_BYTES] = b"live";
const DYING: &[u8; KIND_BYTES] = b"due:";

/// One key, by kind and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    kind: &'static [u8; KIND_BYTES],
    id: u64,
}

impl Key {
    pub(crate) fn live(id: u64) -> Self {
        Self { kind: LIVE, id }
    }

    pub(crate) fn dying(id: u64) -> Self {
        Self { kind: DYING, id }
    }

    /// The number of the dying key that has these bytes, if it is one.
    pub(crate) fn dying_id(bytes: &[u8]) -> Option<u64> {
        let digits = bytes.strip_prefix(DYING)?;
        let digits = (bytes.len() == KEY_BYTES).then_some(digits)?;
        u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }

    pub(crate) fn bytes(self) -> [u8; KEY_BYTES] {
        let mut bytes = [0; KEY_BYTES];
        bytes[..KIND_BYTES].copy_from_slice(self.kind);
        write_hex(&mut bytes[KIND_BYTES..], self.id);
        bytes
    }

    pub(crate) fn value(self) -> [u8; VALUE_BYTES] {
        let mut bytes = [0; VALUE_BYTES];
        let (left, right) = bytes.split_at_mut(VALUE_BYTES / 2);
        let mixed = mix(self.id);
        write_hex(left, mixed);
        write_hex(right, mixed ^ self.id);
        bytes
    }
}

/// The time to live that a SET carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ttl {
    None,
    /// Seconds from now.
    Ex(u64),
    /// Milliseconds from now.
    Px(u64),
    /// Milliseconds since 1970.
    Pxat(u64),
}

pub(crate) fn encode_get(out: &mut Vec<u8>, key: Key) {
    out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n$16\r\n");
    out.extend_from_slice(&key.bytes());
    out.extend_from_slice(b"\r\n");
}

pub(crate) fn encode_set(out: &mut Vec<u8>, key: Key, ttl: Ttl) {
    let option: Option<(&[u8], u64)> = match ttl {
        Ttl::None => None,
        Ttl::Ex(seconds) => Some((b"$2\r\nEX\r\n", seconds)),
        Ttl::Px(ms) => Some((b"$2\r\nPX\r\n", ms)),
        Ttl::Pxat(ms) => Some((b"$4\r\nPXAT\r\n", ms)),
    };
    out.extend_from_slice(if option.is_some() {
        b"*5\r\n"
    } else {
        b"*3\r\n"
    });
    out.extend_from_slice(b"$3\r\nSET\r\n$16\r\n");
    out.extend_from_slice(&key.bytes());
    out.extend_from_slice(b"\r\n$32\r\n");
    out.extend_from_slice(&key.value());
    out.extend_from_slice(b"\r\n");
    if let Some((name, number)) = option {
        out.extend_from_slice(name);
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number);
        out.push(b'$');
        out.extend_from_slice(itoa::Buffer::new().format(digits.len()).as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(digits.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// The low hex digits of `number` that fit into `out`, most significant first.
fn write_hex(out: &mut [u8], mut number: u64) {
    for place in out.iter_mut().rev() {
        *place = HEX[(number & 15) as usize];
        number >>= 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_back_from_its_bytes() {
        assert_eq!(Key::dying_id(&Key::dying(123_456).bytes()), Some(123_456));
        for no_key in [
            &Key::live(1).bytes()[..],
            b"due:00000000000",
            b"due:0000000000zz",
            b"",
        ] {
            assert_eq!(Key::dying_id(no_key), None);
        }
    }

    #[test]
    fn requests_are_what_the_protocol_asks_for() {
        let text = |encode: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            encode(&mut out);
            String::from_utf8(out).expect("requests are ASCII")
        };
        let get = text(&|out| encode_get(out, Key::live(255)));
        assert_eq!(get, "*2\r\n$3\r\nGET\r\n$16\r\nlive0000000000ff\r\n");
        let set = text(&|out| encode_set(out, Key::dying(1), Ttl::Pxat(1_700_000_000_123)));
        assert!(set.starts_with("*5\r\n$3\r\nSET\r\n$16\r\ndue:000000000001\r\n$32\r\n"));
        assert!(
            set.ends_with("\r\n$4\r\nPXAT\r\n$13\r\n1700000000123\r\n"),
            "{set}"
        );
        let set = text(&|out| encode_set(out, Key::live(1), Ttl::None));
        assert!(set.starts_with("*3\r\n"));
    }
}
