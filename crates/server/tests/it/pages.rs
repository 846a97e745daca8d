//! Metrics and health over HTTP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::common::{Folder, Server, command, eventually, have, now, ok};

/// A server with pages, and their port.
pub(crate) fn start(flags: &[&str]) -> (Server, u16) {
    // Somebody else may take the port before the server does.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let text = port.to_string();
    (
        Server::start(&[&["--http-port", &text], flags].concat()),
        port,
    )
}

pub(crate) fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).expect("pages");
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).expect("a socket");
    stream
}

/// Sends bytes, and reads all that comes.
fn exchange(port: u16, request: &[u8]) -> String {
    let mut stream = connect(port);
    stream.write_all(request).expect("it reads");
    let mut reply = Vec::new();
    // It may close while we still send.
    let _ = stream.read_to_end(&mut reply);
    String::from_utf8_lossy(&reply).into_owned()
}

pub(crate) fn get(port: u16, path: &str, headers: &str) -> String {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    exchange(port, request.as_bytes())
}

pub(crate) fn status(reply: &str) -> &str {
    reply.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn metrics_tell_what_the_server_does() {
    let (server, port) = start(&[]);
    let mut client = server.client();
    client.call(&["SET", "tea", "hot", "PX", "1"]);
    client.call(&["SET", "cake", "1", "EX", "100"]);
    eventually("it has expired", || {
        let text = get(port, "/metrics", "");
        text.contains("\nredis_expired_keys_total 1\n")
            .then_some(())
    });
    let text = get(port, "/metrics", "");
    assert_eq!(status(&text), "200");
    for line in [
        "redis_up 1",
        "redis_db_keys{db=\"db0\"} 1",
        "redis_commands_total{cmd=\"set\"} 2",
        "redis_evicted_keys_total 0",
        "tidewheel_lateness_seconds_count 1",
        "tidewheel_forecast_keys{within=\"+Inf\"} 1",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line} in {text}");
    }
    assert_eq!(status(&get(port, "/healthz", "")), "200");
    assert!(get(port, "/readyz", "").ends_with("ready\n"));
    assert_eq!(status(&get(port, "/other", "")), "404");
    assert_eq!(status(&get(port, "/metrics/../metrics", "")), "404");
}

#[test]
fn who_asks_needs_the_rights_of_the_commands_behind_it() {
    let (server, port) = start(&["--requirepass", "pw"]);
    let mut client = server.client();
    assert_eq!(client.call(&["AUTH", "pw"]), ok());
    client.call(&["ACL", "SETUSER", "eve", "on", ">e", "+ping"]);
    client.call(&["ACL", "SETUSER", "mon", "on", ">m", "+info"]);
    for (header, expected) in [
        ("", "401"),
        // default:pw, default:no, eve:e, mon:m
        ("Authorization: Basic ZGVmYXVsdDpwdw==\r\n", "200"),
        ("Authorization: Basic ZGVmYXVsdDpubw==\r\n", "401"),
        ("Authorization: Basic ZXZlOmU=\r\n", "403"),
        ("Authorization: Basic bW9uOm0=\r\n", "200"),
        ("Authorization: Bearer x\r\n", "401"),
    ] {
        let reply = get(port, "/metrics", header);
        assert_eq!(status(&reply), expected, "{header}: {reply}");
    }
    // These tell nothing, and balancers know no password.
    assert_eq!(status(&get(port, "/healthz", "")), "200");
    assert_eq!(status(&get(port, "/readyz", "")), "200");
}

