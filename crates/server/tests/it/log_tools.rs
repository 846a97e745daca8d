//! `tidewheel log print` and `tidewheel log repair`, as users run them.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use rustix::process::Signal;

use tidewheel_engines::Engine;

use crate::common::{Client, Folder, Reply, Server, bulk};

fn start(folder: &Folder) -> Server {
    start_with(folder, &[])
}

fn start_with(folder: &Folder, more: &[&str]) -> Server {
    let flags = ["--dir", folder.text(), "--appendonly", "yes"];
    let always = ["--appendfsync", "always"];
    let server = Server::start_logged(&[&flags[..], &always, more].concat());
    server.logged("loaded the log");
    server
}

fn kill(mut server: Server) {
    server.signal(Signal::KILL);
    server.wait();
}

fn log_of(folder: &Folder) -> PathBuf {
    folder.0.join("log")
}

fn tool(words: &[&str], folder: &Folder) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidewheel"));
    command.arg("log").args(words).arg(log_of(folder));
    let output = command.stdin(Stdio::null()).output();
    output.expect("the tool runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn each_record_has_a_line_while_the_server_runs() {
    let folder = Folder::new("log-lines");
    let server = start(&folder);
    let mut client = server.client();
    client.call(&["SET", "tea", "hot\n", "PX", "100000"]);
    client.call(&["GET", "tea"]);
    client.call(&["SELECT", "3"]);
    for words in [&["MULTI"][..], &["INCR", "a"], &["INCR", "b"], &["EXEC"]] {
        client.call(words);
    }
    let printed = tool(&["print", "--human"], &folder);
    assert!(printed.status.success(), "{printed:?}");
    let said = text(&printed.stdout);
    let mut columns = said.lines().map(|line| line.split_once('\t').expect("two"));
    assert!(columns.clone().all(|(time, _)| time.ends_with('Z')));
    let expected = [
        r#"0	-	SET "tea" "hot\n" "PX" "100000""#,
        r#"3	+	INCR "a""#,
        r#"3	-	INCR "b""#,
    ];
    assert!(
        columns.by_ref().map(|(_, rest)| rest).eq(expected),
        "{said}"
    );
    assert_eq!(text(&printed.stderr), "");
    client.call(&["INCR", "c"]);
}

#[test]
fn a_damaged_log_is_cut_where_it_is_damaged_and_starts_again() {
    let folder = Folder::new("log-repair");
    let server = start(&folder);
    let mut client = server.client();
    for key in ["first", "second", "third"] {
        client.call(&["SET", key, &"v".repeat(100)]);
    }
    let busy = tool(&["repair", "--yes"], &folder);
    assert!(busy.status.success(), "nothing is damaged");
    kill(server);
    let segment = log_of(&folder).join("segment-1");
    let mut bytes = std::fs::read(&segment).expect("a file");
    let at = bytes
        .windows(6)
        .position(|six| six == b"second")
        .expect("it is there");
    bytes[at] ^= 1;
    std::fs::write(&segment, bytes).expect("a file");

    let printed = tool(&["print", "--human"], &folder);
    assert_eq!(printed.status.code(), Some(1));
    assert!(
        text(&printed.stdout).contains("first"),
        "what is in front is printed"
    );
    assert!(text(&printed.stderr).contains("segment-1 is damaged at byte"));

    let refused = tool(&["repair"], &folder);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("say --yes"));
    assert!(!log_of(&folder).join("segment-1.damaged").exists());

    let repaired = tool(&["repair", "--yes"], &folder);
    assert!(repaired.status.success(), "{repaired:?}");
    let said = text(&repaired.stdout);
    assert!(said.contains("are in segment-1.damaged now"), "{said}");
    assert!(log_of(&folder).join("segment-1.damaged").exists());

    let server = start(&folder);
    let mut client = server.client();
    assert_eq!(client.call(&["GET", "first"]), bulk(&"v".repeat(100)));
    assert_eq!(client.call(&["DBSIZE"]), Reply::Integer(1));
}

#[test]
fn a_log_that_is_in_use_is_not_cut_and_what_is_no_log_is_an_error() {
    let folder = Folder::new("log-none");
    for words in [&["print"][..], &["repair", "--yes"]] {
        let output = tool(words, &folder);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(!folder.0.exists(), "nothing is made");
    }
    let server = start(&folder);
    server.client().call(&["SET", "k", "v"]);
    let manifest = log_of(&folder).join("segment-1");
    let mut bytes = std::fs::read(&manifest).expect("a file");
    bytes[100] ^= 1;
    std::fs::write(&manifest, &bytes).expect("a file");
    let output = tool(&["repair", "--yes"], &folder);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("in use"), "{output:?}");
}

