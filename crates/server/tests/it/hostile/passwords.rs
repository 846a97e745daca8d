//! A password that is in force is asked of everybody who comes later.

use super::tools::client_of_loop;
use crate::common::{Client, Reply, Server, error, eventually, ok, simple};

/// Puts the second loop to sleep and has `during` happen meanwhile. `None` if the loop woke too
/// early for that to mean anything.
fn while_a_loop_is_busy<T>(
    server: &Server,
    during: impl Fn(&mut Client) -> T,
) -> Option<(T, Client)> {
    let mut boss = server.client();
    let mut others = Vec::new();
    let mut busy = client_of_loop(server, &mut boss, 1, &mut others);
    drop(others);
    busy.send(b"DEBUG SLEEP 0.3\r\n");
    let result = during(&mut boss);
    busy.is_silent().then_some((result, busy))
}

#[test]
fn a_client_that_connects_after_a_password_was_set_needs_it_even_on_a_loop_that_was_busy() {
    let (newcomers, _server) = eventually("the loop sleeps for long enough", || {
        let server = Server::start(&["--enable-debug-command", "yes"]);
        let (newcomers, _busy) = while_a_loop_is_busy(&server, |boss| {
            assert_eq!(boss.call(&["CONFIG", "SET", "requirepass", "secret"]), ok());
            (0..12).map(|_| server.client()).collect::<Vec<_>>()
        })?;
        Some((newcomers, server))
    });
    let denied = error("NOAUTH Authentication required.");
    for mut client in newcomers {
        assert_eq!(client.call(&["GET", "secret"]), denied);
        assert_eq!(client.call(&["AUTH", "guess"]), wrong());
        assert_eq!(client.call(&["AUTH", "secret"]), ok());
        assert_eq!(client.call(&["PING"]), simple("PONG"));
    }
}

/// The old password is sent together with the command that keeps the loop busy.
#[test]
fn a_password_that_was_replaced_opens_nothing_even_on_a_loop_that_was_busy() {
    let flags = ["--enable-debug-command", "yes", "--requirepass", "old"];
    let (reply, _server) = eventually("the loop sleeps for long enough", || {
        let server = Server::start(&flags);
        let (mut boss, mut busy) = (server.client(), server.client());
        for client in [&mut boss, &mut busy] {
            assert_eq!(client.call(&["AUTH", "old"]), ok());
        }
        busy.send(b"DEBUG SLEEP 0.3\r\nAUTH old\r\n");
        assert_eq!(boss.call(&["CONFIG", "SET", "requirepass", "new"]), ok());
        if !busy.is_silent() {
            return None;
        }
        assert_eq!(busy.read(), ok());
        Some((busy.read(), server))
    });
    assert_eq!(reply, wrong());
}

fn wrong() -> Reply {
    error("WRONGPASS invalid username-password pair or user is disabled.")
}
