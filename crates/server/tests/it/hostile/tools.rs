//! Functions that the tests of hostile clients share.

use std::time::Duration;

use crate::common::{Client, Reply, Server};

/// Resets the connection: what is on its way to the client meets an error.
pub(crate) fn reset(client: Client) {
    socket2::SockRef::from(&client.stream)
        .set_linger(Some(Duration::ZERO))
        .expect("a socket");
}

/// Sends inline commands, one a line, and reads a reply to each.
pub(crate) fn script(client: &mut Client, lines: &str) -> Vec<Reply> {
    let sent: String = lines.lines().map(|line| format!("{line}\r\n")).collect();
    client.send(sent.as_bytes());
    lines.lines().map(|_| client.read()).collect()
}

/// Sends much while the replies are read by another thread, so that nobody waits for anybody.
/// Returns how many of the `count` replies were not as expected.
pub(crate) fn flood(client: &mut Client, bytes: &[u8], count: usize, expected: &Reply) -> usize {
    let mut sender = client.stream.try_clone().expect("a socket");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            use std::io::Write;
            sender.write_all(bytes).expect("the server reads");
        });
        (0..count).filter(|_| client.read() != *expected).count()
    })
}

/// A number of INFO.
pub(crate) fn number(client: &mut Client, section: &str, field: &str) -> u64 {
    client.info(section, field).parse().expect("a number")
}

/// Processor time of the server so far, in seconds.
pub(crate) fn cpu_seconds(client: &mut Client) -> f64 {
    ["used_cpu_sys", "used_cpu_user"]
        .map(|field| client.info("cpu", field).parse::<f64>().expect("a number"))
        .iter()
        .sum()
}

/// A client of the event loop `index`. `boss` asks, and the others that were made on the way stay
/// open in `others`, so that connections are dealt on.
pub(crate) fn client_of_loop(
    server: &Server,
    boss: &mut Client,
    index: usize,
    others: &mut Vec<Client>,
) -> Client {
    let field = format!("event_loop_{index}");
    loop {
        let before = boss.info("clients", &field);
        let mut client = server.client();
        client.call(&["PING"]);
        if boss.info("clients", &field) != before {
            return client;
        }
        others.push(client);
    }
}
