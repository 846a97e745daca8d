//! Scripts over sockets: two event loops, and one that does not end.

use std::time::Duration;

use tidewheel_resp::Reply;

use crate::common::{Client, Server, command, error, eventually, ok, text};

const BUSY: &str = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or \
                    SHUTDOWN NOSAVE.";
const KILLED: &str = "Script killed by user";

/// Waits until a client is told that a script runs for long.
fn until_busy(client: &mut Client, words: &[&str]) {
    eventually("BUSY", || (client.call(words) == error(BUSY)).then_some(()));
}

/// The loop is inside the script, and serves its other clients all the same.
#[test]
fn the_clients_of_a_long_scripts_loop_are_refused_until_one_of_them_ends_it() {
    let server = Server::start(&["--threads", "1", "--busy-reply-threshold", "100"]);
    let mut before = server.client();
    assert_eq!(before.call(&["SET", "a", "1"]), ok());
    let mut runs = server.client();
    for body in [
        "while true do end",
        "while true do pcall(redis.call, 'get', 'a') end",
        "local function f() return pcall(f) end while true do f() end",
        "redis.call('keys', '*') while true do end",
    ] {
        runs.send(&command(&["EVAL", body, "1", "a"]));
        // A key of a shard that it has not locked expires, if there is one.
        until_busy(&mut before, &["GET", "a"]);
        let mut during = server.client();
        for words in [
            &["PING"][..],
            &["EVAL", "return 1", "0"],
            &["FLUSHALL"],
            &["SUBSCRIBE", "c"],
            &["WATCH", "a"],
            &["CONFIG", "GET", "port"],
        ] {
            assert_eq!(text(&during.call(words)), BUSY, "{words:?}");
        }
        assert!(matches!(during.call(&["HELLO", "3"]), Reply::Map(_)));
        // A transaction of commands that were refused is no more.
        let mut pipeline = Vec::new();
        for words in [&["MULTI"][..], &["GET", "a"], &["EXEC"], &["GET", "a"]] {
            pipeline.extend_from_slice(&command(words));
        }
        during.send(&pipeline);
        assert_eq!(during.read(), ok());
        assert_eq!(text(&during.read()), BUSY);
        let refused = text(&during.read());
        assert_eq!(
            refused,
            format!("EXECABORT Transaction discarded because of: {BUSY}")
        );
        assert_eq!(text(&during.read()), BUSY);
        // One that leaves meanwhile.
        drop(server.client());
        assert_eq!(during.call(&["SCRIPT", "KILL"]), ok());
        let reply = text(&runs.read());
        assert!(reply.contains(KILLED), "{body}: {reply}");
        for client in [&mut before, &mut during, &mut runs] {
            assert_eq!(text(&client.call(&["GET", "a"])), "1");
        }
        let nothing = text(&during.call(&["SCRIPT", "KILL"]));
        assert_eq!(nothing, "NOTBUSY No scripts in execution right now.");
    }
}

