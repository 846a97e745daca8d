//! `tidewheel log print` and `tidewheel log repair`, as users run them.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use rustix::process::Signal;

use crate::common::{Folder, Server, bulk};

fn start(folder: &Folder) -> Server {
    let flags = ["--dir", folder.text(), "--appendonly", "yes"];
    let server = Server::start_logged(&[&flags[..], &["--appendfsync", "always"]].concat());
    server.logged("loaded the log");
    server
}

fn kill(mut server: Server) {
    server.signal(Signal::KILL);
    server.wait();
}

fn log_of(folder: &Folder) -> PathBuf {
    folder.0.join("log")
}

fn tool(words: &[&str], folder: &Folder) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidewheel"));
    command.arg("log").args(words).arg(log_of(folder));
    let output = command.stdin(Stdio::null()).output();
    output.expect("the tool runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn each_record_has_a_line_while_the_server_runs() {
    let folder = Folder::new("log-lines");
    let server = start(&folder);
    let mut client = server.client();
    client.call(&["SET", "tea", "hot\n", "PX", "100000"]);
    client.call(&["GET", "tea"]);
    client.call(&["SELECT", "3"]);
    for words in [&["MULTI"][..], &["INCR", "a"], &["INCR", "b"], &["EXEC"]] {
        client.call(words);
    }
    let printed = tool(&["print", "--human"], &folder);
    assert!(printed.status.success(), "{printed:?}");
    let said = text(&printed.stdout);
    let mut columns = said.lines().map(|line| line.split_once('\t').expect("two"));
    assert!(columns.clone().all(|(time, _)| time.ends_with('Z')));
    let expected = [
        r#"0	-	SET "tea" "hot\n" "PX" "100000""#,
        r#"3	+	INCR "a""#,
        r#"3	-	INCR "b""#,
    ];
    assert!(
        columns.by_ref().map(|(_, rest)| rest).eq(expected),
        "{said}"
    );
    assert_eq!(text(&printed.stderr), "");
    client.call(&["INCR", "c"]);
}

#[test]
fn a_damaged_log_is_cut_where_it_is_damaged_and_starts_again() {
    let folder = Folder::new("log-repair");
    let server = start(&folder);
    let mut client = server.client();
    for key in ["first", "second", "third"] {
        client.call(&["SET", key, &"v".repeat(100)]);
    }
    let busy = tool(&["repair", "--yes"], &folder);
    assert!(busy.status.success(), "nothing is damaged");
    kill(server);
    let segment = log_of(&folder).join("segment-1");
    let mut bytes = std::fs::read(&segment).expect("a file");
    let at = bytes
        .windows(6)
        .position(|six| six == b"second")
        .expect("it is there");
    bytes[at] ^= 1;
    std::fs::write(&segment, bytes).expect("a file");

    let printed = tool(&["print", "--human"], &folder);
    assert_eq!(printed.status.code(), Some(1));
    assert!(
        text(&printed.stdout).contains("first"),
        "what is in front is printed"
    );
    assert!(text(&printed.stderr).contains("segment-1 is damaged at byte"));

    let refused = tool(&["repair"], &folder);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("say --yes"));
    assert!(!log_of(&folder).join("segment-1.damaged").exists());

    let repaired = tool(&["repair", "--yes"], &folder);
    assert!(repaired.status.success(), "{repaired:?}");
    let said = text(&repaired.stdout);
    assert!(said.contains("are in segment-1.damaged now"), "{said}");
    assert!(log_of(&folder).join("segment-1.damaged").exists());

    let server = start(&folder);
    let mut client = server.client();
    assert_eq!(client.call(&["GET", "first"]), bulk(&"v".repeat(100)));
    assert_eq!(client.call(&["DBSIZE"]), crate::common::Reply::Integer(1));
}

#[test]
fn a_log_that_is_in_use_is_not_cut_and_what_is_no_log_is_an_error() {
    let folder = Folder::new("log-none");
    for words in [&["print"][..], &["repair", "--yes"]] {
        let output = tool(words, &folder);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(!folder.0.exists(), "nothing is made");
    }
    let server = start(&folder);
    server.client().call(&["SET", "k", "v"]);
    let manifest = log_of(&folder).join("segment-1");
    let mut bytes = std::fs::read(&manifest).expect("a file");
    bytes[100] ^= 1;
    std::fs::write(&manifest, &bytes).expect("a file");
    let output = tool(&["repair", "--yes"], &folder);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("in use"), "{output:?}");
}