/// What is in a log's base.
const BASE: &str = r"
    SET string 1 PX 100000
    SETEX seconds 1000 v
    INCR string
    SET dies 5 PX 150
    SET renamed v PX 150
    HSET hash f v g w x y
    HPEXPIRE hash 150 FIELDS 1 f
    HPEXPIRE hash 1000000 FIELDS 1 g
    SADD set a b c
    SPEXPIRE set 150 MEMBERS 1 a
    SPEXPIRE set 1000000 MEMBERS 1 b
    ZADD zset 1 a 2 b 3 c
    ZPEXPIRE zset 150 MEMBERS 1 a
    EXPIREMEMBER zset b 1000
    SADD dead-set a
    SPEXPIRE dead-set 150 MEMBERS 1 a
    XADD stream * f v
    XADD stream MAXLEN ~ 10 * f w
    XADD stream MAXLEN 2 * f z
    XGROUP CREATE stream g 0
    XREADGROUP GROUP g c COUNT 1 STREAMS stream >
    INCRBYFLOAT float 1.1
    SETRANGE range 5 abc
    PFADD hll a b c
    GETEX seconds PERSIST
    RPUSH list 1 2 3
    EVAL redis.call('INCR','e1')redis.call('SET','e2','x','PX',90000) 0
    FUNCTION LOAD #!lua\x20name=lib\nredis.register_function('f',function()return\x207\x20end)
    SELECT 5
    RPUSH list 1 2 3
    SET moved v PX 150
";

/// What comes behind it, when what has so little time to live is dead.
const RECORDS: &str = r"
    SET dies 6 NX KEEPTTL
    RENAMENX string renamed
    HSET hash f v2
    SADD set a
    SREM set c
    SADD dead-set b
    ZINCRBY zset 5 a
    INCRBYFLOAT float 2.2
    HINCRBYFLOAT hash n 3.3
    MSETEX 2 m1 v m2 w EX 100
    SET equal v
    SET equal w IFEQ v EX 500
    SET gone v
    DELIFEQ gone v
    SET past v
    EXPIRE past -1
    APPEND past new
    MULTI
    SET t1 v EX 100
    LPUSH t2 b a
    EXEC
    HSETEX hash2 EX 100 FIELDS 2 f1 v1 f2 v2
    HGETEX hash2 PERSIST FIELDS 1 f1
    HGETDEL hash2 FIELDS 1 none
    HSETEX hash2 PXAT 1 FIELDS 1 f3 v3
    COPY set set2
    SUNIONSTORE set3 set set2
    SPOP set3
    SORT t2 ALPHA STORE sorted
    EXPIRE zset 5000
    BITOP NOT not range
    GEOADD geo 13.361389 38.115556 Palermo
    XADD stream NOMKSTREAM * f new
    XREADGROUP GROUP g d COUNT 10 STREAMS stream >
    XCLAIM stream g e 0 1-1
    XACKDEL stream g IDS 1 1-1
    EVAL redis.call('SET',KEYS[1],'v','EX',77)redis.call('HSET',KEYS[2],'f','v') 2 s1 s2
    SET end v PX 10
    SELECT 5
    MOVE list 0
    LPUSH list 9
    SELECT 0
    SET moved v
    MOVE moved 5
    SWAPDB 3 5
    FUNCTION LOAD #!lua\x20name=other\nredis.register_function('g',function()return\x208\x20end)
    FUNCTION DELETE lib
    DEBUG SLEEP 0.1
    SET last v
";

/// Runs lines of words. In a word, `\\n` is a line end, and `\\x20` a space.
fn run(client: &mut Client, lines: &str) {
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<String> = line
            .split_whitespace()
            .map(|word| word.replace("\\n", "\n").replace("\\x20", " "))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let reply = client.call(&words);
        assert!(!matches!(reply, Reply::Error(_)), "{line}: {reply:?}");
    }
}

fn strings(reply: Reply) -> Vec<String> {
    let Reply::Array(items) = reply else {
        panic!("no array: {reply:?}");
    };
    items.iter().map(crate::common::text).collect()
}

/// The text of a value. What has no order is sorted.
fn value(client: &mut Client, kind: &str, key: &str) -> String {
    let reply = match kind {
        "string" => client.call(&["GET", key]),
        "list" => client.call(&["LRANGE", key, "0", "-1"]),
        "hash" => client.call(&["HGETALL", key]),
        "set" => client.call(&["SMEMBERS", key]),
        "zset" => client.call(&["ZRANGE", key, "0", "-1", "WITHSCORES"]),
        _ => client.call(&["XRANGE", key, "-", "+"]),
    };
    let mut parts = match reply {
        Reply::Array(parts) if kind == "hash" => {
            parts.chunks(2).map(|pair| format!("{pair:?}")).collect()
        }
        Reply::Array(parts) => parts.iter().map(|part| format!("{part:?}")).collect(),
        other => vec![format!("{other:?}")],
    };
    if kind == "hash" || kind == "set" {
        parts.sort();
    }
    parts.join(" ")
}

