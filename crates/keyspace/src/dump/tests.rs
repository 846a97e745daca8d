//! Written values read back. Payloads that were changed at random cause no panic.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidewheel_collections::{Limits, Pending, StreamId, StreamLimits};
use tidewheel_store::KeyHasher;

use super::envelope::seal;
use super::packed::listpack::{Builder, Listpack};
use super::packed::{Element, intset};
use super::*;
use crate::rules::Rules;
use crate::time::Time;

const WALL: i64 = 1_700_000_000_000;
const TICK: u64 = 1 << 40;

fn now() -> Now {
    let time = Time {
        tick: TICK,
        micros: 0,
        wall_offset_ms: WALL - TICK as i64,
    };
    Now {
        tick: TICK,
        micros: 0,
        time,
    }
}

/// Calls `act` with limits of that many members.
fn with_setting<R>(entries: usize, act: impl FnOnce(&ReadParameters<'_>) -> R) -> R {
    let hasher = KeyHasher::new(7);
    let limits = Limits {
        entries,
        value: 64,
        integers: entries,
    };
    let change = Change {
        now: TICK,
        limits,
        hasher: &hasher,
    };
    act(&ReadParameters {
        now: now(),
        hash: change,
        set: change,
        zset: change,
        list: ListLimits::new(-2),
        members: &[],
        may_be_empty: false,
    })
}

/// Begins a value.
fn begun(kind: u8) -> Writer {
    let mut writer = Writer::empty();
    writer.kind(kind);
    writer
}

fn payload(write: impl FnOnce(&mut Writer) -> u16) -> Vec<u8> {
    let mut writer = Writer::empty();
    let version = write(&mut writer);
    writer.seal(version)
}

fn load_value(value: &[u8], version: u16) -> Result<RestoredValue, Malformed> {
    with_setting(64, |setting| {
        load(OpenedPayload { version, value }, setting)
    })
}

fn restore(payload: &[u8]) -> Result<RestoredValue, Malformed> {
    let opened = open(payload, SkippedChecks::default()).ok_or(Malformed)?;
    with_setting(64, |setting| load(opened, setting))
}

fn payload_of(loaded: &RestoredValue) -> Vec<u8> {
    match loaded {
        RestoredValue::String(bytes) => of_string(bytes),
        RestoredValue::Hash(hash) => payload(|to| hash::write(hash.get(), &now(), to)),
        RestoredValue::List(list) => payload(|to| {
            list::write(list.get(), to);
            VERSION
        }),
        RestoredValue::Set(set) => payload(|to| {
            set::write(set.get(), &now(), to);
            VERSION
        }),
        RestoredValue::ZSet(zset) => payload(|to| {
            zset::write(zset.get(), &now(), to);
            VERSION
        }),
        RestoredValue::Stream(stream) => payload(|to| stream::write(stream, to)),
    }
}

/// A value as text, whatever its form.
fn shown(loaded: &RestoredValue) -> String {
    match loaded {
        RestoredValue::String(bytes) => format!("{bytes:?}"),
        RestoredValue::List(list) => format!("{:?}", list.get().forward(0).collect::<Vec<_>>()),
        RestoredValue::ZSet(zset) => {
            let all = zset.get().forward(0);
            let all = all.map(|scored| (scored.member, scored.score, scored.deadline));
            format!("{:?}", all.collect::<Vec<_>>())
        }
        RestoredValue::Stream(stream) => shown_stream(stream),
        RestoredValue::Hash(hash) => {
            let mut all = BTreeMap::new();
            hash.get().for_each(|entry| {
                all.insert(entry.key, (entry.value, entry.deadline));
            });
            format!("{all:?}")
        }
        RestoredValue::Set(set) => {
            let mut all = BTreeMap::new();
            set.get().for_each(|entry| {
                all.insert(entry.key, entry.deadline);
            });
            format!("{all:?}")
        }
    }
}

fn shown_stream(stream: &Stream) -> String {
    stream.validate();
    let log = &stream.log;
    let range = log.range(StreamId::MIN, StreamId::MAX);
    let entries: Vec<_> = range
        .map(|entry| format!("{} {:?}", entry.id, entry.fields.collect::<Vec<_>>()))
        .collect();
    let groups: Vec<_> = stream
        .groups
        .iter()
        .map(|group| {
            let pending: Vec<_> = group
                .pending_from(StreamId::MIN)
                .map(|(id, one)| {
                    let name = group.consumer(one.consumer).name();
                    (id, name, one.delivered_ms, one.deliveries)
                })
                .collect();
            let consumers: Vec<_> = group
                .consumers()
                .map(|one| (one.name(), one.seen_ms, one.active_ms, one.pending()))
                .collect();
            let place = (group.name(), group.last, group.entries_read);
            format!("{place:?} {pending:?} {consumers:?}")
        })
        .collect();
    let ids = [log.first_id(), log.last_id(), log.max_deleted_id()];
    format!(
        "stream {ids:?} {} {entries:?} {groups:?}",
        log.entries_added()
    )
}

/// A stream of `n` entries, some deleted, with two groups.
fn stream_of(n: u64, active: bool) -> Stream {
    let mut stream = Stream::new();
    let limits = StreamLimits::default();
    for i in 1..=n {
        let number = (i * i).to_string();
        let words = match i % 5 {
            0 => vec!["other", "x", "more", "y"],
            _ => vec!["name", "value", "number", &number],
        };
        let words = words.iter().map(|word| word.as_bytes());
        stream.log.append(StreamId::new(i / 3, i), words, &limits);
    }
    for i in (1..=n).step_by(4) {
        stream.log.delete(StreamId::new(i / 3, i));
    }
    let Stream { log, groups } = &mut stream;
    groups.create(b"idle", StreamId::MIN, None);
    groups.create(b"busy", StreamId::MIN, Some(0));
    groups.edit(b"busy", |group| {
        for name in [&b"a"[..], b"12", b"unused"] {
            group.consumer_or_new(name, WALL);
        }
        for (at, entry) in log.range(StreamId::MIN, StreamId::MAX).enumerate() {
            let consumer = at as u32 % 2;
            group.advance(log, entry.id);
            let pending = Pending {
                consumer,
                delivered_ms: WALL + at as i64,
                deliveries: 1,
            };
            group.assign(entry.id, pending);
        }
        for consumer in 0..3 {
            let active_ms = if active { None } else { Some(WALL) };
            group.consumer_mut(consumer).active_ms = active_ms;
        }
    });
    stream
}

/// Servers before 7.2 read streams whose consumers have no active times of their own.
#[test]
fn a_stream_has_the_oldest_form_that_holds_it() {
    for (active, form) in [(false, (kind::STREAM_2, 10)), (true, (kind::STREAM_3, 11))] {
        let payload = payload(|to| stream::write(&stream_of(9, active), to));
        let opened = open(&payload, SkippedChecks::default()).expect("sound");
        assert_eq!((payload[0], opened.version), form);
    }
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
        let read = restore(&of_string(text.as_bytes()));
        assert!(
            matches!(read, Ok(RestoredValue::String(bytes)) if bytes == text.as_bytes()),
            "{text}"
        );
    }
    for len in [63, 64, 16_383, 16_384, 100_000] {
        let bytes = vec![b'x'; len];
        assert!(
            matches!(restore(&of_string(&bytes)), Ok(RestoredValue::String(read)) if read == bytes)
        );
    }
}

