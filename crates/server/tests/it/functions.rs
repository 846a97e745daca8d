//! Functions over sockets: replies as on Redis 8.2, payloads both ways, two event loops.

use std::io::{Read, Write};
use std::time::Duration;

use tidewheel_resp::Reply;

use crate::common::{Client, PATIENCE, Server, command, error, eventually, ok, text};

/// `functions.txt` has calls, in order, and their replies, byte by byte: a call behind `>`, whose
/// words have no blanks or are in `«»` (a `¶` in it is a line end), the reply in RESP2 behind `2`,
/// that in RESP3 behind `3` if it is another one.
#[test]
fn functions_answer_as_on_redis() {
    let server = Server::start(&["--threads", "1"]);
    let mut wrong = Vec::new();
    let mut count = 0;
    for protocol in ["2", "3"] {
        let mut client = server.client();
        client.call(&["HELLO", protocol]);
        client.call(&["FLUSHALL"]);
        for case in include_str!("functions.txt").split("\n> ").skip(1) {
            let mut lines = case.lines();
            let call = lines.next().unwrap();
            let mut expected = lines.next().unwrap().strip_prefix("2 ").unwrap();
            if protocol == "3"
                && let Some(other) = lines.next().and_then(|line| line.strip_prefix("3 "))
            {
                expected = other;
            }
            let words = words_of(call);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let reply = raw(&mut client, &words);
            if reply != expected {
                wrong.push(format!("{call}\n  got      {reply}\n  expected {expected}"));
            }
            count += 1;
        }
    }
    assert!(count > 350, "{count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn words_of(call: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = call;
    while !rest.is_empty() {
        let (word, more) = match rest.strip_prefix('«') {
            Some(quoted) => quoted.split_once('»').unwrap(),
            None => rest.split_at(rest.find(' ').unwrap_or(rest.len())),
        };
        words.push(word.replace('¶', "\n"));
        rest = more.trim_start();
    }
    words
}

/// The bytes of a reply, with those that cannot be printed escaped.
fn raw(client: &mut Client, words: &[&str]) -> String {
    client.stream.write_all(&command(words)).unwrap();
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    while bytes.is_empty() || Reply::read(&bytes).unwrap().is_none() {
        let len = client.stream.read(&mut chunk).unwrap();
        assert_ne!(len, 0, "the end of the stream");
        bytes.extend_from_slice(&chunk[..len]);
    }
    bytes.escape_ascii().to_string()
}

const SUM: &str = "#!lua name=sums\n\
    redis.register_function('add', function(keys, args)\n\
        return redis.call('incrby', keys[1], args[1])\n\
    end)\n\
    redis.register_function{function_name='sum', flags={'no-writes'}, callback=function(keys)\n\
        local sum = 0\n\
        for _, key in ipairs(keys) do sum = sum + (redis.call('get', key) or 0) end\n\
        return sum\n\
    end}";

/// Each loop has a Lua state of its own; all of them know the same libraries.
#[test]
fn what_one_loop_loads_all_loops_call() {
    let server = Server::start(&["--threads", "4"]);
    let mut clients: Vec<Client> = (0..16).map(|_| server.client()).collect();
    assert_eq!(text(&clients[0].call(&["FUNCTION", "LOAD", SUM])), "sums");
    for (i, client) in (1..).zip(&mut clients) {
        let reply = client.call(&["FCALL", "add", "1", "n", "2"]);
        assert_eq!(reply, Reply::Integer(2 * i));
        let reply = client.call(&["FCALL_RO", "sum", "2", "n", "n"]);
        assert_eq!(reply, Reply::Integer(4 * i));
    }
    let other = "#!lua name=sums\nredis.register_function('one', function() return 1 end)";
    let loaded = clients[7].call(&["FUNCTION", "LOAD", "REPLACE", other]);
    assert_eq!(text(&loaded), "sums");
    for client in &mut clients {
        assert_eq!(client.call(&["FCALL", "one", "0"]), Reply::Integer(1));
        let gone = text(&client.call(&["FCALL", "add", "1", "n", "2"]));
        assert_eq!(gone, "ERR Function not found");
    }
    assert_eq!(clients[3].call(&["FUNCTION", "DELETE", "sums"]), ok());
    for client in &mut clients {
        let gone = text(&client.call(&["FCALL", "one", "0"]));
        assert_eq!(gone, "ERR Function not found");
    }
    assert_eq!(clients[0].info("memory", "number_of_libraries"), "0");
}

#[test]
fn functions_run_within_transactions() {
    let server = Server::start(&[]);
    let mut client = server.client();
    for words in [
        &["MULTI"][..],
        &["FUNCTION", "LOAD", SUM],
        &["SET", "n", "1"],
        &["FCALL", "add", "1", "n", "2"],
        &["FCALL", "no", "0"],
        &["FUNCTION", "FLUSH"],
        &["FCALL", "add", "1", "n", "2"],
    ] {
        client.call(words);
    }
    let not_found = || Reply::Error("ERR Function not found".to_owned());
    let expected = [
        Reply::Bulk(b"sums".to_vec()),
        ok(),
        Reply::Integer(3),
        not_found(),
        ok(),
        not_found(),
    ];
    assert_eq!(client.call(&["EXEC"]), Reply::Array(expected.into()));
}

/// What a library keeps in local variables lasts for as long as the library does.
#[test]
fn a_flush_of_scripts_leaves_functions_as_they_are() {
    let server = Server::start(&["--threads", "1"]);
    let mut client = server.client();
    let code = "#!lua name=counts\nlocal n = 0\n\
                redis.register_function('count', function() n = n + 1 return n end)";
    assert_eq!(text(&client.call(&["FUNCTION", "LOAD", code])), "counts");
    for n in 1..5 {
        assert_eq!(client.call(&["FCALL", "count", "0"]), Reply::Integer(n));
        assert_eq!(client.call(&["EVAL", "return 7", "0"]), Reply::Integer(7));
        assert_eq!(client.call(&["SCRIPT", "FLUSH"]), ok());
    }
}

/// A function that reaches for keys which it has not declared begins again with more locks.
#[test]
fn functions_of_two_loops_are_atomic() {
    let server = Server::start(&["--threads", "2"]);
    let code = "#!lua name=moves\n\
        redis.register_function('move', function(keys)\n\
            redis.call('decr', keys[1])\n\
            return redis.call('incr', keys[2])\n\
        end)\n\
        redis.register_function('sum', function()\n\
            local sum = 0\n\
            for i = 0, 7 do sum = sum + (redis.call('get', 'a' .. i) or 0) end\n\
            return sum\n\
        end)";
    let loaded = server.client().call(&["FUNCTION", "LOAD", code]);
    assert_eq!(text(&loaded), "moves");
    std::thread::scope(|scope| {
        for seed in 1..=4_usize {
            let mut client = server.client();
            scope.spawn(move || {
                let mut random = seed * 7919;
                for _ in 0..300 {
                    random = (random * 1_103_515_245 + 12_345) % (1 << 31);
                    let from = format!("a{}", random / 8 % 8);
                    let to = format!("a{}", random / 64 % 8);
                    let moved = client.call(&["FCALL", "move", "2", &from, &to]);
                    assert!(matches!(moved, Reply::Integer(_)), "{moved:?}");
                    let sum = client.call(&["FCALL", "sum", "0"]);
                    assert_eq!(sum, Reply::Integer(0));
                }
            });
        }
    });
}

/// What `redis-server` 8.2.3 answered to FUNCTION DUMP, with one library.
const DUMPED: &str = "f5404223216c7561206e616d653d610a72656469732e72656769737465725f66756e6374696f6e\
                      282766272c2066756e6374696f6e28292072657475726e203120656e6429";

/// A payload is restored as a whole or not at all.
#[test]
fn libraries_are_dumped_and_restored() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let f = "#!lua name=a\nredis.register_function('f', function() return 1 end)";
    let g = "#!lua name=b\nredis.register_function('g', function() return 2 end)";
    let g_in_c = "#!lua name=c\nredis.register_function('g', function() return 3 end)";
    let load = |client: &mut Client, code: &str| {
        text(&client.call(&["FUNCTION", "LOAD", code]));
    };
    let dump = |client: &mut Client| match client.call(&["FUNCTION", "DUMP"]) {
        Reply::Bulk(payload) => payload,
        other => panic!("{other:?}"),
    };
    let restore = |client: &mut Client, payload: &[u8], policy: &str| {
        let head = format!(
            "*4\r\n$8\r\nFUNCTION\r\n$7\r\nRESTORE\r\n${}\r\n",
            payload.len()
        );
        let tail = format!("\r\n${}\r\n{policy}\r\n", policy.len());
        client.send(&[head.as_bytes(), payload, tail.as_bytes()].concat());
        text(&client.read())
    };
    load(&mut client, f);
    let only_a = dump(&mut client);
    let hex: String = only_a.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(hex.starts_with(DUMPED), "{hex}");
    load(&mut client, g);
    let both = dump(&mut client);
    client.call(&["FUNCTION", "FLUSH"]);
    load(&mut client, g_in_c);

    let why = restore(&mut client, &both, "APPEND");
    assert_eq!(why, "ERR Function g already exists");
    let gone = text(&client.call(&["FCALL", "f", "0"]));
    assert_eq!(gone, "ERR Function not found");
    assert_eq!(client.call(&["FCALL", "g", "0"]), Reply::Integer(3));
    assert_eq!(restore(&mut client, &only_a, "APPEND"), "OK");
    assert_eq!(client.call(&["FCALL", "f", "0"]), Reply::Integer(1));
    let why = restore(&mut client, &only_a, "APPEND");
    assert_eq!(why, "ERR Library a already exists");
    assert_eq!(restore(&mut client, &only_a, "REPLACE"), "OK");
    assert_eq!(restore(&mut client, &both, "FLUSH"), "OK");
    assert_eq!(client.call(&["FCALL", "g", "0"]), Reply::Integer(2));
    assert_eq!(dump(&mut client), both);

    // Both change their names in one step.
    let swapped = [f.replace("name=a", "name=b"), g.replace("name=b", "name=a")];
    client.call(&["FUNCTION", "FLUSH"]);
    swapped.iter().for_each(|code| load(&mut client, code));
    assert_eq!(restore(&mut client, &both, "REPLACE"), "OK");
    assert_eq!(dump(&mut client), both);

    for at in 0..both.len() {
        let mut wrong = both.clone();
        wrong[at] ^= 1;
        let why = restore(&mut client, &wrong, "FLUSH");
        assert_eq!(why, "ERR DUMP payload version or checksum are wrong");
    }
    assert_eq!(client.call(&["FCALL", "g", "0"]), Reply::Integer(2));
}