/// Each key of each database, with its value; and times that are told apart, since the clock of
/// the wall may have been set a little.
fn contents(client: &mut Client, field_deadlines: bool) -> Vec<(String, Vec<i64>)> {
    let mut contents = Vec::new();
    for db in 0..16 {
        let db = db.to_string();
        client.call(&["SELECT", &db]);
        let mut keys = strings(client.call(&["KEYS", "*"]));
        keys.sort();
        for key in keys {
            let kind = crate::common::text(&client.call(&["TYPE", &key]));
            let value = value(client, &kind, &key);
            let mut said = format!("{db} {key} {kind} {value}");
            let mut times = vec![client.call(&["PEXPIRETIME", &key])];
            if kind == "hash" && field_deadlines {
                let mut fields = strings(client.call(&["HKEYS", &key]));
                fields.sort();
                for field in fields {
                    times.push(client.call(&["HPEXPIRETIME", &key, "FIELDS", "1", &field]));
                }
            }
            if kind == "stream" {
                let Reply::Array(about) = client.call(&["XINFO", "STREAM", &key]) else {
                    panic!("no array");
                };
                let (of, _) = about.as_chunks::<2>();
                let inner = |name: &Reply| crate::common::text(name).starts_with("radix-tree");
                for [name, value] in of.iter().filter(|[name, _]| !inner(name)) {
                    said += &format!(" {name:?} {value:?}");
                }
                said += &format!("{:?}", client.call(&["XINFO", "GROUPS", &key]));
                let pending = ["XPENDING", &key, "g", "-", "+", "100"];
                let Reply::Array(pending) = client.call(&pending) else {
                    panic!("no array");
                };
                for entry in pending {
                    let Reply::Array(of) = entry else {
                        panic!("no array")
                    };
                    // Not for how long: time goes on between the two.
                    said += &format!("{:?} {:?} {:?}", of[0], of[1], of[3]);
                }
            }
            let time = |reply: &Reply| match reply {
                Reply::Integer(time) => *time,
                Reply::Array(of) => match of[..] {
                    [Reply::Integer(time)] => time,
                    _ => panic!("{of:?}"),
                },
                other => panic!("{other:?}"),
            };
            contents.push((said, times.iter().map(time).collect()));
        }
    }
    contents
}

/// Loads what is printed into a stock server, and compares all keys with ours.
fn compare(engine: &Engine, folder: &Folder, field_deadlines: bool) {
    let words: &[&str] = match field_deadlines {
        true => &["print"],
        false => &["print", "--without-field-deadlines"],
    };
    let printed = tool(words, folder);
    assert!(printed.status.success(), "{printed:?}");
    let theirs = Folder::new(&format!("log-for-{}", engine.name()));
    std::fs::create_dir_all(&theirs.0).expect("a folder");
    std::fs::write(theirs.0.join("appendonly.aof"), &printed.stdout).expect("a file");
    let flags = ["--appendonly", "yes", "--dir", theirs.text()];
    let stock = tidewheel_engines::Server::start(engine, &flags);
    crate::common::eventually("it has loaded", || {
        (stock.info("loading")? == "0").then_some(())
    });

    let server = start_with(folder, &["--enable-debug-command", "yes"]);
    let mut other = Client::connect(stock.port);
    let theirs = contents(&mut other, field_deadlines);
    let ours = contents(&mut server.client(), field_deadlines);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours.0, theirs.0, "{}", engine.name());
        assert_eq!(ours.1.len(), theirs.1.len());
        for (one, two) in ours.1.iter().zip(&theirs.1) {
            assert!(one.abs_diff(*two) <= 50, "{}: {one} {two}", ours.0);
        }
    }
    assert_eq!(ours.len(), theirs.len(), "{}", engine.name());
    assert!(ours.len() > 10);
    assert_eq!(other.call(&["FCALL", "g", "0"]), Reply::Integer(8));
    assert!(matches!(other.call(&["FCALL", "f", "0"]), Reply::Error(_)));
    kill(server);
}

#[test]
fn a_stock_server_makes_the_same_data_of_what_is_printed() {
    for has_base in [true, false] {
        let folder = Folder::new(&format!("log-print-{has_base}"));
        let server = start_with(&folder, &["--enable-debug-command", "yes"]);
        let mut client = server.client();
        run(&mut client, BASE);
        if has_base {
            client.call(&["BGREWRITEAOF"]);
            crate::common::eventually("a base is written", || {
                (client.info("persistence", "aof_rewrites") == "1").then_some(())
            });
        }
        client.call(&["SELECT", "0"]);
        std::thread::sleep(std::time::Duration::from_millis(200));
        run(&mut client, RECORDS);
        kill(server);
        assert_eq!(log_of(&folder).join("base-2.rdb").exists(), has_base);
        if let Some(engine) = Engine::redis() {
            compare(&engine, &folder, false);
        }
        for engine in [Engine::redis_8(), Engine::valkey()].into_iter().flatten() {
            compare(&engine, &folder, true);
        }
    }
}
