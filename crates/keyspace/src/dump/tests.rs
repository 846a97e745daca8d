//! What is written reads back, and nothing that was changed by chance panics.

use proptest::prelude::*;

use super::*;

fn restore(payload: &[u8]) -> Result<Loaded, Bad> {
    load(open(payload, true).ok_or(Bad)?)
}

#[test]
fn strings_read_back() {
    for text in [
        "",
        "0",
        "-1",
        "127",
        "128",
        "-129",
        "32767",
        "32768",
        "-2147483648",
        "2147483648",
        "01",
        "+1",
        "abc",
    ] {
        let value = Loaded::String(text.as_bytes().to_vec());
        assert_eq!(restore(&of_string(text.as_bytes())), Ok(value), "{text}");
    }
    for len in [63, 64, 16_383, 16_384, 100_000] {
        let bytes = vec![b'x'; len];
        assert_eq!(restore(&of_string(&bytes)), Ok(Loaded::String(bytes)));
    }
}

#[test]
fn the_bytes_are_the_public_ones() {
    let hello = b"\0\x05hello\x0a\0\xdf\xe2\x1b\x53\x4b\x7f\xfa\x19";
    assert_eq!(of_string(b"hello")[..9], hello[..9]);
    // Version 222 does not exist yet.
    let future = b"\0\x03bar\xde\0\x0fYUza\xd3\xec\xe0";
    assert_eq!(open(future, true), None);
    assert_eq!(open(b"\0\x03bar\x0a\0........", true), None);
    assert_eq!(
        open(b"\0\x03bar\x50\0........", false),
        Some(&b"\0\x03bar"[..])
    );
}

#[test]
fn compressed_strings_expand_within_their_length() {
    let run = b"\x00\xc3\x06\x4d\xff\x00a\xe0\xff\x00\xe0\xf0\x00";
    let _ = load(run);
    let value = load(b"\0\xc3\x05\x0a\0a\xe0\x00\x00").map(|_| ());
    assert_eq!(value, Ok(()));
    for (packed, len) in [
        (&b"\0a\xe0\x00\x00"[..], 9),
        (b"\0a\xe0\x00\x00", 11),
        (b"\0a\xe0\x00\x01", 10),
        (b"\0a\xe0", 10),
        (b"\x05ab", 6),
        (b"\0a", 1 << 40),
    ] {
        assert_eq!(lzf::expand(packed, len), Err(Bad), "{packed:?}");
    }
}

#[test]
fn forms_that_no_string_has_are_refused() {
    for payload in [
        &b""[..],
        b"\0",
        b"\0\x05abc",
        b"\0\x03abcd",
        b"\0\xc4a",
        b"\0\x82aaaa",
        b"\0\xc0",
        b"\0\x81\xff\xff\xff\xff\xff\xff\xff\xffa",
        b"\0\xc3\xc0\x01\x01\0a",
        b"\xffabc",
    ] {
        assert_eq!(load(payload), Err(Bad), "{payload:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = load(&bytes);
        prop_assert!(measure(&bytes) <= 100 * bytes.len() + 100);
    }
}