/// Whoever looks for what holds a server up finds its name.
#[test]
fn a_function_that_runs_for_long_is_shown_and_killed() {
    let server = Server::start(&["--threads", "2", "--busy-reply-threshold", "0"]);
    let mut clients: Vec<Client> = (0..8).map(|_| server.client()).collect();
    let code = "#!lua name=slow\n\
                redis.register_function('slow', function() while true do end end)";
    assert_eq!(text(&clients[0].call(&["FUNCTION", "LOAD", code])), "slow");
    let mut runs = clients.remove(0);
    runs.send(&command(&["FCALL", "slow", "1", "k", "a b"]));
    let mut other = clients
        .into_iter()
        .find_map(|mut client| {
            client.send(&command(&["PING"]));
            let patience = Some(Duration::from_millis(200));
            client.stream.set_read_timeout(patience).unwrap();
            client.stream.peek(&mut [0]).is_ok().then_some(client)
        })
        .expect("a client of the other loop");
    other.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(text(&other.read()), "PONG");
    let shown = loop {
        let stats = raw(&mut other, &["FUNCTION", "STATS"]);
        if stats.contains("duration_ms") {
            break stats;
        }
    };
    let named = r"$4\r\nname\r\n$4\r\nslow\r\n$7\r\ncommand\r\n*5\r\n$5\r\nFCALL\r\n$4\r\nslow\r\n";
    assert!(shown.contains(named), "{shown}");
    let why = text(&other.call(&["SCRIPT", "KILL"]));
    assert!(why.contains("You can only call FUNCTION KILL"), "{why}");
    assert_eq!(other.call(&["FUNCTION", "KILL"]), ok());
    let why = text(&runs.read());
    assert!(why.contains("Script killed by user"), "{why}");
    let why = text(&other.call(&["FUNCTION", "KILL"]));
    assert!(why.starts_with("NOTBUSY"), "{why}");
}

