//! Asks a server whether it is well: for containers, which have no other program to ask with.

use std::io::{self, Read as _, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tidewheel_time::monotonic_nanos;

use super::{Outcome, Trouble};

/// The longest time until there is a connection, and until the answer is whole.
const PATIENCE: Duration = Duration::from_secs(5);

/// The bytes of an answer that are read.
const ANSWER_MAX: usize = 4096;

pub(super) fn run(address: SocketAddr, out: &mut dyn Write) -> Outcome {
    let answer = ask(address, PATIENCE).map_err(Trouble::Silent)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    // It must not reach the terminal as it came.
    let body = body.trim().as_bytes().escape_ascii().to_string();
    match head.split(' ').nth(1) {
        Some("200") => writeln!(out, "{body}").map_err(Trouble::Output),
        _ => Err(Trouble::Unwell(body)),
    }
}

fn ask(address: SocketAddr, patience: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let until = monotonic_nanos() + patience.as_nanos() as u64;
    let (mut answer, mut part) = (Vec::new(), [0; ANSWER_MAX]);
    while answer.len() < ANSWER_MAX {
        let left = Duration::from_nanos(until.saturating_sub(monotonic_nanos()));
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(len) => answer.extend_from_slice(&part[..len]),
            // What a socket says after its time.
            Err(why) if why.kind() == io::ErrorKind::WouldBlock => {}
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc;

    use super::*;

    /// The time began anew with each byte.
    #[test]
    fn an_answer_byte_by_byte_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody asks");
            while stream.write_all(b"H").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let (send, asked) = mpsc::channel();
        std::thread::spawn(move || send.send(ask(address, Duration::from_millis(100))));
        let asked = asked.recv_timeout(Duration::from_secs(10));
        let why = asked.expect("it ends").expect_err("no answer");
        assert_eq!(why.kind(), io::ErrorKind::TimedOut);
    }
}
