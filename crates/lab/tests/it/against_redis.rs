//! Every workload runs, small, against a stock redis-server; the assertions hold whatever the
//! timing.

use std::process::Output;
use std::thread;

use serde_json::{Value, json};

use crate::{is_there, lab};

/// A small run against a fresh server.
fn run(args: &str) -> Output {
    let mut command = lab();
    command.args(["servers", "compare", "--server", "redis=redis-server"]);
    command.args(args.split(' ')).arg("--quick");
    command.output().expect("the laboratory starts")
}

/// Runs one workload; tells its figures.
fn compare(workload: &str) -> Option<impl Fn(&str) -> f64 + use<>> {
    if !is_there("redis-server") {
        return None;
    }
    let output = run(workload);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    let line = String::from_utf8_lossy(&output.stdout);
    assert_eq!(line.lines().count(), 1, "one line of JSON: {line}");
    let run: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(run["workload"], workload.split(' ').next().expect("a name"));
    assert_eq!(run["server"]["name"], "redis");
    let version = run["server"]["version"].as_str();
    assert!(version.is_some_and(|version| !version.is_empty()));
    assert_eq!(run["notes"], json!([]), "no complaint about a stock server");
    Some(move |key: &str| {
        let number = run["figures"][key].as_f64();
        number.unwrap_or_else(|| panic!("{key} is missing from {run}"))
    })
}

/// Two workloads at the same time: they wait more than they work.
fn both(one: &str, other: &str, check: impl Fn(&dyn Fn(&str) -> f64) + Sync) {
    thread::scope(|scope| {
        for workload in [one, other] {
            let check = &check;
            scope.spawn(move || compare(workload).map(|number| check(&number)));
        }
    });
}

#[test]
fn mass_expiry_finds_nothing_early_and_nothing_missing() {
    both(
        "mass-expiry --survivors first",
        "mass-expiry --survivors interleaved",
        |number| {
            assert_eq!(number("keys_gone_early"), 0.0);
            assert_eq!(number("gets_missing_or_wrong"), 0.0);
            assert!(number("gets_per_s_before") > 0.0 && number("get_max_ms_in_window") > 0.0);
            assert!(number("expired_keys") <= 20_000.0);
            if cfg!(target_os = "linux") {
                assert!(number("rss_mb_loaded") >= number("rss_mb_empty"));
                assert!(number("cpu_s_reclaim") > 0.0);
            }
        },
    );
}

#[test]
fn sparse_accounts_for_every_key() {
    let Some(number) = compare("sparse") else {
        return;
    };
    assert_eq!(number("keys_gone_early"), 0.0);
    let (expired, left) = (number("expired_keys"), number("dead_held_at_end"));
    // The last look at the keys comes a moment before the question for the count.
    assert!(expired + left >= 20_000.0, "{expired} and {left}");
    assert!(expired <= 20_000.0, "{expired}");
}

#[test]
fn event_lag_hears_every_key_once_and_none_early() {
    let Some(number) = compare("event-lag") else {
        return;
    };
    assert_eq!(["keys", "arrived"].map(&number), [500.0; 2]);
    let faults = ["never_arrived", "early", "events_repeated"].map(&number);
    assert_eq!(faults, [0.0; 3]);
    assert!(number("lag_p50_ms") >= 0.0);
}

#[test]
fn hand_over_reaches_everybody_who_waits() {
    let Some(number) = compare("hand-over") else {
        return;
    };
    assert_eq!(number("received"), 500.0);
    assert!(number("hand_over_p50_us") > 0.0);
    assert!(number("all_at_once_ms") > 0.0);
}

#[test]
fn throughput_measures_every_cell() {
    let Some(number) = compare("throughput") else {
        return;
    };
    for cell in ["get_p1_c8", "get_p16_c8", "set_ex_p1_c8", "set_ex_p16_c8"] {
        assert!(number(&format!("k_per_s_{cell}")) > 0.0);
        assert!(number(&format!("batch_p99_us_{cell}")) > 0.0);
        if cfg!(target_os = "linux") {
            assert!(number(&format!("cpu_us_{cell}")) > 0.0);
        }
    }
}

#[test]
fn throughput_of_scripts_and_streams_finds_what_was_stored() {
    let ops = "limiter,set_unlock,unlock_refused,twenty_calls,undeclared,xadd,xadd_maxlen,\
               xread_10,xreadgroup_xack_10,xadd_xreadgroup_xack";
    let Some(number) = compare(&format!("throughput --pipelines 1,5 --conns 2 --ops {ops}")) else {
        return;
    };
    for op in ops.split(',') {
        for pipeline in [1, 5] {
            assert!(number(&format!("k_per_s_{op}_p{pipeline}_c2")) > 0.0);
        }
    }
}

#[test]
fn fan_out_reaches_everybody_once() {
    let Some(number) = compare("fan-out") else {
        return;
    };
    assert_eq!(number("received"), 300.0);
    assert!(number("until_last_least_ms") > 0.0);
}

#[test]
fn undeclared_reads_alone_and_beside_scripts() {
    let Some(number) = compare("undeclared --rate 1000") else {
        return;
    };
    for phase in ["alone", "at_rate", "flat_out"] {
        assert!(number(&format!("get_p99_us_{phase}")) > 0.0);
    }
    for phase in ["at_rate", "flat_out"] {
        assert!(number(&format!("scripts_per_s_{phase}")) > 0.0);
    }
}

#[test]
fn stream_memory_counts_bytes_per_entry() {
    both("stream-memory", "stream-memory --streams 100", |number| {
        assert!(number("used_bytes_per_entry") > 10.0);
    });
}

#[test]
fn memory_counts_bytes_with_and_without_ttl() {
    both("memory", "memory --no-ttl", |number| {
        // A key of 16 bytes and a value of 32 cannot take less.
        assert!(number("used_bytes_per_key") > 48.0);
        if cfg!(target_os = "linux") {
            assert!(number("rss_bytes_per_key") > 48.0);
        }
    });
}

#[test]
fn churn_knows_who_is_alive() {
    let Some(number) = compare("churn") else {
        return;
    };
    assert!(number("sets_per_s") > 0.0);
    let ratio = number("live_over_stored_median");
    assert!(ratio > 0.0 && ratio < 1.1, "{ratio}");
}

#[test]
fn lines_go_to_a_file_and_the_table_to_standard_output() {
    if !is_there("redis-server") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lines.json");
    for where_to in [format!("--json {}", file.display()), "--table".to_owned()] {
        let output = run(&format!("memory {where_to}"));
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}");
        let table = String::from_utf8_lossy(&output.stdout);
        assert!(table.contains("rss bytes per key"), "{table}");
    }
    let lines = std::fs::read_to_string(&file).expect("the file is there");
    assert_eq!(lines.lines().count(), 1, "the second run had no file");
    let json: Value = serde_json::from_str(&lines).expect("JSON");
    assert_eq!(json["params"]["keys"], 50_000);
}