/// A watch is kept beside a long script: what that changes makes EXEC fail, whether it was refused
/// meanwhile or not.
#[test]
fn a_client_that_watches_is_told_of_what_a_long_script_has_changed() {
    let server = Server::start(&["--threads", "1", "--busy-reply-threshold", "20"]);
    let mut writer = server.client();
    let mut watchers: Vec<Client> = (0..6).map(|_| server.client()).collect();
    assert_eq!(writer.call(&["MSET", "a", "1", "b", "1"]), ok());
    for (at, watcher) in watchers.iter_mut().enumerate() {
        assert_eq!(watcher.call(&["WATCH", ["a", "b"][at % 2]]), ok());
    }
    let body = "redis.call('set', KEYS[1], 2) for i = 1, 1e8 do end return 'done'";
    writer.send(&command(&["EVAL", body, "1", "a"]));
    let mut other = server.client();
    until_busy(&mut other, &["PING"]);
    assert_eq!(other.call(&["WATCH", "b"]), error(BUSY));
    // The first two ask for nothing meanwhile, the next are refused, the last ones forget.
    for watcher in &mut watchers[2..] {
        assert_eq!(watcher.call(&["GET", "b"]), error(BUSY));
    }
    for watcher in &mut watchers[4..] {
        assert_eq!(watcher.call(&["UNWATCH"]), ok());
    }
    assert_eq!(text(&writer.read()), "done");
    for (at, watcher) in watchers.iter_mut().enumerate() {
        assert_eq!(watcher.call(&["MULTI"]), ok());
        assert_eq!(text(&watcher.call(&["GET", "a"])), "QUEUED");
        let expected = match at {
            0 | 2 => Reply::Null,
            _ => Reply::Array(vec![Reply::Bulk(b"2".to_vec())]),
        };
        assert_eq!(watcher.call(&["EXEC"]), expected, "watcher {at}");
    }
    // What was refused was not watched.
    assert_eq!(writer.call(&["SET", "b", "2"]), ok());
    for words in [&["MULTI"][..], &["PING"]] {
        other.call(words);
    }
    assert!(matches!(other.call(&["EXEC"]), Reply::Array(_)));
}

/// What a client has sent before, and the rest of a command that comes in pieces, is answered in
/// order.
#[test]
fn input_that_comes_beside_a_long_script_is_answered_in_order() {
    let server = Server::start(&["--threads", "1", "--busy-reply-threshold", "50"]);
    let (mut runs, mut other) = (server.client(), server.client());
    let mut pipeline = command(&["SET", "a", "1"]);
    pipeline.extend_from_slice(&command(&["EVAL", "while true do end", "0"]));
    pipeline.extend_from_slice(&command(&["GET", "a"]));
    runs.send(&pipeline);
    until_busy(&mut other, &["PING"]);
    let set = command(&["SET", "b", &"x".repeat(300_000)]);
    let (first, rest) = set.split_at(200_000);
    other.send(first);
    std::thread::sleep(Duration::from_millis(20));
    other.send(rest);
    assert_eq!(text(&other.read()), BUSY);
    // Half of it comes beside the script, half of it afterwards.
    other.send(first);
    runs.send(&command(&["GET", "b"]));
    let mut kills = server.client();
    assert_eq!(kills.call(&["SCRIPT", "KILL"]), ok());
    other.send(rest);
    assert_eq!(other.read(), ok());
    assert_eq!(runs.read(), ok());
    assert!(text(&runs.read()).contains(KILLED));
    assert_eq!(text(&runs.read()), "1");
    assert!(matches!(runs.read(), Reply::Null | Reply::Bulk(_)));
}

/// Time stands still for keys, also when others were served beside the script.
#[test]
fn a_long_script_sees_its_keys_at_one_time() {
    let server = Server::start(&["--threads", "1", "--busy-reply-threshold", "20"]);
    let mut runs = server.client();
    let body = "redis.call('SET', KEYS[1], 'v', 'PX', 60000) \
                local first = redis.call('PTTL', KEYS[1]) for i = 1, 3e7 do end \
                return {first == redis.call('PTTL', KEYS[1])}";
    runs.send(&command(&["EVAL", body, "1", "k"]));
    let mut other = server.client();
    while other.call(&["PING"]) == error(BUSY) {}
    assert_eq!(runs.read(), Reply::Array(vec![Reply::Integer(1)]));
}

/// PING and other commands that the server runs itself counted as changes of data.
#[test]
fn a_long_script_that_has_only_told_something_can_be_killed() {
    let server = Server::start(&["--threads", "1", "--busy-reply-threshold", "20"]);
    for call in ["'ping'", "'publish', 'news', 'x'", "'echo', 'a'"] {
        let (mut runs, mut other) = (server.client(), server.client());
        let endless = format!("while true do redis.pcall({call}) end");
        runs.send(&command(&["EVAL", &endless, "0"]));
        until_busy(&mut other, &["GET", "a"]);
        assert_eq!(other.call(&["SCRIPT", "KILL"]), ok(), "{call}");
        assert!(text(&runs.read()).contains(KILLED));
    }
}