#[test]
fn the_envelope_is_the_public_one() {
    assert_eq!(of_string(b"hello")[..9], *b"\0\x05hello\x0a\0");
    // Version 222 does not exist yet.
    let future = b"\0\x03bar\xde\0\x0fYUza\xd3\xec\xe0";
    let strict = SkippedChecks::default();
    let [any_version, any_checksum] = [true, false].map(|any_version| SkippedChecks {
        any_version,
        any_checksum: !any_version,
    });
    assert_eq!(open(future, strict), None);
    assert!(open(future, any_version).is_some());
    assert_eq!(open(b"\0\x03bar\x0a\0........", strict), None);
    let opened = open(b"\0\x03bar\x50\0........", any_checksum);
    assert_eq!(opened.map(|opened| opened.value), Some(&b"\0\x03bar"[..]));
}

#[test]
fn compressed_strings_expand_within_their_length() {
    let ten = load_value(b"\0\xc3\x05\x0a\0a\xe0\x00\x00", 10);
    assert!(matches!(ten, Ok(RestoredValue::String(bytes)) if bytes == [b'a'; 10]));
    for (packed, len) in [
        (&b"\0a\xe0\x00\x00"[..], 9),
        (b"\0a\xe0\x00\x00", 11),
        (b"\0a\xe0\x00\x01", 10),
        (b"\0a\xe0", 10),
        (b"\x05ab", 6),
        (b"\0a", 1 << 40),
    ] {
        assert_eq!(lzf::expand(packed, len), Err(Malformed), "{packed:?}");
    }
}

