//! The command, on a file.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
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

/// A saved list was empty, and nobody was told.
#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let file = File::new("full");
    drop(file.open());
    let store = format!("file:{}", file.0.display());
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidewheel-tasks"));
    command.args(["--store", &store, "dead"]);
    let output = command.stdout(full.expect("opens")).stderr(Stdio::piped());
    let output = output.spawn().expect("runs").wait_with_output();
    let output = output.expect("ended");
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("cannot be written"), "{error}");
}

/// The program panicked when it had something to say, and its exit code was another one.
#[cfg(target_os = "linux")]
#[test]
fn an_error_that_cannot_be_written_has_its_exit_code() {
    let file = File::new("silent");
    drop(file.open());
    let store = format!("file:{}", file.0.display());
    for (arguments, code) in [
        (["cancel", "nobody"], 1),
        (["cancel", ""], 2),
        (["list", "--x"], 2),
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidewheel-tasks"));
        command.args(["--store", &store]).args(arguments);
        let status = command.stderr(full.expect("opens")).status().expect("runs");
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}

/// The first one that was refused ended the command.
#[test]
fn what_cannot_be_changed_stops_no_other() {
    let file = File::new("each");
    let store = file.open();
    for id in ["a", "b"] {
        wait(store.schedule(Task::new(id, ""))).expect("scheduled");
    }
    drop(store);
    let output = file.call(&["cancel", "a", "", "nobody", "b"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let [said, wrong] = [output.stdout, output.stderr].map(String::from_utf8);
    assert_eq!(said.expect("text"), "a: cancelled\nb: cancelled\n");
    let wrong = wrong.expect("text");
    assert!(
        wrong.starts_with(": it is refused: ") && wrong.contains("nobody: "),
        "{wrong}"
    );
    let line = file.call(&["--json", "cancel", ""]).stdout;
    let line: Value = serde_json::from_slice(&line).expect("JSON");
    assert_eq!((&line["id"], &line["done"]), (&json!(""), &json!(false)));
    assert!(line["error"].is_string(), "{line}");
}

/// They were all in memory at once.
#[test]
fn large_tasks_are_listed_page_by_page() {
    let file = File::new("large");
    let store = file.open();
    for n in 0..9 {
        let large = Task::new(format!("{n}"), vec![b'x'; 900_000]).queue("-q");
        wait(store.schedule(large)).expect("scheduled");
    }
    let ask = Ask::new("w", Duration::ZERO, Duration::from_secs(9), 6);
    for claim in wait(store.claim(ask)).expect("claims") {
        assert!(wait(store.fail(&claim, Failure::dead("no route"))).is_ok());
    }
    drop(store);
    assert_eq!(file.says(&["--json", "dead"]).lines().count(), 6);
    assert_eq!(
        file.says(&["--json", "list", "dead", "--most", "5"])
            .lines()
            .count(),
        5
    );
    assert_eq!(file.says(&["requeue", "--all"]).lines().count(), 6);
    assert_eq!(
        file.says(&["--json", "list", "--queue", "-q"])
            .lines()
            .count(),
        9
    );
}

/// The text after the scheme was in the error.
#[test]
fn a_store_of_no_kind_is_not_repeated_since_it_may_have_a_password() {
    for store in [
        "redis://:s3cret/x",
        "host=localhost password=s3cret",
        "s3cret",
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidewheel-tasks"));
        let output = command.args(["--store", store, "list"]).output();
        let output = output.expect("runs");
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            error.contains("postgres://") && !error.contains("s3cret"),
            "{error}"
        );
    }
}

/// What followed was read backwards.
#[test]
fn no_id_turns_the_way_a_terminal_reads() {
    let file = File::new("turned");
    let store = file.open();
    let id = "a\u{202e}b\u{2066}c\u{9b}d";
    wait(store.schedule(Task::new(id, "").after(Duration::from_secs(3600)))).expect("scheduled");
    drop(store);
    for shown in [file.says(&["list"]), file.says(&["look", id])] {
        assert!(shown.contains("a\u{fffd}b\u{fffd}c\u{fffd}d"), "{shown:?}");
    }
    let line = file.says(&["--json", "list"]);
    assert!(line.contains(r"a\u202eb\u2066c\u009bd"), "{line:?}");
    let task: Value = serde_json::from_str(&line).expect("one line of JSON");
    assert_eq!(task["id"], id);
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

/// The command as a server, and its address.
struct Served(Child, String);

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Served {
    fn of(file: &File) -> Self {
        drop(file.open());
        let store = format!("file:{}", file.0.display());
        let mut server = Command::new(env!("CARGO_BIN_EXE_tidewheel-tasks"))
            .args(["--store", &store, "serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("runs");
        let mut line = String::new();
        let output = server.stdout.take().expect("piped");
        let read = BufReader::new(output).read_line(&mut line);
        read.expect("says where it is");
        let address = line.trim().trim_start_matches("http://");
        Self(server, address.trim_end_matches('/').to_owned())
    }
}

/// It was closed without an answer.
#[test]
fn who_has_asked_all_that_it_will_is_answered() {
    let file = File::new("half");
    let server = Served::of(&file);
    let mut socket = TcpStream::connect(&server.1).expect("listens");
    let request = b"GET /api/now HTTP/1.1\r\nHost: localhost\r\n\r\n";
    socket.write_all(request).expect("sent");
    socket.shutdown(Shutdown::Write).expect("said");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
}

/// An answer was cut.
#[cfg(unix)]
#[test]
fn what_was_asked_is_answered_when_the_server_ends() {
    let file = File::new("ends");
    let store = file.open();
    // Six bytes of the answer each.
    let task = |n| Task::new(format!("{n}"), [1; 300]).after(Duration::from_secs(9999));
    wait(store.schedule_many((0..10_000).map(task).collect())).expect("scheduled");
    drop(store);
    let mut server = Served::of(&file);
    let mut socket = TcpStream::connect(&server.1).expect("listens");
    let request = b"GET /api/tasks?most=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    socket.write_all(request).expect("sent");
    let mut answer = vec![0];
    socket.read_exact(&mut answer).expect("it answers");
    let mut kill = Command::new("kill");
    let killed = kill.args(["-TERM", &server.0.id().to_string()]).status();
    assert!(killed.expect("runs").success());
    // It listens no more: it has seen the signal.
    while TcpStream::connect(&server.1).is_ok() {
        std::thread::yield_now();
    }
    socket.read_to_end(&mut answer).expect("the rest");
    let answer = String::from_utf8(answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let tasks: Value = serde_json::from_str(body).expect("it is whole");
    assert_eq!(tasks.as_array().map(Vec::len), Some(10_000));
    let ended = server.0.wait().expect("ended");
    assert_eq!(ended.code(), Some(0));
}

/// A page elsewhere could give its own name the address of this machine.
#[test]
fn the_page_is_served_to_who_asks_for_this_host() {
    let file = File::new("serve");
    let server = Served::of(&file);
    let address = &*server.1;
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
        ("[::1]", "HTTP/1.1 200"),
        ("LOCALHOST", "HTTP/1.1 200"),
        ("localhost.", "HTTP/1.1 200"),
        ("LocalHost.:80", "HTTP/1.1 200"),
        ("localhost..", "HTTP/1.1 421"),
        ("localhost.example.org", "HTTP/1.1 421"),
        ("tasks.example.org", "HTTP/1.1 421"),
        ("127.0.0.1.example.org:80", "HTTP/1.1 421"),
        ("", "HTTP/1.1 421"),
    ] {
        assert!(ask(host).starts_with(status), "{host}: {}", ask(host));
    }
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
    std::fs::write(&file.0, "").expect("written");
    let output = file.call(&["dead"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("is empty"), "{error}");
    assert_eq!(std::fs::read(&file.0).expect("a file"), b"");
    let store = file.open();
    let output = file.call(&["dead"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("is open already"), "{error}");
    drop(store);
    let output = file.call(&["serve", "--listen", "0.0.0.0:0"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("loopback"), "{error}");
}
