//! Protected mode over real sockets, from an address that is not the loopback interface's.

use std::net::{IpAddr, SocketAddr};

use super::tools::number;
use crate::common::{Client, Reply, Server, array, error, eventually, ok, simple, skip, text};

/// An address of this machine that other machines could use, too. `simulation/protected.rs` tests
/// the same where there is none.
fn far_address() -> Option<IpAddr> {
    let listed = std::process::Command::new("hostname").arg("-I").output();
    let listed = listed.map_or(Vec::new(), |output| output.stdout);
    let words = String::from_utf8_lossy(&listed).into_owned();
    let found = words
        .split_ascii_whitespace()
        .find_map(|word| word.parse().ok());
    if found.is_none() {
        skip("`hostname -I` shows no address");
    }
    found
}

fn connect(server: &Server, from: IpAddr) -> Client {
    Client::connect_to(SocketAddr::new(from, server.port))
}

/// The refusal and nothing else, also if the client is quick to ask.
fn assert_denied(server: &Server, from: IpAddr) {
    let reply = text(&connect(server, from).read());
    assert!(
        reply.starts_with("DENIED Redis is running in protected mode"),
        "{reply}"
    );
    let mut hasty = connect(server, from);
    // It may be closed by then.
    drop(std::io::Write::write_all(
        &mut hasty.stream,
        b"SET owned yes\r\n",
    ));
    while let Some(reply) = hasty.try_read() {
        assert!(text(&reply).starts_with("DENIED "), "{reply:?}");
    }
}

#[test]
fn without_a_password_other_addresses_than_the_loopback_are_refused() {
    let Some(far) = far_address() else { return };
    let all = if far.is_ipv4() { "*" } else { "::" };
    let named = far.to_string();
    for flags in [&["--bind", all][..], &["--bind", &named, "127.0.0.1"]] {
        let server = Server::start(flags);
        let mut near = server.client();
        assert_denied(&server, far);
        assert_eq!(near.call(&["EXISTS", "owned"]), Reply::Integer(0));
        eventually("both are counted", || {
            (number(&mut near, "stats", "rejected_connections") >= 2).then_some(())
        });

        assert_eq!(near.call(&["CONFIG", "SET", "requirepass", "secret"]), ok());
        let mut client = connect(&server, far);
        let asked = error("NOAUTH Authentication required.");
        assert_eq!(client.call(&["PING"]), asked);
        assert_eq!(client.call(&["AUTH", "secret"]), ok());
        assert_eq!(client.call(&["PING"]), simple("PONG"));

        assert_eq!(near.call(&["CONFIG", "SET", "requirepass", ""]), ok());
        assert_denied(&server, far);
        assert_eq!(near.call(&["CONFIG", "SET", "protected-mode", "no"]), ok());
        assert_eq!(connect(&server, far).call(&["PING"]), simple("PONG"));
        assert_eq!(near.call(&["CONFIG", "SET", "protected-mode", "yes"]), ok());
        assert_denied(&server, far);
    }
}

#[test]
fn protected_mode_is_a_setting_like_the_others() {
    let get = ["CONFIG", "GET", "protected-mode"];
    let is = |value| array(&["protected-mode", value]);
    assert_eq!(Server::start(&[]).client().call(&get), is("yes"));
    let off = Server::start(&["--protected-mode", "no"]);
    assert_eq!(off.client().call(&get), is("no"));
    assert_eq!(
        off.client()
            .call(&["CONFIG", "SET", "protected-mode", "maybe"]),
        error(
            "ERR CONFIG SET failed (possibly related to argument 'protected-mode') - argument must be \
             'yes' or 'no'"
        )
    );
    let file =
        std::env::temp_dir().join(format!("tidewheel-protected-{}.conf", std::process::id()));
    std::fs::write(&file, "protected-mode no\n").expect("a file");
    let from_file = Server::start(&["--config", file.to_str().expect("a readable path")]);
    assert_eq!(from_file.client().call(&get), is("no"));
    std::fs::remove_file(&file).expect("the file");
    let from_environment = Server::run(
        crate::common::program(&[])
            .env("TIDEWHEEL_PROTECTED_MODE", "no")
            .stderr(std::process::Stdio::null()),
    );
    assert_eq!(from_environment.client().call(&get), is("no"));
}

#[test]
fn the_start_says_who_is_refused() {
    let server = Server::start_logged(&["--bind", "*"]);
    let lines = server.logged("no password is set");
    assert!(
        lines[0].contains("WARN") && lines[0].contains("protected mode is on"),
        "{lines:?}"
    );
    let open = Server::start_logged(&["--bind", "*", "--protected-mode", "no"]);
    let lines = open.logged("no password is set");
    assert!(!lines[0].contains("refused"), "{lines:?}");
}
