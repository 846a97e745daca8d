//! Reads the configuration file: one `key value` on a line, as in redis.conf.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use tidewheel_resp::{Limits, Parsed, Parser};

use super::foreign::ForeignLines;
use super::settings::Settings;
use super::table::{ConfigKey, key, nearest, shown};
use crate::users::{self, Users};

/// The longest file, in bytes.
pub(super) const FILE_MAX: u64 = 64 << 20;

/// The most wrong lines that are told.
const WRONG_MAX: usize = 100;

/// What a file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileSettings {
    /// The defaults, and what lines have changed.
    pub(crate) settings: Settings,
    /// The names of users that have lines.
    pub(crate) users: BTreeSet<Vec<u8>>,
    /// Lines that mean nothing here.
    pub(crate) foreign: ForeignLines,
}

/// A line of a file.
#[derive(Debug)]
pub(super) enum Line {
    /// Nothing, or a remark.
    Silent,
    /// Lines of other servers, which mean nothing here.
    Foreign,
    Key(&'static ConfigKey, String),
    /// The words of `user NAME RULE ...`.
    User(Vec<Vec<u8>>),
}

/// Reads a file; `-` is standard input.
///
/// # Errors
///
/// With all that is wrong, a text for each line of it.
pub(crate) fn read_file(path: &Path) -> Result<FileSettings, Vec<String>> {
    let name = path.display();
    let text = text_of(path).map_err(|why| vec![format!("cannot read {name}: {why}")])?;
    read(&text).map_err(|wrong| {
        let lines = wrong.iter().map(|why| format!("{name}: {why}"));
        lines.collect()
    })
}

/// Returns the text of a file, unless it is too long.
pub(crate) fn text_of(path: &Path) -> io::Result<String> {
    let source: &mut dyn Read = match path.to_str() {
        Some("-") => &mut io::stdin().lock(),
        _ => &mut File::open(path)?,
    };
    let mut text = String::new();
    source.take(FILE_MAX + 1).read_to_string(&mut text)?;
    match text.len() as u64 > FILE_MAX {
        true => Err(io::Error::other(format!(
            "it is longer than {FILE_MAX} bytes"
        ))),
        false => Ok(text),
    }
}

/// Reads every line of a file's text.
///
/// # Errors
///
/// With all that is wrong, each with its line.
pub(crate) fn read(text: &str) -> Result<FileSettings, Vec<String>> {
    let mut file = FileSettings::default();
    let mut save_points = SaveLines::default();
    let (mut users, mut wrong) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let read = match meaning(line, &mut file.foreign) {
            Ok(Line::Silent | Line::Foreign) => Ok(()),
            Ok(Line::User(words)) => {
                users.push((number, words));
                Ok(())
            }
            Ok(Line::Key(key, value)) => {
                let value = save_points.join(key, value);
                key.read(&mut file.settings, &value, key.name)
            }
            Err(why) => Err(why),
        };
        wrong.extend(read.err().map(|why| (number, why)));
    }
    // Behind all other lines: what a line says of the default user holds more than requirepass.
    for (number, words) in users {
        match apply_user(&words, &mut file.settings) {
            Ok(name) if file.users.contains(&name) => {
                let name = String::from_utf8_lossy(&name);
                wrong.push((number, format!("user '{}' comes twice", shown(&name))));
            }
            Ok(name) => drop(file.users.insert(name)),
            Err(why) => wrong.push((number, why)),
        }
    }
    if wrong.is_empty() {
        return Ok(file);
    }
    wrong.sort();
    let more = wrong.len().saturating_sub(WRONG_MAX);
    let told = wrong.into_iter().take(WRONG_MAX);
    let told = told.map(|(number, why)| format!("line {}: {why}", number + 1));
    let more = (more > 0).then(|| format!("{more} more lines are wrong"));
    Err(told.chain(more).collect())
}

/// Says what a line is for.
pub(super) fn meaning(line: &str, foreign: &mut ForeignLines) -> Result<Line, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(Line::Silent);
    }
    let words = split(line)?;
    let Some(first) = words.first() else {
        return Ok(Line::Silent);
    };
    if first.eq_ignore_ascii_case(b"user") {
        return Ok(Line::User(words));
    }
    let words = words.into_iter().map(String::from_utf8);
    let words: Vec<String> = words.collect::<Result<_, _>>().map_err(|_| "not UTF-8")?;
    let (name, value) = (&words[0], words[1..].join(" "));
    if foreign.note(name, &value) {
        return Ok(Line::Foreign);
    }
    match key(name) {
        None => {
            let hint =
                nearest(name).map_or(String::new(), |near| format!(": did you mean '{near}'?"));
            Err(format!("there is no key '{}'{hint}", shown(name)))
        }
        Some(key) if words.len() == 1 => Err(format!("{} has no value", key.name)),
        Some(key) => Ok(Line::Key(key, value)),
    }
}

