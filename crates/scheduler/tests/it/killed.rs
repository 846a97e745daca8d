//! A job system that is killed again and again.

use std::path::Path;
use std::process::{Command, Stdio};

mod jobs;

const CHILD_DIR: &str = "TIDEWHEEL_JOBS_DIR";

#[test]
#[ignore = "the process that the next tests kill"]
fn a_child_that_is_killed() {
    if let Some(directory) = std::env::var_os(CHILD_DIR) {
        jobs::serve(Path::new(&directory)).expect("it works until it is killed");
    }
}

fn nothing_is_lost(name: &str, kills: u64) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let directory = jobs::empty(directory).expect("writable");
    let report = jobs::kill_again_and_again(&directory, kills, || {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--exact", "killed::a_child_that_is_killed", "--ignored"]);
        command.env(CHILD_DIR, &directory);
        Ok(command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?)
    });
    let report = report.expect("it is killed, and ends");
    println!("{kills} kills: {report:?}");
    assert!(report.accepted > 20 * kills as usize);
    assert_eq!((report.lost, report.out_of_order), (Vec::new(), Vec::new()));
}

#[test]
fn no_mail_is_lost_in_five_kills() {
    nothing_is_lost("killed-5", 5);
}

#[test]
#[ignore = "seconds, but fifty times a kill: run by name"]
fn no_mail_is_lost_in_fifty_kills() {
    nothing_is_lost("killed-50", 50);
}
