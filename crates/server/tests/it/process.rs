//! Starting, misconfiguring and stopping the program.

use std::process::{Command, Output, Stdio};

use crate::common::{Reply, Server, bulk, command, error, eventually, ok, simple, text};
use rustix::process::Signal;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidewheel"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("the program runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_taken_port_is_a_clear_error_that_names_the_flag() {
    let server = Server::start(&[]);
    let port = server.port.to_string();
    let output = run(&["--port", &port]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains(&port) && said.contains("--port"), "{said}");
}

#[test]
fn a_wrong_configuration_names_its_key_and_exits_with_2() {
    for (arguments, expected) in [
        (
            &["--maxmemory", "lots"][..],
            "--maxmemory 'lots': argument must be a memory value",
        ),
        (
            &["--shards", "3"],
            "--shards '3': argument must be a power of two",
        ),
        (&["--io-threads", "10"], "--io-threads"),
        (
            &["--bind", "here"],
            "--bind 'here': 'here' is not an IP address",
        ),
        (
            &["--config", "/nonexistent/tidewheel.conf"],
            "cannot read /nonexistent/tidewheel.conf",
        ),
        (
            &["--appendfsync", "sometimes"],
            "--appendfsync 'sometimes': argument(s) must be one of the following: always, everysec, no",
        ),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            stderr(&output).contains(expected),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    let output = Command::new(env!("CARGO_BIN_EXE_tidewheel"))
        .env("TIDEWHEEL_TIMEOUT", "soon")
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("TIDEWHEEL_TIMEOUT"));
}

