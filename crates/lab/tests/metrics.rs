//! The dashboard's row and the alerts for programs ask for metrics that a program has. This is a
//! binary of its own, because a process has one recorder.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

#[path = "../examples/metrics.rs"]
#[allow(dead_code, reason = "`main`")]
mod example;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/monitoring");

/// Prometheus' own tool must find nothing wrong with an input, if the tool is installed.
fn promtool(args: &[&str], input: &str) {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(input.as_bytes()).expect("a file of ours");
    let mut tool = Command::new("promtool");
    match args {
        ["test", ..] => tool.args(args).arg(file.path()),
        _ => tool.args(args).stdin(file.reopen().expect("it is there")),
    };
    let Ok(output) = tool.output() else {
        let required = std::env::var("TIDEWHEEL_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required, "promtool is required and not installed");
        return println!("skipped: promtool is not installed");
    };
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
}

#[test]
fn the_dashboard_and_the_alerts_ask_for_metrics_that_the_example_has() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || example::serve(&listener).map_err(|error| error.to_string()));
    let scrape = || {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream
            .write_all(b"GET /metrics HTTP/1.0\r\n\r\n")
            .expect("it reads");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("it answers");
        reply.split_once("\r\n\r\n").expect("a head").1.to_owned()
    };
    let mut missing = vec![String::new()];
    let mut text = String::new();
    for _ in 0..500 {
        text = scrape();
        missing.clear();
        for file in ["dashboard.json", "alerts.yml"] {
            let asked = std::fs::read_to_string(format!("{FOLDER}/{file}")).expect("a file");
            let (_, asked) = asked.split_once("In your program").expect("that part");
            let is_end = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
            let names = asked
                .split(is_end)
                .filter(|word| word.starts_with("tidewheel_"));
            let is_there = |name: &str| {
                text.lines().any(|line| {
                    let rest = line.strip_prefix(name);
                    rest.is_some_and(|rest| rest.starts_with('{'))
                })
            };
            missing.extend(names.filter(|name| !is_there(name)).map(str::to_owned));
        }
        let dead = "\ntidewheel_tasks_dead_total{worker=\"mails\"} 1\n";
        missing.extend((!text.contains(dead)).then(|| dead.to_owned()));
        if missing.is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(missing.is_empty(), "{missing:?} in\n{text}");
    // Names, types, units and help as Prometheus wants them.
    promtool(&["check", "metrics"], &text);
}

#[test]
fn the_alerts_for_programs_fire() {
    // In the fifth minute a task dies, and from then on entries are late.
    let series = r#"
rule_files: [FOLDER/alerts.yml]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - { series: 'tidewheel_tasks_dead_total{worker="mails"}', values: '0x4 1x20' }
      - { series: 'tidewheel_expiry_lateness_seconds_bucket{cache="pages",le="0.032768"}', values: '0+9x4 36x20' }
      - { series: 'tidewheel_expiry_lateness_seconds_bucket{cache="pages",le="0.065536"}', values: '0+9x25' }
      - { series: 'tidewheel_expiry_lateness_seconds_bucket{cache="pages",le="+Inf"}', values: '0+9x25' }
    alert_rule_test:
      - { alertname: TidewheelTasksDie, eval_time: 4m }
      - { alertname: TidewheelCacheIsLate, eval_time: 4m }
      - alertname: TidewheelTasksDie
        eval_time: 6m
        exp_alerts:
          - exp_labels: { worker: mails }
            exp_annotations: { summary: "Tasks of mails have failed for the last time, and are dead letters." }
      - alertname: TidewheelCacheIsLate
        eval_time: 15m
        exp_alerts:
          - exp_labels: { cache: pages }
            exp_annotations: { summary: "One entry in a hundred of the cache pages stays more than 50 ms beyond its deadline." }
"#;
    promtool(&["test", "rules"], &series.replace("FOLDER", FOLDER));
}