/// Who is refused learns from BUSY which of the two ends what runs.
#[test]
fn busy_names_what_ends_a_long_function() {
    let busy = |what: &str| {
        let by = "You can only call";
        format!("BUSY Redis is busy running a script. {by} {what} KILL or SHUTDOWN NOSAVE.")
    };
    let until_busy = |client: &mut Client, what| {
        let expected = error(&busy(what));
        eventually("BUSY", || {
            (client.call(&["GET", "k"]) == expected).then_some(())
        });
    };
    for threads in ["1", "2"] {
        let server = Server::start(&["--threads", threads, "--busy-reply-threshold", "50"]);
        let (mut runs, mut other) = (server.client(), server.client());
        let code = "#!lua name=slow\n\
            redis.register_function('slow', function() while true do end end)\n\
            redis.register_function('slow_set', function(keys)\n\
                redis.call('set', keys[1], 1) while true do end end)";
        assert_eq!(text(&runs.call(&["FUNCTION", "LOAD", code])), "slow");
        let (function, script) = (["FUNCTION", "KILL"], ["SCRIPT", "KILL"]);
        let fcall = &["FCALL", "slow", "1", "k"];
        let eval = &["EVAL", "while true do end", "1", "k"];
        for (call, what, ends, others) in [
            (fcall, "FUNCTION", function, script),
            (eval, "SCRIPT", script, function),
        ] {
            runs.send(&command(call));
            until_busy(&mut other, what);
            let stats = raw(&mut other, &["FUNCTION", "STATS"]);
            assert_eq!(stats.contains("duration_ms"), what == "FUNCTION", "{stats}");
            assert_eq!(text(&other.call(&others)), busy(what));
            assert_eq!(other.call(&ends), ok());
            let why = text(&runs.read());
            assert!(why.contains("Script killed by user"), "{why}");
            assert_eq!(other.call(&["GET", "k"]), Reply::Null);
        }
        runs.send(&command(&["FCALL", "slow_set", "1", "k"]));
        until_busy(&mut other, "FUNCTION");
        for kill in [function, script] {
            let why = text(&other.call(&kill));
            assert!(why.starts_with("UNKILLABLE"), "{why}");
        }
    }
}

