//! All users, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use super::password::PasswordHash;
use super::rule_error::RuleError;
use super::user::{User, is_name};

/// The user that a client is before it says another name.
pub(crate) const DEFAULT: &[u8] = b"default";

/// The most users: a change copies the table.
const USERS_MAX: usize = 10_000;

/// All users. A change makes another table, with another version.
#[derive(Clone)]
pub(crate) struct Users {
    version: u64,
    all: BTreeMap<Box<[u8]>, Arc<User>>,
}

/// Why a user is not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SetUserError {
    Name,
    TooMany,
    /// The rule, and what is wrong with it.
    Rule(Vec<u8>, RuleError),
}

impl fmt::Display for SetUserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("Usernames can't contain spaces or null characters"),
            Self::TooMany => write!(f, "There are {USERS_MAX} users already"),
            Self::Rule(rule, why) => {
                let rule = String::from_utf8_lossy(shown(rule));
                write!(f, "Error in ACL SETUSER modifier '{rule}': {why}")
            }
        }
    }
}

/// A rule as an error shows it: no password.
fn shown(rule: &[u8]) -> &[u8] {
    match rule {
        [b'>' | b'<' | b'#' | b'!', ..] => &rule[..1],
        _ => rule,
    }
}

static ALONE: LazyLock<Arc<User>> = LazyLock::new(|| {
    let mut user = User::new(DEFAULT, true);
    user.follow_known(&["on", "nopass", "allkeys", "allcommands"]);
    Arc::new(user)
});

static NOBODY: LazyLock<Arc<User>> = LazyLock::new(|| Arc::new(User::new(b"", false)));

impl Default for Users {
    /// The default user alone: it needs no password, and may do everything.
    fn default() -> Self {
        let all = BTreeMap::from([(DEFAULT.into(), Self::alone())]);
        Self { version: 0, all }
    }
}

impl PartialEq for Users {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl Eq for Users {}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.all.keys().map(|name| String::from_utf8_lossy(name));
        f.debug_set().entries(names).finish()
    }
}

impl Users {
    /// The default user of a server that has no others.
    pub(crate) fn alone() -> Arc<User> {
        Arc::clone(&ALONE)
    }

    /// One who may do nothing: a client whose user is no more.
    pub(crate) fn nobody() -> Arc<User> {
        Arc::clone(&NOBODY)
    }

    /// Two tables with the same version are the same.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<&Arc<User>> {
        self.all.get(name)
    }

    pub(crate) fn default_user(&self) -> Arc<User> {
        self.get(DEFAULT).map_or_else(Self::alone, Arc::clone)
    }

    /// All of them, by name.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<User>> {
        self.all.values()
    }

    /// The user of this name, if the password is right.
    pub(crate) fn admitted(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        // It is hashed in any case, so that the time does not tell which names there are.
        let given = PasswordHash::of(password);
        self.get(name).filter(|user| user.admits(given)).cloned()
    }

    /// Changes a user, or makes it, if all rules are right.
    pub(crate) fn set<'r>(
        &mut self,
        name: &[u8],
        rules: impl IntoIterator<Item = &'r [u8]>,
        all_channels: bool,
    ) -> Result<(), SetUserError> {
        if !is_name(name) {
            return Err(SetUserError::Name);
        }
        let mut user = match self.get(name) {
            Some(user) => User::clone(user),
            None if self.all.len() >= USERS_MAX => return Err(SetUserError::TooMany),
            None => User::new(name, all_channels),
        };
        for rule in rules {
            (user.change(rule, all_channels))
                .map_err(|why| SetUserError::Rule(rule.to_vec(), why))?;
        }
        self.put(user);
        Ok(())
    }

    /// Takes a user from another table, in the place of its own of this name.
    pub(crate) fn take(&mut self, user: &Arc<User>) -> Result<(), SetUserError> {
        if self.all.len() >= USERS_MAX && self.get(&user.name).is_none() {
            return Err(SetUserError::TooMany);
        }
        self.put(User::clone(user));
        Ok(())
    }

    fn put(&mut self, user: User) {
        self.all.insert((*user.name).into(), Arc::new(user));
        self.version = new_version();
    }

    /// Sets the default user's only password; an empty one means that it needs none.
    pub(crate) fn set_default_password(&mut self, password: &str) {
        let mut user = User::clone(&self.default_user());
        user.follow_known(&["resetpass"]);
        match password {
            "" => user.follow_known(&["nopass"]),
            password => user.follow_known(&[&format!(">{password}")]),
        }
        self.put(user);
    }

    /// Removes a user. True if there was one.
    pub(crate) fn remove(&mut self, name: &[u8]) -> bool {
        let removed = name != DEFAULT && self.all.remove(name).is_some();
        self.version = new_version();
        removed
    }
}

fn new_version() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}
