//! Files for the tests of tools.

/// A few keys, a library, fields, two databases, and no checksum.
pub(super) const FILE: &[u8] = b"REDIS0012\
\xfa\x09redis-ver\x057.4.0\
\xfa\x05ctime\x0a1700000000\
\xf5\x03lib\
\xfe\x00\xfb\x03\x02\
\xfc\x7b\xec\x20\xb4\xf6\x56\x00\x00\x00\x05tea\x00\t\x03hot\
\xfd\x01\x00\x00\x00\x00\x01n\xc0\xf9\
\x01\x01l\x02\x01a\x01b\
\xfe\x03\
\x18\x01h\x7b\xec\x20\xb4\xf6\x56\x00\x00\x01\x01\x01f\x01v\
\xff\0\0\0\0\0\0\0\0";

/// Five collections without members, in five forms, and a string.
pub(super) fn empty_collections() -> Vec<u8> {
    [
        &b"REDIS0011"[..],
        b"\x01\x01l\x00",
        b"\x02\x01s\x00",
        b"\x0b\x01i\x08\x02\0\0\0\0\0\0\0",
        b"\x10\x01h\x07\x07\0\0\0\0\0\xff",
        b"\x12\x01q\x01\x02\x07\x07\0\0\0\0\0\xff",
        b"\x00\x01k\x01v",
        b"\xff\0\0\0\0\0\0\0\0",
    ]
    .concat()
}

/// Two values of a module, with all kinds of parts, and a string.
pub(super) fn of_module() -> Vec<u8> {
    [
        &b"REDIS0011"[..],
        b"\x07\x01m\x81\0\0\0\0\0\0\0\x01\x01\x05\x02\x40\xff\x03\0\0\0\0\x04\0\0\0\0\0\0\0\0\x05\x03abc\x00",
        b"\x07\x01n\x01\x00",
        b"\x00\x01k\x01v",
        b"\xff\0\0\0\0\0\0\0\0",
    ]
    .concat()
}
