//! The versions of the packages that this program was built with.

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
