//! Finds the engines' programs: on the path, or in a package of Python's.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// A program that can be run: on the path, or at one of these places below Python's packages.
/// `None`, and a line on standard output, if it is nowhere.
///
/// # Panics
///
/// If it is nowhere, and `TIDEWHEEL_REQUIRE_TOOLS` is 1.
#[must_use]
pub fn require(program: &str, in_packages: &[&str]) -> Option<PathBuf> {
    let path = found(program, in_packages);
    if path.is_none() {
        let required = std::env::var_os("TIDEWHEEL_REQUIRE_TOOLS").is_some_and(|v| v == "1");
        assert!(!required, "{program} is not installed, and it is required");
        println!("!!! SKIPPED: {program} is not installed, or not wanted");
    }
    path
}

/// Finds a program as [`require`] does, without a word. Python's packages go first: they are the
/// newer ones. With `TIDEWHEEL_NO_ENGINES=1` in the environment there are none.
#[must_use]
pub fn found(program: &str, in_packages: &[&str]) -> Option<PathBuf> {
    if !are_wanted() {
        return None;
    }
    let packaged = in_packages
        .iter()
        .filter_map(|place| Some(site_packages()?.join(place)))
        .find(|path| path.is_file());
    packaged.or_else(|| on_path(program))
}

/// True if engines are to be started.
pub(crate) fn are_wanted() -> bool {
    std::env::var_os("TIDEWHEEL_NO_ENGINES").is_none_or(|v| v != "1")
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// The folder that pip installs to.
#[must_use]
pub fn site_packages() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(ask_python).as_deref()
}

fn ask_python() -> Option<PathBuf> {
    let said = Command::new("python3")
        .args([
            "-c",
            "import sysconfig; print(sysconfig.get_paths()['purelib'])",
        ])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let path = String::from_utf8(said.stdout).ok()?;
    Some(PathBuf::from(path.trim())).filter(|path| path.is_dir())
}
