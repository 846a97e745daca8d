//! A stock redis-server to compare with. Where none is installed, the tests that need one say so
//! and pass.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use tidewheel_engines::Engine;
use tidewheel_resp::Reply;

use crate::common::{Rig, show};

const PROGRAM: &str = "redis-server";

/// A server of its own, which ends with this.
pub(crate) struct Redis {
    server: Child,
    socket: PathBuf,
    stream: UnixStream,
}

impl Redis {
    /// Starts one, with these settings (`--name value`); `None` if there is none.
    pub(crate) fn start(settings: &str) -> Option<Self> {
        Self::start_program(Path::new(PROGRAM), settings)
    }

    /// Starts one of version 8, if there is one.
    pub(crate) fn start_8(settings: &str) -> Option<Self> {
        Self::start_program(Engine::redis_8()?.program(), settings)
    }

    fn start_program(program: &Path, settings: &str) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let name = format!("tidewheel-redis-{}-{number}.sock", std::process::id());
        let socket = std::env::temp_dir().join(name);
        let started = Command::new(program)
            .args(["--port", "0", "--save", "", "--appendonly", "no"])
            .args(["--enable-debug-command", "yes", "--unixsocket"])
            .arg(&socket)
            .args(settings.split_whitespace())
            .stdout(Stdio::null())
            .spawn();
        let Ok(mut server) = started else {
            eprintln!("SKIPPED: there is no {PROGRAM} to compare with");
            return None;
        };
        let stream = connect(&mut server, &socket);
        Some(Self {
            server,
            socket,
            stream,
        })
    }

    pub(crate) fn words(&mut self, words: &[&[u8]]) -> Reply {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.stream.write_all(&request).expect("a request is sent");
        let (mut answer, mut piece) = (Vec::new(), vec![0; 1 << 16]);
        loop {
            let n = self.stream.read(&mut piece).expect("an answer");
            assert!(n > 0, "{PROGRAM} ended: {words:?}");
            answer.extend_from_slice(&piece[..n]);
            if let Some((reply, _)) = Reply::read(&answer).expect("valid") {
                return reply;
            }
        }
    }

    /// Asserts that a call is answered alike by both.
    #[track_caller]
    pub(crate) fn agrees(&mut self, rig: &mut Rig, words: &[&[u8]]) -> Reply {
        let (ours, theirs) = (rig.words(words), self.words(words));
        let call: Vec<_> = words
            .iter()
            .map(|word| word[..word.len().min(100)].escape_ascii().to_string())
            .collect();
        assert_eq!(show(&ours), show(&theirs), "{call:?}");
        ours
    }

    /// As [`agrees`](Self::agrees), for a line of words.
    #[track_caller]
    pub(crate) fn agrees_on(&mut self, rig: &mut Rig, line: &str) -> Reply {
        let words: Vec<&[u8]> = line.split_whitespace().map(str::as_bytes).collect();
        self.agrees(rig, &words)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// Connects as soon as the server listens.
fn connect(server: &mut Child, socket: &Path) -> UnixStream {
    for _ in 0..2_000 {
        if let Ok(stream) = UnixStream::connect(socket) {
            return stream;
        }
        let ended = server.try_wait().expect("a child");
        assert!(ended.is_none(), "{PROGRAM} does not start: {ended:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{PROGRAM} does not listen");
}
