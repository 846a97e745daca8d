//! Users as lines of a file: `user NAME RULE …`.

use std::fmt::Write as _;

use super::table::Users;

/// Puts the words of a selector together that stand apart: `(~a`, `+get)`.
///
/// # Errors
///
/// With the word that opens a parenthesis which nothing closes.
pub(crate) fn merge_selectors<'a>(
    words: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Vec<u8>>, Vec<u8>> {
    let mut rules: Vec<Vec<u8>> = Vec::new();
    // The word that opens a parenthesis which nothing has closed yet.
    let mut open: Option<&[u8]> = None;
    for word in words {
        match rules.last_mut().filter(|_| open.is_some()) {
            Some(rule) => {
                rule.push(b' ');
                rule.extend_from_slice(word);
            }
            None => rules.push(word.to_vec()),
        }
        let opening = open.or(word.starts_with(b"(").then_some(word));
        open = opening.filter(|_| !word.ends_with(b")"));
    }
    match open {
        Some(word) => Err(word.to_vec()),
        None => Ok(rules),
    }
}

/// Reads users from lines, beside those of `users`.
///
/// # Errors
///
/// With all that is wrong, each with its line's number behind `name`.
pub(crate) fn from_lines(
    text: &[u8],
    name: &str,
    all_channels: bool,
    mut users: Users,
) -> Result<Users, String> {
    let (mut seen, mut wrong) = (std::collections::BTreeSet::new(), String::new());
    for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let words = line.split(u8::is_ascii_whitespace);
        let mut words = words.filter(|word| !word.is_empty());
        let Some(first) = words.next().filter(|first| !first.starts_with(b"#")) else {
            continue;
        };
        let outcome = match (first, words.next()) {
            (b"user", Some(user)) if !seen.insert(user) => Err(format!(
                "user '{}' comes twice",
                String::from_utf8_lossy(user)
            )),
            (b"user", Some(user)) => apply(&mut users, user, words, all_channels),
            _ => Err("it should be: user NAME RULE ...".to_owned()),
        };
        if let Err(why) = outcome {
            let _ = write!(wrong, "{name}:{}: {why}. ", at + 1);
        }
    }
    match wrong.is_empty() {
        true => Ok(users),
        false => Err(wrong.trim_end().to_owned()),
    }
}

/// Sets a user anew, by the rules of one line.
pub(crate) fn apply<'a>(
    users: &mut Users,
    name: &[u8],
    rules: impl IntoIterator<Item = &'a [u8]>,
    all_channels: bool,
) -> Result<(), String> {
    let rules = merge_selectors(rules).map_err(|word| unmatched(&word))?;
    let rules = rules.iter().map(Vec::as_slice);
    let rules = std::iter::once(&b"reset"[..]).chain(rules);
    let set = users.set(name, rules, all_channels);
    set.map_err(|why| why.to_string())
}

/// The error about a parenthesis that nothing closes.
pub(crate) fn unmatched(word: &[u8]) -> String {
    let word = String::from_utf8_lossy(word);
    format!("Unmatched parenthesis in acl selector starting at '{word}'")
}

