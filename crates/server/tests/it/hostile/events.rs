//! Keyspace events arrive in the order in which their client caused them, and without being asked
//! for.

use std::time::Duration;

use super::tools::script;
use crate::common::{Reply, Server, bulk, ok};

#[test]
fn events_of_one_clients_pipeline_arrive_in_its_order_and_none_waits_for_others_to_act() {
    let server = Server::start(&["--notify-keyspace-events", "E$"]);
    let mut listener = server.client();
    script(&mut listener, "PSUBSCRIBE __keyevent@0__:set");
    listener
        .stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .expect("a socket");
    let mut client = server.client();
    let names: Vec<String> = (0..20).map(|i| format!("k{i:02}")).collect();
    let pipeline: String = names
        .iter()
        .map(|name| format!("SET {name} v\r\n"))
        .collect();
    for round in 0..50 {
        client.send(pipeline.as_bytes());
        for name in &names {
            let Reply::Array(items) = listener.read() else {
                panic!("no message")
            };
            assert_eq!(items[3], bulk(name), "round {round}");
        }
        for _ in &names {
            assert_eq!(client.read(), ok());
        }
    }
}
