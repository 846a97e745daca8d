//! Every workload, small, against a stock redis-server: what must hold whatever the timing.
#![expect(
    clippy::disallowed_methods,
    reason = "a test waits on a condition with a deadline"
)]

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const LAB: &str = env!("CARGO_BIN_EXE_tidewheel-lab");

/// Whether redis-server is there; says so when not, and fails when it has to be.
fn redis_is_there() -> bool {
    let found = Command::new("redis-server")
        .arg("--version")
        .output()
        .is_ok();
    if !found {
        let required = std::env::var("TIDEWHEEL_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required, "redis-server is required and not installed");
        println!("skipped: redis-server is not installed");
    }
    found
}

fn lab(args: &[&str]) -> Output {
    Command::new(LAB)
        .arg("servers")
        .args(args)
        .output()
        .expect("the laboratory starts")
}

fn succeed(output: &Output) -> Value {
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    let line = String::from_utf8_lossy(&output.stdout);
    assert_eq!(line.lines().count(), 1, "one line of JSON: {line}");
    serde_json::from_str(&line).expect("JSON")
}

/// Runs one workload against a fresh server; returns the figures.
fn compare(workload: &[&str]) -> Option<Value> {
    if !redis_is_there() {
        return None;
    }
    let mut args = vec!["compare", "--server", "redis=redis-server"];
    args.extend(workload);
    args.push("--quick");
    let json = succeed(&lab(&args));
    assert_eq!(json["workload"], workload[0]);
    let run = &json;
    assert_eq!(run["server"]["name"], "redis");
    assert!(
        run["server"]["version"]
            .as_str()
            .is_some_and(|version| !version.is_empty())
    );
    assert_eq!(
        run["notes"],
        serde_json::json!([]),
        "no complaint about a stock server"
    );
    Some(run["figures"].clone())
}

fn number(figures: &Value, key: &str) -> f64 {
    figures[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} is missing from {figures}"))
}

#[test]
fn mass_expiry_finds_nothing_early_and_nothing_missing() {
    for survivors in ["first", "interleaved"] {
        let Some(figures) = compare(&["mass-expiry", "--survivors", survivors]) else {
            return;
        };
        assert_eq!(number(&figures, "keys_gone_early"), 0.0);
        assert_eq!(number(&figures, "gets_missing_or_wrong"), 0.0);
        assert!(number(&figures, "gets_per_s_before") > 0.0);
        assert!(number(&figures, "get_max_ms_in_window") > 0.0);
        assert!(number(&figures, "expired_keys") <= 20_000.0);
        if cfg!(target_os = "linux") {
            assert!(number(&figures, "rss_mb_loaded") >= number(&figures, "rss_mb_empty"));
            assert!(number(&figures, "cpu_s_reclaim") > 0.0);
        }
    }
}

#[test]
fn sparse_accounts_for_every_key() {
    let Some(figures) = compare(&["sparse"]) else {
        return;
    };
    assert_eq!(number(&figures, "keys_gone_early"), 0.0);
    let (expired, left) = (
        number(&figures, "expired_keys"),
        number(&figures, "dead_held_at_end"),
    );
    // The last look at the keys comes a moment before the question for the count.
    assert!(
        expired + left >= 20_000.0 && expired <= 20_000.0,
        "{expired} and {left}"
    );
}

#[test]
fn event_lag_hears_every_key_once_and_none_early() {
    let Some(figures) = compare(&["event-lag"]) else {
        return;
    };
    assert_eq!(number(&figures, "keys"), 500.0);
    assert_eq!(number(&figures, "arrived"), 500.0);
    assert_eq!(number(&figures, "never_arrived"), 0.0);
    assert_eq!(number(&figures, "early"), 0.0);
    assert_eq!(number(&figures, "events_repeated"), 0.0);
    assert!(number(&figures, "lag_p50_ms") >= 0.0);
}

#[test]
fn throughput_measures_every_cell() {
    let Some(figures) = compare(&["throughput"]) else {
        return;
    };
    for cell in ["get_p1_c8", "get_p16_c8", "set_p1_c8", "set_p16_c8"] {
        assert!(number(&figures, &format!("k_per_s_{cell}")) > 0.0);
        assert!(number(&figures, &format!("batch_p99_us_{cell}")) > 0.0);
        if cfg!(target_os = "linux") {
            assert!(number(&figures, &format!("cpu_us_{cell}")) > 0.0);
        }
    }
}

#[test]
fn memory_counts_bytes_with_and_without_ttl() {
    for ttl in [&["memory"][..], &["memory", "--no-ttl"]] {
        let Some(figures) = compare(ttl) else { return };
        // A key of 16 bytes and a value of 32 cannot take less.
        assert!(number(&figures, "used_bytes_per_key") > 48.0);
        if cfg!(target_os = "linux") {
            assert!(number(&figures, "rss_bytes_per_key") > 48.0);
        }
    }
}

#[test]
fn churn_reads_back_what_is_alive_and_leaves_nothing() {
    let Some(figures) = compare(&["churn"]) else {
        return;
    };
    assert!(number(&figures, "sets_per_s") > 0.0);
    assert_eq!(number(&figures, "gets_missing_or_wrong"), 0.0);
    let ratio = number(&figures, "live_over_stored_median");
    assert!(ratio > 0.0 && ratio < 1.1, "{ratio}");
}

/// A server that the tool did not start itself.
struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    fn start() -> Self {
        let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = probe.local_addr().expect("bound").port();
        drop(probe);
        let child = Command::new("redis-server")
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
            ])
            .args([
                "--requirepass",
                "open sesame",
                "--notify-keyspace-events",
                "KA",
            ])
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server starts");
        let redis = Self { child, port };
        let give_up = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(Instant::now() < give_up, "redis-server does not listen");
            std::thread::yield_now();
        }
        redis
    }

    fn lab(&self, args: &[&str]) -> Output {
        Command::new(LAB)
            .arg("servers")
            .args(args)
            .args(["--port", &self.port.to_string()])
            .env("TIDEWHEEL_LAB_PASSWORD", "open sesame")
            .output()
            .expect("the laboratory starts")
    }

    fn say(&self, args: &[&str]) -> String {
        let output = Command::new("redis-cli")
            .args([
                "-p",
                &self.port.to_string(),
                "-a",
                "open sesame",
                "--no-auth-warning",
            ])
            .args(args)
            .output()
            .expect("redis-cli comes with redis-server");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let ended = self.child.kill().and_then(|()| self.child.wait());
        if let Err(error) = ended {
            eprintln!("could not end redis-server: {error}");
        }
    }
}

