//! A server process of its own for each test, and a client that sees every byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) use tidewheel_resp::Reply;

/// The time that a test waits for an expected event.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A running server; dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    /// The lines of its log, as they come.
    log: Option<Arc<Mutex<Vec<String>>>>,
}

impl Server {
    /// Starts one on a free port.
    pub(crate) fn start(flags: &[&str]) -> Self {
        Self::run(program(flags).stderr(Stdio::null()))
    }

    /// Starts one on a free port, and keeps what it logs.
    pub(crate) fn start_logged(flags: &[&str]) -> Self {
        let mut server = Self::run(program(flags).stderr(Stdio::piped()));
        server.read_log();
        server
    }

    /// Keeps what it logs from here on, and what waits in the pipe.
    pub(crate) fn read_log(&mut self) {
        let stderr = self.child.stderr.take().expect("piped");
        let log = Arc::new(Mutex::new(Vec::new()));
        self.log = Some(Arc::clone(&log));
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                log.lock().expect("no panic").push(line);
            }
        });
    }

    /// Starts one by a command whose first line of output names its address.
    pub(crate) fn run(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let stdout = child.stdout.as_mut().expect("piped");
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("the server says where it listens");
        let port = line
            .split_ascii_whitespace()
            .find_map(|word| word.parse::<SocketAddr>().ok())
            .unwrap_or_else(|| panic!("no address in {line:?}"))
            .port();
        Self {
            child,
            port,
            log: None,
        }
    }

    /// Nobody reads its log from here on.
    pub(crate) fn close_log(&mut self) {
        drop(self.child.stderr.take());
    }

    /// The lines of its log with this text in them, once there are any.
    pub(crate) fn logged(&self, text: &str) -> Vec<String> {
        eventually(text, || {
            Some(self.logged_so_far(text)).filter(|found| !found.is_empty())
        })
    }

    /// The lines of its log with this text in them.
    pub(crate) fn logged_so_far(&self, text: &str) -> Vec<String> {
        let log = self.log.as_ref().expect("a server that was started so");
        let lines = log.lock().expect("no panic");
        let found = lines.iter().filter(|line| line.contains(text));
        found.cloned().collect()
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.port)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A number of what the system knows of the process: `VmRSS` in kB, or `VmHWM` for the most
    /// there ever was.
    pub(crate) fn status(&self, field: &str) -> u64 {
        let path = format!("/proc/{}/status", self.pid());
        let status = std::fs::read_to_string(path).expect("a running process");
        let mut words = status.split_ascii_whitespace();
        words
            .find(|word| word.strip_suffix(':') == Some(field))
            .and_then(|_| words.next())
            .expect("the field")
            .parse()
            .expect("a number")
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("the process exists");
    }

    /// Waits for the process to end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        eventually("the server ends", || {
            self.child.try_wait().expect("it is our child")
        })
    }
}

/// The program, on a free port. Its snapshots would be in a folder of its own.
pub(crate) fn program(flags: &[&str]) -> Command {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = format!("tidewheel-it-{}-{count}", std::process::id());
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidewheel"));
    command.args(["--port", "any", "--threads", "2"]);
    if !flags.contains(&"--dir") {
        command.arg("--dir").arg(std::env::temp_dir().join(folder));
    }
    if !flags.contains(&"--save") {
        command.args(["--save", ""]);
    }
    command.args(flags);
    command
}

/// The program under a limit, as `ulimit` takes it.
pub(crate) fn limited(limit: &str, flags: &[&str]) -> Command {
    let program = program(flags);
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\"")])
        .arg(program.get_program())
        .args(program.get_args());
    command
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to kill and nothing to learn.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A connection that sends exactly what it is told and reads one reply at a time.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
    at: usize,
}