/// As Valkey names it.
#[test]
fn the_table_redis_is_also_called_server() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let code = "#!lua name=lib\n\
        server.register_function('f', function() return server.call('ping') end)";
    assert_eq!(text(&client.call(&["FUNCTION", "LOAD", code])), "lib");
    assert_eq!(text(&client.call(&["FCALL", "f", "0"])), "PONG");
}

/// The bound of memory holds for what scripts and functions add, whatever the policy.
#[test]
fn no_function_adds_data_beyond_maxmemory() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let code = "#!lua name=lib\n\
        redis.register_function('set', function(keys) return redis.call('set', keys[1], 1) end)\n\
        redis.register_function{function_name='try', flags={'allow-oom'}, callback=function(keys)\n\
            return redis.call('set', keys[1], 1)\n\
        end}";
    assert_eq!(text(&client.call(&["FUNCTION", "LOAD", code])), "lib");
    assert_eq!(client.call(&["CONFIG", "SET", "maxmemory", "1"]), ok());
    let refused = "OOM command not allowed when used memory > 'maxmemory'.";
    assert_eq!(text(&client.call(&["FCALL", "set", "1", "k"])), refused);
    assert_eq!(
        text(&client.call(&["FUNCTION", "LOAD", "REPLACE", code])),
        refused
    );
    assert_eq!(client.call(&["FCALL", "try", "1", "k"]), ok());
    let script = "return redis.call('set', KEYS[1], 1)";
    let why = text(&client.call(&["EVAL", script, "1", "k"]));
    assert!(why.starts_with(refused), "{why}");
}
