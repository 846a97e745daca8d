//! The stock clients, as users run them.

use std::process::{Command, Stdio};

use crate::common::{Server, have};

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the tool runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    said
}

#[test]
fn redis_cli_talks_to_it() {
    if !have("redis-cli", &["--version"]) {
        return;
    }
    let server = Server::start(&[]);
    let port = server.port.to_string();
    let cli = |words: &[&str]| output("redis-cli", &[&["-p", port.as_str()][..], words].concat());
    assert_eq!(cli(&["PING"]).trim(), "PONG");
    assert_eq!(cli(&["SET", "tea", "hot", "PX", "60000"]).trim(), "OK");
    assert_eq!(cli(&["GET", "tea"]).trim(), "hot");
    let ttl: i64 = cli(&["PTTL", "tea"]).trim().parse().expect("a number");
    assert!((1..=60_000).contains(&ttl));
    assert_eq!(
        cli(&["-3", "CONFIG", "GET", "appendonly"]).trim(),
        "appendonly no"
    );
    assert_eq!(cli(&["--scan"]).trim(), "tea");
    assert!(cli(&["-n", "3", "DBSIZE"]).contains('0'));
    assert!(cli(&["COMMAND", "DOCS", "get"]).contains("summary"));
    assert!(cli(&["--no-auth-warning", "INFO", "server"]).contains("redis_version:7.4"));
}

#[test]
fn redis_benchmark_runs_its_default_tests_that_apply() {
    if !have("redis-benchmark", &["--version"]) {
        return;
    }
    let server = Server::start(&[]);
    let port = server.port.to_string();
    for pipeline in ["1", "16"] {
        let tests = "ping_inline,ping_mbulk,set,get,incr,mset";
        let said = output(
            "redis-benchmark",
            &[
                "-p", &port, "-t", tests, "-n", "5000", "-r", "1000", "-P", pipeline, "-q",
            ],
        );
        assert!(!said.to_lowercase().contains("error"), "{said}");
        for name in ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET"] {
            assert!(
                said.contains(name) && said.contains("requests per second"),
                "{said}"
            );
        }
    }
    assert_eq!(server.client().info("stats", "total_error_replies"), "0");
}

#[test]
fn the_python_client_drives_it() {
    if !have("python3", &["-c", "import redis"]) {
        return;
    }
    let server = Server::start(&["--notify-keyspace-events", "Ex"]);
    let script = include_str!("client.py");
    for protocol in ["2", "3"] {
        let said = output(
            "python3",
            &["-c", script, &server.port.to_string(), protocol],
        );
        assert_eq!(said.trim(), "done");
    }
}
