//! Clients that come while the snapshot is loaded.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use crate::common::{Client, Reply, eventually, ok, program, text};
use rustix::process::{Pid, Signal, kill_process};

/// Keys of the file: a build for tests needs seconds for them.
const KEYS: usize = 400_000;

/// A server that has begun to load.
pub(crate) struct Loading {
    folder: PathBuf,
    pub(crate) child: Child,
    port: u16,
}

impl Loading {
    fn begin(name: &str, file: &[u8]) -> Self {
        Self::begin_told(name, file, &[])
    }

    /// Begins with these variables in the environment.
    pub(crate) fn begin_told(name: &str, file: &[u8], variables: &[(&str, &str)]) -> Self {
        let name = format!("tidewheel-loading-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("dump.rdb"), file).expect("a file");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("a port").port();
        drop(free);
        let dir = folder.to_str().expect("a path of text");
        let child = program(&["--dir", dir, "--port", &port.to_string()])
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let loading = Self {
            folder,
            child,
            port,
        };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        eventually("it listens", || TcpStream::connect(address).ok());
        loading
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.port)
    }

    fn file(&self) -> Vec<u8> {
        std::fs::read(self.folder.join("dump.rdb")).expect("a file")
    }

    /// Waits until the server says that it serves.
    fn serves(&mut self) {
        let stdout = self.child.stdout.as_mut().expect("piped");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert!(line.contains("listens on"), "{line}");
    }

    pub(crate) fn ends(&mut self) -> Option<i32> {
        let child = &mut self.child;
        let ended = eventually("it ends", || child.try_wait().expect("our child"));
        ended.code()
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

pub(crate) fn file(end: &[u8]) -> Vec<u8> {
    let mut file = b"REDIS0010\xfe\x00".to_vec();
    for i in 0..KEYS {
        file.extend(b"\x00\x0a");
        file.extend(format!("key:{i:06}").bytes());
        file.extend(b"\x05value");
    }
    file.extend(end);
    file
}

pub(crate) const END: &[u8] = b"\xff\0\0\0\0\0\0\0\0";

pub(crate) fn refused() -> Reply {
    Reply::Error("LOADING Redis is loading the dataset in memory".to_owned())
}

#[test]
fn clients_see_no_key_before_all_are_there() {
    let mut loading = Loading::begin("clients", &file(END));
    let mut client = loading.client();
    assert_eq!(client.call(&["PING"]), refused());
    assert_eq!(client.call(&["GET", "key:000000"]), refused());
    assert_eq!(client.call(&["DBSIZE"]), refused());
    assert_eq!(client.call(&["SAVE"]), refused());
    assert!(matches!(client.call(&["HELLO", "3"]), Reply::Map(_)));
    assert_eq!(client.call(&["SELECT", "0"]), ok());
    let info = text(&client.call(&["INFO", "persistence"]));
    let field = |name: &str| {
        let start = format!("{name}:");
        let line = info.lines().find_map(|line| line.strip_prefix(&start));
        let line = line.unwrap_or_else(|| panic!("no {name} in {info}"));
        line.parse::<f64>().expect("a number")
    };
    assert_eq!(field("loading"), 1.0);
    let total = field("loading_total_bytes");
    assert_eq!(total, file(END).len() as f64);
    assert!(field("loading_loaded_bytes") <= total);
    assert!(field("loading_loaded_perc") <= 100.0);
    assert!(field("loading_start_time") > 1e9);
    assert!(field("loading_eta_seconds") >= 0.0);
    // Whatever is answered is all or nothing.
    let size = eventually("it is loaded", || match client.call(&["DBSIZE"]) {
        Reply::Integer(keys) => Some(keys),
        other => {
            assert_eq!(other, refused());
            None
        }
    });
    assert_eq!(size, KEYS as i64);
    loading.serves();
    assert_eq!(client.info("persistence", "loading"), "0");
    assert_eq!(
        client.call(&["GET", "key:399999"]),
        Reply::Bulk(b"value".to_vec())
    );
}

/// A part of the data must not take the place of the whole.
#[test]
fn who_is_stopped_while_it_loads_leaves_the_file_as_it_is() {
    let whole = file(END);
    for way in ["signal", "save", "nosave"] {
        let mut loading = Loading::begin(way, &whole);
        let mut client = loading.client();
        assert_eq!(client.call(&["PING"]), refused());
        match way {
            "signal" => {
                let pid = Pid::from_child(&loading.child);
                kill_process(pid, Signal::TERM).expect("the process exists");
            }
            word => client.send(&crate::common::command(&["SHUTDOWN", word])),
        }
        assert_eq!(loading.ends(), Some(0), "{way}");
        assert!(loading.file() == whole, "{way}");
        assert_eq!(
            std::fs::read_dir(&loading.folder)
                .expect("a folder")
                .count(),
            1
        );
    }
}

#[test]
fn a_file_that_makes_no_sense_ends_the_server_though_clients_are_there() {
    let mut loading = Loading::begin("wrong", &file(b"\x63"));
    let mut client = loading.client();
    assert_eq!(client.call(&["PING"]), refused());
    assert_eq!(loading.ends(), Some(1));
    let mut said = String::new();
    let stderr = loading.child.stderr.as_mut().expect("piped");
    std::io::Read::read_to_string(stderr, &mut said).expect("text");
    let place = format!("at byte {} a value has the type 99", file(b"").len());
    assert!(said.contains(&place), "{said}");
    assert!(said.contains("move the file away"), "{said}");
}
