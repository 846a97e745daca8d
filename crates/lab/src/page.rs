//! Draws result files as one page: a template, the chart library and the lines, all in one file.
//!
//! The browser draws the pictures. `--pictures` starts one that shows nothing, and keeps what it
//! drew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::report::Report;

const TEMPLATE: &str = include_str!("../assets/report.html");
const VEGA: &str = include_str!("../assets/vega/vega.min.js");
const VEGA_LITE: &str = include_str!("../assets/vega/vega-lite.min.js");

/// Options of `report`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Files of results, a line of JSON each, as the experiments write them.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The page to write: HTML that needs no other file.
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Write each picture into this folder as well, an SVG file each, drawn by chromium.
    #[arg(long, value_name = "DIR")]
    pictures: Option<PathBuf>,
}

/// Draws the files and says where the page is.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut lines = Vec::new();
    for path in &args.files {
        lines.extend(read(path)?);
    }
    write(&lines, &args.out)?;
    println!("{}", args.out.display());
    match &args.pictures {
        Some(folder) => pictures(&args.out, folder),
        None => Ok(()),
    }
}

/// Writes a page of these lines.
pub(crate) fn write(lines: &[impl Serialize], path: &Path) -> Result<()> {
    // In JSON an escaped "<" is the same letter, and no name can end the script that it stands in.
    let lines = serde_json::to_string(lines)?.replace('<', "\\u003c");
    let html = TEMPLATE
        .replacen("{{vega}}", VEGA, 1)
        .replacen("{{vega-lite}}", VEGA_LITE, 1)
        .replacen("{{lines}}", &lines, 1);
    fs::write(path, html).with_context(|| format!("cannot write {}", path.display()))
}

/// Reads all lines of a file; a line that is no report is an error, as is a file without any.
fn read(path: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |what| format!("{} line {number} is {what}", path.display());
        let value: Value = serde_json::from_str(line).with_context(|| wrong("no JSON"))?;
        Report::deserialize(&value).with_context(|| wrong("no line of a result"))?;
        lines.push(value);
    }
    ensure!(!lines.is_empty(), "{} holds no results", path.display());
    Ok(lines)
}

/// Opens the page in a browser and writes each picture that it drew.
fn pictures(page: &Path, folder: &Path) -> Result<()> {
    let profile = tempfile::tempdir().context("cannot make a folder for chromium")?;
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", fs::canonicalize(page)?.display()))
        .output()
        .context("--pictures needs chromium")?;
    if !output.status.success() {
        bail!("chromium ended with {}", output.status);
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let drawn = String::from_utf8_lossy(&output.stdout);
    for figure in drawn.split("<figure id=\"").skip(1) {
        let (name, svg) = picture(figure).ok_or_else(|| anyhow!("a figure without a picture"))?;
        let path = folder.join(format!("{name}.svg"));
        fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Name and picture of a figure of the page, as XML: HTML alone knows a word for a wide space.
fn picture(figure: &str) -> Option<(&str, String)> {
    let (name, rest) = figure.split_once('"')?;
    let from = rest.find("<svg")?;
    let to = rest.find("</svg>")? + "</svg>".len();
    Some((name, rest[from..to].replace("&nbsp;", "\u{a0}") + "\n"))
}
