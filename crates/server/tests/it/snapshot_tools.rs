//! `tidewheel check` and `tidewheel dump`, as users run them.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::common::{Server, ok};

/// A folder with the snapshot of a server that was filled by these commands.
struct Saved(PathBuf);

impl Saved {
    fn new(name: &str, commands: &[&[&str]]) -> Self {
        let name = format!("tidewheel-tools-{name}-{}", std::process::id());
        let saved = Self(std::env::temp_dir().join(name));
        let server = Server::start(&["--dir", saved.0.to_str().expect("a path of text")]);
        let mut client = server.client();
        for words in commands {
            client.call(words);
        }
        assert_eq!(client.call(&["SAVE"]), ok());
        saved
    }

    fn file(&self) -> PathBuf {
        self.0.join("dump.rdb")
    }
}

impl Drop for Saved {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn tool(words: &[&str], saved: &Saved) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidewheel"));
    command.args(words).arg(saved.file());
    command.stdin(Stdio::null());
    command
}

fn output(words: &[&str], saved: &Saved) -> (Output, String) {
    let output = tool(words, saved).output().expect("the tool runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output, said)
}

#[test]
fn a_file_of_the_server_is_sound_and_each_of_its_keys_has_a_line() {
    let lines: &[&[&str]] = &[
        &["SET", "long", &"v".repeat(1000), "PXAT", "95617584000123"],
        &["HSET", "h", "f", "v"],
        &["HPEXPIREAT", "h", "32503680000123", "FIELDS", "1", "f"],
        &["RPUSH", "l", "a", "b"],
        &["SADD", "s", "1"],
        &["ZADD", "z", "1.5", "a"],
        &["XADD", "x", "5-1", "f", "7"],
        &["XGROUP", "CREATE", "x", "g", "0"],
        &["SELECT", "9"],
        &["SET", "elsewhere", "v"],
    ];
    let saved = Saved::new("sound", lines);
    let (checked, said) = output(&["check"], &saved);
    assert!(checked.status.success(), "{said}");
    assert_eq!(checked.stderr, b"", "no bar where no terminal is");
    for text in [
        "version                    10",
        "\"redis-ver\"                \"7.0.0\"",
        "\"tidewheel-ver\"",
        "db 0 stream                1",
        "db 9 string                1",
        "keys                       7",
        "with deadlines             1",
        "dead already               0",
        "with deadlines of members  1",
        "checksum                   right",
    ] {
        assert!(said.contains(text), "no {text} in {said}");
    }
    let (dumped, said) = output(&["dump"], &saved);
    assert!(dumped.status.success() && dumped.stderr.is_empty());
    let mut lines: Vec<_> = said.lines().collect();
    lines.sort_unstable();
    let long = format!(
        "0\tstring\t\"long\"\t5000-01-01T00:00:00.123Z\t\"{}\"... (936 more bytes)",
        "v".repeat(64)
    );
    let expected = [
        "0\thash\t\"h\"\tnone\t[\"f\": \"v\" until 3000-01-01T00:00:00.123Z]",
        "0\tlist\t\"l\"\tnone\t[\"a\", \"b\"]",
        "0\tset\t\"s\"\tnone\t[\"1\"]",
        "0\tstream\t\"x\"\tnone\t[5-1 \"f\": \"7\", group \"g\"]",
        &long,
        "0\tzset\t\"z\"\tnone\t[\"a\": 1.5]",
        "9\tstring\t\"elsewhere\"\tnone\t\"v\"",
    ];
    assert_eq!(lines, expected);
    let (_, whole) = output(&["dump", "--whole"], &saved);
    assert!(whole.contains(&format!("\"{}\"\n", "v".repeat(1000))));
}

#[test]
fn a_damaged_file_and_one_that_is_not_there_are_errors() {
    let saved = Saved::new("damaged", &[&["SET", "k", "v"]]);
    let whole = std::fs::read(saved.file()).expect("a file");
    let mut changed = whole.clone();
    let last = changed.len() - 1;
    changed[last] ^= 1;
    for (file, expected) in [
        (&whole[..whole.len() - 1], "it ends too early, at byte"),
        (&changed[..], "its checksum, at byte"),
        (b"no snapshot", "it does not begin with REDIS or VALKEY"),
    ] {
        std::fs::write(saved.file(), file).expect("a file");
        for name in ["check", "dump"] {
            let (output, _) = output(&[name], &saved);
            assert_eq!(output.status.code(), Some(1), "{name}: {expected}");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains(expected), "{name}: {said}");
        }
    }
    std::fs::remove_file(saved.file()).expect("it is there");
    let (output, _) = output(&["check"], &saved);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("it cannot be opened"));
}

#[test]
fn who_stops_reading_ends_it_in_peace() {
    let commands: Vec<Vec<String>> = (0..200)
        .map(|i| {
            let keys = (0..100).flat_map(|j| [format!("key:{i}:{j}"), "v".repeat(50)]);
            std::iter::once("MSET".to_owned()).chain(keys).collect()
        })
        .collect();
    let words: Vec<Vec<&str>> = commands
        .iter()
        .map(|words| words.iter().map(String::as_str).collect())
        .collect();
    let lines: Vec<&[&str]> = words.iter().map(|words| &words[..]).collect();
    let saved = Saved::new("pipe", &lines);
    let mut child = tool(&["dump"], &saved)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the tool runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped"))
        .read_line(&mut line)
        .expect("a line");
    assert!(line.starts_with("0\tstring\t\"key:"));
    assert!(child.wait().expect("it ends").success());
    let mut said = String::new();
    let mut stderr = child.stderr.take().expect("piped");
    stderr.read_to_string(&mut said).expect("text");
    assert_eq!(said, "");
}

/// Settings of the server, however wrong, are nothing to a tool.
#[test]
fn the_environment_of_a_server_does_not_matter() {
    let saved = Saved::new("environment", &[&["SET", "k", "v"]]);
    let output = tool(&["check"], &saved)
        .env("TIDEWHEEL_PORT", "none")
        .output()
        .expect("the tool runs");
    assert!(output.status.success());
}