#[test]
fn a_long_script_that_has_changed_data_is_ended_with_the_server_only() {
    for threads in ["1", "2"] {
        let mut server = Server::start(&["--threads", threads, "--busy-reply-threshold", "50"]);
        let (mut runs, mut other) = (server.client(), server.client());
        let endless = "redis.call('set', KEYS[1], 1) while true do end";
        runs.send(&command(&["EVAL", endless, "1", "a"]));
        until_busy(&mut other, &["GET", "a"]);
        let reply = text(&other.call(&["SCRIPT", "KILL"]));
        assert!(reply.starts_with("UNKILLABLE"), "{reply}");
        assert_eq!(text(&other.call(&["GET", "a"])), BUSY);
        other.send(&command(&["SHUTDOWN", "NOSAVE"]));
        assert!(server.wait().success());
    }
}

/// Only those are refused who need what a long script has.
#[test]
fn other_loops_and_other_shards_go_on_beside_a_long_script() {
    let server = Server::start(&["--threads", "2", "--busy-reply-threshold", "200"]);
    let endless = "redis.call('get', KEYS[1]) while true do end";
    // Its first runs have all shards.
    let mut clients: Vec<Client> = (0..6).map(|_| server.client()).collect();
    let brief = "redis.call('get', KEYS[1]) if ARGV[1] == 'x' then while true do end end return 1";
    for _ in 0..5 {
        assert_eq!(
            clients[0].call(&["EVAL", brief, "1", "a", "y"]),
            Reply::Integer(1)
        );
    }
    for round in 0..2 {
        // Clients of both loops run it.
        let mut runs = clients.swap_remove(round);
        let (learned, body): (bool, &[&str]) = match round {
            0 => (true, &["EVAL", brief, "1", "a", "x"]),
            _ => (false, &["EVAL", endless, "1", "a"]),
        };
        runs.send(&command(body));
        // Some have parked before it is long, and are told then.
        std::thread::sleep(Duration::from_millis(50));
        for client in &mut clients {
            client.send(&command(&["INCR", "a"]));
        }
        for client in &mut clients {
            assert_eq!(text(&client.read()), BUSY);
        }
        let mut during: Vec<Client> = (0..6).map(|_| server.client()).collect();
        for client in &mut during {
            for words in [
                &["GET", "a"][..],
                &["FLUSHALL"],
                &["DBSIZE"],
                &["KEYS", "*"],
            ] {
                assert_eq!(text(&client.call(words)), BUSY, "{words:?}");
            }
            // New connections are the other loop's.
            assert_eq!(text(&client.call(&["PING"])), "PONG");
            if learned {
                for i in 0..200 {
                    let key = format!("key:{i}");
                    let reply = text(&client.call(&["SET", &key, "1", "PX", "100"]));
                    assert!(reply == "OK" || reply == BUSY, "{reply}");
                }
            }
        }
        if learned {
            let mut client = server.client();
            let set: usize = (0..200)
                .filter(|i| {
                    let key = format!("key:{i}");
                    text(&client.call(&["SET", &key, "1", "PX", "20"])) == "OK"
                })
                .count();
            assert!(set > 150, "{set}");
            // They leave although one of the loops does not end its turn.
            eventually("all to expire", || {
                let expired = client.info("stats", "expired_keys").parse::<usize>();
                (expired.unwrap() >= set).then_some(())
            });
        }
        let killer = round % during.len();
        assert_eq!(during[killer].call(&["SCRIPT", "KILL"]), ok());
        assert!(text(&runs.read()).contains(KILLED));
        for client in clients.iter_mut().chain(&mut during) {
            assert_eq!(text(&client.call(&["PING"])), "PONG");
            assert_eq!(client.call(&["DEL", "a"]), Reply::Integer(0));
        }
        clients.append(&mut during);
    }
}

