//! The rights that the user of a request must keep as long as the request is answered.

use std::sync::Arc;

use tidewheel_keyspace::resolve;
use tidewheel_resp::Args;

use super::access::Credentials;
use crate::users::{Place, User, Users};

/// A call, as words.
pub(super) type Call<'a> = &'a [&'a [u8]];

/// The user that asks, and the calls that show what is answered.
#[derive(Debug)]
pub(super) struct Rights {
    credentials: Option<Credentials>,
    calls: Vec<Vec<Vec<u8>>>,
    /// The database in which they run.
    place: Place,
}

impl Rights {
    /// Those of these calls that somebody may run now; `None` if it is not let in.
    pub(super) fn of(
        users: &Users,
        credentials: Option<&Credentials>,
        (calls, place): (&[Call<'_>], Place),
    ) -> Option<Self> {
        let user = let_in(users, credentials)?;
        let owned = |call: &Call<'_>| call.iter().map(|word| word.to_vec()).collect();
        let calls = calls.iter().filter(|call| may_run(&user, call, place));
        Some(Self {
            credentials: credentials.cloned(),
            calls: calls.map(owned).collect(),
            place,
        })
    }

    /// True if the same would be let in now, and might run all of them.
    pub(super) fn are_held(&self, users: &Users) -> bool {
        let_in(users, self.credentials.as_ref()).is_some_and(|user| {
            self.calls.iter().all(|call| {
                let call: Vec<&[u8]> = call.iter().map(Vec::as_slice).collect();
                may_run(&user, &call, self.place)
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

fn may_run(user: &User, call: Call<'_>, place: Place) -> bool {
    let args = Args::from_slices(call);
    resolve(args).is_ok_and(|row| user.check(row, args, place).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::DEFAULT;

    const PLACE: Place = Place {
        db: 1,
        databases: 16,
    };
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
        let rights = Rights::of(&before, Some(&bob), (&CALLS, PLACE)).expect("bob");
        for (rules, are_held) in [
            ("on >pw +info", true),
            ("on >pw >other +@all -expiry", true),
            ("on nopass +info|keyspace", true),
            ("on >pw +info db=0", true),
            ("on >pw +info|server", false),
            ("on >pw +expiry", false),
            ("on >other +info", false),
            ("off >pw +info", false),
        ] {
            assert_eq!(rights.are_held(&table(b"bob", rules)), are_held, "{rules}");
        }
        assert!(!rights.are_held(&Users::default()));
        assert!(Rights::of(&Users::default(), Some(&bob), (&CALLS, PLACE)).is_none());
    }

    #[test]
    fn rights_are_those_in_the_database_that_is_shown() {
        let mut users = Users::default();
        for (rules, may_run) in [
            ("db=1", true),
            ("db=0,2", false),
            ("(alldbs +@all ~*)", true),
        ] {
            let rules = ["reset", "on", "nopass", "~*", "+@all"]
                .into_iter()
                .chain([rules]);
            users
                .set(b"bob", rules.map(str::as_bytes), false)
                .expect("right");
            let bob = users.get(b"bob").expect("he is there");
            assert_eq!(super::may_run(bob, &[b"TYPE", b"a"], PLACE), may_run);
        }
    }

    #[test]
    fn who_gives_no_name_is_the_default_user_as_long_as_it_needs_no_password() {
        let rights = Rights::of(&Users::default(), None, (&CALLS, PLACE)).expect("it is open");
        assert!(rights.are_held(&Users::default()));
        for rules in [">pw", "off", "-info"] {
            assert!(!rights.are_held(&table(DEFAULT, rules)), "{rules}");
        }
    }
}
