//! The reply reader reads back what the writer writes, in both protocols.

use proptest::collection::vec;
use proptest::prelude::*;
use tidewheel_resp::{Protocol, Reply, ReplyError, Writer, format_f64_short};

fn write(out: &mut Writer, reply: &Reply) {
    match reply {
        Reply::Simple(text) => out.simple(text),
        Reply::Error(text) => out.error(text),
        Reply::Integer(value) => out.integer(*value),
        Reply::Bulk(bytes) => out.bulk(bytes),
        Reply::Null => out.null(),
        Reply::Array(items) => {
            out.array(items.len());
            items.iter().for_each(|item| write(out, item));
        }
        Reply::Set(items) => {
            out.set(items.len());
            items.iter().for_each(|item| write(out, item));
        }
        Reply::Push(items) => {
            out.push(items.len());
            items.iter().for_each(|item| write(out, item));
        }
        Reply::Map(pairs) => {
            out.map(pairs.len());
            for (key, value) in pairs {
                write(out, key);
                write(out, value);
            }
        }
        Reply::Double(value) => out.double(*value),
        Reply::Boolean(value) => out.boolean(*value),
        Reply::Verbatim(format, text) => out.verbatim(format, text),
        Reply::BigNumber(digits) => out.big_number(digits),
        other => panic!("not written: {other:?}"),
    }
}

/// Returns what a RESP2 client sees instead of `reply`.
fn in_resp2(reply: &Reply) -> Reply {
    let each = |items: &[Reply]| Reply::Array(items.iter().map(in_resp2).collect());
    match reply {
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => each(items),
        Reply::Map(pairs) => Reply::Array(
            pairs
                .iter()
                .flat_map(|(key, value)| [in_resp2(key), in_resp2(value)])
                .collect(),
        ),
        Reply::Double(value) => Reply::Bulk(format_f64_short(*value).into_bytes()),
        Reply::Boolean(value) => Reply::Integer(i64::from(*value)),
        Reply::Verbatim(_, text) => Reply::Bulk(text.clone()),
        Reply::BigNumber(digits) => Reply::Bulk(digits.clone().into_bytes()),
        other => other.clone(),
    }
}

fn reply() -> impl Strategy<Value = Reply> {
    let leaf = prop_oneof![
        "[^\r\n]{0,12}".prop_map(Reply::Simple),
        "[^\r\n]{0,12}".prop_map(Reply::Error),
        any::<i64>().prop_map(Reply::Integer),
        vec(any::<u8>(), 0..150).prop_map(Reply::Bulk),
        Just(Reply::Null),
        any::<f64>()
            .prop_filter("NaN equals nothing", |v| !v.is_nan())
            .prop_map(Reply::Double),
        any::<bool>().prop_map(Reply::Boolean),
        vec(any::<u8>(), 0..20).prop_map(|text| Reply::Verbatim("txt".to_owned(), text)),
        "-?[0-9]{1,40}".prop_map(Reply::BigNumber),
    ];
    leaf.prop_recursive(4, 64, 12, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..12).prop_map(Reply::Array),
            vec(inner.clone(), 0..6).prop_map(Reply::Set),
            vec(inner.clone(), 0..6).prop_map(Reply::Push),
            vec((inner.clone(), inner), 0..6).prop_map(Reply::Map),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn replies_round_trip(reply in reply()) {
        for (protocol, seen) in
            [(Protocol::Resp3, reply.clone()), (Protocol::Resp2, in_resp2(&reply))]
        {
            let mut out = Writer::new(protocol);
            write(&mut out, &reply);
            let bytes = out.into_vec();
            prop_assert_eq!(Reply::read(&bytes), Ok(Some((seen, bytes.len()))));
            for end in 0..bytes.len() {
                prop_assert_eq!(Reply::read(&bytes[..end]), Ok(None));
            }
        }
    }

    #[test]
    fn random_bytes_do_not_panic_the_reader(bytes in vec(any::<u8>(), 0..100)) {
        if let Ok(Some((_, consumed))) = Reply::read(&bytes) {
            prop_assert!((3..=bytes.len()).contains(&consumed));
        }
    }
}

#[test]
fn malformed_replies_are_named() {
    for (bytes, error) in [
        (&b"?\r\n"[..], ReplyError::UnknownType(b'?')),
        (b"\r\n", ReplyError::MissingLineEnd),
        (b"+a\rb", ReplyError::MissingLineEnd),
        (b"+a\nb\r\n", ReplyError::MissingLineEnd),
        (b"$1\r\nabc", ReplyError::MissingLineEnd),
        (b":+1\r\n", ReplyError::InvalidNumber),
        (b"$-2\r\n", ReplyError::InvalidNumber),
        (b"*9999999999\r\n", ReplyError::InvalidNumber),
        (b"_x\r\n", ReplyError::InvalidNumber),
        (b"#x\r\n", ReplyError::InvalidNumber),
        (b"(\r\n", ReplyError::InvalidNumber),
        (b",x\r\n", ReplyError::InvalidNumber),
        (b"=2\r\nab\r\n", ReplyError::InvalidText),
        (b"+\xff\r\n", ReplyError::InvalidText),
    ] {
        assert_eq!(
            Reply::read(bytes),
            Err(error),
            "{:?}",
            bytes.escape_ascii().to_string()
        );
    }
    assert_eq!(
        Reply::read(&b"*1\r\n".repeat(1000)),
        Err(ReplyError::TooDeep)
    );
}
