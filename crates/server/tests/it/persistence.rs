//! Snapshots over restarts of the program.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{Client, Folder, Reply, Server, bulk, eventually, now, ok, program};
use rustix::process::Signal;
use tidewheel_engines::Engine;

fn number(reply: &Reply) -> i64 {
    match reply {
        Reply::Integer(number) => *number,
        other => panic!("{other:?} is no number"),
    }
}

#[test]
fn what_was_saved_is_there_after_the_server_was_killed() {
    let folder = Folder::new("saved");
    let mut server = folder.server();
    let mut client = server.client();
    client.call(&["SET", "tea", "hot"]);
    client.call(&["SET", "ends", "v", "PX", "100000"]);
    client.call(&["HSET", "h", "f", "v", "g", "w"]);
    client.call(&["HPEXPIRE", "h", "100000", "FIELDS", "1", "f"]);
    let code = "#!lua name=lib\nredis.register_function('f', function() return 7 end)";
    client.call(&["FUNCTION", "LOAD", code]);
    assert_eq!(
        client.info("persistence", "rdb_changes_since_last_save"),
        "4"
    );
    assert_eq!(client.call(&["SAVE"]), ok());
    assert_eq!(
        client.info("persistence", "rdb_changes_since_last_save"),
        "0"
    );
    assert_eq!(client.info("persistence", "rdb_saves"), "1");
    let saved_s = number(&client.call(&["LASTSAVE"]));
    assert_eq!(
        client.info("persistence", "rdb_last_save_time"),
        saved_s.to_string()
    );
    client.call(&["SET", "later", "lost"]);
    let deadlines = [&["PTTL", "ends"][..], &["HPTTL", "h", "FIELDS", "1", "f"]];
    let left_of = |client: &mut Client, deadline: &[&str]| match client.call(deadline) {
        Reply::Array(items) => number(&items[0]),
        one => number(&one),
    };
    let lefts = deadlines.map(|deadline| (left_of(&mut client, deadline), now()));
    server.signal(Signal::KILL);
    server.wait();
    std::thread::sleep(Duration::from_millis(100));

    let server = folder.server();
    server.logged("loaded");
    let mut client = server.client();
    assert_eq!(client.call(&["GET", "tea"]), bulk("hot"));
    assert_eq!(client.call(&["DBSIZE"]), Reply::Integer(3));
    assert_eq!(client.call(&["FCALL", "f", "0"]), Reply::Integer(7));
    assert_eq!(client.info("persistence", "rdb_last_load_keys_loaded"), "3");
    for (deadline, (left, began)) in deadlines.into_iter().zip(lefts) {
        let is = left_of(&mut client, deadline);
        let passed = began.elapsed().as_millis() as i64;
        let expected = left - passed;
        assert!(
            (expected - 50..=expected + 2).contains(&is),
            "{is}, of {expected}"
        );
    }
}

#[test]
fn a_key_that_died_while_no_server_ran_is_gone() {
    let folder = Folder::new("died");
    let mut server = folder.server();
    let mut client = server.client();
    client.call(&["SET", "dies", "v", "PX", "150"]);
    client.call(&["SET", "stays", "v"]);
    assert_eq!(client.call(&["SAVE"]), ok());
    server.signal(Signal::KILL);
    server.wait();
    std::thread::sleep(Duration::from_millis(200));
    let server = folder.server();
    let mut client = server.client();
    assert_eq!(client.call(&["GET", "dies"]), Reply::Null);
    eventually("it is removed and counted", || {
        (client.info("stats", "expired_keys") == "1").then_some(())
    });
    assert_eq!(client.call(&["DBSIZE"]), Reply::Integer(1));
}

