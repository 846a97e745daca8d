//! Starts a server under test on a free loopback port, and ends it.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::clock;
use crate::servers::client::Connection;
use crate::servers::server::Target;

const START_NS: u64 = 20_000_000_000;
const STOP_NS: u64 = 10_000_000_000;
const LOOK: Duration = Duration::from_millis(20);

/// A server to start: a name for its column and a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerSpec {
    pub(crate) name: String,
    program: String,
    args: Vec<String>,
}

impl FromStr for ServerSpec {
    type Err = String;

    /// `NAME=COMMAND ARGS…`, split at white space.
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "NAME=COMMAND is expected";
        let (name, command) = text.split_once('=').ok_or(expected)?;
        let mut words = command.split_whitespace().map(str::to_owned);
        let program = words.next().filter(|_| !name.is_empty());
        Ok(Self {
            name: name.to_owned(),
            program: program.ok_or(expected)?,
            args: words.collect(),
        })
    }
}

impl ServerSpec {
    /// The arguments that make this server listen on the port, on loopback, without persistence;
    /// what Tidewheel was told to keep, it keeps.
    fn arguments(&self, port: u16) -> Vec<String> {
        let mut args = self.args.clone();
        let port = port.to_string();
        args.extend(["--port", &port, "--bind", "127.0.0.1"].map(str::to_owned));
        let is_tidewheel = self.is_tidewheel();
        if !is_tidewheel || !self.args.iter().any(|word| word == "--save") {
            args.extend(["--save", ""].map(str::to_owned));
        }
        if !is_tidewheel {
            args.extend(["--appendonly", "no"].map(str::to_owned));
        }
        args
    }

    /// Tells it by the name of the program, wherever it stands: `taskset -c 0 tidewheel` is one
    /// too.
    fn is_tidewheel(&self) -> bool {
        let is = |word: &String| {
            let file = Path::new(word).file_name().unwrap_or_default();
            file.to_string_lossy().starts_with("tidewheel")
        };
        is(&self.program) || self.args.iter().any(is)
    }
}

/// A server that runs until this value is stopped or dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    port: u16,
    /// The folder in which it runs, with its output; removed with this value.
    folder: TempDir,
    command: String,
}

impl Running {
    pub(crate) fn start(spec: &ServerSpec) -> Result<Self> {
        let port = free_port()?;
        let folder = tempfile::tempdir().context("cannot create a folder for the server")?;
        // The server runs in its own folder, so a relative path to it must be made absolute; not
        // resolved, since some servers are links that act by the name they are called by.
        let program = match spec.program.contains('/') {
            true => std::path::absolute(&spec.program)?,
            false => PathBuf::from(&spec.program),
        };
        let args = spec.arguments(port);
        let log = File::create(folder.path().join("log"))?;
        let child = Command::new(&program)
            .args(&args)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let quoted = args
            .iter()
            .map(|arg| if arg.is_empty() { "''" } else { arg });
        let words = [spec.program.as_str()].into_iter().chain(quoted);
        let command = words.collect::<Vec<_>>().join(" ");
        let mut running = Self {
            child,
            port,
            folder,
            command,
        };
        running.wait_until_ready()?;
        Ok(running)
    }

    pub(crate) fn target(&self) -> Target {
        Target {
            port: self.port,
            pid: self.child.id(),
        }
    }

    /// The command line, with the port of this run.
    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let give_up_ns = clock::mono_ns() + START_NS;
        loop {
            if let Some(status) = self.child.try_wait()? {
                let log = fs::read(self.folder.path().join("log")).unwrap_or_default();
                let told = match String::from_utf8_lossy(&log).trim_end() {
                    "" => " and wrote nothing".to_owned(),
                    log => format!(":\n{log}"),
                };
                bail!("{} ended with {status}{told}", self.command);
            }
            let answered = Connection::open(self.port).and_then(|mut c| c.call(&["PING"]));
            match answered {
                Ok(_) => return Ok(()),
                Err(error) if clock::mono_ns() >= give_up_ns => {
                    return Err(error.context(format!("{} did not answer", self.command)));
                }
                Err(_) => std::thread::sleep(LOOK),
            }
        }
    }

    /// Asks the server to end; if it does not, the drop that follows ends it.
    pub(crate) fn stop(mut self) -> Result<()> {
        if let Ok(mut connection) = Connection::open(self.port) {
            // The reply to a shutdown that works is a closed connection: an error, as it should be.
            let _closed = connection.call(&["SHUTDOWN", "NOSAVE"]);
        }
        let give_up_ns = clock::mono_ns() + STOP_NS;
        while self.child.try_wait()?.is_none() && clock::mono_ns() < give_up_ns {
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After an orderly stop there is nobody left to kill, and that error says only so.
        if let Ok(None) = self.child.try_wait() {
            let ended = self.child.kill().and_then(|()| self.child.wait());
            if let Err(error) = ended {
                eprintln!("could not end {}: {error}", self.command);
            }
        }
    }
}

/// A port that the system gives to nobody else for a while.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(spec: &str) -> Vec<String> {
        spec.parse::<ServerSpec>().expect("a spec").arguments(7_000)
    }

    #[test]
    fn each_kind_of_server_gets_its_flags() {
        let ours = "--port 7000 --bind 127.0.0.1";
        let theirs = format!("--a 2 {ours} --save  --appendonly no");
        for (spec, expected) in [
            ("r=redis-server --a 2", theirs),
            (
                "t=target/release/tidewheel --a",
                format!("--a {ours} --save "),
            ),
            (
                "t=taskset -c 1 tidewheel",
                format!("-c 1 tidewheel {ours} --save "),
            ),
            ("t=tidewheel --save 9", format!("--save 9 {ours}")),
        ] {
            assert_eq!(arguments(spec).join(" "), expected);
        }
        for bad in ["redis-server", "=redis-server", "redis=", "redis= "] {
            assert!(bad.parse::<ServerSpec>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_program_that_ends_at_once_is_reported_with_its_words() {
        let spec = "sh=/bin/sh -c is-no-program".parse();
        let error = Running::start(&spec.expect("a spec")).expect_err("no server");
        assert!(error.to_string().contains("is-no-program"), "{error}");
    }
}
