//! While the snapshot is loaded, no command sees or changes a key, and nothing expires.

use std::time::Duration;

use tidewheel_keyspace::all_rows;
use tidewheel_keyspace::rows::Flags;

use super::rig::{Rig, bulk};
use crate::clients::checks;
use crate::config::Settings;

const REFUSED: &[u8] = b"-LOADING Redis is loading the dataset in memory\r\n";

fn loading(settings: Settings) -> Rig {
    let rig = Rig::new(1, settings);
    rig.server.keyspace.gate().set(checks::LOADING);
    rig
}

/// As at the start of a server.
fn end_loading(rig: &Rig) {
    rig.server.keyspace.gate().clear(checks::LOADING);
    rig.server.nudge_all();
}

/// Each row is called, and those that may run are those of the table, but for DEBUG.
#[test]
fn only_commands_of_the_table_run() {
    let mut rig = loading(Settings::default());
    let mut ran = 0;
    for row in all_rows() {
        let mut words: Vec<&[u8]> = row.name.split('|').map(str::as_bytes).collect();
        while words.len() < row.arity.unsigned_abs() as usize {
            words.push(b"1");
        }
        if row.has_subcommands() {
            continue;
        }
        let peer = rig.connect(0);
        let answer = rig.ask(&peer, &bulk(&words));
        let may = row.flags.has(Flags::LOADING)
            && (row.name == "debug|help" || !row.name.starts_with("debug"));
        ran += u32::from(may);
        assert_eq!(answer != REFUSED, may, "{}: {answer:?}", row.name);
        peer.end();
        rig.settle();
    }
    assert!(ran > 50, "{ran}");
}

#[test]
fn transactions_and_inline_commands_do_not_get_through() {
    let mut rig = loading(Settings::default());
    let peer = rig.connect(0);
    assert_eq!(rig.ask(&peer, b"GET k\r\nget k\r\n"), REFUSED.repeat(2));
    assert_eq!(rig.ask(&peer, b"MULTI\r\n"), b"+OK\r\n");
    assert_eq!(rig.ask(&peer, b"SET k v\r\n"), REFUSED);
    let aborted = b"-EXECABORT Transaction discarded because of previous errors.\r\n";
    assert_eq!(rig.ask(&peer, b"EXEC\r\n"), aborted);
    let echoed = b"+OK\r\n+QUEUED\r\n*1\r\n$1\r\nx\r\n";
    assert_eq!(rig.ask(&peer, b"MULTI\r\nECHO x\r\nEXEC\r\n"), echoed);
    assert_eq!(rig.ask(&peer, b"EVAL 'return 1' 0\r\n"), REFUSED);
    assert_eq!(rig.ask(&peer, b"BLPOP k 0\r\nPING\r\n"), REFUSED.repeat(2));
    end_loading(&rig);
    assert_eq!(rig.ask(&peer, b"PING\r\n"), b"+PONG\r\n");
    assert_eq!(rig.ask(&peer, b"DBSIZE\r\n"), b":0\r\n");
}

#[test]
fn who_has_given_no_password_is_told_that_first() {
    let mut settings = Settings::default();
    let row = crate::config::key("requirepass").expect("a key of the table");
    (row.set)(&mut settings, "secret").expect("a password");
    let mut rig = loading(settings);
    let peer = rig.connect(0);
    assert!(rig.ask(&peer, b"GET k\r\n").starts_with(b"-NOAUTH "));
    assert_eq!(rig.ask(&peer, b"AUTH secret\r\n"), b"+OK\r\n");
    assert_eq!(rig.ask(&peer, b"GET k\r\n"), REFUSED);
}

#[test]
fn what_is_due_expires_when_all_is_loaded() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = rig.connect(0);
    assert_eq!(rig.ask(&peer, b"SET k v PX 10\r\n"), b"+OK\r\n");
    rig.ask(&peer, b"CONFIG SET notify-keyspace-events Ex\r\n");
    rig.ask(&peer, b"SUBSCRIBE __keyevent@0__:expired\r\n");
    rig.server.keyspace.gate().set(checks::LOADING);
    rig.advance(Duration::from_millis(50));
    rig.settle();
    assert_eq!(peer.take(), b"");
    end_loading(&rig);
    rig.settle();
    assert!(peer.take().ends_with(b"$1\r\nk\r\n"));
}

/// Keys that are loaded are not evicted before the last is there.
#[test]
fn nothing_is_evicted() {
    let mut rig = Rig::new(1, Settings::default());
    let peer = rig.connect(0);
    for i in 0..100 {
        let key = format!("key:{i}");
        rig.ask(&peer, &bulk(&[b"SET", key.as_bytes(), &[b'v'; 1000]]));
    }
    rig.server.keyspace.gate().set(checks::LOADING);
    rig.ask(&peer, b"CONFIG SET maxmemory-policy allkeys-lru\r\n");
    rig.ask(&peer, b"CONFIG SET maxmemory 20kb\r\n");
    let evicted = |rig: &Rig| rig.server.keyspace.stats(rig.server.clock.now()).evicted;
    rig.settle();
    assert_eq!(evicted(&rig), 0);
    end_loading(&rig);
    rig.advance(Duration::from_millis(1));
    rig.settle();
    assert!(evicted(&rig) > 0);
}
