//! What a file says otherwise than when it was read before.

use super::config_file::ConfigFile;
use super::file::FileSettings;
use super::settings::Settings;
use super::table::{ChangeTime, ConfigKey, keys};
use crate::users::{DEFAULT, SetUserError, Users};

/// What to do about lines that have changed.
#[derive(Debug, Default)]
pub(crate) struct FileChanges {
    /// Keys that may change now, and their new values.
    pub(crate) live: Vec<(&'static ConfigKey, String)>,
    /// Keys that are in force otherwise, and that are read at the start only.
    pub(crate) at_start: Vec<&'static str>,
    /// Keys that a flag or the environment has set.
    pub(crate) overruled: Vec<&'static str>,
    /// Names of users whose lines have changed, or are gone.
    pub(crate) users: Vec<Vec<u8>>,
}

impl FileChanges {
    /// Compares what the file says now with what it said, and with what is in force.
    pub(crate) fn of(
        file: &ConfigFile,
        old: &FileSettings,
        new: &FileSettings,
        now: &Settings,
    ) -> Self {
        let mut changes = Self::default();
        for key in keys() {
            let value = (key.get)(&new.settings);
            let is_other = |settings: &Settings| (key.get)(settings) != value;
            match key.change {
                ChangeTime::Live if !is_other(&old.settings) => {}
                ChangeTime::AtStart if !is_other(now) => {}
                _ if file.is_overruled(key.name) => {
                    if is_other(&old.settings) {
                        changes.overruled.push(key.name);
                    }
                }
                ChangeTime::Live => changes.live.push((key, value)),
                ChangeTime::AtStart => changes.at_start.push(key.name),
            }
        }
        let has_password = changes
            .live
            .iter()
            .any(|(key, _)| key.name == "requirepass");
        let names = old.users.union(&new.users);
        let rules = |file: &FileSettings, name: &[u8]| {
            let user = file.settings.users.get(name);
            user.filter(|_| file.users.contains(name))
                .map(|user| user.rules())
        };
        let are_others = |name: &&Vec<u8>| {
            // What requirepass changes, the line of the default user changes back.
            rules(old, name) != rules(new, name) || (*name == DEFAULT && has_password)
        };
        if now.user_file.is_empty() {
            changes.users = names.filter(are_others).cloned().collect();
        }
        changes
    }

    /// Gives the users whose lines have changed what these say; the default user without a line
    /// has its password only.
    pub(crate) fn change_users(
        &self,
        new: &FileSettings,
        settings: &Settings,
        users: &mut Users,
    ) -> Result<(), SetUserError> {
        for name in &self.users {
            let user = new.settings.users.get(name);
            match user.filter(|_| new.users.contains(name)) {
                Some(user) => users.take(user)?,
                None if name == DEFAULT => users.take(&settings.plain_users().default_user())?,
                None => drop(users.remove(name)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::config::file::read;

    /// What changes between two texts, if `now` is in force, and a flag has set `timeout`.
    fn between(old: &str, new: &str, now: &str) -> (FileChanges, Users) {
        let [old, new, now] = [old, new, now].map(|text| read(text).expect("right"));
        let file = ConfigFile::new(Path::new("x"), BTreeSet::from(["timeout"]), old.clone());
        let changes = FileChanges::of(&file, &old, &new, &now.settings);
        let mut settings = now.settings;
        for (key, value) in &changes.live {
            (key.set)(&mut settings, value).expect("right");
        }
        let mut users = Users::clone(&settings.users);
        (changes.change_users(&new, &settings, &mut users)).expect("few");
        (changes, users)
    }

    fn names(changes: &FileChanges) -> Vec<&str> {
        changes.live.iter().map(|(key, _)| key.name).collect()
    }

    #[test]
    fn only_lines_that_have_changed_count() {
        let old = "maxmemory 1gb\nhz 11\ntimeout 5\n";
        let (changes, _) = between(old, old, "maxmemory 3gb\ntimeout 9\nshards 2\n");
        assert_eq!(
            (names(&changes), &changes.at_start[..]),
            (vec![], &["shards"][..])
        );
        let (changes, _) = between(old, "maxmemory 2gb\ntimeout 6\nport 7\n", "maxmemory 3gb\n");
        assert_eq!(names(&changes), ["maxmemory", "hz"]);
        assert_eq!(
            changes.live[1].1, "10",
            "a line that is gone means the default"
        );
        assert_eq!(
            (changes.at_start, changes.overruled),
            (vec!["port"], vec!["timeout"])
        );
    }

    #[test]
    fn users_whose_lines_have_changed_change_and_others_stay() {
        let old = "user a on\nuser b on\nuser c on\n";
        let now = "user a on ~x\nuser c on ~x\nuser d on ~x\n";
        let (_, users) = between(old, "user a on\nuser c on ~y\nuser e on\n", now);
        let rules = |name: &str| {
            let user = users.get(name.as_bytes());
            user.map(|user| String::from_utf8(user.rules()).expect("text"))
        };
        let plain = "on sanitize-payload resetchannels -@all";
        let with = |key: &str| format!("on sanitize-payload {key} resetchannels -@all");
        assert_eq!(
            rules("a"),
            Some(with("~x")),
            "ACL SETUSER has changed it, no line"
        );
        assert_eq!(rules("b"), None, "ACL DELUSER has removed it");
        assert_eq!(rules("c"), Some(with("~y")));
        assert_eq!(rules("d"), Some(with("~x")), "it never had a line");
        assert_eq!(rules("e").as_deref(), Some(plain));
    }

    #[test]
    fn the_line_of_the_default_user_holds_more_than_its_password() {
        let line = "user default on nopass +@all\n";
        let with = format!("requirepass x\n{line}");
        let default = |(_, users): (FileChanges, Users)| users.default_user();
        assert!(default(between(line, &with, line)).needs_no_password);
        assert!(!default(between(&with, "requirepass x\n", &with)).needs_no_password);
        assert!(default(between("requirepass x\n", "", "requirepass x\n")).is_open());
    }
}
