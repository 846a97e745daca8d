//! The names of the engine's keys: those that belong to a key of the cache, and the key or tag of a
//! changed one.
//!
//! | key | holds |
//! |---|---|
//! | `<namespace>:v:{=<key>}` | the value of a key |
//! | `<namespace>:l:{=<key>}` | its lease |
//! | `<namespace>:t:{=<tag>}` | the version of a tag; of the empty one, that of the whole namespace |
//!
//! A key's value and its lease are in one slot, for what stands between the braces is the same. The
//! `=` keeps that from being empty. Leases are outside of the watched prefixes: nobody's entry
//! depends on them.

use super::slot::slot;

/// The keys of one namespace.
#[derive(Debug, Clone)]
pub struct Names {
    value: Vec<u8>,
    lease: Vec<u8>,
    tag: Vec<u8>,
}

/// A key of ours on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wire {
    /// The key of its value.
    pub value: Vec<u8>,
    /// The key of its lease, in the same slot.
    pub lease: Vec<u8>,
    /// That slot.
    pub slot: u16,
}

/// The owner of an engine's key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    Value(&'a [u8]),
    Tag(&'a str),
}

impl Names {
    pub(crate) fn new(namespace: &str) -> Self {
        let of = |kind: &str| format!("{namespace}:{kind}:{{=").into_bytes();
        Self {
            value: of("v"),
            lease: of("l"),
            tag: of("t"),
        }
    }

    /// A connection must be told of changes of keys that begin with one of these.
    #[must_use]
    pub fn watched(&self) -> [&[u8]; 2] {
        [&self.value, &self.tag]
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn namespace(&self) -> String {
        let end = self.value.len() - ":v:{=".len();
        String::from_utf8_lossy(&self.value[..end]).into_owned()
    }

    pub(crate) fn wire(&self, key: &[u8]) -> Wire {
        let value = join(&self.value, key);
        let slot = slot(&value);
        let lease = join(&self.lease, key);
        Wire { value, lease, slot }
    }

    pub(crate) fn tag(&self, tag: &str) -> Vec<u8> {
        join(&self.tag, tag.as_bytes())
    }

    /// The owner of an engine's key; `None` if it is not one of ours.
    pub(crate) fn named<'a>(&self, key: &'a [u8]) -> Option<Named<'a>> {
        let inner = |prefix: &[u8]| key.strip_prefix(prefix)?.strip_suffix(b"}");
        if let Some(key) = inner(&self.value) {
            return Some(Named::Value(key));
        }
        std::str::from_utf8(inner(&self.tag)?).ok().map(Named::Tag)
    }
}

fn join(prefix: &[u8], name: &[u8]) -> Vec<u8> {
    [prefix, name, b"}"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_and_its_lease_share_a_slot_whatever_the_key_holds() {
        let names = Names::new("shop");
        for key in [&b""[..], b"}", b"{", b"a}b", b"{}", b"\x00\xff", b"user:1"] {
            let wire = names.wire(key);
            assert_eq!(wire.slot, slot(&wire.lease), "{key:?}");
            assert_eq!(names.named(&wire.value), Some(Named::Value(key)));
            assert_eq!(names.named(&wire.lease), None);
        }
        assert_eq!(names.named(&names.tag("a}b")), Some(Named::Tag("a}b")));
        assert_eq!(names.named(b"other:v:{=x}"), None);
    }
}
