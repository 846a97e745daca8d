//! A measurement in a process of its own.
//!
//! A fresh process per measurement, so that neither the allocator's state nor a thread that another
//! subject left behind is part of a figure. The child is this program with the same arguments and one
//! more, `--share`, that names its part; it answers with one line of JSON.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::report::Report;

/// What the child that is given this share reports.
pub(crate) fn measure(share: &str) -> Result<Report> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let output = Command::new(program)
        .args(std::env::args_os().skip(1))
        .args(["--share", share])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start a process for the measurement")?;
    if !output.status.success() {
        bail!("the measuring process ended with {}", output.status);
    }
    let line = serde_json::from_slice(&output.stdout)
        .context("cannot read what the measuring process found")?;
    Report::from_json(&line).context("the measuring process left something out")
}