#[test]
fn a_configuration_can_be_checked_without_starting() {
    let file = std::env::temp_dir().join(format!("tidewheel-check-{}.conf", std::process::id()));
    let path = file.to_str().expect("a readable path");
    std::fs::write(&file, "port 0\nmaxmemory 1gb\n").expect("a file");
    for arguments in [&["--config", path][..], &[path]] {
        let output = run(&[arguments, &["--check-config"]].concat());
        assert_eq!(output.status.code(), Some(0));
    }
    std::fs::write(&file, "port x\n\nmaxmemry 1gb\nrequirepass\n").expect("a file");
    let output = run(&[path, "--check-config", "--timeout", "soon"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    let said: Vec<&str> = said.lines().collect();
    let wrong = "argument couldn't be parsed into an integer";
    assert_eq!(
        said,
        [
            format!("tidewheel: {path}: line 1: port 'x': {wrong}"),
            format!(
                "tidewheel: {path}: line 3: there is no key 'maxmemry': did you mean 'maxmemory'?"
            ),
            format!("tidewheel: {path}: line 4: requirepass has no value"),
            format!("tidewheel: --timeout 'soon': {wrong}"),
        ]
    );
    std::fs::remove_file(&file).expect("the file");
}

#[test]
fn what_the_program_is_asked_to_tell_goes_to_standard_output() {
    for (arguments, words) in [
        (
            &["--help"][..],
            &[
                "--maxmemory-policy",
                "-p, --port",
                "--config",
                "TIDEWHEEL_PORT",
                "[default: 6379]",
                "Memory and eviction:",
            ][..],
        ),
        (
            &["--version"],
            &[concat!("tidewheel ", env!("CARGO_PKG_VERSION"))],
        ),
        (&["-v"], &["tidewheel "]),
        (&["man"], &[".SH SETTINGS", "maxmemory\\-policy"]),
        (
            &["completions", "bash"],
            &["--maxmemory-policy", "complete "],
        ),
        (&["completions", "zsh"], &["#compdef tidewheel"]),
        (&["completions", "fish"], &["complete -c tidewheel"]),
        (
            &["--print-config", "-p", "7", "--requirepass", "secret"],
            &["\nport 7\n", "# requirepass: it is set", "\nsave 3600 1 "],
        ),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        for word in words {
            assert!(said.contains(word), "{arguments:?}: {word}");
        }
        assert!(!said.contains("secret"), "{arguments:?}");
    }
}

#[test]
fn a_file_may_come_by_standard_input_and_is_found_behind_the_name() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tidewheel"))
        .args(["-", "--print-config"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut stdin = child.stdin.take().expect("piped");
    std::io::Write::write_all(&mut stdin, b"timeout 77\n").expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\ntimeout 77\n"));
}

#[test]
fn sigterm_sends_what_is_left_and_exits_with_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Server::start(&[]);
        let mut client = server.client();
        client.send(&command(&["ECHO", &"x".repeat(3_000_000)]));
        // The reply has been made when its beginning has arrived.
        let mut first = [0; 1];
        std::io::Read::read_exact(&mut client.stream, &mut first).expect("a reply begins");
        server.signal(signal);
        let rest = client.read_to_end();
        assert_eq!(
            rest.len(),
            "3000000\r\n".len() + 3_000_000 + 2,
            "the whole reply arrived"
        );
        assert_eq!(server.wait().code(), Some(0));
    }
}

#[test]
fn shutdown_stops_the_server_and_saves_nothing() {
    let mut server = Server::start(&[]);
    let mut client = server.client();
    for (words, expected) in [
        (&["SHUTDOWN", "ABORT"][..], "ERR No shutdown in progress."),
        (&["SHUTDOWN", "SAVE", "NOSAVE"], "ERR syntax error"),
        (&["SHUTDOWN", "later"], "ERR syntax error"),
    ] {
        assert_eq!(client.call(words), error(expected));
    }
    client.send(&command(&["SHUTDOWN", "NOSAVE"]));
    assert_eq!(client.try_read(), None);
    assert_eq!(server.wait().code(), Some(0));
}

/// Backups ask for the folder from another one.
#[test]
fn config_get_dir_is_where_the_folder_is() {
    let server = Server::start(&["--dir", "there"]);
    let there = std::env::current_dir().expect("a folder").join("there");
    assert_eq!(
        server.client().call(&["CONFIG", "GET", "dir"]),
        Reply::Array(vec![bulk("dir"), bulk(&there.display().to_string())])
    );
}

#[test]
fn config_is_one_table_over_the_wire() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let pair = |name: &str, value: &str| Reply::Array(vec![bulk(name), bulk(value)]);
    assert_eq!(
        client.call(&["CONFIG", "GET", "MaxMemory"]),
        pair("maxmemory", "0")
    );
    assert_eq!(
        client.call(&["CONFIG", "GET", "nothing*"]),
        Reply::Array(vec![])
    );
    assert_eq!(
        client.call(&["CONFIG", "SET", "maxmemory", "10mb", "timeout", "9"]),
        ok()
    );
    assert_eq!(
        client.call(&["CONFIG", "GET", "maxmemory"]),
        pair("maxmemory", "10485760")
    );
    assert_eq!(
        client.call(&["CONFIG", "SET", "notify-keyspace-events", "KEA"]),
        ok()
    );
    assert_eq!(
        client.call(&["CONFIG", "GET", "notify-keyspace-events"]),
        pair("notify-keyspace-events", "AKE")
    );
    for (words, expected) in [
        (
            &["CONFIG", "SET", "io-threads", "10"][..],
            "ERR Unknown option or number of arguments for CONFIG SET - 'io-threads'",
        ),
        (
            &["CONFIG", "SET", "port", "1"],
            "ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable config",
        ),
        (
            &["CONFIG", "SET", "timeout", "1", "timeout", "2"],
            "ERR CONFIG SET failed (possibly related to argument 'timeout') - duplicate parameter",
        ),
        (
            &["CONFIG", "SET", "timeout", "soon"],
            "ERR CONFIG SET failed (possibly related to argument 'timeout') - argument couldn't be \
          parsed into an integer",
        ),
        (
            &["CONFIG", "SET", "timeout", "1", "maxmemory"],
            "ERR wrong number of arguments for 'config|set' command",
        ),
    ] {
        assert_eq!(client.call(words), error(expected));
    }
    // All or nothing.
    assert!(matches!(
        client.call(&["CONFIG", "SET", "timeout", "3", "maxmemory-samples", "0"]),
        Reply::Error(_)
    ));
    assert_eq!(
        client.call(&["CONFIG", "GET", "timeout"]),
        pair("timeout", "9")
    );
}

