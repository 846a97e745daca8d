//! Writes settings as a file, with what each of them means.

use super::quote;
use super::settings::Settings;
use super::table::{ChangeTime, ConfigKey, Group, keys_of};
use crate::users::{User, Users};

/// The width of comments.
const COLUMNS: usize = 100;

/// What a file of settings is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileForm {
    /// A server that reads it has the same settings, but for passwords.
    InForce,
    /// To begin with: every line is a comment that shows a default.
    Sample,
}

/// Writes a file. No password is in it.
pub(crate) fn as_file(settings: &Settings, form: FileForm) -> String {
    let mut text = comment(match form {
        FileForm::InForce => "All settings of a server. Passwords are left out.",
        FileForm::Sample => {
            "Settings of a Tidewheel server: `tidewheel FILE` reads them. Lines with a `#` and no blank behind it show \
             defaults: take the `#` away to set something else. CONFIG SET, or SIGHUP after an edit, changes a setting \
             while the server runs, but for those that are read at the start."
        }
    });
    for group in Group::ALL {
        text.push_str(&format!("\n# ---- {} ----\n", group.title()));
        for key in keys_of(group) {
            text.push('\n');
            text.push_str(&comment(&meaning(key)));
            text.push_str(&setting(key, settings, form));
        }
        if group == Group::Users {
            text.push('\n');
            text.push_str(&comment(
                "A user, and what it may do: user NAME RULE ... (docs/users.md)",
            ));
            text.push_str(&users_of(&settings.users, form));
        }
    }
    text
}

/// Says what a key means, and how its value is written.
fn meaning(key: &ConfigKey) -> String {
    let when = match key.change {
        ChangeTime::Live => "",
        ChangeTime::AtStart => "; read at the start",
    };
    format!("{} [{}{when}]", key.help, key.value)
}

/// Returns the line of a key.
fn setting(key: &ConfigKey, settings: &Settings, form: FileForm) -> String {
    let value = (key.get)(settings);
    let mark = if form == FileForm::Sample { "#" } else { "" };
    match key.is_secret() && !value.is_empty() {
        true => format!("# {}: it is set, and not shown\n", key.name),
        false => format!("{mark}{}\n", quote::line(key.name, &value)),
    }
}

/// Returns lines for the users, as comments: they have no passwords.
fn users_of(users: &Users, form: FileForm) -> String {
    if form == FileForm::Sample {
        return "#user shop on >secret ~cart:* +@read +set +del\n".to_owned();
    }
    users.iter().map(|user| comment_on(user)).collect()
}

/// Returns a user's line, as a comment.
fn comment_on(user: &User) -> String {
    let rules = user.rules();
    let rules = rules.split(|byte| *byte == b' ').map(|rule| match rule {
        [b'#', ..] => "#...".to_owned(),
        rule => quote::word(rule),
    });
    let rules: Vec<_> = rules.collect();
    format!("# user {} {}\n", quote::word(&user.name), rules.join(" "))
}

/// Returns a text as lines of a comment.
fn comment(text: &str) -> String {
    let mut lines = String::new();
    let mut line = "#".to_owned();
    for word in text.split_ascii_whitespace() {
        if line.len() + 1 + word.len() > COLUMNS {
            lines.push_str(&line);
            lines.push('\n');
            line = "#".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    lines + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::{FileSettings, read};
    use crate::config::key;

    /// The sample is made of the table.
    #[test]
    fn the_sample_is_what_the_table_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tidewheel.conf");
        let sample = as_file(&Settings::default(), FileForm::Sample);
        if std::env::var_os("TIDEWHEEL_BLESS").is_some() {
            std::fs::write(path, &sample).expect("it can be written");
            return;
        }
        let there = std::fs::read_to_string(path).expect("docs/tidewheel.conf");
        assert!(there == sample, "run it again with TIDEWHEEL_BLESS=1");
    }

    #[test]
    fn a_sample_changes_nothing_and_without_its_marks_neither() {
        let sample = as_file(&Settings::default(), FileForm::Sample);
        assert_eq!(read(&sample), Ok(FileSettings::default()));
        let lines = sample.lines().filter(|line| !line.starts_with("#user"));
        let set: String = lines
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
                _ => String::new(),
            })
            .collect();
        assert_eq!(set.lines().count(), crate::config::keys().count());
        assert_eq!(read(&set).expect("right").settings, Settings::default());
    }

    #[test]
    fn what_is_printed_gives_the_same_settings_and_no_password() {
        let mut settings = Settings::default();
        for (name, value) in [
            ("port", "7001"),
            ("save", "900 1 60 5"),
            ("maxmemory", "1gb"),
            ("dir", "/a folder/it's \"here\""),
            ("requirepass", "secret"),
        ] {
            let key = key(name).expect("a key");
            (key.set)(&mut settings, value).expect("right");
        }
        let text = as_file(&settings, FileForm::InForce);
        for secret in ["secret", "2bb80d53"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(text.contains("# user default on sanitize-payload #... ~* &* +@all\n"));
        let read = read(&text).expect("right").settings;
        (key("requirepass").expect("a key").set)(&mut settings, "").expect("none");
        assert_eq!(read, settings);
    }
}
