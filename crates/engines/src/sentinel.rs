//! A primary and its replicas under three Sentinels.

use tidewheel_resp::Reply;

use crate::client::Client;
use crate::folder::Folder;
use crate::ports::free_port;
use crate::process::Process;
use crate::valkey::{Engine, Server};
use crate::wait::eventually;

/// The name that the Sentinels know the primary by.
const MASTER: &str = "tide";

/// The number of Sentinels that must agree.
const QUORUM: usize = 2;

/// Three Sentinels, and what they watch.
#[derive(Debug)]
pub struct Sentinels {
    /// The primary, at first, then the replicas.
    pub servers: Vec<Server>,
    /// The Sentinels.
    pub sentinels: Vec<Server>,
}

impl Sentinels {
    /// Starts a primary with so many replicas, and three Sentinels that know all of them.
    #[must_use]
    pub fn start(engine: &Engine, replicas: usize) -> Self {
        let primary = Server::start(engine, &[]);
        let port = primary.port.to_string();
        let mut servers = vec![primary];
        for _ in 0..replicas {
            let of = format!("127.0.0.1 {port}");
            servers.push(Server::start(engine, &["--replicaof", &of]));
        }
        for replica in &servers[1..] {
            eventually("a replica that has its primary's data", || {
                (replica.info("master_link_status")? == "up").then_some(())
            });
        }
        let sentinels = (0..3).map(|_| sentinel(engine, servers[0].port)).collect();
        let group = Self { servers, sentinels };
        group.wait_known(replicas);
        group
    }

    /// The name of the primary.
    #[must_use]
    pub fn master(&self) -> &'static str {
        MASTER
    }

    /// The primary's port, as the Sentinels say.
    #[must_use]
    pub fn primary_port(&self) -> Option<u16> {
        self.sentinels.iter().find_map(|sentinel| {
            let ask = ["SENTINEL", "get-master-addr-by-name", MASTER];
            let said = Client::connect(sentinel.port).ok()?.call(&ask).ok()?;
            let Reply::Array(address) = said else {
                return None;
            };
            let Reply::Bulk(port) = address.get(1)? else {
                return None;
            };
            std::str::from_utf8(port).ok()?.parse().ok()
        })
    }

    /// The server on a port.
    ///
    /// # Panics
    ///
    /// If none has it.
    pub fn server(&mut self, port: u16) -> &mut Server {
        let found = self.servers.iter_mut().find(|server| server.port == port);
        found.expect("one of the servers")
    }

    /// Waits until each Sentinel knows the replicas and the other Sentinels, and knows them for
    /// good.
    fn wait_known(&self, replicas: usize) {
        for sentinel in &self.sentinels {
            eventually("a Sentinel that knows all", || {
                let known = |what| count(sentinel.port, what);
                let all = known("replicas")? == replicas && known("sentinels")? == 2;
                all.then_some(())
            });
        }
    }
}

fn count(port: u16, what: &str) -> Option<usize> {
    let ask = ["SENTINEL", what, MASTER];
    match Client::connect(port).ok()?.call(&ask).ok()? {
        Reply::Array(list) => Some(list.len()),
        _ => None,
    }
}

/// Fails over within seconds: it asks for news each second, so that what it knows of the replicas
/// is fresh enough for an election.
fn sentinel(engine: &Engine, primary: u16) -> Server {
    let port = free_port();
    let folder = Folder::new("sentinel");
    let lines = format!(
        "port {port}\nbind 127.0.0.1\nsentinel monitor {MASTER} 127.0.0.1 {primary} {QUORUM}\n\
         sentinel down-after-milliseconds {MASTER} 1000\n\
         sentinel failover-timeout {MASTER} 3000\n"
    );
    let file = folder.path().join("sentinel.conf");
    std::fs::write(&file, lines).expect("a configuration");
    let launch = crate::process::Launch::new(engine.program())
        .args([file.as_os_str().to_owned(), "--sentinel".into()]);
    let process = Process::start("sentinel", launch, folder);
    let server = Server { process, port };
    server.wait_ready();
    let debug = ["SENTINEL", "DEBUG", "INFO-PERIOD", "1000"];
    server.client().call(&debug).expect("a reply");
    server
}
