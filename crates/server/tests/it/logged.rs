//! The log, over restarts of the program.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::common::{
    Client, Folder, Reply, Server, bulk, command, eventually, limited, now, ok, program, text,
};

fn start(folder: &Folder, flags: &[&str]) -> Server {
    let mut all = vec!["--dir", folder.text(), "--appendonly", "yes"];
    all.extend(flags);
    let server = Server::start_logged(&all);
    server.logged("loaded the log");
    server
}

fn kill(mut server: Server) {
    server.signal(Signal::KILL);
    server.wait();
}

fn number(reply: &Reply) -> i64 {
    match reply {
        Reply::Integer(number) => *number,
        other => panic!("{other:?} is no number"),
    }
}

fn rewrite(client: &mut Client) {
    let before: u64 = client
        .info("persistence", "aof_rewrites")
        .parse()
        .expect("a number");
    assert!(matches!(client.call(&["BGREWRITEAOF"]), Reply::Simple(_)));
    eventually("a base is written", || {
        let now: u64 = client
            .info("persistence", "aof_rewrites")
            .parse()
            .expect("a number");
        (now > before).then_some(())
    });
}

/// SIGXFSZ ended the server, without a word.
#[test]
fn a_log_as_long_as_a_file_may_be_refuses_changes_and_ends_nobody() {
    let folder = Folder::new("log-long");
    let flags = ["--dir", folder.text(), "--appendonly", "yes"];
    let server = Server::run(limited("-f 64", &flags).stderr(Stdio::null()));
    let mut client = server.client();
    client.call(&["SET", "tea", &"hot".repeat(30_000)]);
    eventually("changes are refused", || {
        let reply = text(&client.call(&["SET", "milk", "cold"]));
        reply.starts_with("MISCONF").then_some(())
    });
    assert_eq!(client.call(&["STRLEN", "tea"]), Reply::Integer(90_000));
}

/// It went on, since its data was not saved, although the log had all of it.
#[test]
fn a_stop_with_a_log_does_not_need_the_snapshot() {
    let folder = Folder::new("log-stop");
    for (before, by_command) in [(0, false), (1, true)] {
        let mut server = start(&folder, &["--save", "3600 1"]);
        let mut client = server.client();
        assert_eq!(number(&client.call(&["INCR", "tea"])), before + 1);
        // No file can take the place of a folder.
        let in_place = folder.file().join("something");
        std::fs::create_dir_all(&in_place).expect("a folder");
        let Reply::Error(_) = client.call(&["SHUTDOWN", "SAVE"]) else {
            panic!("it was to be saved");
        };
        match by_command {
            true => client.send(&command(&["SHUTDOWN"])),
            false => server.signal(Signal::TERM),
        }
        assert!(server.wait().success());
        std::fs::remove_dir_all(folder.file()).expect("it is there");
    }
    let server = start(&folder, &[]);
    assert_eq!(server.client().call(&["GET", "tea"]), bulk("2"));
}

#[test]
fn what_was_answered_is_there_after_the_server_was_killed() {
    let folder = Folder::new("log-always");
    let server = start(&folder, &["--appendfsync", "always"]);
    let mut client = server.client();
    client.call(&["SET", "tea", "hot"]);
    client.call(&["SET", "short", "v", "PX", "300"]);
    client.call(&["SET", "long", "v", "PX", "100000"]);
    client.call(&["HSET", "h", "f", "v", "g", "w"]);
    client.call(&["HPEXPIRE", "h", "300", "FIELDS", "1", "f"]);
    client.call(&[
        "EVAL",
        "redis.call('INCR', 'a') redis.call('INCR', 'a')",
        "0",
    ]);
    for word in [
        &["MULTI"][..],
        &["INCR", "a"],
        &["RPUSH", "l", "1", "2"],
        &["EXEC"],
    ] {
        client.call(word);
    }
    let code = "#!lua name=lib\nredis.register_function('f', function() return 7 end)";
    client.call(&["FUNCTION", "LOAD", code]);
    kill(server);
    std::thread::sleep(Duration::from_millis(400));

    let server = start(&folder, &["--appendfsync", "always", "--shards", "4"]);
    let mut client = server.client();
    assert_eq!(client.call(&["GET", "tea"]), bulk("hot"));
    assert_eq!(client.call(&["EXISTS", "short"]), Reply::Integer(0));
    let left = number(&client.call(&["PTTL", "long"]));
    assert!((50_000..=99_600).contains(&left), "{left}");
    assert_eq!(client.call(&["HLEN", "h"]), Reply::Integer(1));
    assert_eq!(client.call(&["GET", "a"]), bulk("3"));
    assert_eq!(client.call(&["LLEN", "l"]), Reply::Integer(2));
    assert_eq!(client.call(&["FCALL", "f", "0"]), Reply::Integer(7));
    client.call(&["FUNCTION", "FLUSH"]);
    client.call(&["DEL", "tea"]);
    kill(server);

    let server = start(&folder, &[]);
    let mut client = server.client();
    assert_eq!(client.call(&["EXISTS", "tea"]), Reply::Integer(0));
    assert!(matches!(client.call(&["FCALL", "f", "0"]), Reply::Error(_)));
}