#[test]
fn forms_that_no_value_has_are_refused() {
    let listpack = |elements: &[&[u8]]| {
        let mut builder = Builder::new();
        elements.iter().for_each(|element| builder.push(element));
        builder.finish()
    };
    let of = |kind: u8, string: &[u8]| {
        let mut writer = begun(kind);
        writer.string(string);
        let payload = writer.seal(VERSION);
        payload[..payload.len() - 10].to_vec()
    };
    for value in [
        b"".to_vec(),
        b"\0".to_vec(),
        b"\0\x05abc".to_vec(),
        b"\0\x03abcd".to_vec(),
        b"\0\xc4a".to_vec(),
        b"\0\x82aaaa".to_vec(),
        b"\0\xc0".to_vec(),
        b"\0\x81\xff\xff\xff\xff\xff\xff\xff\xffa".to_vec(),
        b"\0\xc3\xc0\x01\x01\0a".to_vec(),
        b"\xffabc".to_vec(),
        // Nothing in it.
        b"\x01\0".to_vec(),
        b"\x04\0".to_vec(),
        of(kind::HASH_LISTPACK, &listpack(&[])),
        // Counts of more than there is.
        b"\x02\x80\xff\xff\xff\xff\x01a".to_vec(),
        b"\x05\x02\x01a\0\0\0\0\0\0\0\0".to_vec(),
        // Members that come twice, halves of pairs, scores that are no numbers.
        b"\x02\x02\x01a\x01a".to_vec(),
        of(kind::SET_LISTPACK, &listpack(&[b"a", b"a"])),
        of(kind::HASH_LISTPACK, &listpack(&[b"a", b"1", b"a", b"2"])),
        of(kind::HASH_LISTPACK, &listpack(&[b"a", b"1", b"b"])),
        of(kind::ZSET_LISTPACK, &listpack(&[b"a", b"x"])),
        of(kind::ZSET_LISTPACK, &listpack(&[b"a", b"nan"])),
        b"\x05\x01\x01a\0\0\0\0\0\0\xf8\x7f".to_vec(),
        b"\x03\x01\x01a\xfd".to_vec(),
        // Numbers that do not ascend.
        of(kind::SET_INTSET, &intset::write(&[2, 1])),
        of(kind::SET_INTSET, &intset::write(&[1, 1])),
        // A length of the first field that is longer than it must be.
        b"\x09\x18\x02\xfe\x03\0\0\0abc\x03\0def\x03ghi\x03\0jkl\xff".to_vec(),
    ] {
        assert!(
            load_value(&value, 10).is_err(),
            "{:?}",
            value.escape_ascii().to_string()
        );
    }
}

#[test]
fn old_forms_are_read() {
    for (value, expected) in [
        // A ziplist of "ab", 12, -1, 300, 70000, 5000000000.
        (
            &b"\x0a\x27\x27\0\0\0\x1c\0\0\0\x06\0\
                \0\x02ab\x04\xfd\x02\xfe\xff\x03\xc0\x2c\x01\x04\xf0\x70\x11\x01\
                \x05\xe0\0\xf2\x05\x2a\x01\0\0\0\xff"[..],
            r#"[[97, 98], [49, 50], [45, 49], [51, 48, 48], [55, 48, 48, 48, 48], [53, 48, 48, 48, 48, 48, 48, 48, 48, 48]]"#,
        ),
        (b"\x01\x02\x01a\xc0\x05", "[[97], [53]]"),
        (
            b"\x09\x09\x01\x01a\x02\x01bc.\xff",
            "{[97]: ([98, 99], None)}",
        ),
        (
            b"\x03\x02\x01a\x031.5\x01b\xff",
            "[([98], -inf, None), ([97], 1.5, None)]",
        ),
        (b"\x04\x01\x01a\x01b", "{[97]: ([98], None)}"),
    ] {
        let read = load_value(value, 10);
        let read = read.unwrap_or_else(|Malformed| panic!("{}", value.escape_ascii()));
        assert_eq!(shown(&read), expected);
        let again = restore(&payload_of(&read)).expect("what was written");
        assert_eq!(shown(&again), expected);
    }
}

