//! Scripts in the simulated server: what they reach for, and who sees what.

use std::time::Duration;

use super::rig::{Peer, Rig, bulk};
use crate::config::Settings;

fn rig() -> Rig {
    Rig::new(1, Settings::default())
}

/// Asks with these words; the reply as text.
fn ask(rig: &mut Rig, peer: &Peer, words: &[&str]) -> String {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    peer.send(&bulk(&words));
    rig.settle();
    String::from_utf8(peer.take()).expect("text")
}

fn retries(rig: &mut Rig, peer: &Peer) -> u64 {
    let info = ask(rig, peer, &["INFO", "stats"]);
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("script_retries:"));
    line.and_then(|number| number.parse().ok())
        .expect("a counter")
}

#[test]
fn a_script_runs_by_its_text_and_by_its_name() {
    let mut rig = rig();
    let peer = rig.connect(0);
    let incr = "return redis.call('incrby', KEYS[1], ARGV[1])";
    assert_eq!(
        ask(&mut rig, &peer, &["EVAL", incr, "1", "n", "5"]),
        ":5\r\n"
    );
    let name = ask(&mut rig, &peer, &["SCRIPT", "LOAD", incr]);
    let name = name.lines().nth(1).expect("a name").to_owned();
    assert_eq!(
        ask(&mut rig, &peer, &["EVALSHA", &name, "1", "n", "2"]),
        ":7\r\n"
    );
    let upper = name.to_uppercase();
    assert_eq!(
        ask(&mut rig, &peer, &["EVALSHA", &upper, "1", "n", "2"]),
        ":9\r\n"
    );
    let missing = "0".repeat(40);
    let exists = ask(&mut rig, &peer, &["SCRIPT", "EXISTS", &name, &missing]);
    assert_eq!(exists, "*2\r\n:1\r\n:0\r\n");
    assert_eq!(ask(&mut rig, &peer, &["SCRIPT", "FLUSH"]), "+OK\r\n");
    for name in [&name, &missing, "short"] {
        let reply = ask(&mut rig, &peer, &["EVALSHA", name, "1", "n", "2"]);
        assert!(reply.starts_with("-NOSCRIPT "), "{reply}");
    }
    for (number, expected) in [
        (
            "2",
            "-ERR Number of keys can't be greater than number of args\r\n",
        ),
        ("-1", "-ERR Number of keys can't be negative\r\n"),
        ("x", "-ERR value is not an integer or out of range\r\n"),
    ] {
        assert_eq!(ask(&mut rig, &peer, &["EVAL", incr, number, "n"]), expected);
    }
}

/// A script that stays with its keys soon locks no others; one that does not begins again.
#[test]
fn what_a_script_reaches_for_is_learned() {
    let mut rig = rig();
    let peer = rig.connect(0);
    let get =
        "local far = ARGV[1] or KEYS[1] redis.call('get', KEYS[1]) return redis.call('get', far)";
    rig.ask(&peer, b"MSET a 1 b 2 c 3 d 4 e 5\r\n");
    for _ in 0..5 {
        assert_eq!(
            ask(&mut rig, &peer, &["EVAL", get, "1", "a"]),
            "$1\r\n1\r\n"
        );
    }
    assert_eq!(retries(&mut rig, &peer), 0);
    for (far, value) in [("b", "2"), ("c", "3"), ("d", "4"), ("e", "5")] {
        let expected = format!("$1\r\n{value}\r\n");
        assert_eq!(
            ask(&mut rig, &peer, &["EVAL", get, "1", "a", far]),
            expected
        );
    }
    assert_eq!(retries(&mut rig, &peer), 1, "once");
}

