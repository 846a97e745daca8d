//! What the server tells systemd: it is ready when it answers, not before.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Folder, PATIENCE, Server, eventually, program, simple};
use crate::loading::{END, Loading, file, refused};

/// The next message. `None` if there is none yet.
fn message(socket: &UnixDatagram, patience: Duration) -> Option<String> {
    let mut bytes = [0; 4096];
    socket.set_read_timeout(Some(patience)).expect("a socket");
    let len = socket.recv(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..len]).into_owned())
}

/// Waits for a message with these words.
fn told(socket: &UnixDatagram, words: &str) -> String {
    eventually(words, || {
        message(socket, PATIENCE).filter(|text| text.contains(words))
    })
}

#[test]
fn systemd_is_told_ready_only_when_clients_are_served() {
    let folder = Folder::new("notify");
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let path = folder.0.join("socket");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    let name = path.to_str().expect("a path of text");
    let mut loading = Loading::begin_told("notify", &file(END), &[("NOTIFY_SOCKET", name)]);
    let mut client = loading.client();
    assert_eq!(client.call(&["PING"]), refused());
    let first = told(&socket, "STATUS=loading: 0 %");
    assert!(first.starts_with("EXTEND_TIMEOUT_USEC="), "{first}");
    let pid = Pid::from_child(&loading.child);
    // A server that reads its settings again while it loads is not ready.
    kill_process(pid, Signal::HUP).expect("the process exists");
    eventually("it is ready", || {
        let text = message(&socket, Duration::from_millis(1));
        let is_ready = text.is_some_and(|text| text.contains("READY=1\n"));
        let reply = client.call(&["PING"]);
        assert!(!is_ready || reply == simple("PONG"), "ready, and {reply:?}");
        is_ready.then_some(())
    });
    kill_process(pid, Signal::HUP).expect("the process exists");
    told(&socket, "RELOADING=1\nMONOTONIC_USEC=");
    told(&socket, "READY=1\n");
    kill_process(pid, Signal::TERM).expect("the process exists");
    told(&socket, "STOPPING=1\n");
    assert_eq!(loading.ends(), Some(0));
}

#[test]
fn a_server_that_is_stopped_while_it_loads_was_never_ready() {
    let name = format!("tidewheel-notify-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let socket = UnixDatagram::bind_addr(&address).expect("a socket");
    let variables = [("NOTIFY_SOCKET", &*format!("@{name}"))];
    let mut loading = Loading::begin_told("unready", &file(END), &variables);
    assert_eq!(loading.client().call(&["PING"]), refused());
    let pid = Pid::from_child(&loading.child);
    kill_process(pid, Signal::TERM).expect("the process exists");
    eventually("it stops", || {
        let text = message(&socket, PATIENCE)?;
        assert!(!text.contains("READY=1\n"), "{text}");
        text.contains("STOPPING=1\n").then_some(())
    });
    assert_eq!(loading.ends(), Some(0));
}

#[test]
fn a_socket_of_systemd_that_is_not_there_stops_nobody() {
    for name in ["/nonexistent/socket", "@tidewheel-nobody", ""] {
        let server = Server::run(program(&[]).env("NOTIFY_SOCKET", name));
        assert_eq!(server.client().call(&["PING"]), simple("PONG"), "{name}");
    }
}
