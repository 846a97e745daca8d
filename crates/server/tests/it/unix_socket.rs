//! The Unix socket.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::process::Signal;

use crate::common::{Folder, PATIENCE, Reply, Server, array, command, ok, program, simple, text};

/// A client by the Unix socket.
struct UnixClient(UnixStream);

impl UnixClient {
    fn connect(path: &str) -> Self {
        let stream = UnixStream::connect(path).expect("the server accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Self(stream)
    }

    fn call(&mut self, words: &[&str]) -> Reply {
        self.0.write_all(&command(words)).expect("the server reads");
        self.read()
    }

    fn read(&mut self) -> Reply {
        let (mut buffer, mut chunk) = (Vec::new(), [0; 4096]);
        loop {
            let n = self.0.read(&mut chunk).expect("a reply");
            assert!(n > 0, "a reply, not the end");
            buffer.extend_from_slice(&chunk[..n]);
            if let Some((reply, used)) = Reply::read(&buffer).expect("well-formed replies") {
                assert_eq!(used, buffer.len(), "one reply");
                return reply;
            }
        }
    }
}

fn folder(name: &str) -> Folder {
    let folder = Folder::new(&format!("unix-{name}"));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    folder
}

#[test]
fn clients_of_the_unix_socket_are_served_and_shown_by_its_path() {
    let folder = folder("served");
    let path = folder.0.join("a.sock").display().to_string();
    let server = Server::start(&["--unixsocket", &path, "--unixsocketperm", "700"]);
    let mode = std::fs::metadata(&path)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    let (mut one, mut two) = (UnixClient::connect(&path), UnixClient::connect(&path));
    assert_eq!(one.call(&["SET", "key", "value"]), ok());
    // Both are served by now.
    assert_eq!(two.call(&["PING"]), simple("PONG"));
    let list = text(&one.call(&["CLIENT", "LIST"]));
    let line = list.lines().next().expect("a line");
    assert!(
        line.contains(&format!(" addr={path}:0 laddr={path}:0 ")),
        "{line}"
    );
    assert!(
        line.contains(" flags=U ") && line.ends_with(" tls=no"),
        "{line}"
    );
    assert_eq!(server.client().info("clients", "unix_clients"), "2");
    let info = text(&one.call(&["INFO", "server"]));
    assert!(
        info.contains(&format!("listener1:name=unix,bind={path}\r\n")),
        "{info}"
    );
    assert_eq!(one.call(&["MONITOR"]), ok());
    assert_eq!(two.call(&["PING"]), simple("PONG"));
    let shown = text(&one.read());
    assert!(
        shown.contains(&format!(" [0 unix:{path}] \"PING\"")),
        "{shown}"
    );
    let address = format!("{path}:0");
    let killed = server.client().call(&["CLIENT", "KILL", "ADDR", &address]);
    assert_eq!(killed, Reply::Integer(2));
    let empty = Reply::Array(Vec::new());
    assert_ne!(
        server.client().call(&["CONFIG", "GET", "unixsocket*"]),
        empty
    );
}

/// Whoever can open the file is on this machine.
#[test]
fn protected_mode_and_debug_take_its_clients_for_local_ones() {
    let folder = folder("local");
    let path = folder.0.join("a.sock").display().to_string();
    let flags = [
        "--port",
        "0",
        "--unixsocket",
        &path,
        "--enable-debug-command",
        "local",
    ];
    let mut server = unix_only(&flags);
    let mut client = UnixClient::connect(&path);
    assert_eq!(client.call(&["DEBUG", "SLEEP", "0"]), ok());
    let info = text(&client.call(&["INFO", "server"]));
    assert!(info.contains("tcp_port:0\r\n"), "{info}");
    server.kill().expect("it runs");
    server.wait().expect("it ends");
}

/// A server without a port: its first line names no address of the network.
fn unix_only(flags: &[&str]) -> std::process::Child {
    use std::io::BufRead as _;
    let mut command = program(flags);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().expect("it starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    std::io::BufReader::new(stdout)
        .read_line(&mut line)
        .expect("a line");
    assert!(line.contains(" listens on /"), "{line}");
    child
}

#[test]
fn a_stale_socket_is_replaced_another_servers_is_not_and_the_own_one_is_removed() {
    let folder = folder("stale");
    let path = folder.0.join("a.sock").display().to_string();
    let mut killed = Server::start(&["--unixsocket", &path]);
    killed.signal(Signal::KILL);
    killed.wait();
    assert!(std::fs::metadata(&path).is_ok(), "it was left");
    let mut server = Server::start(&["--unixsocket", &path]);
    assert_eq!(UnixClient::connect(&path).call(&["PING"]), simple("PONG"));
    let second = program(&["--unixsocket", &path]).output().expect("it runs");
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(
        !second.status.success() && said.contains("another program listens"),
        "{said}"
    );
    assert_eq!(UnixClient::connect(&path).call(&["PING"]), simple("PONG"));
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    assert!(std::fs::metadata(&path).is_err(), "it is removed");
}

#[test]
fn a_port_of_zero_is_no_port() {
    let folder = folder("zero");
    let path = folder.0.join("a.sock").display().to_string();
    let refused = program(&["--port", "0"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("nothing to listen at"), "{said}");
    let mut server = unix_only(&["--port", "0", "--unixsocket", &path]);
    let mut client = UnixClient::connect(&path);
    assert_eq!(
        client.call(&["CONFIG", "GET", "port"]),
        array(&["port", "0"])
    );
    server.kill().expect("it runs");
    server.wait().expect("it ends");
}
