//! One user: its passwords, its rules, and whether they allow a call.

use std::sync::Arc;

use tidewheel_keyspace::Command;
use tidewheel_resp::Args;

use super::databases::Place;
use super::password::PasswordHash;
use super::rule_error::{PARTS_MAX, RuleError};
use super::selector::{Denied, DeniedPart, Selector, Use, plain};

/// A user. It is never changed: a change makes another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: Arc<[u8]>,
    /// Clients may log in.
    pub(crate) is_on: bool,
    /// Any password is right.
    pub(crate) needs_no_password: bool,
    skips_sanitizing: bool,
    passwords: Vec<PasswordHash>,
    /// The user's own, and others. One that allows all of a call is enough.
    own: Selector,
    others: Vec<Selector>,
}

impl User {
    /// A new one, which may do nothing; with `all_channels` it may use all of these.
    pub(super) fn new(name: &[u8], all_channels: bool) -> Self {
        let mut user = Self {
            name: name.into(),
            is_on: false,
            needs_no_password: false,
            skips_sanitizing: false,
            passwords: Vec::new(),
            own: Selector::NONE,
            others: Vec::new(),
        };
        user.reset(all_channels);
        user
    }

    fn reset(&mut self, all_channels: bool) {
        *self = Self {
            name: Arc::clone(&self.name),
            is_on: false,
            needs_no_password: false,
            skips_sanitizing: false,
            passwords: Vec::new(),
            own: Selector::NONE,
            others: Vec::new(),
        };
        if all_channels {
            self.follow_known(&["allchannels"]);
        }
    }

    /// Follows rules that cannot be wrong.
    pub(super) fn follow_known(&mut self, rules: &[&str]) {
        for rule in rules {
            let followed = self.change(rule.as_bytes(), false);
            debug_assert_eq!(followed, Ok(()), "{rule}");
        }
    }