/// The points of the lines `save` so far: each adds to those before it, and an empty one takes them
/// back.
#[derive(Debug, Default)]
struct SaveLines(Vec<String>);

impl SaveLines {
    /// Returns the line's value, with the points of those before it.
    fn join(&mut self, key: &ConfigKey, value: String) -> String {
        if key.name != "save" {
            return value;
        }
        match value.is_empty() {
            true => self.0.clear(),
            false => self.0.push(value),
        }
        self.0.join(" ")
    }
}

/// Makes the user of a line `user NAME RULE …`, and returns its name.
fn apply_user(words: &[Vec<u8>], settings: &mut Settings) -> Result<Vec<u8>, String> {
    let [_, name, rules @ ..] = words else {
        return Err("'user' has no name".to_owned());
    };
    if !settings.user_file.is_empty() {
        return Err("users stand here or in the aclfile, not in both".to_owned());
    }
    let users = Arc::make_mut(&mut settings.users);
    let rules = rules.iter().map(Vec::as_slice);
    users::apply(users, name, rules, settings.all_channels)?;
    Ok(name.clone())
}

/// Takes all users from the file of users, if there is one. The default user stays as it is if no
/// line tells of it. The server starts with any file; while it serves, it must wait for none.
pub(crate) fn read_users(
    settings: &Settings,
    open: impl FnOnce(&Path) -> io::Result<File>,
) -> Result<Arc<Users>, String> {
    let path = settings.user_path();
    let name = path.display().to_string();
    let mut text = Vec::new();
    let read = open(&path).and_then(|mut file| file.read_to_end(&mut text));
    read.map_err(|why| format!("cannot read {name}: {why}"))?;
    let plain = settings.plain_users();
    users::from_lines(&text, &name, settings.all_channels, plain).map(Arc::new)
}

/// Words and quotes follow the rules of inline commands, so the protocol's parser splits them.
fn split(line: &str) -> Result<Vec<Vec<u8>>, String> {
    if line.starts_with('*') {
        return Err("a key cannot begin with '*'".to_owned());
    }
    let limits = Limits {
        // A user's line may be long.
        inline: FILE_MAX as usize,
        ..Limits::DEFAULT
    };
    let bytes = format!("{line}\n").into_bytes();
    let mut parser = Parser::new();
    match parser.parse(&bytes, &limits) {
        Ok(Parsed::Complete { .. }) => {
            let words = parser.args(&bytes);
            Ok(words.iter().map(<[u8]>::to_vec).collect())
        }
        Ok(Parsed::Incomplete { .. }) => Err("a line cannot hold a NUL byte".to_owned()),
        Err(why) => Err(why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_keys_and_values() {
        let text = "# a comment\n\nport 7000\n  maxmemory   1gb\nrequirepass \"a b\"\n\
                    client-output-buffer-limit pubsub 1mb 0 0\nbind 127.0.0.1 -::1\nsave \"\"\n";
        let FileSettings {
            settings, foreign, ..
        } = read(text).expect("right");
        assert_eq!(foreign, ForeignLines::default());
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
            let file = read(text).expect("right");
            assert_eq!(file.settings.save_points.to_string(), points);
        }
    }

    #[test]
    fn every_mistake_is_named_with_its_line_its_key_and_its_value() {
        let text = "port 1\nmasterauth secret\nport x\nport\nuser\nrequirepass \"open\n*1\n\
                    timeout 5\nmaxmemry 1\nuser a +nope\nuser b on\nuser b off\n";
        let expected = [
            "line 2: there is no key 'masterauth'",
            "line 3: port 'x': argument couldn't be parsed into an integer",
            "line 4: port has no value",
            "line 5: 'user' has no name",
            "line 6: unbalanced quotes in request",
            "line 7: a key cannot begin with '*'",
            "line 9: there is no key 'maxmemry': did you mean 'maxmemory'?",
            "line 10: Error in ACL SETUSER modifier '+nope': Unknown command or category name in ACL",
            "line 12: user 'b' comes twice",
        ];
        assert_eq!(read(text).expect_err("wrong"), expected);
        let wrong = read(&"nothing\n".repeat(1_000)).expect_err("wrong");
        assert_eq!(wrong.len(), WRONG_MAX + 1);
        assert_eq!(wrong[WRONG_MAX], "900 more lines are wrong");
    }

    #[test]
    fn every_short_line_is_read_or_refused() {
        let letters = || (0_u8..128).map(char::from);
        for start in ["", "port ", "user ", "\"\\x"] {
            for line in letters().flat_map(|a| letters().map(move |b| format!("{start}{a}{b}"))) {
                let told = read(&line).err().unwrap_or_default();
                assert!(told.iter().all(|why| why.starts_with("line ")), "{line:?}");
            }
        }
    }

    #[test]
    fn names_of_users_are_bytes() {
        let file = read("user \"\\xff\" on ~\\x\n").expect("right");
        assert_eq!(file.users, BTreeSet::from([b"\xff".to_vec()]));
    }
}