#[test]
fn requests_of_other_peoples_pages_are_refused() {
    let (server, port) = start(&["--http-hosts", "cache.example"]);
    let ask = |host: &str, method: &str| {
        let host = match host {
            "" => String::new(),
            host => format!("Host: {host}\r\n"),
        };
        let request = format!("{method} /metrics HTTP/1.1\r\n{host}Connection: close\r\n\r\n");
        status(&exchange(port, request.as_bytes())).to_owned()
    };
    for (host, method, expected) in [
        ("localhost:1", "GET", "200"),
        ("127.0.0.1", "HEAD", "200"),
        ("cache.example", "GET", "200"),
        ("evil.example", "GET", "403"),
        ("", "GET", "403"),
        ("localhost", "POST", "405"),
        ("localhost", "DELETE", "405"),
    ] {
        assert_eq!(ask(host, method), expected, "{host} {method}");
    }
    for request in [
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        // A proxy's form: what it asks for counts, not the header.
        "GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nHost : localhost\r\n\r\n",
        "*1\r\n$4\r\nPING\r\n",
        "\r\n\r\nGET\0",
    ] {
        let reply = exchange(port, request.as_bytes());
        assert_ne!(status(&reply), "200", "{request:?}: {reply}");
    }
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    assert_ne!(status(&exchange(port, long.as_bytes())), "200");
    assert_eq!(server.client().call(&["SET", "a", "1"]), ok());
}

#[test]
fn slow_clients_keep_nobody_out() {
    let (_server, port) = start(&[]);
    let mut heard = connect(port);
    heard
        .write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("it reads");
    let mut first = [0; 12];
    heard.read_exact(&mut first).expect("a stream of events");
    let mut slow: Vec<TcpStream> = (0..500).map(|_| connect(port)).collect();
    for stream in &mut slow {
        // It may have made room already.
        let _ = stream.write_all(b"GET /metrics HT");
    }
    let began = now();
    assert_eq!(status(&get(port, "/healthz", "")), "200");
    let took = began.elapsed();
    // Four times as many as have a place would need 15 s.
    assert!(took < Duration::from_secs(10), "{took:?}");
    let mut event = [0; 1 << 10];
    for _ in 0..5 {
        assert_ne!(heard.read(&mut event).expect("more events"), 0);
    }
    // The last ones are closed after some seconds.
    let mut last = slow.pop().expect("one of them");
    let mut rest = Vec::new();
    last.read_to_end(&mut rest).expect("the end comes");
}

/// To HEAD there was no stream of events.
#[test]
fn head_is_told_what_get_would_be_without_the_body() {
    let (_server, port) = start(&[]);
    for (path, is_there) in [
        ("/", true),
        ("/metrics", true),
        ("/events", true),
        ("/readyz", true),
        ("/nothing", false),
    ] {
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let reply = exchange(port, request.as_bytes());
        let (_, body) = reply.split_once("\r\n\r\n").expect("a whole head");
        let expected = if is_there { "200" } else { "404" };
        assert_eq!((status(&reply), body), (expected, ""), "{path}");
    }
}