impl Client {
    pub(crate) fn connect(port: u16) -> Self {
        Self::connect_to(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    pub(crate) fn connect_to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server accepts");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
        Self {
            stream,
            buffer: Vec::new(),
            at: 0,
        }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    /// Sends a command and reads its reply.
    pub(crate) fn call(&mut self, words: &[&str]) -> Reply {
        self.send(&command(words));
        self.read()
    }

    /// Sends a command and reads its reply; `None` if the connection ends.
    pub(crate) fn try_call(&mut self, words: &[&str]) -> Option<Reply> {
        self.stream.write_all(&command(words)).ok()?;
        self.try_read()
    }

    /// Reads one reply.
    pub(crate) fn read(&mut self) -> Reply {
        self.try_read().expect("a reply, not the end of the stream")
    }

    /// Reads one reply; `None` at the end of the stream.
    pub(crate) fn try_read(&mut self) -> Option<Reply> {
        let mut chunk = vec![0; 64 << 10];
        loop {
            // An unfinished reply is read again from its start: not too often for long ones.
            let likely = self.buffer.len() < 1 << 20 || self.buffer.ends_with(b"\r\n");
            if likely
                && let Some((reply, used)) =
                    Reply::read(&self.buffer[self.at..]).expect("well-formed replies")
            {
                self.at += used;
                if self.at == self.buffer.len() {
                    self.buffer.clear();
                    self.at = 0;
                }
                return Some(reply);
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(n) => self.buffer.extend_from_slice(&chunk[..n]),
                Err(why) if why.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(why) => panic!("no reply: {why}"),
            }
        }
    }

    /// Reads everything until the end of the stream.
    pub(crate) fn read_to_end(mut self) -> Vec<u8> {
        let mut all = self.buffer.split_off(self.at);
        match self.stream.read_to_end(&mut all) {
            Ok(_) => {}
            Err(why) if why.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(why) => panic!("the stream does not end: {why}"),
        }
        all
    }

    /// Returns true if nothing arrives within a moment.
    pub(crate) fn is_silent(&mut self) -> bool {
        assert_eq!(self.at, self.buffer.len(), "replies are left unread");
        self.stream
            .set_read_timeout(Some(Duration::from_millis(50)))
            .expect("a socket");
        let result = self.stream.peek(&mut [0]);
        self.stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a socket");
        result.is_err()
    }

    pub(crate) fn finish_sending(&self) {
        self.stream.shutdown(Shutdown::Write).expect("a connection");
    }

    /// A line of INFO or the like.
    pub(crate) fn info(&mut self, section: &str, field: &str) -> String {
        let text = text(&self.call(&["INFO", section]));
        let prefix = format!("{field}:");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(prefix.as_str()));
        line.unwrap_or_else(|| panic!("no {field} in {text}"))
            .to_owned()
    }
}

/// A command as clients send it.
pub(crate) fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

pub(crate) fn ok() -> Reply {
    Reply::Simple("OK".to_owned())
}

pub(crate) fn simple(text: &str) -> Reply {
    Reply::Simple(text.to_owned())
}

pub(crate) fn bulk(text: &str) -> Reply {
    Reply::Bulk(text.as_bytes().to_vec())
}

pub(crate) fn error(text: &str) -> Reply {
    Reply::Error(text.to_owned())
}

pub(crate) fn array(items: &[&str]) -> Reply {
    Reply::Array(items.iter().map(|item| bulk(item)).collect())
}

/// The text of a status, an error or a string.
pub(crate) fn text(reply: &Reply) -> String {
    match reply {
        Reply::Simple(text) | Reply::Error(text) => text.clone(),
        Reply::Bulk(bytes) | Reply::Verbatim(_, bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        other => panic!("no text: {other:?}"),
    }
}

/// The clock that tests measure with.
#[allow(
    clippy::disallowed_methods,
    reason = "tests are outside of the server's time"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits until `condition` gives a value.
pub(crate) fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = now() + PATIENCE;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns true if a tool can be run. Prints it if not, and fails where tools are required.
pub(crate) fn have(program: &str, arguments: &[&str]) -> bool {
    let found = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        skip(&format!("{program} {arguments:?} does not work"));
    }
    found
}

/// Says that a test is left out, and fails where that is a failure.
pub(crate) fn skip(why: &str) {
    let required = std::env::var_os("TIDEWHEEL_REQUIRE_TOOLS").is_some_and(|v| v == "1");
    assert!(!required, "{why}, and it is required");
    println!("skipped: {why} here");
}

/// A folder that is removed with its owner.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("tidewheel-{name}-{}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    pub(crate) fn server(&self) -> Server {
        Server::start_logged(&["--dir", self.text()])
    }

    pub(crate) fn text(&self) -> &str {
        self.0.to_str().expect("a path of text")
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("dump.rdb")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