#[test]
fn fields_keep_their_deadlines_unless_they_are_over() {
    let wall = WALL as u64 + 500;
    let mut early = Builder::new();
    let texts = [wall.to_string(), "0".to_owned(), (WALL - 1).to_string()];
    for (field, deadline) in ["a", "b", "c"].iter().zip(&texts) {
        for word in [*field, "v", deadline] {
            early.push(word.as_bytes());
        }
    }
    let early = early.finish();
    let mut listpack = begun(kind::HASH_LISTPACK_EX);
    listpack.bytes(&wall.to_le_bytes());
    listpack.string(&early);
    let mut metadata = begun(kind::HASH_METADATA);
    metadata.bytes(&(wall - 9).to_le_bytes());
    metadata.number(2);
    for (later, field) in [(10, b"a"), (0, b"b")] {
        metadata.number(later);
        metadata.string(field);
        metadata.string(b"v");
    }
    let mut valkey = begun(kind::HASH_2);
    valkey.number(2);
    for (field, deadline) in [(b"a", wall as i64), (b"b", -1)] {
        valkey.string(field);
        valkey.string(b"v");
        valkey.bytes(&deadline.to_le_bytes());
    }
    let expected = format!(
        "{{[97]: ([118], Some({})), [98]: ([118], None)}}",
        TICK + 500
    );
    for payload in [listpack.seal(12), metadata.seal(12), valkey.seal(80)] {
        let read = restore(&payload).expect("sound");
        assert_eq!(shown(&read), expected);
        let again = restore(&payload_of(&read)).expect("what was written");
        assert_eq!(shown(&again), expected);
    }
    // All are over: nothing is left, and that is no fault.
    let mut over = begun(kind::HASH_METADATA);
    over.bytes(&1_u64.to_le_bytes());
    over.number(1);
    over.number(1);
    over.string(b"a");
    over.string(b"v");
    assert_eq!(shown(&restore(&over.seal(12)).expect("sound")), "{}");
}

#[test]
fn listpacks_and_sets_of_numbers_are_written_as_they_are_read() {
    let numbers = [
        i64::MIN,
        -5_000_000_000,
        -8_388_609,
        -8_388_608,
        -32_769,
        -32_768,
        -4_097,
        -4_096,
        -1,
        0,
        127,
        128,
        4_095,
        4_096,
        32_767,
        32_768,
        8_388_607,
        8_388_608,
        i64::MAX,
    ];
    let mut builder = Builder::new();
    for number in numbers {
        builder.push(number.to_string().as_bytes());
    }
    let lens = [0, 1, 63, 64, 4_095, 4_096, 70_000];
    let strings = lens.map(|len| vec![b'x'; len]);
    strings.iter().for_each(|string| builder.push(string));
    let bytes = builder.finish();
    let read: Result<Vec<_>, _> = Listpack::new(&bytes).expect("sound").collect();
    let expected = numbers.map(Element::Integer);
    let expected = expected
        .into_iter()
        .chain(strings.iter().map(|s| Element::Bytes(s)));
    assert_eq!(read, Ok(expected.collect()));
    for numbers in [&numbers[..], &numbers[4..14], &[5]] {
        let bytes = intset::write(numbers);
        let read: Result<Vec<_>, _> = intset::read(&bytes).expect("sound").collect();
        let expected = numbers.iter().map(|number| Element::Integer(*number));
        assert_eq!(read, Ok(expected.collect()));
    }
}

/// Collections of all types and sizes.
fn samples() -> Vec<RestoredValue> {
    let member = |i: usize| match i % 3 {
        0 => i.to_string().into_bytes(),
        1 => vec![b'm'; i],
        _ => format!("member {i}").into_bytes(),
    };
    let mut samples = Vec::new();
    for n in [1, 5, 64, 65, 300] {
        with_setting(64, |setting| {
            let (mut hash, mut list) = (Hash::new(), List::new());
            let (mut set, mut numbers, mut zset) = (Set::new(), Set::new(), ZSet::new());
            let (mut timed, mut timed_set) = (Hash::new(), Set::new());
            let mut timed_zset = ZSet::new();
            for i in 0..n {
                let (member, score) = (member(i), i as f64 / 3.0 - 5.0);
                let deadline = NewDeadline::At(TICK + 5 + i as u64 % 7);
                hash.insert(&member, b"value", NewDeadline::None, &setting.hash);
                timed.insert(&member, b"value", deadline, &setting.hash);
                list.push_back(&member.repeat(1 + i % 40), &setting.list);
                set.insert(&member, NewDeadline::None, &setting.set);
                timed_set.insert(&member, deadline, &setting.set);
                let number = (i * i * 40).to_string();
                numbers.insert(number.as_bytes(), NewDeadline::None, &setting.set);
                zset.insert(&member, score, NewDeadline::None, &setting.zset);
                timed_zset.insert(&member, score, deadline, &setting.zset);
            }
            samples.extend([hash, timed].map(RestoredValue::Hash));
            samples.extend([set, numbers, timed_set].map(RestoredValue::Set));
            samples.extend([zset, timed_zset].map(RestoredValue::ZSet));
            samples.push(RestoredValue::List(list));
            for active in [false, true] {
                samples.push(RestoredValue::Stream(stream_of(n as u64, active)));
            }
        });
    }
    samples
}