#[test]
fn debug_needs_permission_and_sleeps_only_one_loop() {
    let closed = Server::start(&[]);
    let reply = closed.client().call(&["DEBUG", "SLEEP", "0"]);
    assert!(text(&reply).starts_with("ERR DEBUG command not allowed."));
    let server = Server::start(&["--enable-debug-command", "local"]);
    let mut client = server.client();
    assert_eq!(client.call(&["DEBUG", "SLEEP", "0.01"]), ok());
    assert_eq!(
        client.call(&["DEBUG", "SLEEP", "-1"]),
        error("ERR sleep for 0 to 3600 seconds")
    );
    assert_eq!(client.call(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]), ok());
    assert_eq!(client.info("expiry", "expiry_active"), "0");
    assert_eq!(client.call(&["DEBUG", "SET-ACTIVE-EXPIRE", "1"]), ok());
    assert_eq!(client.call(&["FUNCTION", "FLUSH"]), ok());
    assert_eq!(client.call(&["PING"]), simple("PONG"));
}

#[test]
fn info_has_its_sections_and_counters_that_reset() {
    let server = Server::start(&[]);
    let mut client = server.client();
    for _ in 0..10 {
        client.call(&["PING"]);
    }
    let all = text(&client.call(&["INFO", "everything"]));
    for section in [
        "Server",
        "Clients",
        "Memory",
        "Stats",
        "CPU",
        "Expiry",
        "Commandstats",
        "Keyspace",
    ] {
        assert!(all.contains(&format!("# {section}\r\n")), "{section}");
    }
    assert!(all.contains("redis_version:7.4") && all.contains("server_name:tidewheel"));
    assert!(all.contains("cmdstat_ping:calls=10,"), "{all}");
    assert!(
        client
            .info("stats", "total_commands_processed")
            .parse::<u64>()
            .unwrap()
            >= 11
    );
    assert_eq!(
        text(&client.call(&["INFO", "cpu", "clients"]))
            .matches("# ")
            .count(),
        2
    );
    assert_eq!(client.call(&["CONFIG", "RESETSTAT"]), ok());
    assert_eq!(client.info("stats", "total_connections_received"), "0");
    assert!(!text(&client.call(&["INFO", "commandstats"])).contains("cmdstat_ping"));
}

#[test]
fn info_tells_what_still_waits_to_be_freed() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let big = "x".repeat(4 << 20);
    assert_eq!(client.call(&["SET", "big", &big]), ok());
    let before: u64 = client
        .info("memory", "lazyfreed_objects")
        .parse()
        .expect("a number");
    assert_eq!(client.call(&["UNLINK", "big"]), Reply::Integer(1));
    eventually("the value is freed", || {
        let freed: u64 = client.info("memory", "lazyfreed_objects").parse().ok()?;
        let pending = client.info("memory", "lazyfree_pending_objects");
        (freed > before && pending == "0").then_some(())
    });
}