/// Writes users as lines.
pub(crate) fn as_lines(users: &Users) -> Vec<u8> {
    let mut text = Vec::new();
    for user in users.iter() {
        for part in [b"user ", &user.name[..], b" ", &user.rules(), b"\n"] {
            text.extend_from_slice(part);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidewheel_oracle::Dice;

    use super::*;
    use crate::config::{Settings, rewritten};

    #[test]
    fn users_are_written_and_read_back() {
        let text = "user alice on nopass sanitize-payload ~a* %R~b resetchannels &news -@all +@read -get (%W~w resetchannels -@all +set)\n\
                    user bob off sanitize-payload resetchannels -@all +select|0\n\
                    user carol on nopass sanitize-payload ~* &* db=0,7 +@all (~* resetchannels resetdbs -@all +get)\n\
                    user default on nopass sanitize-payload ~* &* +@all\n";
        let users =
            from_lines(text.as_bytes(), "users.acl", false, Users::default()).expect("sound");
        assert_eq!(String::from_utf8(as_lines(&users)).expect("text"), text);
    }

    /// `%RW~* ~a` was written as `~* ~a`, which is no rule.
    #[test]
    fn whatever_rules_are_accepted_are_read_back() {
        const STARTS: [&str; 15] = [
            "~", "%R~", "%W~", "%RW~", "&", "+get|", "+select|", "+module|", "-", ">", "(~", "(&",
            "(%R~", "(+get ~", "db=",
        ];
        const WORDS: [&str; 23] = [
            "on",
            "off",
            "nopass",
            "reset",
            "+@read",
            "-@write",
            "allkeys",
            "resetkeys",
            "&*",
            "~*",
            "%R~*",
            "%W~*",
            "%RW~*",
            "+@all",
            "skip-sanitize-payload",
            "clearselectors",
            "alldbs",
            "resetdbs",
            "db=3,0,3",
            "DB=2147483647",
            "(db=7 +@all ~a)",
            "(+@all ~* &*)",
            "(%R~* %W~* ~a)",
        ];
        const LETTERS: &[u8] = b"\"'\\#()<>!+-~&%* ax0\n\x0b\0\xff\xc2\xa0";
        let name = |dice: &mut Dice| -> Vec<u8> {
            let letters = (0..1 + dice.below(3_usize)).map(|_| match dice.once_in(2) {
                true => dice.below(256_usize) as u8,
                false => *dice.pick(LETTERS),
            });
            letters.collect()
        };
        let rule = |dice: &mut Dice| {
            if dice.once_in(3) {
                return dice.pick(&WORDS).as_bytes().to_vec();
            }
            let start = *dice.pick(&STARTS);
            let end = if start.starts_with('(') { ")" } else { "" };
            [start.as_bytes(), &name(dice), end.as_bytes()].concat()
        };
        let (mut dice, mut accepted) = (Dice::new(7), 0);
        for _ in 0..300 {
            let mut users = Users::default();
            for _ in 0..20 {
                let who = name(&mut dice);
                for _ in 0..3 {
                    let rule = rule(&mut dice);
                    accepted += usize::from(users.set(&who, [&rule[..]], false).is_ok());
                }
            }
            let lines = as_lines(&users);
            let shown = lines.escape_ascii();
            let read = from_lines(&lines, "f", false, Users::default());
            let read = read.unwrap_or_else(|why| panic!("{why}: {shown}"));
            assert_eq!(
                as_lines(&read).escape_ascii().to_string(),
                shown.to_string()
            );
            let settings = Settings {
                users: Arc::new(users),
                ..Settings::default()
            };
            // It is compared there with what is in force.
            rewritten("", &settings).unwrap_or_else(|why| panic!("{why:?}: {shown}"));
        }
        assert!(accepted > 5_000, "{accepted}");
    }

    #[test]
    fn each_wrong_line_is_named() {
        let text =
            b"user a +get\nuser a on\n\n# a remark\nusers b\nuser c (+get ~x\nuser d +nope\n";
        let why = from_lines(text, "f", false, Users::default()).expect_err("four are wrong");
        for part in [
            "f:2: user 'a' comes twice. ",
            "f:5: it should be",
            "f:6: Unmatched parenthesis in acl selector starting at '(+get'. ",
            "f:7: Error in ACL SETUSER modifier '+nope': Unknown command",
        ] {
            assert!(why.contains(part), "{part} in {why}");
        }
    }

    #[test]
    fn selectors_are_put_together() {
        let merged = |words: &[&[u8]]| merge_selectors(words.iter().copied());
        let rules = merged(&[b"on", b"(+get", b"~a)", b"(~b)", b"off"]);
        let expected: [&[u8]; 4] = [b"on", b"(+get ~a)", b"(~b)", b"off"];
        assert_eq!(rules, Ok(expected.map(<[u8]>::to_vec).to_vec()));
        assert_eq!(merged(&[b"(+get", b"on"]), Err(b"(+get".to_vec()));
    }
}
