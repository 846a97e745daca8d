//! A reply longer than its client may hold is not built: the client is closed instead.

use std::time::Duration;

use super::rig::{Peer, Rig, bulk};
use crate::config::{OutputLimit, Settings};

const LIMIT: u64 = 1 << 20;

/// With a hard limit for those that are no subscribers.
fn limited(settings: Settings) -> Settings {
    let mut settings = settings;
    settings.output_limits.normal = OutputLimit {
        hard: LIMIT,
        soft: 0,
        soft_seconds: 0,
    };
    settings
}

fn set(rig: &mut Rig, name: &str, bytes: usize) {
    let setter = rig.connect(0);
    let words = [&b"SET"[..], name.as_bytes(), &vec![b'v'; bytes]];
    assert_eq!(rig.ask(&setter, &bulk(&words)), b"+OK\r\n");
    setter.end();
    rig.settle();
}

/// One key so often that the reply is far beyond every limit.
fn many(name: &str, times: usize) -> Vec<u8> {
    let words: Vec<&[u8]> = std::iter::once(&b"MGET"[..])
        .chain(std::iter::repeat_n(name.as_bytes(), times))
        .collect();
    bulk(&words)
}

fn is_closed_unanswered(rig: &mut Rig, request: &[u8]) {
    let peer = rig.connect(0);
    assert_eq!(rig.ask(&peer, request).len(), 0, "nothing of it is sent");
    assert!(peer.is_closed());
}

#[test]
fn a_reply_beyond_the_hard_limit_is_not_built() {
    let mut rig = Rig::new(1, limited(Settings::default()));
    set(&mut rig, "large", 400_000);
    set(&mut rig, "small", 1_000);
    is_closed_unanswered(&mut rig, &many("large", 20));
    is_closed_unanswered(&mut rig, &many("small", 20_000));
    is_closed_unanswered(&mut rig, &bulk(&[b"ECHO", &vec![b'x'; 2 << 20]]));
    assert_eq!(rig.server.totals().output_limit_closes, 3);
    let other = rig.connect(0);
    assert_eq!(rig.ask(&other, &many("large", 2)).len(), 2 * 400_011 + 4);
}

/// If more followed behind the limit, the client was told that there was not enough memory.
#[test]
fn a_scripts_reply_beyond_the_hard_limit_closes_its_client_whatever_follows() {
    let mut rig = Rig::new(1, limited(Settings::default()));
    set(&mut rig, "large", 400_000);
    for made in ["v", "v, 1", "{v, {v}}, {1}", "{map = {a = v, b = v}}, {1}"] {
        let script = format!("local v = redis.call('GET', KEYS[1]) return {{v, v, v, {made}}}");
        for word in [&b"EVAL"[..], b"EVAL_RO"] {
            is_closed_unanswered(&mut rig, &bulk(&[word, script.as_bytes(), b"1", b"large"]));
        }
    }
}

#[test]
fn a_walk_beyond_the_hard_limit_ends_with_its_client() {
    let mut rig = Rig::new(1, limited(Settings::default()));
    for i in 0..3_000 {
        set(&mut rig, &format!("{i:01000}"), 1);
    }
    is_closed_unanswered(&mut rig, b"KEYS *\r\n");
    is_closed_unanswered(&mut rig, b"SCAN 0 COUNT 10000\r\n");
    assert_eq!(rig.server.totals().output_limit_closes, 2);
}

#[test]
fn a_reply_beyond_the_memory_of_all_clients_is_not_built_unless_its_client_may_not_be_closed() {
    let settings = Settings {
        max_memory_clients: LIMIT,
        ..Settings::default()
    };
    let mut rig = Rig::new(1, settings);
    set(&mut rig, "large", 400_000);
    is_closed_unanswered(&mut rig, &many("large", 20));
    assert_eq!(rig.server.totals().evicted_clients, 1);
    let kept = rig.connect(0);
    rig.ask(&kept, b"CLIENT NO-EVICT ON\r\n");
    assert_eq!(rig.ask(&kept, &many("large", 20)).len(), 20 * 400_011 + 5);
}

#[test]
fn a_reply_that_is_not_wanted_has_no_limit() {
    let mut rig = Rig::new(1, limited(Settings::default()));
    set(&mut rig, "large", 400_000);
    let peer = rig.connect(0);
    let request = [
        b"CLIENT REPLY OFF\r\n".to_vec(),
        many("large", 20),
        b"CLIENT REPLY ON\r\n".to_vec(),
    ];
    assert_eq!(rig.ask(&peer, &request.concat()), b"+OK\r\n");
}

#[test]
fn replies_that_are_small_and_read_in_time_have_no_limit_together() {
    let mut rig = Rig::new(1, limited(Settings::default()));
    set(&mut rig, "small", 1_000);
    let peer = rig.connect(0);
    let read = rig.ask(&peer, &bulk(&[b"GET", b"small"]).repeat(5_000));
    assert_eq!(read.len(), 5_000 * 1_009);
}

/// Above the soft limit from here on.
fn falls_behind(rig: &mut Rig, peer: &Peer) {
    peer.wire.borrow_mut().narrow(0, usize::MAX);
    assert_eq!(rig.ask(peer, b"GET large\r\n"), b"");
}

