//! The command, on a file.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tidewheel_tasks::{Ask, Failure, FileStore, Task, TaskStore, wait};

struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        // It is in a folder for such.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl File {
    fn new(name: &str) -> Self {
        let file = format!("tidewheel-console-{name}-{}.redb", std::process::id());
        Self(std::env::temp_dir().join(file))
    }

    fn open(&self) -> FileStore {
        FileStore::open(&self.0).expect("opens")
    }

    fn call(&self, arguments: &[&str]) -> Output {
        let store = format!("file:{}", self.0.display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidewheel-tasks"));
        command.args(["--store", &store]).args(arguments);
        command.output().expect("runs")
    }

    fn says(&self, arguments: &[&str]) -> String {
        let output = self.call(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }
}

#[test]
fn what_is_dead_is_shown_and_tried_again() {
    let file = File::new("dead");
    let store = file.open();
    for id in ["mail-7", "mail-8"] {
        wait(store.schedule(Task::new(id, "to:\u{1b}[2J you"))).expect("scheduled");
    }
    let ask = Ask::new("w", Duration::ZERO, Duration::from_secs(9), 9);
    for claim in wait(store.claim(ask)).expect("claims") {
        assert!(wait(store.fail(&claim, Failure::dead("no route"))).is_ok());
    }
    drop(store);

    let table = file.says(&["dead"]);
    assert!(
        table.starts_with("id ") && table.lines().count() == 3,
        "{table}"
    );
    assert!(
        table.contains("no route") && table.contains(" s ago"),
        "{table}"
    );
    assert!(!table.contains('\u{1b}'), "a payload moves no cursor");
    let lines = file.says(&["dead", "--json", "--most", "1"]);
    assert!(
        lines.starts_with('{') && lines.lines().count() == 1,
        "{lines}"
    );
    let counts = file.says(&["counts", "--json"]);
    assert!(
        counts.contains("\"dead\":2") && counts.contains("\"pending\":0"),
        "{counts}"
    );
    assert_eq!(file.says(&["list", "dead"]).lines().count(), 3);
    assert_eq!(file.says(&["list"]), "none\n");
    assert_eq!(file.says(&["requeue", "--all"]).lines().count(), 2);
    assert_eq!(file.says(&["dead"]), "none\n");
    let look = file.says(&["look", "mail-7"]);
    assert!(
        look.contains("id: mail-7\n") && look.contains("attempt: 1\n"),
        "{look}"
    );

    let output = file.call(&["cancel", "mail-7", "mail-9"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "mail-7: cancelled\n"
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "mail-9: it is not there\n"
    );
}

#[test]
fn queues_are_paused_limited_and_resumed() {
    let file = File::new("queues");
    drop(file.open());
    assert_eq!(file.says(&["queues"]), "none\n");
    file.says(&["pause", "mails"]);
    file.says(&["limit", "mails", "3", "1000"]);
    let lines = file.says(&["queues", "--json"]);
    let queue: Value = serde_json::from_str(&lines).expect("one line of JSON");
    let limit = json!({ "times": 3, "period_ms": 1000 });
    assert_eq!(
        queue,
        json!({ "queue": "mails", "paused": true, "limit": limit })
    );
    file.says(&["resume", "mails"]);
    file.says(&["limit", "mails"]);
    assert_eq!(file.says(&["queues"]), "none\n");
}

/// A page elsewhere could give its own name the address of this machine.
#[test]
fn the_page_is_served_to_who_asks_for_this_host() {
    let file = File::new("serve");
    drop(file.open());
    let store = format!("file:{}", file.0.display());
    let mut server = Command::new(env!("CARGO_BIN_EXE_tidewheel-tasks"))
        .args(["--store", &store, "serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut address = String::new();
    let output = server.stdout.take().expect("piped");
    BufReader::new(output)
        .read_line(&mut address)
        .expect("says where it is");
    let address = address
        .trim()
        .trim_start_matches("http://")
        .trim_end_matches('/');
    let ask = |host: &str| {
        let mut socket = TcpStream::connect(address).expect("listens");
        let request =
            format!("GET /api/dead HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("answered");
        answer
    };
    for (host, status) in [
        (address, "HTTP/1.1 200"),
        ("localhost:1", "HTTP/1.1 200"),
        ("[::1]:1", "HTTP/1.1 200"),
        ("tasks.example.org", "HTTP/1.1 421"),
        ("127.0.0.1.example.org:80", "HTTP/1.1 421"),
        ("", "HTTP/1.1 421"),
    ] {
        assert!(ask(host).starts_with(status), "{host}: {}", ask(host));
    }
    server.kill().expect("ends");
    server.wait().expect("ended");
}

#[test]
fn what_cannot_be_opened_is_named_and_nothing_is_made() {
    let file = File::new("missing");
    let output = file.call(&["dead"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("missing") && error.contains("no such file"),
        "{error}"
    );
    assert!(!file.0.exists());
    let store = file.open();
    let output = file.call(&["dead"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("is open already"), "{error}");
    drop(store);
    let output = file.call(&["serve", "--listen", "0.0.0.0:0"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("loopback"), "{error}");
}