/// A script that has everything keeps all loops out of the data, but they answer.
#[test]
fn all_loops_answer_beside_a_long_script_that_has_the_whole_keyspace() {
    let server = Server::start(&["--threads", "3", "--busy-reply-threshold", "100"]);
    let mut clients: Vec<Client> = (0..6).map(|_| server.client()).collect();
    for body in [
        "redis.call('keys', '*') while true do end",
        "while true do redis.call('dbsize') end",
    ] {
        for within_exec in [false, true] {
            let mut runs = clients.remove(0);
            // It waits, and leaves meanwhile.
            let mut waits = server.client();
            waits.send(&command(&["BLPOP", "list", "0"]));
            if within_exec {
                assert_eq!(runs.call(&["MULTI"]), ok());
                assert_eq!(text(&runs.call(&["EVAL", body, "0"])), "QUEUED");
                runs.send(&command(&["EXEC"]));
            } else {
                runs.send(&command(&["EVAL", body, "0"]));
            }
            std::thread::sleep(Duration::from_millis(30));
            // All of these wait until it is long.
            for client in &mut clients {
                client.send(&command(&["SET", "a", "1"]));
                client.send(&command(&["FLUSHALL"]));
            }
            for client in &mut clients {
                // One may have been run before the script had everything.
                for _ in 0..2 {
                    let reply = text(&client.read());
                    assert!(reply == BUSY || reply == "OK", "{reply}");
                }
            }
            for client in &mut clients {
                until_busy(client, &["GET", "a"]);
            }
            drop(waits);
            let mut during: Vec<Client> = (0..6).map(|_| server.client()).collect();
            for client in &mut during {
                assert_eq!(client.call(&["PING"]), error(BUSY));
            }
            assert_eq!(during[1].call(&["SCRIPT", "KILL"]), ok());
            let reply = match runs.read() {
                Reply::Array(replies) => text(&replies[0]),
                reply => text(&reply),
            };
            assert!(reply.contains(KILLED), "{body}: {reply}");
            for client in clients.iter_mut().chain(&mut during) {
                eventually("the end", || {
                    (text(&client.call(&["PING"])) == "PONG").then_some(())
                });
            }
            assert_eq!(clients[0].call(&["FLUSHALL"]), ok());
            // Nobody waits for the list any more.
            eventually("the one who has left to be gone", || {
                (clients[0].info("clients", "blocked_clients") == "0").then_some(())
            });
            clients.push(runs);
        }
    }
}

/// The process could not be stopped but by force.
#[test]
fn a_server_stops_although_a_script_that_has_changed_data_does_not_end() {
    let mut server = Server::start(&["--threads", "1", "--busy-reply-threshold", "0"]);
    let mut client = server.client();
    let endless = "redis.call('set', 'a', 1) while true do end";
    client.send(&command(&["EVAL", endless, "0"]));
    std::thread::sleep(Duration::from_millis(200));
    server.signal(rustix::process::Signal::TERM);
    assert!(server.wait().success());
}

/// What two loops' scripts move between keys is neither lost nor doubled.
#[test]
fn scripts_of_two_loops_are_atomic() {
    const ACCOUNTS: usize = 8;
    let server = Server::start(&["--threads", "2"]);
    let mut client = server.client();
    for account in 0..ACCOUNTS {
        assert_eq!(client.call(&["SET", &format!("a{account}"), "100"]), ok());
    }
    let moves = "if tonumber(redis.call('get', KEYS[1])) > 0 then redis.call('decr', KEYS[1]) \
                 redis.call('incr', KEYS[2]) end return 1";
    let sum =
        "local sum = 0 for i = 0, 7 do sum = sum + redis.call('get', 'a' .. i) end return sum";
    std::thread::scope(|scope| {
        for seed in 1..=4_usize {
            let mut client = server.client();
            scope.spawn(move || {
                let mut random = seed * 7919;
                for _ in 0..300 {
                    random = (random * 1_103_515_245 + 12_345) % (1 << 31);
                    let (from, to) = (random / 8 % ACCOUNTS, random / 64 % ACCOUNTS);
                    let keys = [format!("a{from}"), format!("a{to}")];
                    let reply = client.call(&["EVAL", moves, "2", &keys[0], &keys[1]]);
                    assert_eq!(reply, Reply::Integer(1));
                    assert_eq!(client.call(&["EVAL", sum, "0"]), Reply::Integer(800));
                }
            });
        }
    });
}

