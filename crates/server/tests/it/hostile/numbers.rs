//! Commands whose cost or result differed from what is promised.

use super::tools::{cpu_seconds, script};
use crate::common::{Client, Reply, Server, bulk, ok, text};

/// A read of a large value left a share of it behind, so the next change copied all of it.
#[test]
fn a_read_of_a_large_value_makes_no_later_append_copy_it() {
    const ROUNDS: usize = 1_000;
    let server = Server::start(&["--threads", "1"]);
    let mut client = server.client();
    script(&mut client, "SETRANGE big 67108863 x");
    let mut cost = |read: &str| {
        let before = cpu_seconds(&mut client);
        let lines = format!("{read}\nAPPEND big x\n").repeat(ROUNDS);
        script(&mut client, &lines);
        cpu_seconds(&mut client) - before
    };
    // The first append may move the value to where it can grow.
    cost("STRLEN big");
    let (small, large) = (cost("GETRANGE big 0 65000"), cost("GETRANGE big 0 66000"));
    assert!(large < 4.0 * small + 0.1, "{large} s beside {small} s");
}

#[test]
fn touch_touches_for_a_client_that_otherwise_does_not() {
    let flags = ["--maxmemory-policy", "allkeys-lfu", "--lfu-log-factor", "0"];
    let server = Server::start(&flags);
    let mut client = server.client();
    script(&mut client, "SET k v\nCLIENT NO-TOUCH on");
    let frequency = |client: &mut Client| match client.call(&["OBJECT", "FREQ", "k"]) {
        Reply::Integer(frequency) => frequency,
        other => panic!("{other:?}"),
    };
    let before = frequency(&mut client);
    assert_eq!(client.call(&["GET", "k"]), bulk("v"));
    assert_eq!(frequency(&mut client), before, "a read does not touch");
    assert_eq!(client.call(&["TOUCH", "k"]), Reply::Integer(1));
    assert!(frequency(&mut client) > before, "TOUCH does");
}

#[test]
fn floats_beyond_sixty_four_bits_are_added_and_not_refused() {
    let server = Server::start(&[]);
    let mut client = server.client();
    assert_eq!(client.call(&["SET", "n", "1e308"]), ok());
    for _ in 0..20 {
        let sum = text(&client.call(&["INCRBYFLOAT", "n", "1e308"]));
        assert!(sum.len() == 309 || sum.len() == 310, "{sum}");
    }
    assert_eq!(client.call(&["SET", "n", "1e400"]), ok());
    let sum = text(&client.call(&["INCRBYFLOAT", "n", "1"]));
    assert_eq!(sum.len(), 401, "{sum}");
}
