//! The rights that the user of a request must keep as long as the request is answered.

use std::sync::Arc;

use tidewheel_keyspace::resolve;
use tidewheel_resp::Args;

use super::access::Credentials;
use crate::users::{User, Users};

/// A call, as words.
pub(super) type Call<'a> = &'a [&'a [u8]];

/// The user that asks, and the calls that show what is answered.
#[derive(Debug)]
pub(super) struct Rights {
    credentials: Option<Credentials>,
    calls: Vec<Vec<Vec<u8>>>,
}

impl Rights {
    /// Those of these calls that somebody may run now; `None` if it is not let in.
    pub(super) fn of(
        users: &Users,
        credentials: Option<&Credentials>,
        calls: &[Call<'_>],
    ) -> Option<Self> {
        let user = let_in(users, credentials)?;
        let owned = |call: &Call<'_>| call.iter().map(|word| word.to_vec()).collect();
        let calls = calls.iter().filter(|call| may_run(&user, call));
        Some(Self {
            credentials: credentials.cloned(),
            calls: calls.map(owned).collect(),
        })
    }

    /// True if the same would be let in now, and might run all of them.
    pub(super) fn are_held(&self, users: &Users) -> bool {
        let_in(users, self.credentials.as_ref()).is_some_and(|user| {
            self.calls.iter().all(|call| {
                let call: Vec<&[u8]> = call.iter().map(Vec::as_slice).collect();
                may_run(&user, &call)
            })
        })
    }
}

fn let_in(users: &Users, credentials: Option<&Credentials>) -> Option<Arc<User>> {
    match credentials {
        Some(Credentials { name, password }) => users.admitted(name, password),
        None => Some(users.default_user()).filter(|user| user.is_open()),
    }
}

fn may_run(user: &User, call: Call<'_>) -> bool {
    let args = Args::from_slices(call);
    resolve(args).is_ok_and(|row| user.check(row, args).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::DEFAULT;

    const CALLS: [Call<'_>; 2] = [&[b"INFO", b"keyspace"], &[b"EXPIRY", b"FORECAST", b"65"]];

    fn table(name: &[u8], rules: &str) -> Users {
        let mut users = Users::default();
        let rules = rules.split(' ').map(str::as_bytes);
        users.set(name, rules, false).expect("right");
        users
    }

    #[test]
    fn rights_are_held_until_one_of_them_is_taken_away() {
        let bob = Credentials {
            name: b"bob".to_vec(),
            password: b"pw".to_vec(),
        };
        let before = table(b"bob", "on >pw +info");
        let rights = Rights::of(&before, Some(&bob), &CALLS).expect("bob");
        for (rules, are_held) in [
            ("on >pw +info", true),
            ("on >pw >other +@all -expiry", true),
            ("on nopass +info|keyspace", true),
            ("on >pw +info|server", false),
            ("on >pw +expiry", false),
            ("on >other +info", false),
            ("off >pw +info", false),
        ] {
            assert_eq!(rights.are_held(&table(b"bob", rules)), are_held, "{rules}");
        }
        assert!(!rights.are_held(&Users::default()));
        assert!(Rights::of(&Users::default(), Some(&bob), &CALLS).is_none());
    }

    #[test]
    fn who_gives_no_name_is_the_default_user_as_long_as_it_needs_no_password() {
        let rights = Rights::of(&Users::default(), None, &CALLS).expect("it is open");
        assert!(rights.are_held(&Users::default()));
        for rules in [">pw", "off", "-info"] {
            assert!(!rights.are_held(&table(DEFAULT, rules)), "{rules}");
        }
    }
}
