//! Reads the configuration file: one `key value` on a line, as in redis.conf.

use std::sync::Arc;

use tidewheel_resp::{Limits, Parsed, Parser};

use super::foreign::ForeignLines;
use super::settings::Settings;
use super::table::key;
use crate::users::{self, Users};

/// The longest line, in bytes: a longer one is an error.
const LINE_MAX: usize = 64 << 10;

/// Puts every line of `text` into `settings`, or says which line is wrong and why. Returns those
/// that mean nothing here.
pub(crate) fn apply(text: &str, settings: &mut Settings) -> Result<ForeignLines, String> {
    let mut foreign = ForeignLines::default();
    let mut save_points = SaveLines::default();
    let mut users = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words = split(line).map(|words| save_points.join(words));
        let applied = words.and_then(|words| match words[0].eq_ignore_ascii_case("user") {
            true => {
                users.push((number, words));
                Ok(())
            }
            false => apply_words(&words, settings, &mut foreign),
        });
        applied.map_err(|why| format!("line {}: {why}", number + 1))?;
    }
    // Behind all other lines: what a line says of the default user holds more than requirepass.
    for (number, words) in users {
        apply_user(&words, settings).map_err(|why| format!("line {}: {why}", number + 1))?;
    }
    Ok(foreign)
}

/// The points of the lines `save` so far: each adds to those before it, and an empty one takes them
/// back.
#[derive(Debug, Default)]
struct SaveLines(Vec<String>);

impl SaveLines {
    /// The line, with the points of those before it.
    fn join(&mut self, mut words: Vec<String>) -> Vec<String> {
        if words.len() > 1 && words[0].eq_ignore_ascii_case("save") {
            match words[1].is_empty() {
                true => self.0.clear(),
                false => {
                    self.0.extend(words.drain(1..));
                    words.extend(self.0.iter().cloned());
                }
            }
        }
        words
    }
}

/// Makes the user of a line `user NAME RULE …`.
fn apply_user(words: &[String], settings: &mut Settings) -> Result<(), String> {
    let [_, name, rules @ ..] = words else {
        return Err("'user' has no name".to_owned());
    };
    if !settings.user_file.is_empty() {
        return Err("users stand here or in the aclfile, not in both".to_owned());
    }
    let users = Arc::make_mut(&mut settings.users);
    let rules = rules.iter().map(String::as_bytes);
    users::apply(users, name.as_bytes(), rules, settings.all_channels)
}

/// Takes all users from the file of users, if there is one. The default user stays as it is if no
/// line tells of it.
pub(crate) fn read_users(settings: &Settings) -> Result<Arc<Users>, String> {
    let name = &settings.user_file;
    let text = std::fs::read(name).map_err(|why| format!("cannot read {name}: {why}"))?;
    let mut plain = Users::default();
    if !settings.password.text().is_empty() {
        plain.set_default_password(settings.password.text());
    }
    users::from_lines(&text, name, settings.all_channels, plain).map(Arc::new)
}

fn apply_words(
    words: &[String],
    settings: &mut Settings,
    foreign: &mut ForeignLines,
) -> Result<(), String> {
    let Some((name, values)) = words.split_first() else {
        return Ok(());
    };
    if foreign.note(name, &values.join(" ")) {
        return Ok(());
    }
    let Some(key) = key(name) else {
        return Err(format!("there is no key '{name}'"));
    };
    if values.is_empty() {
        return Err(format!("'{name}' has no value"));
    }
    (key.set)(settings, &values.join(" ")).map_err(|why| format!("'{name}': {why}"))
}

/// Words and quotes follow the rules of inline commands, so the protocol's parser splits them.
fn split(line: &str) -> Result<Vec<String>, String> {
    if line.starts_with('*') {
        return Err("a key cannot begin with '*'".to_owned());
    }
    let limits = Limits {
        inline: LINE_MAX,
        ..Limits::DEFAULT
    };
    let bytes = format!("{line}\n").into_bytes();
    let mut parser = Parser::new();
    match parser.parse(&bytes, &limits) {
        Ok(Parsed::Complete { .. }) => parser
            .args(&bytes)
            .iter()
            .map(|word| String::from_utf8(word.to_vec()).map_err(|_| "not UTF-8".to_owned()))
            .collect(),
        Ok(Parsed::Incomplete { .. }) => Err("a line cannot hold a NUL byte".to_owned()),
        Err(why) => Err(why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_keys_and_values() {
        let mut settings = Settings::default();
        let text = "# a comment\n\nport 7000\n  maxmemory   1gb\nrequirepass \"a b\"\n\
                    client-output-buffer-limit pubsub 1mb 0 0\nbind 127.0.0.1 -::1\nsave \"\"\n";
        assert_eq!(apply(text, &mut settings), Ok(ForeignLines::default()));
        assert_eq!(settings.port, crate::config::Port::Number(7000));
        assert_eq!(settings.max_memory, 1 << 30);
        assert_eq!(settings.password.text(), "a b");
        assert_eq!(settings.output_limits.pubsub.hard, 1 << 20);
        let names: Vec<&str> = settings.bind.iter().map(|a| a.name()).collect();
        assert_eq!(names, ["127.0.0.1", "-::1"]);
    }

    #[test]
    fn lines_with_save_points_add_up() {
        for (text, points) in [
            ("save 900 1\nsave 300 10\n", "900 1 300 10"),
            ("save 900 1\nSAVE \"\"\nsave 5 1 6 2\n", "5 1 6 2"),
            ("save 900 1\nsave \"\"\n", ""),
            ("port 1\n", "3600 1 300 100 60 10000"),
        ] {
            let mut settings = Settings::default();
            assert_eq!(apply(text, &mut settings), Ok(ForeignLines::default()));
            assert_eq!(settings.save_points.to_string(), points);
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_key() {
        for (text, expected) in [
            (
                "port 1\nmasterauth secret\n",
                "line 2: there is no key 'masterauth'",
            ),
            (
                "port x\n",
                "line 1: 'port': argument couldn't be parsed into an integer",
            ),
            ("port\n", "line 1: 'port' has no value"),
            (
                "requirepass \"open\n",
                "line 1: unbalanced quotes in request",
            ),
            ("*1\n", "line 1: a key cannot begin with '*'"),
        ] {
            assert_eq!(
                apply(text, &mut Settings::default()),
                Err(expected.to_owned())
            );
        }
    }
}
