//! Result files: a line is a report, whatever the experiment.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use super::data::distinct;
use crate::report::Report;

/// One result file.
#[derive(Debug)]
pub(super) struct Lines {
    /// The file's name without its folder: a page may be read elsewhere.
    pub(super) file: String,
    /// The programs that wrote its lines.
    pub(super) tools: Vec<String>,
    pub(super) reports: Vec<Report>,
}

/// All lines of all files; a line that is no report is an error, as is a file without any.
pub(super) fn files(paths: &[PathBuf]) -> Result<Vec<Lines>> {
    paths.iter().map(|path| file(path)).collect()
}

fn file(path: &Path) -> Result<Lines> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (mut tools, mut reports) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let place = || format!("{} line {number}", path.display());
        let value: Value =
            serde_json::from_str(line).map_err(|error| anyhow!("{}{}", place(), flaw(&error)))?;
        let report = Report::from_json(&value).with_context(|| {
            let lacks = Report::lacks(&value)
                .map_or_else(String::new, |key| format!(": it has no `{key}`"));
            format!("{} is no line of a result{lacks}", place())
        })?;
        tools.push(value["tool"].as_str().unwrap_or("unknown").to_owned());
        reports.push(report);
    }
    if reports.is_empty() {
        bail!("{} holds no results", path.display());
    }
    let name = path.file_name().unwrap_or(path.as_os_str());
    Ok(Lines {
        file: name.to_string_lossy().into_owned(),
        tools: distinct(tools.into_iter()),
        reports,
    })
}

/// Why a line is no JSON. The parser would call every line the first.
fn flaw(error: &serde_json::Error) -> String {
    let told = error.to_string();
    let why = match told.split_once(" at line ") {
        _ if error.is_eof() => "it ends in the middle",
        Some((why, _)) => why,
        None => &told,
    };
    format!(" is no JSON: {why}, column {}", error.column())
}
