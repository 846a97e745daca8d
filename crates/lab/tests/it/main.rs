//! The laboratory as somebody runs it: its commands, lines, tables and pages.

use std::process::Command;

mod against_redis;
mod expiry;
mod page;

fn lab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tidewheel-lab"))
}

/// True if a program is installed; says so when not, and fails when it has to be.
fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        let required = std::env::var("TIDEWHEEL_REQUIRE_TOOLS").is_ok_and(|value| value == "1");
        assert!(!required, "{program} is required and not installed");
        println!("skipped: {program} is not installed");
    }
    found
}
