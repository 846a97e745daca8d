//! Frameworks that keep their data in a server, as applications run them.

use std::process::{Command, Stdio};

use crate::common::{Server, have};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/applications");

/// Runs a script, which prints `done` in the end.
fn check(script: &str, module: &str) {
    if !have("python3", &["-c", &format!("import {module}")]) {
        return;
    }
    let server = Server::start(&[]);
    let output = Command::new("python3")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(format!("{FOLDER}/{script}"))
        .args([&server.port.to_string(), FOLDER])
        .stdin(Stdio::null())
        .output()
        .expect("the tool runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let why = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.trim(), "done", "{why}");
}

#[test]
fn celery_runs_tasks_with_a_countdown_a_retry_and_a_result_that_expires() {
    check("celery_check.py", "celery, redis");
}

#[test]
fn djangos_caches_and_sessions_keep_what_they_promise() {
    check("django_check.py", "django, django_redis");
}