#[test]
fn a_server_that_holds_keys_is_left_alone_unless_told_otherwise() {
    if !redis_is_there() {
        return;
    }
    let redis = Redis::start();
    redis.say(&["SET", "precious", "1"]);
    let refused = redis.lab(&["memory", "--quick"]);
    assert!(!refused.status.success());
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(
        words.contains("holds 1 keys") && words.contains("--flush"),
        "{words}"
    );
    assert_eq!(redis.say(&["GET", "precious"]), "1");

    let json = succeed(&redis.lab(&["memory", "--quick", "--flush"]));
    assert_eq!(json["workload"], "memory");
    assert_eq!(redis.say(&["DBSIZE"]), "0");
}

#[test]
fn event_lag_puts_the_notification_setting_back() {
    if !redis_is_there() {
        return;
    }
    let redis = Redis::start();
    let before = redis.say(&["CONFIG", "GET", "notify-keyspace-events"]);
    assert!(before.contains('A') && before.contains('K'), "{before}");
    succeed(&redis.lab(&["event-lag", "--quick", "--keys", "50", "--spread-s", "0.2"]));
    assert_eq!(
        redis.say(&["CONFIG", "GET", "notify-keyspace-events"]),
        before
    );
}

#[test]
fn json_goes_to_a_file_and_the_table_to_standard_output() {
    if !redis_is_there() {
        return;
    }
    let file = std::env::temp_dir().join(format!("tidewheel-lab-{}.json", std::process::id()));
    let path = file.to_str().expect("a path of text");
    let redis = Redis::start();
    for _ in 0..2 {
        let output = redis.lab(&["memory", "--quick", "--json", path]);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(String::from_utf8_lossy(&output.stdout).contains("RSS bytes/key"));
    }
    let lines = std::fs::read_to_string(&file).expect("the file is there");
    std::fs::remove_file(&file).expect("the file is ours");
    assert_eq!(lines.lines().count(), 2);
    for line in lines.lines() {
        let json: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(json["params"]["keys"], 50_000);
    }
}

#[test]
fn nobody_there_is_a_clear_error() {
    let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = probe.local_addr().expect("bound").port();
    drop(probe);
    let output = lab(&["sparse", "--quick", "--port", &port.to_string()]);
    assert!(!output.status.success());
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(
        words.contains(&format!("cannot connect to 127.0.0.1:{port}")),
        "{words}"
    );
}