#[test]
fn a_new_base_takes_the_place_of_what_it_holds() {
    let folder = Folder::new("log-base");
    let server = start(&folder, &["--appendfsync", "always"]);
    let mut client = server.client();
    for i in 0..500 {
        client.call(&["SET", &format!("key:{i}"), &"v".repeat(100)]);
    }
    for i in 0..500 {
        client.call(&["INCR", "counter"]);
        client.call(&["HSET", "hash", &format!("field:{i}"), "v"]);
    }
    rewrite(&mut client);
    client.call(&["INCR", "counter"]);
    let names = std::fs::read_dir(folder.0.join("log")).expect("a folder");
    let mut names: Vec<_> = names
        .map(|name| {
            name.expect("a name")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    names.sort();
    assert_eq!(names, ["base-2.rdb", "lock", "manifest", "segment-2"]);
    kill(server);

    let server = start(&folder, &[]);
    let mut client = server.client();
    assert_eq!(client.call(&["DBSIZE"]), Reply::Integer(502));
    assert_eq!(client.call(&["GET", "counter"]), bulk("501"));
    assert_eq!(client.call(&["HLEN", "hash"]), Reply::Integer(500));
}

/// What operators watch: tools that know the public servers ask for these fields.
#[test]
fn info_tells_how_long_the_log_is() {
    let folder = Folder::new("log-info");
    let server = start(&folder, &["--appendfsync", "always"]);
    let mut client = server.client();
    let number = |client: &mut Client, field: &str| -> i64 {
        let text = client.info("persistence", field);
        text.parse().unwrap_or_else(|_| panic!("{field}: {text:?}"))
    };
    assert_eq!(number(&mut client, "aof_base_size"), 0);
    let empty = number(&mut client, "aof_current_size");
    client.call(&["SET", "k", &"v".repeat(5_000)]);
    let grown = number(&mut client, "aof_current_size");
    assert!(grown >= empty + 5_000, "{empty}, then {grown}");
    for (field, value) in [
        ("aof_rewrite_scheduled", 0),
        ("aof_last_rewrite_time_sec", -1),
        ("aof_current_rewrite_time_sec", -1),
        ("aof_rewrites_consecutive_failures", 0),
        ("aof_pending_rewrite", 0),
        ("aof_buffer_length", 0),
        ("aof_pending_bio_fsync", 0),
    ] {
        assert_eq!(number(&mut client, field), value, "{field}");
    }
    assert!(number(&mut client, "aof_delayed_fsync") >= 0);
    rewrite(&mut client);
    let base = number(&mut client, "aof_base_size");
    assert!(base > 0 && number(&mut client, "aof_current_size") < grown + base);
    assert_eq!(number(&mut client, "aof_last_rewrite_time_sec"), 0);
}

#[test]
fn a_log_that_grows_gets_a_new_base_by_itself() {
    let folder = Folder::new("log-grows");
    let server = start(&folder, &["--auto-aof-rewrite-min-size", "100kb"]);
    let mut client = server.client();
    for i in 0..2_000 {
        client.call(&["SET", &format!("key:{}", i % 10), &"v".repeat(100)]);
    }
    eventually("a base is written", || {
        (client.info("persistence", "aof_rewrites") != "0").then_some(())
    });
}

#[test]
fn waitaof_waits_until_the_log_is_on_disk() {
    let folder = Folder::new("log-wait");
    let server = start(&folder, &["--appendfsync", "everysec"]);
    let mut client = server.client();
    client.call(&["SET", "tea", "hot"]);
    let both = |local| Reply::Array(vec![Reply::Integer(local), Reply::Integer(0)]);
    assert_eq!(client.call(&["WAITAOF", "1", "0", "0"]), both(1));
    assert_eq!(client.call(&["WAITAOF", "0", "0", "0"]), both(1));
    for policy in ["no", "always"] {
        client.call(&["CONFIG", "SET", "appendfsync", policy]);
        for value in ["cold", "warm"] {
            client.call(&["SET", "tea", value]);
            assert_eq!(
                client.call(&["WAITAOF", "1", "0", "0"]),
                both(1),
                "{policy}"
            );
        }
    }
}

/// The thread that writes followed within a second. Until then replies were not held. The log said
/// nothing of it: after a restart keys had lost the time for which theirs had stood still.
#[test]
fn time_that_stood_still_is_not_lost_by_a_crash() {
    let folder = Folder::new("log-frozen");
    let flags = ["--appendfsync", "always", "--save", ""];
    let server = start(&folder, &flags);
    let mut client = server.client();
    client.call(&["SET", "tea", "hot", "PX", "100000"]);
    assert_eq!(client.call(&["EXPIRY", "FREEZE"]), ok());
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(client.call(&["EXPIRY", "RESUME"]), ok());
    let (left, at) = (number(&client.call(&["PTTL", "tea"])), now());
    kill(server);

    let server = start(&folder, &flags);
    let mut client = server.client();
    let passed = (now() - at).as_millis() as i64;
    let is = number(&client.call(&["PTTL", "tea"]));
    assert!(
        is >= left - passed - 100,
        "{is} of {left}, {passed} ms later"
    );
    // While it stands still the log says so once a second.
    let size = |client: &mut Client| client.info("persistence", "aof_current_size");
    assert_eq!(client.call(&["EXPIRY", "FREEZE"]), ok());
    let left = number(&client.call(&["PTTL", "tea"]));
    for _ in 0..2 {
        let before = size(&mut client);
        eventually("it is said", || (size(&mut client) != before).then_some(()));
    }
    let at = now();
    kill(server);
    let server = start(&folder, &flags);
    let passed = (now() - at).as_millis() as i64;
    let is = number(&server.client().call(&["PTTL", "tea"]));
    assert!(
        is >= left - passed - 100,
        "{is} of {left}, {passed} ms later"
    );
    // So it does at the end.
    let mut server = server;
    let mut client = server.client();
    assert_eq!(client.call(&["EXPIRY", "FREEZE"]), ok());
    let left = number(&client.call(&["PTTL", "tea"]));
    std::thread::sleep(Duration::from_millis(700));
    let at = now();
    server.signal(Signal::TERM);
    server.wait();
    let server = start(&folder, &flags);
    let passed = (now() - at).as_millis() as i64;
    let is = number(&server.client().call(&["PTTL", "tea"]));
    assert!(
        is >= left - passed - 100,
        "{is} of {left}, {passed} ms later"
    );
}

#[test]
fn once_always_is_set_the_next_change_that_was_answered_is_there() {
    let folder = Folder::new("log-set");
    for i in 0..5 {
        let server = start(&folder, &["--appendfsync", "everysec"]);
        let mut client = server.client();
        let key = format!("key:{i}");
        client.call(&["CONFIG", "SET", "appendfsync", "always"]);
        assert_eq!(client.call(&["SET", &key, "v"]), ok());
        kill(server);
        let server = start(&folder, &[]);
        assert_eq!(server.client().call(&["GET", &key]), bulk("v"), "{i}");
        kill(server);
    }
}

/// The replies that were not sent yet left at once.
#[test]
fn what_was_changed_under_always_is_on_disk_although_the_policy_changes_at_once() {
    let folder = Folder::new("log-unset");
    for policy in ["everysec", "no"] {
        for i in 0..3 {
            let server = start(&folder, &["--appendfsync", "always"]);
            let mut client = server.client();
            let key = format!("{policy}:{i}");
            let change = ["CONFIG", "SET", "appendfsync", policy];
            client.send(&[command(&["SET", &key, "v"]), command(&change)].concat());
            assert_eq!(client.read(), ok());
            kill(server);
            let server = start(&folder, &[]);
            assert_eq!(server.client().call(&["GET", &key]), bulk("v"), "{i}");
            kill(server);
        }
    }
}

#[test]
fn a_log_begins_with_the_snapshot_that_is_there() {
    let folder = Folder::new("log-after-snapshot");
    let server = folder.server();
    let mut client = server.client();
    client.call(&["SET", "tea", "hot"]);
    client.call(&["SAVE"]);
    kill(server);
    let server = start(&folder, &["--appendfsync", "always"]);
    let mut client = server.client();
    assert_eq!(client.call(&["GET", "tea"]), bulk("hot"));
    client.call(&["APPEND", "tea", "ter"]);
    kill(server);
    let server = start(&folder, &[]);
    assert_eq!(server.client().call(&["GET", "tea"]), bulk("hotter"));
}

/// The log won without a word, and the next snapshot took the place of the newer one.
#[test]
fn a_snapshot_that_is_newer_than_the_log_is_not_passed_over() {
    let folder = Folder::new("log-then-snapshot");
    let server = start(&folder, &[]);
    let mut client = server.client();
    client.call(&["SET", "tea", "hot"]);
    // That the log has all of this one too, it says itself.
    client.call(&["SAVE"]);
    client.call(&["WAITAOF", "1", "0", "0"]);
    kill(server);
    let server = start(&folder, &[]);
    assert_eq!(server.client().call(&["GET", "tea"]), bulk("hot"));
    kill(server);

    let server = folder.server();
    let mut client = server.client();
    client.call(&["SET", "tea", "cold"]);
    client.call(&["SAVE"]);
    kill(server);
    let refused = || {
        let flags = ["--dir", folder.text(), "--appendonly", "yes"];
        let output = program(&flags).stdin(Stdio::null()).output();
        let output = output.expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        said
    };
    for part in ["dump.rdb is newer than the log", folder.text(), "move"] {
        assert!(refused().contains(part), "{}", refused());
    }
    let (log, aside) = (folder.0.join("log"), folder.0.join("aside"));
    std::fs::rename(&log, &aside).expect("a folder");
    let server = start(&folder, &[]);
    assert_eq!(server.client().call(&["GET", "tea"]), bulk("cold"));
    kill(server);

    std::fs::remove_dir_all(&log).expect("a folder");
    std::fs::rename(&aside, &log).expect("a folder");
    assert!(refused().contains("is newer"));
    std::fs::rename(folder.file(), folder.0.join("older.rdb")).expect("a file");
    let server = start(&folder, &[]);
    assert_eq!(server.client().call(&["GET", "tea"]), bulk("hot"));
}

#[test]
fn a_key_that_died_while_no_server_ran_is_announced_once_and_others_are_not() {
    let folder = Folder::new("log-announced");
    let flags = ["--appendfsync", "always", "--expired-stream", "0 gone 1000"];
    let server = start(&folder, &flags);
    let mut client = server.client();
    client.call(&["SET", "before", "v", "PX", "100"]);
    for i in 0..20 {
        client.call(&[
            "SET",
            &format!("meanwhile:{i}"),
            "v",
            "PX",
            &(500 + 10 * i).to_string(),
        ]);
    }
    eventually("a key has expired", || {
        (client.call(&["XLEN", "gone"]) == Reply::Integer(1)).then_some(())
    });
    kill(server);
    std::thread::sleep(Duration::from_millis(800));
    for _ in 0..2 {
        let server = start(&folder, &flags);
        let mut client = server.client();
        eventually("all are announced", || {
            (client.call(&["XLEN", "gone"]) == Reply::Integer(21)).then_some(())
        });
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(
            client.call(&["XLEN", "gone"]),
            Reply::Integer(21),
            "each once"
        );
        kill(server);
    }
}

/// Nobody was told: it was not removed while clients were paused, and a frame was written later.
#[test]
fn a_key_that_was_dead_and_not_announced_at_a_crash_is_in_its_stream_once() {
    let folder = Folder::new("log-owed");
    let flags = ["--appendfsync", "always"];
    let server = start(&folder, &flags);
    let mut client = server.client();
    client.call(&["SET", "without-stream", "v", "PX", "50"]);
    eventually("it is removed", || {
        (client.call(&["DBSIZE"]) == Reply::Integer(0)).then_some(())
    });
    let set = ["CONFIG", "SET", "expired-stream", "0 gone 1000"];
    assert_eq!(client.call(&set), ok());
    client.call(&["SET", "owed", "v", "PX", "100"]);
    client.call(&["CLIENT", "PAUSE", "100000", "WRITE"]);
    let log = folder.0.join("log");
    let bytes = || {
        let files = std::fs::read_dir(&log).expect("a folder").flatten();
        files
            .map(|file| file.metadata().map_or(0, |about| about.len()))
            .sum::<u64>()
    };
    std::thread::sleep(Duration::from_millis(150));
    let before = bytes();
    // A pause does not hold this back.
    let set = ["CONFIG", "SET", "expired-stream", "0 gone 2000"];
    assert_eq!(client.call(&set), ok());
    eventually("a frame is written", || (bytes() > before).then_some(()));
    kill(server);
    let flags = [&flags[..], &["--expired-stream", "0 gone 1000"]].concat();
    for _ in 0..2 {
        let server = start(&folder, &flags);
        let mut client = server.client();
        eventually("it is announced", || {
            (client.call(&["XLEN", "gone"]) == Reply::Integer(1)).then_some(())
        });
        let range = client.call(&["XRANGE", "gone", "-", "+"]);
        let owed = format!("{:?}", bulk("owed"));
        assert!(format!("{range:?}").contains(&owed), "{range:?}");
        kill(server);
    }
}

#[test]
fn without_a_log_nothing_of_it_is_there() {
    let folder = Folder::new("no-log");
    let server = folder.server();
    let mut client = server.client();
    assert_eq!(client.call(&["SET", "tea", "hot"]), ok());
    for command in [&["BGREWRITEAOF"][..], &["WAITAOF", "1", "0", "0"]] {
        assert!(matches!(client.call(command), Reply::Error(_)));
    }
    assert_eq!(client.info("persistence", "aof_enabled"), "0");
    assert!(!folder.0.join("log").exists());
}

#[test]
fn a_base_of_another_segment_is_refused() {
    let folder = Folder::new("log-other-base");
    let server = start(&folder, &["--appendfsync", "always"]);
    let mut client = server.client();
    client.call(&["SET", "tea", "hot"]);
    rewrite(&mut client);
    let log = folder.0.join("log");
    let old = std::fs::read(log.join("base-2.rdb")).expect("a base");
    client.call(&["SET", "tea", "cold"]);
    rewrite(&mut client);
    kill(server);
    std::fs::write(log.join("base-3.rdb"), old).expect("a file");
    let flags = ["--dir", folder.text(), "--appendonly", "yes"];
    let output = program(&flags).stdin(Stdio::null()).output();
    let output = output.expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("base-3.rdb is the base of another segment"),
        "{said}"
    );
}

/// The record of a script or a transaction is made at its end. What left before had no record to
/// wait for: it told of changes that a crash took back.
#[test]
fn with_always_no_word_of_a_script_leaves_before_what_it_changed_is_on_disk() {
    let folder = Folder::new("log-words");
    let flags = ["--appendfsync", "always", "--threads", "3"];
    let more = [
        "--notify-keyspace-events",
        "KEA",
        "--enable-debug-command",
        "yes",
    ];
    let server = start(&folder, &[&flags[..], &more].concat());
    let write = "redis.call('SET', KEYS[1], 'hot')";
    let rest = "redis.call('PUBLISH', 'news', 'hot') \
                local begun = os.clock() while os.clock() - begun < 1.2 do end";
    let of_its_keys = format!("{write} {rest}");
    let of_all = format!("redis.call('RANDOMKEY') {write} {rest}");
    let alone = [
        vec!["EVAL", &*of_its_keys, "1", "tea"],
        vec!["EVAL", &*of_all, "1", "tea"],
    ];
    let multi = |body| {
        let begin = [vec!["MULTI"], vec!["SET", "tea", "hot"]];
        let tell = [vec!["PUBLISH", "news", "hot"], body, vec!["EXEC"]];
        begin.into_iter().chain(tell).collect::<Vec<_>>()
    };
    let runs = [
        vec![alone[0].clone()],
        vec![alone[1].clone()],
        multi(alone[0].clone()),
        multi(vec!["DEBUG", "SLEEP", "1.2"]),
    ];
    for run in runs {
        let mut client = server.client();
        let (last, first) = run.split_last().expect("a command");
        for words in first {
            client.call(words);
        }
        let mut others: Vec<Client> = (0..4).map(|_| server.client()).collect();
        for other in &mut others {
            other.call(&["HELLO", "3"]);
        }
        for (at, other) in others.iter_mut().enumerate() {
            match at {
                0 => other.call(&["CLIENT", "TRACKING", "ON", "BCAST"]),
                1 => other.call(&["SUBSCRIBE", "news"]),
                2 => other.call(&["PSUBSCRIBE", "__key*__:*"]),
                _ => other.call(&["MONITOR"]),
            };
        }
        client.send(&command(last));
        for (at, other) in others.iter_mut().enumerate() {
            // Monitors on other loops are shown that a script begins.
            if !other.is_silent() && at == 3 && first.is_empty() {
                other.read();
            }
            assert!(other.is_silent(), "{at}: {run:?}");
        }
        client.read();
        for other in &mut others {
            assert!(!matches!(other.read(), Reply::Error(_)));
        }
    }
}
