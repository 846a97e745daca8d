//! Files of users and of settings that many write and read at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle, scope};

use rustix::process::Signal;

use crate::common::{Client, Folder, Reply, Server, ok, text};

/// Administrators at once, and the users that each of them makes.
const ADMINS: usize = 3;
const USERS: usize = 20;

/// Ends what happens meanwhile, also when the test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// What else happens until all users are made.
fn meanwhile<'scope>(
    scope: &'scope Scope<'scope, '_>,
    ended: &'scope AtomicBool,
    mut work: impl FnMut() + Send + 'scope,
) -> ScopedJoinHandle<'scope, ()> {
    scope.spawn(move || {
        while !ended.load(Ordering::Acquire) {
            work();
        }
    })
}

/// Makes users by all administrators at once; each is written to its file, or it is made again.
fn make_users(server: &Server, write: &[&str]) {
    scope(|scope| {
        for admin in 0..ADMINS {
            let mut client = server.client();
            scope.spawn(move || {
                for number in 0..USERS {
                    let name = format!("u{admin}-{number}");
                    let is_there = |client: &mut Client| {
                        client.call(&["ACL", "GETUSER", &name]) != Reply::Null
                    };
                    loop {
                        let rules = ["on", "nopass", "~k", "+get"];
                        let set = [&["ACL", "SETUSER", &name], &rules[..]].concat();
                        assert_eq!(client.call(&set), ok());
                        assert_eq!(client.call(write), ok(), "{write:?}");
                        // Somebody may have read the file between the two.
                        if is_there(&mut client) {
                            break;
                        }
                    }
                }
            });
        }
    });
}

/// All users that there must be in the end, here and in these lines.
fn all_are_there(client: &mut Client, lines: &str) {
    let shown = client.call(&["ACL", "USERS"]);
    let Reply::Array(names) = shown else {
        panic!("names: {shown:?}")
    };
    let names: Vec<String> = names.iter().map(text).collect();
    for (admin, number) in (0..ADMINS).flat_map(|a| (0..USERS).map(move |n| (a, n))) {
        let name = format!("u{admin}-{number}");
        assert!(names.contains(&name), "{name} is lost");
        let line = format!("user {name} on nopass ");
        assert!(
            lines.lines().any(|of| of.starts_with(&line)),
            "{name} is in no line"
        );
    }
}

/// What lines begin with.
const WORDS: [&str; 8] = [
    "user",
    "#",
    "dir",
    "maxmemory",
    "port",
    "save",
    "threads",
    "timeout",
];

fn is_whole(lines: &str, first: &str) {
    let are_right = lines
        .lines()
        .filter(|line| !line.is_empty())
        .all(|line| WORDS.contains(&line.split(' ').next().unwrap_or_default()));
    assert!(lines.starts_with(first), "{lines:?}");
    assert!(lines.ends_with('\n') && are_right, "{lines:?}");
}

/// Of two that wrote at once, each removed the other's file, or put half of it in its place.
#[test]
fn a_file_of_users_that_many_save_and_load_is_whole_and_loses_nobody() {
    let folder = Folder::new("saved-by-many");
    std::fs::create_dir_all(folder.text()).expect("a folder");
    let file = folder.0.join("users.acl");
    std::fs::write(&file, "user default on nopass ~* &* +@all\n").expect("a file");
    let path = file.to_str().expect("text");
    let server = Server::start(&["--aclfile", path, "--threads", "4"]);
    let read = || std::fs::read_to_string(&file).expect("it is always there");
    let ended = AtomicBool::new(false);
    scope(|scope| {
        let (mut loads, mut reads) = (server.client(), server.client());
        meanwhile(scope, &ended, move || {
            assert_eq!(loads.call(&["ACL", "LOAD"]), ok());
        });
        meanwhile(scope, &ended, move || {
            assert_eq!(reads.call(&["GET", "k"]), Reply::Null);
        });
        meanwhile(scope, &ended, || is_whole(&read(), "user default "));
        meanwhile(scope, &ended, || server.signal(Signal::HUP));
        let _end = End(&ended);
        make_users(&server, &["ACL", "SAVE"]);
    });
    all_are_there(&mut server.client(), &read());
    let left = std::fs::read_dir(&folder.0).expect("a folder").count();
    assert_eq!(left, 1, "files beside it");
}

#[test]
fn a_file_of_settings_that_many_write_and_read_is_whole_and_loses_nobody() {
    let folder = Folder::new("rewritten-by-many");
    std::fs::create_dir_all(folder.text()).expect("a folder");
    let file = folder.0.join("tidewheel.conf");
    std::fs::write(&file, "maxmemory 1gb\n").expect("a file");
    let path = file.to_str().expect("text");
    let server = Server::start(&["--config", path, "--threads", "4"]);
    let read = || std::fs::read_to_string(&file).expect("it is always there");
    let ended = AtomicBool::new(false);
    scope(|scope| {
        let (mut sets, mut reads) = (server.client(), server.client());
        let mut number = 0;
        meanwhile(scope, &ended, move || {
            number += 1;
            let number = number.to_string();
            assert_eq!(sets.call(&["CONFIG", "SET", "timeout", &number]), ok());
        });
        meanwhile(scope, &ended, move || {
            assert_eq!(reads.call(&["GET", "k"]), Reply::Null);
        });
        meanwhile(scope, &ended, || is_whole(&read(), "maxmemory 1gb\n"));
        meanwhile(scope, &ended, || server.signal(Signal::HUP));
        let _end = End(&ended);
        make_users(&server, &["CONFIG", "REWRITE"]);
    });
    all_are_there(&mut server.client(), &read());
}