/// Even what it catches does not hide that it must begin again.
#[test]
fn a_script_that_needs_everything_gets_it() {
    let mut rig = rig();
    let peer = rig.connect(0);
    rig.ask(&peer, b"MSET a 1 b 2\r\n");
    let count = "local ok = pcall(redis.call, 'dbsize') if not ok then return -1 end return redis.call('dbsize')";
    assert_eq!(ask(&mut rig, &peer, &["EVAL", count, "0"]), ":2\r\n");
    let keys = "return #redis.call('keys', '*')";
    assert_eq!(ask(&mut rig, &peer, &["EVAL", keys, "0"]), ":2\r\n");
    // What was changed before is not changed again.
    let both =
        "redis.call('incr', 'n') return {redis.call('get', 'n'), #redis.call('ke' .. 'ys', '*')}";
    let first = ask(&mut rig, &peer, &["EVAL", both, "0"]);
    assert!(
        first.starts_with("-ERR the script has changed data"),
        "{first}"
    );
    assert_eq!(
        ask(&mut rig, &peer, &["EVAL", both, "0"]),
        "*2\r\n$1\r\n2\r\n:3\r\n"
    );
}

/// They were refused, but Redis runs them.
#[test]
fn blocking_commands_do_not_wait_within_a_script() {
    let mut rig = rig();
    let peer = rig.connect(0);
    for call in [
        "'blpop', KEYS[1], 0",
        "'brpop', KEYS[1], 0",
        "'blmove', KEYS[1], KEYS[1], 'left', 'left', 0",
        "'brpoplpush', KEYS[1], KEYS[1], 0",
        "'blmpop', 0, 1, KEYS[1], 'left'",
        "'bzpopmin', KEYS[1], 0",
        "'bzpopmax', KEYS[1], 0",
        "'bzmpop', 0, 1, KEYS[1], 'min'",
        "'xread', 'block', 0, 'streams', KEYS[1], '$'",
    ] {
        let body = format!("return redis.call({call})");
        let reply = ask(&mut rig, &peer, &["EVAL", &body, "1", "k"]);
        assert!(["$-1\r\n", "*-1\r\n"].contains(&&*reply), "{call}: {reply}");
    }
    for call in ["'wait', 1, 0", "'incr', 'n'"] {
        let body = format!("return redis.call({call})");
        let reply = ask(&mut rig, &peer, &["EVAL", &body, "0"]);
        assert!(reply.starts_with(':'), "{call}: {reply}");
    }
    let one = "redis.call('rpush', KEYS[1], 'a') return redis.call('blpop', KEYS[1], 0)[2]";
    let reply = ask(&mut rig, &peer, &["EVAL", one, "1", "k"]);
    assert_eq!(reply, "$1\r\na\r\n");
}

#[test]
fn what_scripts_may_not_run_is_refused() {
    let mut rig = rig();
    let peer = rig.connect(0);
    for (call, expected) in [
        ("'subscribe', 'a'", "not allowed from script"),
        ("'multi'", "not allowed from script"),
        ("'eval', 'return 1', 0", "not allowed from script"),
        ("'nosuch'", "Unknown Redis command"),
        ("'get'", "Wrong number of args"),
    ] {
        let body = format!("return redis.call({call})");
        let reply = ask(&mut rig, &peer, &["EVAL", &body, "0"]);
        assert!(
            reply.starts_with('-') && reply.contains(expected),
            "{call}: {reply}"
        );
    }
    let set = "return redis.call('set', KEYS[1], 1)";
    for command in ["EVAL_RO", "EVAL"] {
        let body = match command {
            "EVAL" => format!("#!lua flags=no-writes\n{set}"),
            _ => set.to_owned(),
        };
        let reply = ask(&mut rig, &peer, &[command, &body, "1", "a"]);
        assert!(reply.contains("read-only scripts"), "{reply}");
    }
    assert_eq!(ask(&mut rig, &peer, &["EXISTS", "a"]), ":0\r\n");
}

#[test]
fn a_transaction_may_hold_scripts_and_a_script_selects_for_itself() {
    let mut rig = rig();
    let peer = rig.connect(0);
    let body = "redis.call('select', 3) redis.call('set', KEYS[1], ARGV[1]) return redis.call('get', KEYS[1])";
    assert_eq!(ask(&mut rig, &peer, &["MULTI"]), "+OK\r\n");
    assert_eq!(ask(&mut rig, &peer, &["SET", "a", "0"]), "+QUEUED\r\n");
    assert_eq!(
        ask(&mut rig, &peer, &["EVAL", body, "1", "a", "1"]),
        "+QUEUED\r\n"
    );
    let reply = ask(&mut rig, &peer, &["EXEC"]);
    assert_eq!(reply, "*2\r\n+OK\r\n$1\r\n1\r\n");
    assert_eq!(ask(&mut rig, &peer, &["GET", "a"]), "$1\r\n0\r\n");
}

