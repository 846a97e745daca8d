//! The table of keys. One row is a flag, a line of the file, an environment variable and a name for
//! CONFIG.

mod collections;
mod diagnosis;
mod general;
mod ignored;
mod tls;

use super::settings::Settings;

/// The time at which a key may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeTime {
    /// Any time, by CONFIG SET.
    Live,
    /// Only when the server starts.
    AtStart,
}

/// One setting.
#[derive(Debug)]
pub(crate) struct ConfigKey {
    /// `--name`, `name` in the file and in CONFIG, `TIDEWHEEL_NAME` in the environment.
    pub(crate) name: &'static str,
    /// The form of its value, for the help.
    pub(crate) value: &'static str,
    /// One line for `--help` and the manual.
    pub(crate) help: &'static str,
    pub(crate) change: ChangeTime,
    /// Writes the value as CONFIG GET shows it.
    pub(crate) get: fn(&Settings) -> String,
    /// Reads a value, or says what is wrong with it.
    pub(crate) set: fn(&mut Settings, &str) -> Result<(), String>,
}

impl ConfigKey {
    /// Returns the environment variable that sets it.
    pub(crate) fn env(&self) -> String {
        format!(
            "TIDEWHEEL_{}",
            self.name.replace('-', "_").to_ascii_uppercase()
        )
    }

    /// Returns the name that it had in earlier versions of the protocol, if it had one.
    pub(crate) fn old_name(&self) -> Option<&'static str> {
        let of = OLD_NAMES.iter();
        of.copied()
            .find(|(_, name)| *name == self.name)
            .map(|(old, _)| old)
    }
}

/// Old names of some keys, and their names now.
static OLD_NAMES: &[(&str, &str)] = &[
    ("hash-max-ziplist-entries", "hash-max-listpack-entries"),
    ("hash-max-ziplist-value", "hash-max-listpack-value"),
    ("list-max-ziplist-size", "list-max-listpack-size"),
    ("zset-max-ziplist-entries", "zset-max-listpack-entries"),
    ("zset-max-ziplist-value", "zset-max-listpack-value"),
    ("lua-time-limit", "busy-reply-threshold"),
];

/// The chapters of the table, in the order of `--help`.
static CHAPTERS: &[&[ConfigKey]] = &[
    general::KEYS,
    tls::KEYS,
    collections::KEYS,
    diagnosis::KEYS,
    ignored::KEYS,
];

/// Returns every setting, in the order of `--help`.
pub(crate) fn keys() -> impl Iterator<Item = &'static ConfigKey> {
    CHAPTERS.iter().copied().flatten()
}

/// Returns the row named `name`, in any case. The name may be an old one.
pub(crate) fn key(name: &str) -> Option<&'static ConfigKey> {
    let is = |known: &str| known.eq_ignore_ascii_case(name);
    keys().find(|key| is(key.name) || key.old_name().is_some_and(is))
}

fn put<T>(place: &mut T, value: T) -> Result<(), String> {
    *place = value;
    Ok(())
}

fn only(value: &str, accepted: &str, otherwise: &str) -> Result<(), String> {
    if value.eq_ignore_ascii_case(accepted) {
        Ok(())
    } else {
        Err(otherwise.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_default_can_be_written_and_read_back() {
        for key in keys() {
            let mut settings = Settings::default();
            let text = (key.get)(&settings);
            assert_eq!((key.set)(&mut settings, &text), Ok(()), "{}", key.name);
            assert_eq!(settings, Settings::default(), "{}", key.name);
        }
    }

    #[test]
    fn names_are_unique_and_lower_case() {
        let mut known = BTreeSet::new();
        for name in keys().flat_map(|key| std::iter::once(key.name).chain(key.old_name())) {
            assert!(known.insert(name), "{name}");
            assert_eq!(name, name.to_ascii_lowercase());
        }
    }

    #[test]
    fn an_old_name_means_the_same_setting() {
        for (old, new) in OLD_NAMES {
            let (old, new) = (key(old).unwrap(), key(new).unwrap());
            assert!(std::ptr::eq(old, new));
        }
    }

    #[test]
    fn keys_and_values_that_do_not_exist_are_refused() {
        let mut settings = Settings::default();
        for (name, value) in [
            ("appendfsync", "sometimes"),
            ("save", "60"),
            ("shards", "3"),
            ("maxmemory-policy", "lifo"),
            ("notify-keyspace-events", "!"),
            ("bind", " "),
        ] {
            let key = key(name).unwrap();
            assert!((key.set)(&mut settings, value).is_err(), "{name} {value}");
        }
        assert_eq!(settings, Settings::default());
        assert!(key("io-threads").is_none());
    }
}
