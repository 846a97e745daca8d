//! A loop that has nothing to do sleeps, whatever the others do.

use super::tools::{client_of_loop, flood, number, script};
use crate::common::{Client, Reply, Server, bulk, eventually, ok, simple};

/// Turns of all loops while a key lives for half a second. A loop that does not sleep takes
/// hundreds of thousands.
fn turns_of_half_a_second(server: &Server, asker: &mut Client) -> u64 {
    let mut listener = server.client();
    script(&mut listener, "PSUBSCRIBE __keyevent@0__:expired");
    let before = number(asker, "stats", "eventloop_cycles");
    assert_eq!(asker.call(&["SET", "hourglass", "v", "PX", "500"]), ok());
    listener.read();
    number(asker, "stats", "eventloop_cycles") - before
}

#[test]
fn loops_without_shards_sleep() {
    let layout = ["--threads", "6", "--shards", "2"];
    let server = Server::start(&[&layout[..], &["--notify-keyspace-events", "Ex"]].concat());
    let mut client = server.client();
    // Changes have all loops look whether there is something to tidy.
    script(&mut client, "SET a b\nSET c d\nDEL a c");
    let turns = turns_of_half_a_second(&server, &mut client);
    assert!(turns < 2_000, "{turns} turns");
    // They serve all the same.
    let mut clients: Vec<Client> = (0..12).map(|_| server.client()).collect();
    for client in &mut clients {
        assert_eq!(client.call(&["PING"]), simple("PONG"));
    }
}

/// While one loop is stuck, the other expires its keys, and then sleeps.
#[test]
fn a_loop_that_helped_one_that_is_stuck_sleeps_again() {
    let flags = [
        "--notify-keyspace-events",
        "Ex",
        "--enable-debug-command",
        "yes",
    ];
    let turns = eventually("a loop is stuck for long enough", || {
        turns_beside_a_stuck_loop(&Server::start(&flags))
    });
    assert!(turns < 5_000, "{turns} turns");
}

/// Turns that were taken while one of two loops did nothing and the keys of both died. `None` if it
/// did something after all.
fn turns_beside_a_stuck_loop(server: &Server) -> Option<u64> {
    let mut boss = server.client();
    let mut others = Vec::new();
    let mut stuck = client_of_loop(server, &mut boss, 1, &mut others);
    let mut free = client_of_loop(server, &mut boss, 0, &mut others);
    // On the free loop, so that it hears of what expires.
    let mut listener = client_of_loop(server, &mut boss, 0, &mut others);
    script(&mut listener, "PSUBSCRIBE __keyevent@0__:expired");
    stuck.send(b"DEBUG SLEEP 1.5\r\n");
    let before = number(&mut free, "stats", "eventloop_cycles");
    let sets: String = (0..200)
        .map(|i| format!("SET key:{i} v PX 20\r\n"))
        .collect();
    assert_eq!(flood(&mut free, sets.as_bytes(), 200, &ok()), 0);
    for _ in 0..200 {
        listener.read();
    }
    assert_eq!(free.call(&["SET", "hourglass", "v", "PX", "500"]), ok());
    let Reply::Array(items) = listener.read() else {
        panic!("no message")
    };
    assert_eq!(items[3], bulk("hourglass"));
    let turns = number(&mut free, "stats", "eventloop_cycles") - before;
    stuck.is_silent().then_some(turns)
}

/// The other loop slept already when the first got stuck, and nothing woke it to help.
#[test]
fn a_loop_that_gets_stuck_while_all_others_sleep_is_helped() {
    let layout = ["--threads", "2", "--shards", "1"];
    let wants = [
        "--notify-keyspace-events",
        "Ex",
        "--enable-debug-command",
        "yes",
    ];
    let server = Server::start(&[layout, wants].concat());
    let mut boss = server.client();
    let mut others = Vec::new();
    let mut stuck = client_of_loop(&server, &mut boss, 0, &mut others);
    let mut listener = client_of_loop(&server, &mut boss, 1, &mut others);
    script(&mut listener, "PSUBSCRIBE __keyevent@0__:expired");
    // The loop of the only shard sets a deadline, which the other does not hear of, and does not
    // come back.
    stuck.send(b"SET k v PX 300\r\nDEBUG SLEEP 4\r\n");
    let Reply::Array(items) = listener.read() else {
        panic!("no message")
    };
    assert_eq!(items[3], bulk("k"));
    assert!(
        stuck.is_silent(),
        "it was helped only when it had come back"
    );
}