#[test]
fn collections_of_all_types_and_sizes_read_back() {
    for sample in samples() {
        let payload = payload_of(&sample);
        let again = restore(&payload).expect("what was written");
        assert_eq!(shown(&again), shown(&sample));
        assert!(measure(&payload) >= payload.len());
    }
}

/// Sound payloads with a few wrong bytes: refused, or read as something else, but nothing panics.
#[test]
fn no_change_of_a_payload_makes_it_panic() {
    let mut seed = 1_u64;
    let mut draw = |end: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % end
    };
    for sample in samples() {
        let payload = payload_of(&sample);
        let value = &payload[..payload.len() - 10];
        for _ in 0..100 {
            let mut wrong = value.to_vec();
            for _ in 0..=draw(3) {
                let at = if draw(2) == 0 {
                    draw(wrong.len())
                } else {
                    draw(wrong.len().min(24))
                };
                wrong[at] = draw(256) as u8;
            }
            wrong.truncate(if draw(8) == 0 {
                draw(wrong.len())
            } else {
                wrong.len()
            });
            for version in [10, 80] {
                if let Ok(read) = load_value(&wrong, version) {
                    let again = restore(&payload_of(&read));
                    assert_eq!(again.is_ok(), shown(&read) != "{}" && shown(&read) != "[]");
                }
            }
            measure(&wrong);
        }
    }
}

/// Payloads of Redis 8.8 (14) and 8.10 (15), and of Valkey 9.2 (81), were refused.
#[test]
fn libraries_read_back_and_no_part_of_a_payload_is_more_than_it_says() {
    let rules = Rules::default();
    let codes: [&[u8]; 4] = [b"#!lua name=a\n", b"", b"12", &[b'x'; 20_000]];
    let payload = write_functions(codes.into_iter());
    let read = read_functions(&payload, &rules, 30_000).unwrap();
    assert_eq!(read, codes);
    let why = |payload: &[u8], max| read_functions(payload, &rules, max).unwrap_err();
    assert_eq!(
        why(&payload, 20_000).text(),
        "ERR the libraries are too long"
    );
    for end in 0..payload.len() {
        assert!(why(&payload[..end], 30_000).text().contains("checksum"));
    }
    let value = &payload[..payload.len() - 10];
    for end in 0..value.len() {
        let cut = seal(value[..end].to_vec(), 12);
        // It may end behind a library.
        if let Ok(read) = read_functions(&cut, &rules, 30_000) {
            assert_eq!(read, codes[..read.len()]);
        }
    }
    for (value, expected) in [
        (&b"\xf6"[..], "ERR Pre-GA function format not supported"),
        (b"\x00\x01a", "ERR given type is not a function"),
        (b"\xf5", "ERR Failed loading library payload"),
        (b"\xf5\x05abc", "ERR Failed loading library payload"),
        // Ten bytes that say they expand to a gigabyte.
        (
            b"\xf5\xc3\x0a\x80\x40\x00\x00\x000123456789",
            "ERR Failed loading library payload",
        ),
    ] {
        assert_eq!(why(&seal(value.to_vec(), 12), 30_000).text(), expected);
    }
}

#[test]
fn payloads_of_all_public_versions_are_read() {
    let versions = (0..=100).filter(|version| {
        let mut text = begun(kind::STRING);
        text.string(b"v");
        restore(&text.seal(*version)).is_ok()
    });
    let expected: Vec<u16> = (1..=15).chain(80..=81).collect();
    assert_eq!(versions.collect::<Vec<_>>(), expected);
    for version in [80, 81] {
        let mut valkey = begun(kind::HASH_2);
        valkey.number(1);
        valkey.string(b"a");
        valkey.string(b"v");
        valkey.bytes(&(-1_i64).to_le_bytes());
        let read = restore(&valkey.seal(version)).expect("sound");
        assert_eq!(shown(&read), "{[97]: ([118], None)}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(kind in 0..30_u8, bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let value = [&[kind][..], &bytes].concat();
        let _ = load_value(&value, 12);
        prop_assert!(measure(&seal(value, 12)) <= 100 * bytes.len() + 1000);
    }
}
