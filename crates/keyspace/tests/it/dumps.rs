//! DUMP and RESTORE.

use std::sync::atomic::Ordering::Relaxed;

use crate::common::{OOM, Rig, show};
use tidewheel_keyspace::Policy;
use tidewheel_resp::Reply;

fn dump(rig: &mut Rig, key: &str) -> Vec<u8> {
    match rig.words(&[b"DUMP", key.as_bytes()]) {
        Reply::Bulk(bytes) => bytes,
        other => panic!("{key}: {other:?}"),
    }
}

fn restore(rig: &mut Rig, key: &str, ttl: &str, payload: &[u8], options: &str) -> String {
    let mut words: Vec<&[u8]> = vec![b"RESTORE", key.as_bytes(), ttl.as_bytes(), payload];
    words.extend(options.split_whitespace().map(str::as_bytes));
    show(&rig.words(&words))
}

#[test]
fn strings_come_back_under_any_key() {
    let mut rig = Rig::new();
    for value in [
        "",
        "1",
        "-70000",
        "bar",
        &"x".repeat(3_000),
        &"y".repeat(200_000),
    ] {
        rig.words(&[b"SET", b"k", value.as_bytes()]);
        let payload = dump(&mut rig, "k");
        assert_eq!(restore(&mut rig, "copy", "0", &payload, "REPLACE"), "OK");
        assert_eq!(rig.run("GET copy"), format!("'{value}'"));
        assert_eq!(rig.run("TTL copy"), ":-1");
    }
    assert_eq!(rig.run("DUMP nope"), "nil");
}

#[test]
fn options_say_when_it_ends_and_how_it_was_used() {
    let mut rig = Rig::new();
    rig.run("SET k v");
    let payload = dump(&mut rig, "k");
    let wall = 1_700_000_000_000_i64;
    let busy = "-BUSYKEY Target key name already exists.";
    for (key, ttl, options, reply) in [
        ("k", "0", "", busy),
        ("k", "x", "", busy),
        ("k", "500", "replace", "OK"),
        (
            "new",
            "x",
            "",
            "-ERR value is not an integer or out of range",
        ),
        ("new", "-1", "", "-ERR Invalid TTL value, must be >= 0"),
        ("new", "0", "BOGUS", "-ERR syntax error"),
        ("new", "0", "IDLETIME", "-ERR syntax error"),
        ("new", "0", "IDLETIME 5 FREQ 5", "-ERR syntax error"),
        ("new", "0", "FREQ 5 IDLETIME 5", "-ERR syntax error"),
        (
            "new",
            "0",
            "IDLETIME -1",
            "-ERR Invalid IDLETIME value, must be >= 0",
        ),
        (
            "new",
            "0",
            "FREQ 256",
            "-ERR Invalid FREQ value, must be >= 0 and <= 255",
        ),
        ("new", "0", "IDLETIME 1000", "OK"),
    ] {
        assert_eq!(
            restore(&mut rig, key, ttl, &payload, options),
            reply,
            "{options}"
        );
    }
    assert_eq!(rig.run("PTTL k"), ":500");
    assert_eq!(rig.run("OBJECT IDLETIME new"), ":1000");
    let at = (wall + 700).to_string();
    assert_eq!(restore(&mut rig, "at", &at, &payload, "ABSTTL"), "OK");
    assert_eq!(rig.run("PTTL at"), ":700");
    rig.keyspace
        .rules()
        .set_policy(Policy::parse(b"allkeys-lfu").expect("a policy"));
    assert_eq!(restore(&mut rig, "often", "0", &payload, "FREQ 100"), "OK");
    assert_eq!(rig.run("OBJECT FREQ often"), ":100");
}

#[test]
fn a_payload_that_is_over_removes_the_key() {
    let mut rig = Rig::new();
    rig.run("SET k v");
    let payload = dump(&mut rig, "k");
    rig.notify("KEA");
    assert_eq!(restore(&mut rig, "new", "1", &payload, "ABSTTL"), "OK");
    assert_eq!(rig.events(), [""; 0]);
    assert_eq!(
        restore(&mut rig, "k", "1", &payload, "ABSTTL REPLACE"),
        "OK"
    );
    assert_eq!(rig.events(), ["0:del:k"]);
    assert_eq!(restore(&mut rig, "k", "0", &payload, ""), "OK");
    assert_eq!(rig.events(), ["0:restore:k"]);
}