/// The end of the script served those who wait, between two commands of the transaction.
#[test]
fn who_waits_is_served_when_the_transaction_ends_that_a_script_stands_in() {
    let mut rig = Rig::new(2, Settings::default());
    let (peer, waiter) = (rig.connect(0), rig.connect(1));
    assert_eq!(rig.ask(&waiter, b"BLPOP l 0\r\n"), b"");
    let push = "return redis.call('rpush', KEYS[1], 'a', 'b')";
    ask(&mut rig, &peer, &["MULTI"]);
    ask(&mut rig, &peer, &["EVAL", push, "1", "l"]);
    ask(&mut rig, &peer, &["LLEN", "l"]);
    ask(&mut rig, &peer, &["LPOP", "l"]);
    assert_eq!(
        ask(&mut rig, &peer, &["EXEC"]),
        "*3\r\n:2\r\n:2\r\n$1\r\na\r\n"
    );
    assert_eq!(waiter.take(), b"*2\r\n$1\r\nl\r\n$1\r\nb\r\n");
}

/// After a script with many calls the clock was read, and the next one of the transaction lived
/// later.
#[test]
fn time_stands_still_in_a_transaction_with_scripts() {
    let mut rig = rig();
    let peer = rig.connect(0);
    let body = "local n = 0 for i = 1, 200 do n = n + redis.call('exists', KEYS[1]) end return n";
    ask(&mut rig, &peer, &["MULTI"]);
    ask(&mut rig, &peer, &["SET", "k", "v", "PX", "2"]);
    for _ in 0..3 {
        ask(&mut rig, &peer, &["EVAL", body, "1", "k"]);
    }
    ask(&mut rig, &peer, &["EXISTS", "k"]);
    rig.server.clock.pass_with_looks(Duration::from_millis(1));
    peer.send(b"EXEC\r\n");
    for _ in 0..4 {
        rig.turn(0);
    }
    rig.server.clock.pass_with_looks(Duration::ZERO);
    let reply = String::from_utf8(peer.take()).expect("text");
    assert_eq!(reply, "*5\r\n+OK\r\n:200\r\n:200\r\n:200\r\n:1\r\n");
}

#[test]
fn others_hear_of_what_a_script_does_and_waiters_are_served() {
    let mut rig = rig();
    let [peer, listener, waiter] = [(); 3].map(|()| rig.connect(0));
    rig.ask(&listener, b"SUBSCRIBE news\r\n");
    waiter.send(b"BLPOP l 0\r\n");
    rig.settle();
    let body = "redis.call('rpush', KEYS[1], 'x', 'y') return redis.call('publish', 'news', 'n')";
    assert_eq!(ask(&mut rig, &peer, &["EVAL", body, "1", "l"]), ":1\r\n");
    assert_eq!(waiter.take(), b"*2\r\n$1\r\nl\r\n$1\r\nx\r\n");
    let heard = listener.take();
    assert!(heard.ends_with(b"$4\r\nnews\r\n$1\r\nn\r\n"), "{heard:?}");
}

/// Time stands still inside, and what is due dies by it.
#[test]
fn a_script_sees_one_point_in_time() {
    let mut rig = rig();
    let peer = rig.connect(0);
    let body = "redis.call('set', KEYS[1], 1, 'px', 1) local n = 0 for i = 1, 1000 do \
                n = n + redis.call('exists', KEYS[1]) end return n";
    assert_eq!(ask(&mut rig, &peer, &["EVAL", body, "1", "k"]), ":1000\r\n");
    assert_eq!(
        ask(&mut rig, &peer, &["SCRIPT", "KILL"]).get(..8),
        Some("-NOTBUSY")
    );
}
