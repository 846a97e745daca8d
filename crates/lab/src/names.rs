//! The names of things, and the versions of the packages that this program was built with.

use std::fmt;

/// A value is written as it is named on the command line.
macro_rules! display_as_named {
    ($name:ty) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let value = clap::ValueEnum::to_possible_value(self);
                f.write_str(value.as_ref().map_or("", |value| value.get_name()))
            }
        }
    };
}

pub(crate) use display_as_named;

/// Something to measure, chosen by its name: a structure or a policy, and what makes or runs it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<T> {
    /// The name in reports and on the command line.
    pub(crate) name: &'static str,
    /// The name in the registry, if it is not ours.
    package: Option<&'static str>,
    pub(crate) what: T,
}

impl<T> fmt::Display for Choice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl<T: Copy> Choice<T> {
    pub(crate) const fn ours(name: &'static str, what: T) -> Self {
        Self {
            name,
            package: None,
            what,
        }
    }

    /// Names a subject of somebody else's package.
    #[cfg(feature = "peers")]
    pub(crate) const fn in_package(self, package: &'static str) -> Self {
        Self {
            package: Some(package),
            ..self
        }
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.package.is_none()
    }

    pub(crate) fn version(&self) -> &'static str {
        or_ours(self.package)
    }
}

/// The version of a package, or of ours where there is none.
pub(crate) fn or_ours(package: Option<&str>) -> &'static str {
    package.and_then(of).unwrap_or(env!("CARGO_PKG_VERSION"))
}

/// A package's version in the lock file of the build; `None` for one that is not in it.
fn of(package: &str) -> Option<&'static str> {
    let lock = include_str!("../../../Cargo.lock");
    let entry = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != entry);
    let version = lines.nth(1)?.strip_prefix("version = \"")?;
    version.strip_suffix('"')
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
