//! Servers of the Redis family.

use std::time::Duration;

use tidewheel_engines::{Client, Cluster, Engine, Sentinels, Server, within};

#[test]
fn a_server_is_killed_and_starts_again_on_its_port() {
    for engine in Engine::all() {
        let mut server = Server::start(&engine, &[]);
        server.process.kill();
        assert!(Client::connect(server.port).is_err());
        server.restart();
        assert_eq!(server.client().text(&["PING"]), "PONG");
    }
}

#[test]
fn a_paused_server_accepts_and_does_not_answer() {
    let Some(engine) = Engine::redis() else {
        return;
    };
    let server = Server::start(&engine, &[]);
    server.process.pause();
    let mut client = server.client();
    client.send(&["PING"]).expect("sent");
    server.process.resume();
    client.receive().expect("an answer, once it goes on");
}

#[test]
fn a_server_ends_with_its_owner() {
    let Some(engine) = Engine::redis() else {
        return;
    };
    let port = Server::start(&engine, &[]).port;
    assert!(Client::connect(port).is_err());
}

#[test]
fn sentinels_promote_a_replica_of_a_killed_primary() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let mut group = Sentinels::start(&engine, 2);
    let before = group.primary_port().expect("a primary");
    group.server(before).process.kill();
    within(Duration::from_secs(10), "another primary", || {
        let now = group.primary_port()?;
        let client = &mut Client::connect(now).ok()?;
        (now != before && client.call(&["SET", "k", "v"]).is_ok()).then_some(())
    });
}

#[test]
fn a_cluster_answers_within_10_s_of_its_owners_death() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let mut cluster = Cluster::start(&engine);
    // The slot of `k`, by the cluster's own reckoning.
    let slot: u16 = cluster.nodes[0]
        .client()
        .text(&["CLUSTER", "KEYSLOT", "k"])
        .parse()
        .expect("a slot");
    let owner = cluster.owner(slot).expect("an owner");
    let mut client = cluster.nodes[owner].client();
    assert_eq!(client.text(&["SET", "k", "v"]), "OK");
    assert_eq!(client.text(&["WAIT", "1", "2000"]), "1");
    cluster.nodes[owner].process.kill();
    let next = within(Duration::from_secs(10), "another owner", || {
        let next = (0..cluster.nodes.len()).filter(|node| *node != owner);
        next.filter_map(|node| {
            let mut client = Client::connect(cluster.nodes[node].port).ok()?;
            let said = client.call(&["GET", "k"]).ok()?;
            (said == tidewheel_resp::Reply::Bulk(b"v".to_vec())).then_some(node)
        })
        .next()
    });
    assert_eq!(next, owner + 3, "its replica");
}

#[test]
fn a_slot_moves_with_its_keys() {
    let Some(engine) = Engine::valkey() else {
        return;
    };
    let cluster = Cluster::start(&engine);
    let mut client = cluster.nodes[0].client();
    // In slot 3300, of the first primary.
    assert_eq!(client.text(&["SET", "{b}x", "v"]), "OK");
    let slot = client.text(&["CLUSTER", "KEYSLOT", "{b}x"]);
    cluster.move_slot(slot.parse().expect("a slot"), 1);
    assert_eq!(cluster.nodes[1].client().text(&["GET", "{b}x"]), "v");
}