/// The file of a stock package: what means nothing here is listed once, with the reason.
#[test]
fn a_configuration_file_of_a_stock_server_starts() {
    let folder = std::env::temp_dir().join(format!("tidewheel-conf-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let own = folder.join("own.conf");
    let lines = "bind 127.0.0.1 -2001:db8::1\ndaemonize yes\npidfile /run/x.pid\nappendonly no\n\
                 appendfsync everysec\nclient-output-buffer-limit replica 256mb 64mb 60\n\
                 client-output-buffer-limit pubsub 32mb 8mb 60\nreplica-priority 100\nhz 10\n";
    std::fs::write(&own, lines).expect("a file");
    let own = own.to_str().expect("a path of text");
    let server = Server::start_logged(&["--config", own]);
    let told = server.logged("mean nothing here");
    assert_eq!(told.len(), 1);
    for text in [
        "daemonize, pidfile (it stays",
        "replica-priority (there is no replication",
    ] {
        assert!(told[0].contains(text), "{}", told[0]);
    }
    assert!(!told[0].contains("hz"), "that one is known: {}", told[0]);
    server.logged("no address -2001:db8::1");
    drop(server);
    std::fs::remove_dir_all(&folder).expect("it is there");
    let stock = "/etc/redis/redis.conf";
    if std::fs::File::open(stock).is_ok() {
        let output = run(&["--config", stock, "--check-config"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

/// Lines of a log, once one of them has this text.
fn lines_of(path: &std::path::Path, text: &str) -> Vec<String> {
    eventually(text, || {
        let lines = std::fs::read_to_string(path).ok()?;
        lines
            .contains(text)
            .then(|| lines.lines().map(str::to_owned).collect())
    })
}

#[test]
fn the_log_goes_to_a_file_and_to_a_new_one_after_a_signal() {
    let folder = std::env::temp_dir().join(format!("tidewheel-logs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (file, moved) = (folder.join("it.log"), folder.join("it.log.1"));
    let path = file.to_str().expect("a path of text");
    for format in ["json", "text"] {
        let mut server = Server::start_logged(&[
            "--logfile",
            path,
            "--log-format",
            format,
            "--loglevel",
            "verbose",
            "--requirepass",
            "secret",
        ]);
        let mut client = server.client();
        client.call(&["AUTH", "wrong"]);
        assert_eq!(client.call(&["AUTH", "secret"]), ok());
        let lines = lines_of(&file, "refused: a wrong name or password");
        let address = client.stream.local_addr().expect("an address");
        for what in ["connected", "refused: a wrong name or password"] {
            let line = lines.iter().find(|line| line.contains(what)).expect(what);
            assert!(line.contains(&address.to_string()), "{line}");
        }
        let start = lines.iter().find(|line| line.contains("started"));
        let start = start.expect("the start is told");
        for part in [&server.port.to_string(), env!("CARGO_PKG_VERSION"), "pid"] {
            assert!(start.contains(part), "{start}");
        }
        assert!(
            !lines
                .iter()
                .any(|line| line.contains("secret") || line.contains('\u{1b}'))
        );
        let is_json = |line: &String| line.starts_with("{\"timestamp\":\"") && line.ends_with('}');
        assert!(
            lines.iter().all(|line| is_json(line) == (format == "json")),
            "{lines:?}"
        );
        std::fs::rename(&file, &moved).expect("it is there");
        assert_eq!(client.call(&["CONFIG", "SET", "loglevel", "notice"]), ok());
        server.signal(Signal::USR1);
        lines_of(&file, "opened the log's file again");
        drop(client);
        // What is told of a client is not of this level.
        assert_eq!(
            server.client().call(&["PING"]),
            error("NOAUTH Authentication required.")
        );
        server.signal(Signal::TERM);
        assert_eq!(server.wait().code(), Some(0));
        let lines = lines_of(&file, "stopped");
        assert!(
            !lines.iter().any(|line| line.contains("connected")),
            "{lines:?}"
        );
        std::fs::remove_file(&file).expect("it is there");
    }
    std::fs::remove_dir_all(&folder).expect("it is there");
    let output = run(&["--logfile", path]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&format!("--logfile '{path}': cannot open the file")));
}

#[test]
fn a_signal_for_a_file_of_the_log_that_is_not_there_is_noted() {
    let server = Server::start_logged(&[]);
    server.signal(Signal::USR1);
    server.logged("there is no file of the log");
    assert_eq!(server.client().call(&["PING"]), simple("PONG"));
}

/// A client cannot make up a line of the log.
#[test]
fn a_line_of_the_log_has_one_line() {
    let server = Server::start_logged(&["--enable-debug-command", "yes"]);
    let text = "begin\nWARN a line \u{1b}[31m\r\nend";
    assert_eq!(server.client().call(&["DEBUG", "LOG", text]), ok());
    let lines = server.logged("DEBUG LOG");
    assert!(lines[0].contains("begin\\nWARN") && lines[0].ends_with("\\r\\nend"));
    assert!(!lines[0].contains('\u{1b}'), "{lines:?}");
}

/// With huge pages, memory that expired keys had given back came back by itself.
#[cfg(target_os = "linux")]
#[test]
fn the_server_has_no_huge_pages() {
    assert_eq!(Server::start(&[]).status("THP_enabled"), 0);
}
