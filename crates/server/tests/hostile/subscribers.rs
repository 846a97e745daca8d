//! Subscribers that are publishers as well.

use crate::common::{Reply, Server, bulk};
use crate::tools::{cpu_seconds, script};

/// A subscriber that publishes to itself took its messages out of the middle of those of all.
#[test]
fn publishing_to_oneself_costs_the_same_for_each_message_however_many_they_are() {
    const FEW: usize = 2_000;
    const MANY: usize = 16 * FEW;
    let server = Server::start(&["--threads", "1"]);
    let cost = |messages: usize| {
        let mut client = server.client();
        script(&mut client, "HELLO 3\nSUBSCRIBE a");
        let before = cpu_seconds(&mut client);
        let sent = b"PUBLISH a m\r\n".repeat(messages);
        let mut sender = client.stream.try_clone().expect("a socket");
        std::thread::scope(|scope| {
            use std::io::Write;
            scope.spawn(move || sender.write_all(&sent).expect("the server reads"));
            let message = Reply::Push(vec![bulk("message"), bulk("a"), bulk("m")]);
            for _ in 0..messages {
                assert_eq!(client.read(), Reply::Integer(1));
                assert_eq!(client.read(), message);
            }
        });
        cpu_seconds(&mut client) - before
    };
    let (few, many) = (cost(FEW).max(0.004), cost(MANY));
    assert!(
        many < 64.0 * few,
        "{many} s for sixteen times what took {few} s"
    );
}
