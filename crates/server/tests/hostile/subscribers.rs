//! Subscribers that are publishers as well.

use crate::common::{Client, Reply, Server, bulk};
use crate::tools::{cpu_seconds, script};

/// A subscriber that publishes to itself took its messages out of the middle of those of all.
#[test]
fn publishing_to_oneself_costs_the_same_for_each_message_however_many_they_are() {
    const ALL: usize = 128_000;
    let server = Server::start(&["--threads", "1"]);
    let mut asker = server.client();
    let mut cost = |at_once: usize| {
        let before = cpu_seconds(&mut asker);
        for _ in 0..ALL / at_once {
            talk_to_oneself(&mut server.client(), at_once);
        }
        cpu_seconds(&mut asker) - before
    };
    let (few, many) = (cost(1_000), cost(32_000));
    assert!(
        many < 3.0 * few + 0.1,
        "{many} s at once, {few} s in portions"
    );
}

fn talk_to_oneself(client: &mut Client, messages: usize) {
    script(client, "HELLO 3\nSUBSCRIBE a");
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
}
