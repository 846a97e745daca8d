//! The study of expiry as somebody runs it: one command, lines, tables and a page.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::lab;

fn study(args: &str) -> (Output, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("expiry.html");
    let output = lab()
        .args(["study", "expiry"])
        .args(args.split(' '))
        .arg("--out")
        .arg(&page)
        .output()
        .expect("the laboratory starts");
    // A run that was refused wrote no page.
    let drawn = fs::read_to_string(&page).unwrap_or_default();
    (output, drawn)
}

#[test]
fn one_command_measures_prints_and_draws() {
    let args = "--quick --entries 1000 --subjects naive-scan,hierarchical-wheel,tidewheel";
    let (output, drawn) = study(args);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    assert!(words.contains("nothing is due"), "a table: {words}");
    let lines = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let count = |workload: &str, subject: &str| {
        let wanted = |line: &&Value| line["workload"] == workload && line["subject"] == subject;
        lines.iter().filter(wanted).count()
    };
    assert_eq!(count("expiry scan", "naive-scan"), 1);
    assert_eq!(count("expiry ticks", "hierarchical-wheel"), 1);
    assert_eq!(count("expiry ticks", "sampling"), 1);
    // While nothing is due, and with expiry.
    assert_eq!(count("expiry readers", "tidewheel"), 2);
    assert_eq!(count("expiry readers", "hierarchical-wheel"), 1);
    assert!(drawn.contains("hierarchical-wheel"));
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_runs() {
    for (args, reason) in [("--entries 0", "--entries"), ("--runs 0", "--runs")] {
        let (output, _) = study(args);
        assert!(!output.status.success());
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(words.contains(reason), "{words}");
    }
}
