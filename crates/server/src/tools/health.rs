//! Asks a server whether it is well: for containers, which have no other program to ask with.

use std::io::{self, Read as _, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::{Outcome, Trouble};

const PATIENCE: Duration = Duration::from_secs(5);

/// The bytes of an answer that are read.
const ANSWER_MAX: u64 = 4096;

pub(super) fn run(address: SocketAddr, out: &mut dyn Write) -> Outcome {
    let answer = ask(address).map_err(Trouble::Silent)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    match head.split(' ').nth(1) {
        Some("200") => out.write_all(body.as_bytes()).map_err(Trouble::Output),
        _ => Err(Trouble::Unwell(body.trim().to_owned())),
    }
}

fn ask(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(ANSWER_MAX).read_to_string(&mut answer)?;
    Ok(answer)
}