#[test]
fn shutdown_saves_if_it_is_asked_to() {
    let folder = Folder::new("shutdown");
    for (words, kept) in [
        (&["SHUTDOWN", "NOSAVE"][..], false),
        (&["SHUTDOWN", "SAVE"], true),
    ] {
        let mut server = folder.server();
        let mut client = server.client();
        client.call(&["SET", "k", "v"]);
        client.send(&crate::common::command(words));
        assert!(server.wait().success());
        assert_eq!(folder.file().exists(), kept, "{words:?}");
    }
    let server = folder.server();
    assert_eq!(server.client().call(&["GET", "k"]), bulk("v"));
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_and_the_server_goes_on() {
    let folder = Folder::new("unwritable");
    let server = folder.server();
    // A file stands where the folder should be.
    std::fs::write(&folder.0, b"no folder").expect("a file");
    let mut client = server.client();
    client.call(&["SET", "k", "v"]);
    let Reply::Error(why) = client.call(&["SAVE"]) else {
        panic!("it cannot be saved");
    };
    assert_eq!(why, "ERR the snapshot was not written: see the log");
    server.logged("cannot save to");
    assert_eq!(client.info("persistence", "rdb_last_bgsave_status"), "err");
    assert_eq!(client.call(&["SHUTDOWN", "SAVE"]), Reply::Error(why));
    assert_eq!(client.call(&["GET", "k"]), bulk("v"));
    std::fs::remove_file(&folder.0).expect("it is there");
}

/// BGSAVE was refused, and INFO said that the last one had gone well.
#[test]
fn a_bgsave_that_cannot_begin_is_in_the_status() {
    let folder = Folder::new("unbegun");
    let server = folder.server();
    std::fs::write(&folder.0, b"no folder").expect("a file");
    let mut client = server.client();
    let refused = client.call(&["BGSAVE"]);
    assert!(matches!(refused, Reply::Error(_)), "{refused:?}");
    assert_eq!(client.info("persistence", "rdb_last_bgsave_status"), "err");
    std::fs::remove_file(&folder.0).expect("it is there");
    client.call(&["BGSAVE"]);
    eventually("it is saved", || {
        let status = client.info("persistence", "rdb_last_bgsave_status");
        (status == "ok").then_some(())
    });
}

/// Each wrote over what the other had saved.
#[test]
fn two_servers_never_save_to_one_file() {
    let folder = Folder::new("two-savers");
    let saves = ["--dir", folder.text(), "--save", "3600 1000"];
    let first = Server::start_logged(&saves);
    // There is no folder yet, so nobody has it.
    let early = Server::start_logged(&saves);
    first.client().call(&["SET", "k", "first"]);
    assert_eq!(first.client().call(&["SAVE"]), ok());

    let output = program(&saves).stdin(Stdio::null()).output();
    let output = output.expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in [folder.text(), "dump.rdb", "in use by another server"] {
        assert!(said.contains(part), "{said}");
    }
    // Who keeps nothing may start there, and save when the other one is gone.
    let memory = folder.server();
    for server in [&early, &memory] {
        let mut client = server.client();
        client.call(&["SET", "k", "second"]);
        for command in ["SAVE", "BGSAVE"] {
            let refused = client.call(&[command]);
            assert!(matches!(refused, Reply::Error(_)), "{command}: {refused:?}");
        }
        server.logged("in use by another server");
    }
    // Another file in the same folder is nobody's business.
    let other = [&saves[..], &["--dbfilename", "other.rdb"]].concat();
    assert_eq!(Server::start(&other).client().call(&["SAVE"]), ok());
    drop(first);
    assert_eq!(memory.client().call(&["SAVE"]), ok());
    drop(memory);
    let server = Server::start(&saves);
    assert_eq!(server.client().call(&["GET", "k"]), bulk("second"));
}

/// Who starts with a wrong file must notice, and must not write over it.
#[test]
fn a_file_that_is_damaged_keeps_the_server_from_starting_and_stays_as_it_is() {
    let folder = Folder::new("damaged");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    std::fs::write(folder.file(), b"REDIS0010\x00\x01k").expect("a file");
    let output = program(&["--dir", folder.text()])
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    for text in [
        folder.text(),
        "cannot load",
        "it ends too early",
        "move the file away",
    ] {
        assert!(said.contains(text), "{said}");
    }
    assert!(Path::exists(&folder.file()));
}

#[test]
fn a_reload_keeps_all_and_a_snapshot_can_be_loaded_again() {
    let folder = Folder::new("reload");
    let server = Server::start(&["--dir", folder.text(), "--enable-debug-command", "yes"]);
    let mut client = server.client();
    client.call(&["SET", "k", "v", "PX", "100000"]);
    client.call(&["SADD", "s", "a", "b"]);
    client.call(&["SPEXPIRE", "s", "100000", "MEMBERS", "1", "a"]);
    let digest = client.call(&["DEBUG", "DIGEST"]);
    assert_eq!(client.call(&["DEBUG", "RELOAD"]), ok());
    assert_eq!(client.call(&["DEBUG", "DIGEST"]), digest);
    assert!(number(&client.call(&["PTTL", "k"])) > 50_000);
    client.call(&["SET", "more", "v"]);
    assert_eq!(client.call(&["DEBUG", "RELOAD", "NOSAVE"]), ok());
    assert_eq!(client.call(&["DEBUG", "DIGEST"]), digest);
    let again = client.call(&["DEBUG", "RELOAD", "NOSAVE", "NOFLUSH"]);
    assert_eq!(again, not_loaded(), "its keys are there already");
}

#[test]
fn a_reload_that_merges_replaces_what_is_there_and_keeps_the_rest() {
    let folder = Folder::new("merge");
    let server = Server::start(&["--dir", folder.text(), "--enable-debug-command", "yes"]);
    let mut client = server.client();
    let library = |name: &str, number: u8| {
        format!(
            "#!lua name={name}\nredis.register_function('{name}', function() return {number} end)"
        )
    };
    client.call(&["SADD", "s", "of", "the", "file"]);
    client.call(&["FUNCTION", "LOAD", &library("one", 1)]);
    assert_eq!(client.call(&["DEBUG", "RELOAD"]), ok());
    client.call(&["SET", "s", "here"]);
    client.call(&["SET", "more", "v", "PX", "100000"]);
    client.call(&["FUNCTION", "LOAD", "REPLACE", &library("one", 7)]);
    client.call(&["FUNCTION", "LOAD", &library("two", 2)]);
    let noflush = ["DEBUG", "RELOAD", "NOSAVE", "NOFLUSH"];
    assert_eq!(client.call(&noflush), not_loaded());
    let merge = [&noflush[..], &["MERGE"]].concat();
    assert_eq!(client.call(&merge), ok());
    assert_eq!(number(&client.call(&["SCARD", "s"])), 3);
    assert_eq!(client.call(&["GET", "more"]), bulk("v"));
    assert_eq!(number(&client.call(&["DBSIZE"])), 2);
    for (name, returned) in [("one", 1), ("two", 2)] {
        assert_eq!(number(&client.call(&["FCALL", name, "0"])), returned);
    }
    client.call(&["DEL", "s"]);
    assert_eq!(
        client.call(&noflush),
        not_loaded(),
        "its library is there already"
    );
}

fn not_loaded() -> Reply {
    let why = "ERR Error trying to load the RDB dump, check server logs.";
    Reply::Error(why.to_owned())
}

/// Replies that came after the snapshot was taken told of changes that it does not have.
#[test]
fn what_was_acknowledged_before_a_shutdown_that_saves_is_saved() {
    let folder = Folder::new("acknowledged");
    for round in 1..=3 {
        let mut server = folder.server();
        let port = server.port;
        let count = move || {
            let mut client = Client::connect(port);
            let mut last = 0;
            while let Some(reply) = client.try_call(&["INCR", "counter"]) {
                last = number(&reply);
            }
            last
        };
        let writers: Vec<_> = (0..3).map(|_| std::thread::spawn(count)).collect();
        std::thread::sleep(Duration::from_millis(50));
        server
            .client()
            .send(&crate::common::command(&["SHUTDOWN", "SAVE"]));
        let told = writers
            .into_iter()
            .map(|writer| writer.join().expect("no panic"));
        let told = told.max().expect("writers");
        assert!(server.wait().success());
        let kept = folder.server().client().call(&["GET", "counter"]);
        let kept: i64 = crate::common::text(&kept).parse().expect("a number");
        assert!(
            kept >= told && told > 0,
            "round {round}: {told} was told, {kept} is kept"
        );
    }
}

#[test]
fn a_reload_beside_writers_loses_nothing() {
    let folder = Folder::new("beside");
    let server = Server::start(&["--dir", folder.text(), "--enable-debug-command", "yes"]);
    let mut client = server.client();
    for i in 0..5_000 {
        client.call(&["SET", &format!("k{i}"), "v"]);
    }
    let port = server.port;
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = std::sync::Arc::clone(&stop);
    let writer = std::thread::spawn(move || {
        let mut client = Client::connect(port);
        while !stopped.load(std::sync::atomic::Ordering::Relaxed) {
            client.call(&["SET", "k7", "w"]);
        }
    });
    for _ in 0..10 {
        assert_eq!(client.call(&["DEBUG", "RELOAD"]), ok());
        assert_eq!(client.call(&["DBSIZE"]), Reply::Integer(5_000));
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().expect("no panic");
    // A file that cannot be loaded leaves what there is.
    std::fs::write(folder.file(), b"REDIS0010\x00\x01").expect("a file");
    assert!(matches!(
        client.call(&["DEBUG", "RELOAD", "NOSAVE"]),
        Reply::Error(_)
    ));
    assert_eq!(client.call(&["DBSIZE"]), Reply::Integer(5_000));
}

#[test]
fn a_pipe_in_place_of_a_file_hangs_nobody() {
    let folder = Folder::new("pipe");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let made = std::process::Command::new("mkfifo")
        .arg(folder.file())
        .status();
    assert!(made.expect("mkfifo runs").success());
    let output = program(&["--dir", folder.text()])
        .stdin(Stdio::null())
        .output();
    let output = output.expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is no regular file"));
}

#[test]
fn a_snapshot_in_the_background_has_what_there_was_when_it_began() {
    let folder = Folder::new("background");
    let mut server = folder.server();
    let mut client = server.client();
    for i in 0..2_000 {
        client.call(&["SET", &format!("key:{i}"), "before"]);
        client.call(&["HSET", "hash", &format!("field:{i}"), "before"]);
        client.call(&["RPUSH", "list", &format!("element:{i}")]);
    }
    let reply = client.call(&["BGSAVE"]);
    assert_eq!(reply, Reply::Simple("Background saving started".to_owned()));
    for i in 0..2_000 {
        client.call(&["SET", &format!("key:{i}"), "after"]);
        client.call(&["HSET", "hash", &format!("field:{i}"), "after"]);
    }
    client.call(&["DEL", "list"]);
    eventually("the snapshot is written", || {
        let runs = client.info("persistence", "rdb_bgsave_in_progress");
        (runs == "0").then_some(())
    });
    assert_eq!(client.info("persistence", "rdb_last_bgsave_status"), "ok");
    server.signal(Signal::KILL);
    server.wait();

    let server = folder.server();
    server.logged("loaded");
    let mut client = server.client();
    assert_eq!(client.call(&["DBSIZE"]), Reply::Integer(2_002));
    assert_eq!(client.call(&["LLEN", "list"]), Reply::Integer(2_000));
    for i in [0, 1, 999, 1_999] {
        assert_eq!(client.call(&["GET", &format!("key:{i}")]), bulk("before"));
        let field = format!("field:{i}");
        assert_eq!(client.call(&["HGET", "hash", &field]), bulk("before"));
    }
}

/// Deadlines of the fields of a small hash and of a large one, as a server says them.
fn field_deadlines(client: &mut Client) -> Vec<Reply> {
    let fields = ["f0", "f1", "f2", "f3", "f699"];
    let of = |key: &&str| {
        let words = [&["HPEXPIRETIME", key, "FIELDS", "5"][..], &fields].concat();
        client.call(&words)
    };
    ["small", "large"].iter().map(of).collect()
}

/// In version 10 the fields lived for ever where another server loaded the file.
#[test]
fn a_stock_server_keeps_deadlines_of_fields_if_the_version_has_them() {
    let engines = [
        (Engine::redis_8(), "12"),
        (Engine::valkey(), "80"),
        // Both load it, and have no deadlines then.
        (Engine::valkey(), "11"),
    ];
    for (engine, version) in engines {
        let Some(engine) = engine else { continue };
        let folder = Folder::new(&format!("version-{version}"));
        let flags = ["--dir", folder.text(), "--rdb-version", version];
        let mut server = Server::start_logged(&flags);
        let mut client = server.client();
        for i in 0..700 {
            client.call(&["HSET", "large", &format!("f{i}"), &format!("v{i}")]);
        }
        client.call(&["HSET", "small", "f0", "a", "f1", "b", "f2", "12"]);
        for key in ["small", "large"] {
            for (field, ms) in [("f2", "4102444800456"), ("f1", "4102444800123")] {
                client.call(&["HPEXPIREAT", key, ms, "FIELDS", "1", field]);
            }
        }
        client.call(&["HPEXPIRE", "large", "100000", "FIELDS", "1", "f699"]);
        client.call(&["SADD", "set", "a", "b"]);
        client.call(&["SPEXPIREAT", "set", "4102444800123", "MEMBERS", "1", "a"]);
        let expected = field_deadlines(&mut client);
        let reply = client.call(&["BGSAVE"]);
        assert_eq!(reply, Reply::Simple("Background saving started".to_owned()));
        eventually("the snapshot is written", || {
            (client.info("persistence", "rdb_saves") == "1").then_some(())
        });
        let keys = if version == "11" { 3 } else { 1 };
        server.logged(&format!("{keys} keys have members with deadlines"));
        server.signal(Signal::KILL);
        server.wait();

        let stock = tidewheel_engines::Server::start(&engine, &["--dir", folder.text()]);
        let mut there = Client::connect(stock.port);
        assert_eq!(there.call(&["HLEN", "large"]), Reply::Integer(700));
        let theirs = field_deadlines(&mut there);
        match version {
            "11" => assert_ne!(theirs, expected),
            _ => assert_eq!(theirs, expected, "{} {version}", engine.name()),
        }
        assert_eq!(there.call(&["HGET", "large", "f7"]), bulk("v7"));
        assert_eq!(there.call(&["SCARD", "set"]), Reply::Integer(2));
        drop(stock);

        let server = Server::start(&flags);
        let mut client = server.client();
        assert_eq!(field_deadlines(&mut client), expected, "{version}");
        let ends = ["SPEXPIRETIME", "set", "MEMBERS", "1", "a"];
        let ends = client.call(&ends);
        assert_eq!(ends, Reply::Array(vec![Reply::Integer(4_102_444_800_123)]));
        let other = client.call(&["CONFIG", "SET", "rdb-version", "13"]);
        assert!(matches!(other, Reply::Error(_)));
    }
}

#[test]
fn a_server_that_is_stopped_by_a_signal_keeps_its_data() {
    let folder = Folder::new("stopped");
    let start = || Server::start_logged(&["--dir", folder.text(), "--save", "3600 1"]);
    let mut server = start();
    assert_eq!(server.client().call(&["SET", "tea", "hot"]), ok());
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    let ignored = std::fs::read_to_string(folder.0.join(".gitignore")).expect("a file");
    assert_eq!(ignored, "*\n");

    let mut server = start();
    let mut client = server.client();
    assert_eq!(client.call(&["GET", "tea"]), bulk("hot"));
    client.call(&["SET", "tea", "cold"]);
    client.send(b"SHUTDOWN NOSAVE\r\n");
    assert!(server.wait().success());

    let mut server = start();
    let mut client = server.client();
    assert_eq!(
        client.call(&["GET", "tea"]),
        bulk("hot"),
        "it was to be forgotten"
    );
    client.call(&["SET", "tea", "warm"]);
    client.send(b"SHUTDOWN\r\n");
    assert!(server.wait().success());

    let server = start();
    assert_eq!(server.client().call(&["GET", "tea"]), bulk("warm"));
}

#[test]
fn without_save_points_a_stop_discards_all_and_says_so() {
    let folder = Folder::new("discarded");
    let mut server = folder.server();
    server.client().call(&["SET", "tea", "hot"]);
    server.signal(Signal::TERM);
    server.logged("discarded");
    assert!(server.wait().success());
    assert!(!folder.0.exists());
}

#[test]
fn a_server_whose_data_cannot_be_saved_goes_on_after_a_signal() {
    let folder = Folder::new("unsavable");
    let mut server = Server::start_logged(&["--dir", folder.text(), "--save", "3600 1"]);
    let mut client = server.client();
    client.call(&["SET", "tea", "hot"]);
    // A folder of that name is in the way.
    std::fs::create_dir_all(folder.file().join("in the way")).expect("a folder");
    server.signal(Signal::TERM);
    server.logged("the server goes on");
    assert_eq!(client.call(&["GET", "tea"]), bulk("hot"));
    assert_eq!(client.call(&["SET", "tea", "cold"]), ok());
    client.send(b"SHUTDOWN NOSAVE\r\n");
    assert!(server.wait().success());
}

/// The signal of before still counted, and the second one ended the server without its data.
#[test]
fn a_server_that_went_on_saves_when_it_is_stopped_again() {
    let folder = Folder::new("unsavable-once");
    let flags = ["--dir", folder.text(), "--save", "3600 1"];
    let mut server = Server::start_logged(&flags);
    let mut client = server.client();
    client.call(&["SET", "tea", "hot"]);
    std::fs::create_dir_all(folder.file().join("in the way")).expect("a folder");
    server.signal(Signal::TERM);
    server.logged("the server goes on");
    std::fs::remove_dir_all(folder.file()).expect("it is there");
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    let server = Server::start_logged(&flags);
    assert_eq!(server.client().call(&["GET", "tea"]), bulk("hot"));
}

#[test]
fn a_save_point_takes_a_snapshot() {
    let folder = Folder::new("save-point");
    let server = Server::start_logged(&["--dir", folder.text(), "--save", "1 3"]);
    let mut client = server.client();
    client.call(&["SET", "a", "v"]);
    client.call(&["SET", "b", "v"]);
    std::thread::sleep(Duration::from_millis(2_500));
    assert_eq!(client.info("persistence", "rdb_saves"), "0", "two changes");
    client.call(&["SET", "c", "v"]);
    eventually("a snapshot is written", || {
        (client.info("persistence", "rdb_saves") == "1").then_some(())
    });
    assert_eq!(
        client.info("persistence", "rdb_changes_since_last_save"),
        "0"
    );
    assert!(folder.file().is_file());
}

#[test]
fn a_snapshot_in_the_background_can_be_cancelled_and_there_is_one_at_a_time() {
    let folder = Folder::new("cancelled");
    let server = folder.server();
    let mut client = server.client();
    let cancelled = client.call(&["BGSAVE", "CANCEL"]);
    assert!(matches!(cancelled, Reply::Error(why) if why.contains("not in progress")));
    for command in [&["BGSAVE", "x"][..], &["BGSAVE", "SCHEDULE", "x"]] {
        assert!(matches!(client.call(command), Reply::Error(why) if why.contains("syntax")));
    }
    let mut pipe = Vec::new();
    for i in 0..200_000 {
        pipe.extend_from_slice(format!("SET key:{i} some-value\r\n").as_bytes());
    }
    client.send(&pipe);
    (0..200_000).for_each(|_| assert_eq!(client.read(), ok()));
    client.send(b"BGSAVE\r\nBGSAVE\r\nSAVE\r\nBGSAVE CANCEL\r\n");
    assert!(matches!(client.read(), Reply::Simple(_)));
    for _ in 0..2 {
        assert!(matches!(client.read(), Reply::Error(why) if why.contains("in progress")));
    }
    assert!(matches!(client.read(), Reply::Simple(_)));
    eventually("it has ended", || {
        (client.info("persistence", "rdb_bgsave_in_progress") == "0").then_some(())
    });
    assert!(!folder.file().exists());
    assert_eq!(client.call(&["SAVE"]), ok());
}

#[test]
fn what_is_skipped_of_a_file_is_logged() {
    let folder = Folder::new("skipped");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let file = b"REDIS0011\x07\x01m\x01\x00\x01\x01l\x00\x00\x01k\x01v\xff\0\0\0\0\0\0\0\0";
    std::fs::write(folder.file(), file).expect("a file");
    let output = program(&["--dir", folder.text()])
        .stdin(Stdio::null())
        .output();
    let output = output.expect("the program runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("at byte 9 a value has the type 7"), "{said}");
    let flags = ["--dir", folder.text(), "--load-skip-unknown", "yes"];
    let server = Server::start_logged(&flags);
    let line = server.logged("loaded").remove(0);
    for text in ["keys=1", "skipped_empty=1", "skipped_unknown=1"] {
        assert!(line.contains(text), "{line}");
    }
    assert_eq!(server.client().call(&["GET", "k"]), bulk("v"));
}

#[test]
fn what_a_server_that_was_killed_has_left_is_removed() {
    let folder = Folder::new("leftovers");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    // No process has the first number; the second one runs.
    let names = [
        "dump.rdb.4000000-0.new",
        "dump.rdb.1-0.new",
        "dump.rdb.x-0.new",
        "other.4000000-0.new",
    ];
    for name in names {
        std::fs::write(folder.0.join(name), b"half").expect("a file");
    }
    let server = folder.server();
    let stays = names.map(|name| folder.0.join(name).exists());
    assert_eq!(stays, [false, true, true, true]);
    drop(server);
}