#[test]
fn a_client_that_reads_all_its_output_may_exceed_the_soft_limit_for_the_full_time_again() {
    let mut settings = Settings::default();
    settings.output_limits.normal = OutputLimit {
        hard: 0,
        soft: 1_000,
        soft_seconds: 10,
    };
    let mut rig = Rig::new(1, settings);
    set(&mut rig, "large", 400_000);
    let peer = rig.connect(0);
    falls_behind(&mut rig, &peer);
    rig.advance(Duration::from_secs(8));
    rig.settle();
    peer.wire.borrow_mut().narrow(usize::MAX, usize::MAX);
    rig.settle();
    assert_eq!(peer.take().len(), 400_011);
    falls_behind(&mut rig, &peer);
    rig.advance(Duration::from_secs(8));
    rig.settle();
    assert!(!peer.is_closed());
    rig.advance(Duration::from_secs(3));
    rig.settle();
    assert!(peer.is_closed());
}

/// Lowers the limits through another client while this one waits.
fn lower(rig: &mut Rig, limits: &str) {
    let boss = rig.connect(0);
    let words = [
        &b"CONFIG"[..],
        b"SET",
        b"client-output-buffer-limit",
        limits.as_bytes(),
    ];
    assert_eq!(rig.ask(&boss, &bulk(&words)), b"+OK\r\n");
}

#[test]
fn a_limit_that_was_lowered_closes_whoever_holds_more_already() {
    for (limits, seconds) in [
        ("normal 1000 0 0 pubsub 1000 0 0", 0),
        ("normal 0 1000 1 pubsub 0 1000 1", 2),
        ("normal 0 1000 0 pubsub 0 1000 0", 1),
    ] {
        let mut rig = Rig::new(2, Settings::default());
        set(&mut rig, "large", 4_000_000);
        let (reader, listener) = (rig.connect(1), rig.connect(1));
        falls_behind(&mut rig, &reader);
        rig.ask(&listener, b"SUBSCRIBE news\r\n");
        listener.wire.borrow_mut().narrow(0, usize::MAX);
        let speaker = rig.connect(0);
        rig.ask(&speaker, &bulk(&[b"PUBLISH", b"news", &[b'x'; 100_000]]));
        rig.advance(Duration::from_secs(60));
        rig.settle();
        assert!(!reader.is_closed() && !listener.is_closed());
        lower(&mut rig, limits);
        rig.advance(Duration::from_secs(seconds));
        rig.settle();
        assert!(reader.is_closed() && listener.is_closed(), "{limits}");
        assert_eq!(rig.server.totals().output_limit_closes, 2);
    }
}

#[test]
fn a_soft_time_that_begins_with_a_lowered_limit_is_granted_in_full() {
    let mut rig = Rig::new(1, Settings::default());
    set(&mut rig, "large", 400_000);
    let peer = rig.connect(0);
    falls_behind(&mut rig, &peer);
    rig.advance(Duration::from_secs(60));
    lower(&mut rig, "normal 0 1000 10");
    rig.advance(Duration::from_secs(9));
    rig.settle();
    assert!(!peer.is_closed());
    rig.advance(Duration::from_secs(2));
    rig.settle();
    assert!(peer.is_closed());
}

/// The replies repeat each name, and their length had no limit.
#[test]
fn confirmations_of_subscriptions_beyond_the_hard_limit_are_not_built() {
    let mut settings = limited(Settings::default());
    settings.output_limits.pubsub = settings.output_limits.normal;
    let mut rig = Rig::new(1, settings);
    for command in [
        &b"SUBSCRIBE"[..],
        b"PSUBSCRIBE",
        b"UNSUBSCRIBE",
        b"PUNSUBSCRIBE",
    ] {
        let names: Vec<String> = (0..80).map(|i| format!("{i:050000}")).collect();
        let names = names.iter().map(String::as_bytes);
        let words: Vec<&[u8]> = std::iter::once(command).chain(names).collect();
        let silent = rig.connect(0);
        silent.wire.borrow_mut().narrow(0, usize::MAX);
        rig.ask(&silent, &bulk(&words));
        assert!(silent.is_closed());
        assert_eq!(rig.server.hub.counts(), (0, 0));
        // Whoever reads each part as it comes holds none of them.
        let reader = rig.connect(0);
        let heard = rig.ask(&reader, &bulk(&words));
        assert!(heard.len() > 80 * 50_000 && !reader.is_closed());
        rig.ask(&reader, b"QUIT\r\n");
    }
    assert_eq!(rig.server.totals().output_limit_closes, 4);
}

/// Its milliseconds did not fit a number, so the client was closed at once.
#[test]
fn the_longest_soft_time_closes_nobody() {
    let mut rig = Rig::new(1, Settings::default());
    set(&mut rig, "large", 400_000);
    lower(&mut rig, "normal 0 1000 2147483647");
    let peer = rig.connect(0);
    falls_behind(&mut rig, &peer);
    rig.advance(Duration::from_secs(100_000));
    rig.settle();
    assert!(!peer.is_closed());
    let boss = rig.connect(0);
    let refused = rig.ask(
        &boss,
        b"CONFIG SET client-output-buffer-limit \"normal 0 1000 9223372036854775807\"\r\n",
    );
    assert!(refused.starts_with(b"-ERR CONFIG SET failed"));
}

/// The names were gathered before the reply was begun.
#[test]
fn names_of_channels_beyond_the_hard_limit_are_not_gathered() {
    let mut rig = Rig::new(1, limited(Settings::default()));
    for i in 0..4 {
        let listener = rig.connect(0);
        let name = format!("{i}{}", "c".repeat(500_000));
        rig.ask(&listener, &bulk(&[b"SUBSCRIBE", name.as_bytes()]));
    }
    let other = rig.connect(0);
    let one = rig.ask(&other, b"PUBSUB CHANNELS 1*\r\n");
    assert_eq!(one.len(), 500_001 + 15);
    is_closed_unanswered(&mut rig, b"PUBSUB CHANNELS\r\n");
    assert_eq!(rig.server.totals().output_limit_closes, 1);
}
