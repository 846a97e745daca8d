//! The seeds' experiments as somebody runs them: one command, lines, tables and a page.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn seeds(args: &[&str], out: &PathBuf) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidewheel-lab"))
        .arg("seeds")
        .args(args)
        .arg("--out")
        .arg(out)
        .output()
        .expect("the laboratory starts")
}

fn page_of(name: &str) -> PathBuf {
    let file = format!("tidewheel-seeds-{name}-{}.html", std::process::id());
    std::env::temp_dir().join(file)
}

#[test]
fn one_command_measures_prints_and_draws() {
    let page = page_of("all");
    let args = [
        "--quick",
        "--entries",
        "1000,10000",
        "--subjects",
        "naive-scan,hierarchical-wheel,tidewheel",
    ];
    let output = seeds(&args, &page);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    assert!(
        words.contains("left"),
        "an estimate of the time left: {words}"
    );
    assert!(
        words.contains("nothing expires"),
        "what the article's wheel does: {words}"
    );

    let lines = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let of = |workload: &str, subject: &str| -> Vec<&Value> {
        let wanted = |line: &&Value| line["workload"] == workload && line["subject"] == subject;
        lines.iter().filter(wanted).collect()
    };
    assert_eq!(of("expiry scan", "naive-scan").len(), 2);
    assert_eq!(of("expiry ticks", "hierarchical-wheel").len(), 2);
    assert_eq!(of("expiry ticks", "sampling").len(), 2);
    // As the article ran it, and with expiry.
    assert_eq!(of("expiry readers", "tidewheel").len(), 4);
    assert_eq!(of("expiry readers", "hierarchical-wheel").len(), 2);
    for line in of("expiry readers", "tidewheel") {
        let late = line["figures"]["read_max_us"].as_f64();
        assert!(late.is_some_and(|us| us > 0.0), "{line}");
    }
    let drawn = std::fs::read_to_string(&page).expect("a page");
    std::fs::remove_file(&page).expect("the page is ours");
    assert!(drawn.contains("hierarchical-wheel"));
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_runs() {
    let page = page_of("none");
    for (args, reason) in [
        (vec!["--entries", "0"], "--entries"),
        (vec!["--runs", "0"], "--runs"),
        (vec!["--pace-ms", "0"], "--pace-ms"),
    ] {
        let output = seeds(&args, &page);
        assert!(!output.status.success());
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(words.contains(reason), "{words}");
    }
    assert!(!page.exists());
}
