//! Clients that mean no good: silent, slow, and sending what is no TLS.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::{Files, socket};
use crate::common::{eventually, now, simple};

/// Connections that say nothing, or the beginning of a hello, fill every place. Those who speak
/// come in all the same, and no memory is lost.
#[test]
fn thousands_of_silent_handshakes_keep_nobody_out() {
    let files = Files::new("silent");
    let server = files.server(&[]);
    let mut boss = files.connect(server.port);
    assert_eq!(boss.call(&["PING"]), simple("PONG"));
    let before = server.status("VmRSS");
    let mut silent = Vec::new();
    for i in 0..3_000_u32 {
        let mut socket = socket(server.port);
        if i % 2 == 0 {
            // A record of 16 KiB begins.
            let sent = socket.write_all(&[&[0x16, 3, 1, 0x40, 0][..], &[1; 2_000]].concat());
            // It may have had to make room already.
            drop(sent);
        }
        silent.push(socket);
        if i % 500 == 0 {
            assert_eq!(files.connect(server.port).call(&["PING"]), simple("PONG"));
        }
    }
    let began = now();
    assert_eq!(files.connect(server.port).call(&["PING"]), simple("PONG"));
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    assert!(boss.info("clients", "tls_half_open") <= 2_048);
    assert!(boss.info("stats", "tls_handshakes_crowded_out") > 0);
    let grown = server.status("VmRSS").saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KB");
    // The others end by themselves.
    eventually("they are closed", || {
        (boss.info("clients", "tls_half_open") == 0).then_some(())
    });
    assert!(boss.info("stats", "tls_handshakes_timed_out") > 0);
    assert_eq!(boss.call(&["PING"]), simple("PONG"));
}

/// Half-open connections are clients, too, but never so many that no place is left.
#[test]
fn silent_handshakes_do_not_fill_maxclients() {
    let files = Files::new("few");
    let server = files.server(&["--maxclients", "40"]);
    let _silent: Vec<TcpStream> = (0..60).map(|_| socket(server.port)).collect();
    let mut clients = Vec::new();
    for _ in 0..20 {
        // Its hello comes with its first command: before it, it would be one of the silent.
        let mut client = files.connect(server.port);
        assert_eq!(client.call(&["PING"]), simple("PONG"));
        clients.push(client);
    }
}

/// A byte now and then counted as a sign of life, and new clients waited for ten seconds.
#[test]
fn hellos_byte_by_byte_keep_nobody_out() {
    let files = Files::new("bytes");
    let server = files.server(&["--maxclients", "40"]);
    let mut slow: Vec<TcpStream> = (0..60).map(|_| socket(server.port)).collect();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let sender = std::thread::spawn(move || {
        // The beginning of a long hello.
        let mut hello = b"\x16\x03\x01\x20\x00\x01\x00\x1f\xfc\x03\x03".to_vec();
        hello.resize(2_000, 0);
        for byte in hello {
            // Most are closed by and by.
            slow.retain_mut(|stream| stream.write_all(&[byte]).is_ok());
            let pause = stopped.recv_timeout(Duration::from_millis(20));
            if pause != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                return;
            }
        }
    });
    let mut client = files.connect(server.port);
    assert_eq!(client.call(&["PING"]), simple("PONG"));
    assert_eq!(client.info("stats", "tls_handshakes_timed_out"), 0);
    drop(stop);
    sender.join().expect("it sends");
}

#[test]
fn garbage_in_a_handshake_closes_only_its_own_connection() {
    let files = Files::new("garbage");
    let server = files.server(&[]);
    let mut boss = files.connect(server.port);
    for bytes in [
        &b"\x16\x03\x01\x00\x00"[..],
        b"\x16\x03\x01\xff\xff",
        b"\x16\x03\x01\x00\x05\x01\xff\xff\xff\x00",
        b"\x16\x03\x03\x00\x04\x0e\x00\x00\x00",
        b"\x16\x00\x00\x00\x02\x01\x00",
        b"\x15\x03\x01\x00\x02\x02\x28",
        b"\x80\x2e\x01\x00\x02",
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        let mut socket = socket(server.port);
        socket.write_all(bytes).expect("the server accepts");
        let mut answer = Vec::new();
        match socket.read_to_end(&mut answer) {
            Ok(_) => {}
            Err(why) => assert_eq!(why.kind(), std::io::ErrorKind::ConnectionReset),
        }
    }
    assert_eq!(boss.call(&["PING"]), simple("PONG"));
    assert_eq!(boss.info("stats", "tls_handshakes_failed"), 8);
    assert_eq!(boss.info("clients", "connected_clients"), 1);
}
