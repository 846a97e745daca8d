//! Scripts over sockets: two event loops, and one that does not end.

use std::time::Duration;

use tidewheel_resp::Reply;

use crate::common::{Server, command, ok, text};

/// Nobody reads what is sent to a loop whose script runs, so no script may run for ever.
#[test]
fn a_script_without_an_end_is_ended_if_it_has_changed_nothing() {
    let server = Server::start(&["--threads", "1", "--busy-reply-threshold", "300"]);
    let mut client = server.client();
    let began = crate::common::now();
    for body in [
        "while true do end",
        "while true do pcall(redis.call, 'get', 'a') end",
        "local function f() return pcall(f) end while true do f() end",
    ] {
        let reply = text(&client.call(&["EVAL", body, "0"]));
        assert!(reply.contains("busy-reply-threshold"), "{body}: {reply}");
    }
    assert!(began.elapsed() < Duration::from_secs(30));
    assert_eq!(text(&client.call(&["EVAL", "return 'well'", "0"])), "well");
}

/// The process could not be stopped but by force.
#[test]
fn a_server_stops_although_a_script_that_has_changed_data_does_not_end() {
    let mut server = Server::start(&["--threads", "1", "--busy-reply-threshold", "0"]);
    let mut client = server.client();
    let endless = "redis.call('set', 'a', 1) while true do end";
    client.send(&command(&["EVAL", endless, "0"]));
    std::thread::sleep(Duration::from_millis(200));
    server.signal(rustix::process::Signal::TERM);
    assert!(server.wait().success());
}

/// What two loops' scripts move between keys is neither lost nor doubled.
#[test]
fn scripts_of_two_loops_are_atomic() {
    const ACCOUNTS: usize = 8;
    let server = Server::start(&["--threads", "2"]);
    let mut client = server.client();
    for account in 0..ACCOUNTS {
        assert_eq!(client.call(&["SET", &format!("a{account}"), "100"]), ok());
    }
    let moves = "if tonumber(redis.call('get', KEYS[1])) > 0 then redis.call('decr', KEYS[1]) \
                 redis.call('incr', KEYS[2]) end return 1";
    let sum =
        "local sum = 0 for i = 0, 7 do sum = sum + redis.call('get', 'a' .. i) end return sum";
    std::thread::scope(|scope| {
        for seed in 1..=4_usize {
            let mut client = server.client();
            scope.spawn(move || {
                let mut random = seed * 7919;
                for _ in 0..300 {
                    random = (random * 1_103_515_245 + 12_345) % (1 << 31);
                    let (from, to) = (random / 8 % ACCOUNTS, random / 64 % ACCOUNTS);
                    let keys = [format!("a{from}"), format!("a{to}")];
                    let reply = client.call(&["EVAL", moves, "2", &keys[0], &keys[1]]);
                    assert_eq!(reply, Reply::Integer(1));
                    assert_eq!(client.call(&["EVAL", sum, "0"]), Reply::Integer(800));
                }
            });
        }
    });
}