/// Who asked for a stream stayed although it had none yet, and nobody else came in.
#[test]
fn those_who_wait_for_a_stream_of_events_make_room() {
    let flags = ["--threads", "1", "--enable-debug-command", "yes"];
    let (server, port) = start(&flags);
    let mut busy = server.client();
    busy.send(&command(&["DEBUG", "SLEEP", "60"]));
    let ask = |mut stream: TcpStream| {
        // It may have made room already.
        let _ = stream.write_all(b"GET /events?db=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream
    };
    let mut crowd: Vec<TcpStream> = (0..128).map(|_| ask(connect(port))).collect();
    assert_eq!(status(&get(port, "/readyz", "")), "200");
    // The others are told after five seconds that the server does not answer.
    let has_left = |stream: &mut TcpStream| {
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        heard.is_empty()
    };
    assert!(crowd.iter_mut().any(has_left), "nobody has made room");
}

/// Only 128 could wait: behind a crowd others knocked again after a second, or after ten.
#[test]
fn those_who_are_not_accepted_yet_wait_with_the_system() {
    let (server, port) = start(&[]);
    server.signal(Signal::STOP);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let crowd: Vec<TcpStream> = (0..500)
        .map_while(|_| TcpStream::connect_timeout(&address, Duration::from_secs(4)).ok())
        .collect();
    server.signal(Signal::CONT);
    assert_eq!(crowd.len(), 500);
}

#[test]
fn who_says_that_nothing_follows_is_answered() {
    let (_server, port) = start(&[]);
    let mut stream = connect(port);
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("it reads");
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("a socket");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a reply");
    assert_eq!(status(&reply), "200");
}

/// The folder with files for Prometheus and Grafana.
fn monitoring(file: &str) -> String {
    let path = format!(
        "{}/../../examples/monitoring/{file}",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(path).expect("a file")
}

#[test]
fn the_dashboard_and_the_alerts_ask_for_metrics_that_there_are() {
    let (server, port) = start(&["--appendonly", "yes"]);
    let mut client = server.client();
    client.call(&["SET", "a", "1", "EX", "100"]);
    client.call(&["GET", "a", "too many"]);
    let text = get(port, "/metrics", "");
    for file in ["dashboard.json", "alerts.yml"] {
        let asked = monitoring(file);
        // What comes after is of other programs: the laboratory's tests look there.
        let (asked, _) = asked.split_once("In your program").expect("that part");
        let words = asked.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let names =
            words.filter(|word| word.starts_with("redis_") || word.starts_with("tidewheel_"));
        for name in names {
            let is_there = text.lines().any(|line| {
                let rest = line.strip_prefix(name);
                rest.is_some_and(|rest| rest.starts_with([' ', '{']))
            });
            assert!(is_there, "{file}: {name}");
        }
    }
}

/// A program that is ended when this is dropped.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_prometheus_reads_the_metrics_and_an_alert_fires() {
    if !have("prometheus", &["--version"]) {
        return;
    }
    let (server, port) = start(&[]);
    let folder = Folder::new("prometheus");
    // The rules as they are, but without a delay.
    let rules = monitoring("alerts.yml");
    let delay = |line: &&str| !line.trim_start().starts_with("for:");
    let rules: Vec<&str> = rules.lines().filter(delay).collect();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let own = listener.local_addr().expect("an address").port();
    drop(listener);
    let config = monitoring("prometheus.yml")
        .replace("15s", "200ms\n  evaluation_interval: 200ms")
        .replace("127.0.0.1:8379", &format!("127.0.0.1:{port}"));
    std::fs::create_dir_all(folder.text()).expect("a folder");
    let write = |name: &str, text: &str| {
        std::fs::write(format!("{}/{name}", folder.text()), text).expect("a folder of ours");
    };
    write("alerts.yml", &rules.join("\n"));
    write("prometheus.yml", &config);
    let prometheus = Command::new("prometheus")
        .arg(format!("--config.file={}/prometheus.yml", folder.text()))
        .arg(format!("--storage.tsdb.path={}/data", folder.text()))
        .arg(format!("--web.listen-address=127.0.0.1:{own}"))
        .stderr(std::process::Stdio::null())
        .spawn();
    let _running = Running(prometheus.expect("it starts"));
    eventually("it listens", || TcpStream::connect(("127.0.0.1", own)).ok());
    eventually("it has asked", || {
        let reply = get(own, "/api/v1/query?query=redis_up", "");
        reply.contains("\"1\"]").then_some(())
    });
    let alerts = || get(own, "/api/v1/alerts", "");
    assert!(!alerts().contains("TidewheelFrozen"));
    assert_eq!(server.client().call(&["EXPIRY", "FREEZE"]), ok());
    eventually("it is told", || {
        alerts().contains("TidewheelFrozen").then_some(())
    });
}

#[test]
fn the_program_itself_asks_whether_a_server_is_well() {
    let ask = |port: u16| {
        let mut tool = Command::new(env!("CARGO_BIN_EXE_tidewheel"));
        // As in a container, whose variables are those of its server.
        tool.env("TIDEWHEEL_HTTP_PORT", port.to_string());
        let address = format!("127.0.0.1:{port}");
        tool.args(["health", &address]).output().expect("it runs")
    };
    let (mut server, port) = start(&["--requirepass", "secret"]);
    let output = ask(port);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(output.stdout, b"ok\n");
    server.signal(Signal::TERM);
    server.wait();
    let output = ask(port);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no answer"), "{said}");
}
