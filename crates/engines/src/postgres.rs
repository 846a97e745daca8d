//! One Postgres server, with a database of its own in a folder.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::binaries::{are_wanted, require};
use crate::folder::Folder;
use crate::ports::free_port;
use crate::process::{Launch, Process, is_root};
use crate::wait::eventually;

/// The user that runs the server where the test is root: Postgres refuses to be. The package makes
/// this user.
const USER: &str = "postgres";

/// One Postgres server. Anybody may come in over the loopback, as the user `postgres`.
#[derive(Debug)]
pub struct Postgres {
    /// Its process.
    pub process: Process,
    port: u16,
    ready: PathBuf,
}

impl Postgres {
    /// Starts one with an empty database, and waits until it answers. `None` if it is not
    /// installed.
    ///
    /// # Panics
    ///
    /// If it does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        let programs = programs()?;
        let folder = Folder::new("postgres");
        if is_root() {
            run(Command::new("chown").arg(USER).arg(folder.path()));
        }
        initialize(&programs, &folder);
        let port = free_port();
        let launch = launch(&programs, &folder, port);
        let process = Process::start("postgres", launch, folder);
        let ready = programs.join("pg_isready");
        let server = Self {
            process,
            port,
            ready,
        };
        server.wait_ready();
        Some(server)
    }

    /// The address, as clients are told.
    #[must_use]
    pub fn url(&self) -> String {
        format!(
            "host=127.0.0.1 port={} user=postgres dbname=postgres",
            self.port
        )
    }

    /// Ends at once, as after a power cut, and starts again: what was committed is there.
    pub fn restart_immediately(&mut self) {
        // The signal by which an immediate stop is asked for.
        self.process.signal(Signal::QUIT);
        eventually("the server ends", || {
            (!self.process.is_running()).then_some(())
        });
        self.process.restart();
        self.wait_ready();
    }

    fn wait_ready(&self) {
        let port = self.port.to_string();
        eventually("Postgres answers", || {
            let mut asks = Command::new(&self.ready);
            asks.args(["-q", "-h", "127.0.0.1", "-p", &port]);
            asks.status().ok()?.success().then_some(())
        });
    }
}

/// The folder of Postgres's programs: distributions keep it off the path.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let folders = versions.flatten().map(|version| version.path().join("bin"));
    let latest = folders
        .filter(|folder| are_wanted() && folder.join("initdb").is_file())
        .max();
    latest.or_else(|| Some(require("initdb", &[])?.parent()?.to_owned()))
}

fn initialize(programs: &std::path::Path, folder: &Folder) {
    let initdb = programs.join("initdb");
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", USER, "--regid", USER, "--init-groups", "--"]);
        command.arg(initdb);
        command
    } else {
        Command::new(initdb)
    };
    command.args([
        "--username=postgres",
        "--auth=trust",
        "--no-sync",
        "--encoding=UTF8",
    ]);
    command
        .arg("--locale=C")
        .arg("--pgdata")
        .arg(folder.path().join("data"));
    run(command.current_dir(folder.path()));
}

fn launch(programs: &std::path::Path, folder: &Folder, port: u16) -> Launch {
    let data = folder.path().join("data").into_os_string();
    let socket = format!("unix_socket_directories={}", folder.path().display());
    let port = format!("port={port}");
    let settings = [
        "listen_addresses=127.0.0.1",
        &port,
        &socket,
        "shared_buffers=64MB",
    ];
    let mut arguments = vec!["-D".into(), data];
    for setting in settings {
        arguments.push("-c".into());
        arguments.push(setting.into());
    }
    Launch::new(&programs.join("postgres"))
        .args(arguments)
        .user(USER)
}

/// Runs a command that must succeed.
fn run(command: &mut Command) {
    let output = command
        .stdin(Stdio::null())
        .output()
        .expect("the command runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}