/// The field of a command's line in INFO commandstats.
fn counted(client: &mut Client, command: &str) -> (String, String, String) {
    let line = client.info("commandstats", &format!("cmdstat_{command}"));
    let field = |name: &str| {
        let part = line.split(',').find_map(|part| part.strip_prefix(name));
        part.unwrap_or_else(|| panic!("{name} in {line}"))
            .to_owned()
    };
    (
        field("calls="),
        field("rejected_calls="),
        field("failed_calls="),
    )
}

#[test]
fn an_error_of_a_call_is_counted_once_and_at_both_commands() {
    let server = Server::start(&["--threads", "1"]);
    let mut client = server.client();
    let of = |calls: &str, rejected: &str, failed: &str| {
        (calls.to_owned(), rejected.to_owned(), failed.to_owned())
    };
    for (body, eval) in [
        ("return redis.call('select', 99)", of("1", "0", "1")),
        ("return redis.pcall('select', 99)", of("1", "0", "1")),
        ("redis.pcall('select', 99) return 1", of("1", "0", "0")),
    ] {
        client.call(&["CONFIG", "RESETSTAT"]);
        client.call(&["EVAL", body, "0"]);
        assert_eq!(client.info("stats", "total_error_replies"), "1", "{body}");
        assert_eq!(client.info("errorstats", "errorstat_ERR"), "count=1");
        assert_eq!(counted(&mut client, "select"), of("1", "0", "1"), "{body}");
        assert_eq!(counted(&mut client, "eval"), eval, "{body}");
    }
    client.call(&["CONFIG", "RESETSTAT"]);
    client.call(&["EVAL_RO", "return redis.call('set', 'a', 1)", "0"]);
    client.call(&["EVAL", "redis.pcall('nothing') error('mine')", "0"]);
    assert_eq!(client.info("stats", "total_error_replies"), "3");
    assert_eq!(counted(&mut client, "set"), of("0", "1", "0"));
    assert_eq!(counted(&mut client, "eval_ro"), of("1", "0", "1"));
}

#[test]
fn a_pause_of_writes_lets_scripts_pass_that_say_they_do_not_write() {
    let server = Server::start(&["--threads", "1"]);
    let (mut boss, mut client) = (server.client(), server.client());
    let reads = "#!lua flags=no-writes\nreturn redis.call('get', 'a')";
    let library = "#!lua name=f\nredis.register_function{function_name='f', \
                   callback=function() return 1 end, flags={'no-writes'}}";
    assert_eq!(text(&boss.call(&["FUNCTION", "LOAD", library])), "f");
    assert_eq!(boss.call(&["CLIENT", "PAUSE", "60000", "WRITE"]), ok());
    assert_eq!(client.call(&["EVAL", reads, "0"]), Reply::Null);
    let name = text(&client.call(&["SCRIPT", "LOAD", reads]));
    assert_eq!(client.call(&["EVALSHA", &name, "0"]), Reply::Null);
    assert_eq!(client.call(&["FCALL", "f", "0"]), Reply::Integer(1));
    client.call(&["MULTI"]);
    client.call(&["EVAL", reads, "0"]);
    assert_eq!(client.call(&["EXEC"]), Reply::Array(vec![Reply::Null]));
    for body in ["return 1", "#!lua\nreturn 1"] {
        let mut held = server.client();
        held.send(&command(&["EVAL", body, "0"]));
        eventually("it waits", || {
            (boss.info("clients", "blocked_clients") == "1").then_some(())
        });
        assert_eq!(boss.call(&["CLIENT", "UNPAUSE"]), ok());
        assert_eq!(held.read(), Reply::Integer(1));
        assert_eq!(boss.call(&["CLIENT", "PAUSE", "60000", "WRITE"]), ok());
    }
}