#[test]
fn wrong_bytes_are_refused() {
    let mut rig = Rig::new();
    rig.run("SET k v");
    let payload = dump(&mut rig, "k");
    let envelope = "-ERR DUMP payload version or checksum are wrong";
    for at in 0..payload.len() {
        let mut wrong = payload.clone();
        wrong[at] ^= 1;
        assert_eq!(restore(&mut rig, "new", "0", &wrong, ""), envelope);
        assert_eq!(restore(&mut rig, "new", "0", &payload[..at], ""), envelope);
    }
    rig.keyspace.rules().skip_checksums.store(true, Relaxed);
    let unknown = b"\x07\x01v\x0a\0........";
    assert_eq!(
        restore(&mut rig, "new", "0", unknown, ""),
        "-ERR Bad data format"
    );
    let plain = b"\0\x01w\x50\0........";
    assert_eq!(restore(&mut rig, "new", "0", plain, ""), "OK");
    assert_eq!(rig.run("GET new"), "'w'");
}

#[test]
fn what_a_payload_will_need_is_known_before() {
    let mut rig = Rig::new();
    rig.words(&[b"SET", b"k", &vec![b'x'; 600_000]]);
    let payload = dump(&mut rig, "k");
    rig.keyspace.rules().maxmemory.store(1_000_000, Relaxed);
    assert_eq!(restore(&mut rig, "new", "0", &payload, ""), OOM);
    // A run of a hundred kilobytes, in a thousandth of that.
    let mut packed = b"\0a".to_vec();
    packed.extend(std::iter::repeat_n(b"\xe0\xff\0", 2_000).flatten());
    let mut run = b"\0\xc3\x80\0\0".to_vec();
    run.extend_from_slice(&(packed.len() as u16).to_be_bytes());
    run.extend_from_slice(b"\x80");
    run.extend_from_slice(&(2_000_u32 * 264 + 1).to_be_bytes());
    run.extend_from_slice(&packed);
    run.extend_from_slice(b"\x0a\0........");
    rig.keyspace.rules().skip_checksums.store(true, Relaxed);
    assert_eq!(restore(&mut rig, "new", "0", &run, ""), OOM);
    rig.run("DEL k");
    assert_eq!(restore(&mut rig, "new", "0", &run, ""), "OK");
    assert_eq!(rig.run("STRLEN new"), ":528001");
}

/// The members of a large set take several times their bytes in the payload, and exceeded the
/// limit.
#[test]
fn members_that_do_not_fit_are_refused_when_they_are_known() {
    let mut rig = Rig::new();
    for i in 0..20_000 {
        rig.run(&format!("SADD k m{i}"));
    }
    let payload = dump(&mut rig, "k");
    rig.run("DEL k");
    let limit = 3 * payload.len() as u64;
    rig.keyspace.rules().maxmemory.store(limit, Relaxed);
    assert_eq!(restore(&mut rig, "k", "0", &payload, ""), OOM);
    assert!(rig.keyspace.stats(rig.time).used_memory <= limit);
    rig.keyspace.rules().maxmemory.store(4 * limit, Relaxed);
    assert_eq!(restore(&mut rig, "k", "0", &payload, ""), "OK");
    assert_eq!(rig.run("SCARD k"), ":20000");
}

#[test]
fn members_keep_their_deadlines_and_the_key_its_own() {
    let mut rig = Rig::new();
    for (make, expire, ttl, len) in [
        (
            "HSET k f v g w",
            "HPEXPIRE k 500 FIELDS 1 f",
            "HPTTL k FIELDS 2 f g",
            "HLEN k",
        ),
        (
            "SADD k f g",
            "SPEXPIRE k 500 MEMBERS 1 f",
            "SPTTL k MEMBERS 2 f g",
            "SCARD k",
        ),
        (
            "ZADD k 1 f 2 g",
            "ZPEXPIRE k 500 MEMBERS 1 f",
            "ZPTTL k MEMBERS 2 f g",
            "ZCARD k",
        ),
    ] {
        rig.run("DEL k");
        rig.run(make);
        assert_eq!(rig.run(expire), "[:1]");
        let payload = dump(&mut rig, "k");
        assert_eq!(restore(&mut rig, "k", "9000", &payload, "REPLACE"), "OK");
        assert_eq!(rig.run(ttl), "[:500 :-1]", "{make}");
        assert_eq!(rig.run("PTTL k"), ":9000", "{make}");
        rig.pass(500);
        assert_eq!(rig.run(len), ":1", "{make}");
        // The deadline is over in the payload too.
        assert_eq!(restore(&mut rig, "k", "0", &payload, "REPLACE"), "OK");
        assert_eq!(rig.run(ttl), "[:-2 :-1]", "{make}");
        assert_eq!(rig.run("PTTL k"), ":-1", "{make}");
    }
    // A hash whose fields are all over is gone.
    rig.run("DEL k");
    rig.run("HSET k f v");
    rig.run("HPEXPIRE k 500 FIELDS 1 f");
    let payload = dump(&mut rig, "k");
    rig.pass(500);
    assert_eq!(restore(&mut rig, "k", "0", &payload, "REPLACE"), "OK");
    assert_eq!(rig.run("EXISTS k"), ":0");
}