    /// Follows a rule. If it is wrong, nothing has changed.
    pub(crate) fn change(&mut self, rule: &[u8], all_channels: bool) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            [] => {}
            _ if is("on") => self.is_on = true,
            _ if is("off") => self.is_on = false,
            _ if is("skip-sanitize-payload") => self.skips_sanitizing = true,
            _ if is("sanitize-payload") => self.skips_sanitizing = false,
            _ if is("nopass") => {
                self.needs_no_password = true;
                self.passwords.clear();
            }
            _ if is("resetpass") => {
                self.needs_no_password = false;
                self.passwords.clear();
            }
            _ if is("clearselectors") => self.others.clear(),
            _ if is("reset") => self.reset(all_channels),
            [b'>', password @ ..] => self.add_password(PasswordHash::of(password))?,
            [b'#', hex @ ..] => self.add_password(read_hash(hex)?)?,
            [b'<', password @ ..] => self.remove_password(PasswordHash::of(password))?,
            [b'!', hex @ ..] => self.remove_password(read_hash(hex)?)?,
            [b'(', rules @ .., b')'] => {
                if self.others.len() == PARTS_MAX {
                    return Err(RuleError::TooMany);
                }
                self.others.push(selector(rules)?);
            }
            _ => self.own.change(rule)?,
        }
        Ok(())
    }

    fn add_password(&mut self, hash: PasswordHash) -> Result<(), RuleError> {
        if !self.passwords.iter().any(|known| known.is(hash)) {
            if self.passwords.len() == PARTS_MAX {
                return Err(RuleError::TooMany);
            }
            self.passwords.push(hash);
        }
        self.needs_no_password = false;
        Ok(())
    }

    fn remove_password(&mut self, hash: PasswordHash) -> Result<(), RuleError> {
        let at = self.passwords.iter().position(|known| known.is(hash));
        self.passwords.remove(at.ok_or(RuleError::NoSuchPassword)?);
        Ok(())
    }

    /// True if somebody who gives this password is this user.
    pub(super) fn admits(&self, given: PasswordHash) -> bool {
        // All are compared, so that the time tells nothing.
        let right = self
            .passwords
            .iter()
            .filter(|known| known.is(given))
            .count();
        self.is_on && (self.needs_no_password || right > 0)
    }

    /// True if a new connection is this user without a word, if it is the default one.
    pub(crate) fn is_open(&self) -> bool {
        self.is_on && self.needs_no_password
    }

    fn selectors(&self) -> impl Iterator<Item = &Selector> {
        std::iter::once(&self.own).chain(&self.others)
    }

    /// True if it may do everything.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.selectors().any(Selector::allows_everything)
    }

    /// Compares a call with what it may do.
    ///
    /// # Errors
    ///
    /// With what no selector allows, by the one that came closest to allowing all.
    pub(crate) fn check(
        &self,
        row: &'static Command,
        args: Args<'_>,
        place: Place,
    ) -> Result<(), Denied> {
        let call = Use::new(row, args, place);
        let mut closest = None;
        for selector in self.selectors() {
            match selector.check(&call) {
                Ok(()) => return Ok(()),
                Err(denied) => closest = closest.max(Some(denied)),
            }
        }
        closest.map_or(Ok(()), Err)
    }

    /// Says what it may not do. With `object` that names the key, the channel or the
    /// database.
    pub(crate) fn explain(&self, denied: Denied, row: &Command, object: Option<&[u8]>) -> String {
        let name = String::from_utf8_lossy(&self.name);
        let kind = match denied.part {
            DeniedPart::Command => {
                let command = row.name;
                return format!("User {name} has no permissions to run the '{command}' command");
            }
            DeniedPart::OtherKeys(option) => {
                return format!(
                    "{option} option of SORT denied due to insufficient ACL permissions."
                );
            }
            DeniedPart::Database => {
                return match object.map(String::from_utf8_lossy) {
                    Some(db) => format!("User {name} has no permissions to access database {db}"),
                    None => "No permissions to access database".to_owned(),
                };
            }
            DeniedPart::Key => "key",
            DeniedPart::Channel => "channel",
        };
        match object.map(String::from_utf8_lossy) {
            Some(object) => {
                format!("User {name} has no permissions to access the '{object}' {kind}")
            }
            None => format!("No permissions to access a {kind}"),
        }
    }

    /// True if a client may listen to a channel, or to a pattern of channels.
    pub(crate) fn may_listen(&self, name: &[u8], is_pattern: bool) -> bool {
        self.selectors()
            .any(|selector| selector.may_listen(name, is_pattern))
    }

    /// The user's own selector, and its others.
    pub(crate) fn parts(&self) -> (&Selector, &[Selector]) {
        (&self.own, &self.others)
    }

    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.is_on { "on" } else { "off" }];
        if self.needs_no_password {
            flags.push("nopass");
        }
        flags.push(match self.skips_sanitizing {
            true => "skip-sanitize-payload",
            false => "sanitize-payload",
        });
        flags
    }

    /// Its passwords' SHA-256, in hexadecimal digits.
    pub(crate) fn passwords(&self) -> impl ExactSizeIterator<Item = String> + '_ {
        self.passwords.iter().map(|hash| hash.to_hex())
    }

    /// All rules that make it.
    pub(crate) fn rules(&self) -> Vec<u8> {
        let mut rules: Vec<Vec<u8>> = Vec::new();
        rules.extend(self.flags().iter().map(|flag| flag.as_bytes().to_vec()));
        rules.extend(self.passwords().map(|hex| format!("#{hex}").into_bytes()));
        rules.push(self.own.rules());
        let others = self.others.iter();
        rules.extend(others.map(|other| [b"(", &other.rules()[..], b")"].concat()));
        rules.join(&b' ')
    }
}

fn read_hash(hex: &[u8]) -> Result<PasswordHash, RuleError> {
    PasswordHash::from_hex(hex).ok_or(RuleError::BadHash)
}

/// Reads the rules of a selector.
fn selector(rules: &[u8]) -> Result<Selector, RuleError> {
    let mut selector = Selector::NONE;
    let rules = rules.split(u8::is_ascii_whitespace);
    for rule in rules.filter(|rule| !rule.is_empty()) {
        // It would not be read back from a line.
        if rule.iter().any(|byte| matches!(byte, b'(' | b')')) {
            return Err(RuleError::Syntax);
        }
        selector.change(rule)?;
    }
    Ok(selector)
}

/// True if a user may have that name.
pub(super) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && plain(name).is_ok()
}
