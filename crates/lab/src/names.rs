//! What things are called, and the versions of the packages that this program was built with.

use std::fmt;

use clap::ValueEnum;

/// Writes a value's name on the command line.
pub(crate) fn name(f: &mut fmt::Formatter<'_>, value: impl ValueEnum) -> fmt::Result {
    let value = value.to_possible_value();
    f.write_str(value.as_ref().map_or("", |value| value.get_name()))
}

/// The version of a package, or of ours where there is none.
pub(crate) fn or_ours(package: Option<&str>) -> &'static str {
    package.and_then(of).unwrap_or(env!("CARGO_PKG_VERSION"))
}

/// A package's version in the lock file of the build; `None` for one that is not in it.
pub(crate) fn of(package: &str) -> Option<&'static str> {
    let lock = include_str!("../../../Cargo.lock");
    let entry = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != entry);
    lines
        .nth(1)?
        .strip_prefix("version = \"")?
        .strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_are_those_of_the_lock_file() {
        let version = of("foldhash").expect("a dependency");
        assert!(version.starts_with("0.2."), "{version}");
        assert_eq!(of("no-such-package"), None);
    }
}
