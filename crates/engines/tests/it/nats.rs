//! Nodes of NATS.

use tidewheel_engines::Nats;

#[test]
fn three_nodes_are_healthy_and_one_comes_back() {
    let Some(mut nats) = Nats::cluster() else {
        return;
    };
    assert_eq!(nats.urls().len(), 3);
    nats.nodes[1].kill();
    assert!(!nats.nodes[1].is_running());
    nats.nodes[1].restart();
    nats.wait_ready();
}
