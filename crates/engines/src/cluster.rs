//! A cluster of six nodes: three primaries, each with a replica.

use tidewheel_resp::Reply;

use crate::client::Client;
use crate::ports::free_port;
use crate::valkey::{Engine, Server};
use crate::wait::{eventually, within};

/// Slots of a cluster.
const SLOTS: u16 = 16_384;

/// Primaries; as many nodes are their replicas.
const PRIMARIES: usize = 3;

/// A node counts as down after so many milliseconds of silence.
const NODE_TIMEOUT: &str = "1000";

/// Six nodes that agree.
#[derive(Debug)]
pub struct Cluster {
    /// The nodes: at first three primaries, then the replica of each.
    pub nodes: Vec<Server>,
}

impl Cluster {
    /// Starts one, and waits until every node says that all is well and every replica has its
    /// primary's data.
    #[must_use]
    pub fn start(engine: &Engine) -> Self {
        let nodes: Vec<_> = (0..2 * PRIMARIES).map(|_| node(engine)).collect();
        nodes.iter().for_each(Server::wait_ready);
        let cluster = Self { nodes };
        cluster.join();
        cluster
    }

    /// The ports of all nodes.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(|node| node.port).collect()
    }

    /// The node that owns a slot, as the other nodes say, by its place in `nodes`.
    #[must_use]
    pub fn owner(&self, slot: u16) -> Option<usize> {
        let port = self.nodes.iter().find_map(|node| owner(node.port, slot))?;
        self.nodes.iter().position(|node| node.port == port)
    }

    /// The name of a node within its cluster.
    #[must_use]
    pub fn id(&self, node: usize) -> String {
        self.nodes[node].client().text(&["CLUSTER", "MYID"])
    }

    /// Waits until all living nodes say that the cluster works.
    pub fn wait_ok(&self) {
        eventually("a cluster whose nodes say that all is well", || {
            let alive = self.nodes.iter().filter_map(|node| info(node.port));
            let states: Vec<_> = alive.collect();
            (!states.is_empty()
                && states
                    .iter()
                    .all(|state| state.contains("cluster_state:ok")))
            .then_some(())
        });
    }

    /// Moves a slot, with its keys, to another primary.
    ///
    /// # Panics
    ///
    /// If a node refuses.
    pub fn move_slot(&self, slot: u16, to: usize) {
        let from = self.owner(slot).expect("an owner");
        let (slot_text, from_id, to_id) = (slot.to_string(), self.id(from), self.id(to));
        let set = |node: usize, state: &str, id: &str| {
            let said = self.nodes[node]
                .client()
                .text(&["CLUSTER", "SETSLOT", &slot_text, state, id]);
            assert_eq!(said, "OK");
        };
        set(to, "IMPORTING", &from_id);
        set(from, "MIGRATING", &to_id);
        self.move_keys(&slot_text, from, to);
        set(to, "NODE", &to_id);
        set(from, "NODE", &to_id);
        within(std::time::Duration::from_secs(10), "a moved slot", || {
            (owner(self.nodes[from].port, slot)? == self.nodes[to].port).then_some(())
        });
    }

    fn move_keys(&self, slot: &str, from: usize, to: usize) {
        let mut client = self.nodes[from].client();
        let port = self.nodes[to].port.to_string();
        loop {
            let said = client.call(&["CLUSTER", "GETKEYSINSLOT", slot, "100"]);
            let Ok(Reply::Array(keys)) = said else {
                panic!("no keys: {said:?}");
            };
            if keys.is_empty() {
                return;
            }
            for key in keys {
                let Reply::Bulk(key) = key else { continue };
                let parts: [&[u8]; 6] = [
                    b"MIGRATE",
                    b"127.0.0.1",
                    port.as_bytes(),
                    &key,
                    b"0",
                    b"5000",
                ];
                client.call(&parts).expect("a reply");
            }
        }
    }

    fn join(&self) {
        // Before any of them has met another one: then it is refused.
        for (index, node) in self.nodes.iter().enumerate() {
            let epoch = (index + 1).to_string();
            node.client().text(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]);
        }
        for node in &self.nodes {
            let mut client = node.client();
            for other in self.nodes.iter().filter(|other| other.port != node.port) {
                let port = other.port.to_string();
                let bus = (bus_port(other)).to_string();
                client.text(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
            }
        }
        self.give_slots();
        self.wait_met();
        self.give_replicas();
        self.wait_ok();
    }

    fn give_slots(&self) {
        let share = SLOTS / PRIMARIES as u16;
        for (index, node) in self.nodes[..PRIMARIES].iter().enumerate() {
            let first = share * index as u16;
            let last = if index + 1 == PRIMARIES {
                SLOTS - 1
            } else {
                first + share - 1
            };
            let (first, last) = (first.to_string(), last.to_string());
            let said = node
                .client()
                .text(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            assert_eq!(said, "OK");
        }
    }

    fn wait_met(&self) {
        for node in &self.nodes {
            eventually("nodes that know each other", || {
                let all = format!("cluster_known_nodes:{}", self.nodes.len());
                info(node.port)?.contains(&all).then_some(())
            });
        }
    }

    fn give_replicas(&self) {
        for index in 0..PRIMARIES {
            let primary = self.id(index);
            let replica = &self.nodes[PRIMARIES + index];
            eventually("a replica that knows its primary", || {
                let ask = ["CLUSTER", "REPLICATE", &primary];
                let said = replica.client().call(&ask).ok()?;
                matches!(said, Reply::Simple(_)).then_some(())
            });
        }
        for replica in &self.nodes[PRIMARIES..] {
            eventually("a replica that has its primary's data", || {
                (replica.info("master_link_status")? == "up").then_some(())
            });
        }
    }
}

/// The port of a node's bus.
fn bus_port(node: &Server) -> u16 {
    node.port + BUS
}

/// A node's bus port is so far above its port.
const BUS: u16 = 21_000;

fn node(engine: &Engine) -> Server {
    let bus_is_free = |port: u16| {
        std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, port + BUS)).is_ok()
    };
    let port = loop {
        let port = free_port();
        if bus_is_free(port) {
            break port;
        }
    };
    Server::begin_on(
        engine,
        port,
        &[
            "--cluster-enabled",
            "yes",
            "--cluster-port",
            &(port + BUS).to_string(),
            "--cluster-node-timeout",
            NODE_TIMEOUT,
            "--cluster-config-file",
            "nodes.conf",
            "--cluster-require-full-coverage",
            "no",
            "--cluster-replica-validity-factor",
            "0",
        ],
    )
}

fn info(port: u16) -> Option<String> {
    let said = Client::connect(port)
        .ok()?
        .call(&["CLUSTER", "INFO"])
        .ok()?;
    match said {
        Reply::Bulk(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        _ => None,
    }
}

/// The port of a slot's owner, as one node says.
fn owner(port: u16, slot: u16) -> Option<u16> {
    let said = Client::connect(port)
        .ok()?
        .call(&["CLUSTER", "SLOTS"])
        .ok()?;
    let Reply::Array(ranges) = said else {
        return None;
    };
    ranges.into_iter().find_map(|range| {
        let Reply::Array(range) = range else {
            return None;
        };
        let [
            Reply::Integer(first),
            Reply::Integer(last),
            Reply::Array(primary),
            ..,
        ] = &range[..]
        else {
            return None;
        };
        let Some(Reply::Integer(port)) = primary.get(1) else {
            return None;
        };
        let holds = (*first..=*last).contains(&i64::from(slot));
        u16::try_from(*port).ok().filter(|_| holds)
    })
}
