//! The table of keys. One row is a flag, a line of the file, an environment variable and a name for
//! CONFIG.

mod collections;
mod diagnosis;
mod general;
mod group;
mod ignored;
mod logging;
mod tls;

pub(crate) use group::Group;

use super::settings::Settings;

/// Names that are longer are like none of ours.
const NAME_MAX: usize = 64;

/// Thousandths of likeness from which on a name may have been meant.
const MUCH_ALIKE: u32 = 900;

/// How much of a wrong text is shown.
const SHOWN_MAX: usize = 64;

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
    pub(crate) group: Group,
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

    /// Returns true if its value is shown to nobody but by CONFIG GET.
    pub(crate) fn is_secret(&self) -> bool {
        self.value == "PASSWORD"
    }

    /// Returns true if its value may be several words.
    pub(crate) fn is_list(&self) -> bool {
        self.value.contains(' ')
    }

    /// Reads a value. What is wrong is told with the value itself, behind `name`: that is the key
    /// as the source of the value calls it.
    pub(crate) fn read(
        &self,
        settings: &mut Settings,
        value: &str,
        name: &str,
    ) -> Result<(), String> {
        (self.set)(settings, value).map_err(|why| match self.is_secret() {
            true => format!("{name}: {why}"),
            false => format!("{name} '{}': {why}", shown(value)),
        })
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
    logging::KEYS,
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

/// Returns the settings of a group.
pub(crate) fn keys_of(group: Group) -> impl Iterator<Item = &'static ConfigKey> {
    keys().filter(move |key| key.group == group)
}

/// Returns the key whose name is most like `name`, if one is much like it.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    if name.len() > NAME_MAX {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let likeness = |key: &ConfigKey| (strsim::jaro_winkler(&name, key.name) * 1_000.0) as u32;
    let found = keys().map(|key| (likeness(key), key.name)).max();
    found
        .filter(|(likeness, _)| *likeness >= MUCH_ALIKE)
        .map(|(_, name)| name)
}

/// Returns the beginning of a text, in which a terminal finds nothing to obey.
pub(crate) fn shown(text: &str) -> String {
    let mut letters = text.chars();
    let start = letters.by_ref().take(SHOWN_MAX);
    let mut shown = String::new();
    for letter in start {
        match letter.is_control() {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    if letters.next().is_some() {
        shown.push('…');
    }
    shown
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
    fn a_name_that_is_mistyped_has_a_nearest_one() {
        for (name, expected) in [
            ("maxmemry", Some("maxmemory")),
            ("max-memory", Some("maxmemory")),
            ("MaxMemory-Polic", Some("maxmemory-policy")),
            ("append-only", Some("appendonly")),
            ("auto-aof-rewrite-perc", Some("auto-aof-rewrite-percentage")),
            ("logformat", Some("log-format")),
            ("prot", Some("port")),
            ("masterauth", None),
            ("replicaof", None),
            ("cluster-enabled", None),
            ("", None),
        ] {
            assert_eq!(nearest(name), expected, "{name}");
        }
        assert_eq!(nearest(&"port".repeat(1 << 20)), None);
    }

    #[test]
    fn what_is_shown_of_a_text_is_short_and_harmless() {
        assert_eq!(shown("a\u{1b}[2J'é"), "a\\u{1b}[2J'é");
        assert_eq!(shown(&"é".repeat(65)), "é".repeat(64) + "…");
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