#[test]
fn a_set_that_a_script_sorts_by_nothing_is_in_order() {
    let server = Server::start(&["--threads", "1"]);
    let mut client = server.client();
    client.call(&["SADD", "s", "c", "aa", "b", "a", "azz"]);
    let sorted = client.call(&[
        "EVAL",
        "return redis.call('sort', 's', 'by', '_')",
        "1",
        "s",
    ]);
    let Reply::Array(sorted) = sorted else {
        panic!("{sorted:?}");
    };
    let sorted: Vec<String> = sorted.iter().map(text).collect();
    assert_eq!(sorted, ["a", "aa", "azz", "b", "c"]);
}

#[test]
fn scripts_call_debug_protocol_when_they_are_let() {
    let server = Server::start(&["--threads", "1", "--enable-debug-command", "yes"]);
    let mut client = server.client();
    let body = "return redis.call('debug', 'protocol', 'integer')";
    assert!(text(&client.call(&["EVAL", body, "0"])).contains("not allowed from script"));
    assert_eq!(
        client.call(&["DEBUG", "SET-DISABLE-DENY-SCRIPTS", "1"]),
        ok()
    );
    assert_eq!(client.call(&["EVAL", body, "0"]), Reply::Integer(12_345));
    let sleeps = "return redis.call('debug', 'sleep', '0')";
    assert_eq!(client.call(&["EVAL", sleeps, "0"]), ok());
    let other = "return redis.call('debug', 'error', 'E')";
    assert!(text(&client.call(&["EVAL", other, "0"])).contains("not allowed from script"));
}

#[test]
fn a_script_that_has_changed_data_goes_on_although_memory_is_full() {
    let server = Server::start(&["--threads", "1"]);
    let mut client = server.client();
    assert_eq!(client.call(&["CONFIG", "SET", "maxmemory", "1"]), ok());
    let adds = "return redis.call('set', 'a', 'b')";
    assert!(text(&client.call(&["EVAL", adds, "1", "a"])).starts_with("OOM"));
    let removes_first = "redis.call('del', 'a') return redis.call('set', 'a', 'b')";
    assert_eq!(client.call(&["EVAL", removes_first, "1", "a"]), ok());
}

/// A pause of writes lets them pass, and holds back what replicas would be told.
#[test]
fn a_script_that_only_reads_publishes_nothing() {
    let server = Server::start(&["--threads", "1"]);
    let mut client = server.client();
    let body = "return redis.call('publish', 'c', 'm')";
    let refused = text(&client.call(&["EVAL_RO", body, "0"]));
    assert!(
        refused.starts_with("ERR Write commands are not allowed from read-only scripts."),
        "{refused}"
    );
    assert_eq!(client.call(&["EVAL", body, "0"]), Reply::Integer(0));
}

/// Time stands still in a script, so it waited for ever.
#[test]
fn a_script_that_waits_by_time_ends_once_it_has_run_for_long() {
    let server = Server::start(&["--busy-reply-threshold", "50"]);
    let mut client = server.client();
    let script = "local function now() local t = redis.call('TIME') return t[1] + t[2] / 1e6 end \
                  local begun = now() \
                  for _ = 1, 1000 do if now() ~= begun then return 0 end end \
                  while now() < begun + 0.2 do end return 1";
    assert_eq!(client.call(&["EVAL", script, "0"]), Reply::Integer(1));
}
