//! This proxy to a server falls silent: old connections stay open and move nothing any more, new
//! ones work. New ones work.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use crate::common::MS;

pub(crate) struct Proxy {
    pub(crate) port: u16,
    made: Arc<AtomicU64>,
    silent: Arc<AtomicU64>,
}

impl Proxy {
    /// A way to a port of this machine.
    pub(crate) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let proxy = Self {
            port: listener.local_addr().expect("an address").port(),
            made: Arc::default(),
            silent: Arc::default(),
        };
        let (made, silent) = (Arc::clone(&proxy.made), Arc::clone(&proxy.silent));
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else {
                    continue;
                };
                let number = made.fetch_add(1, SeqCst);
                let other = (
                    near.try_clone().expect("a socket"),
                    far.try_clone().expect("a socket"),
                );
                for (from, to) in [(near, far), (other.1, other.0)] {
                    let silent = Arc::clone(&silent);
                    thread::spawn(move || pass(from, to, &|| number < silent.load(SeqCst)));
                }
            }
        });
        proxy
    }

    /// All connections fall silent.
    pub(crate) fn silence(&self) {
        self.silent.store(self.made.load(SeqCst), SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, is_silent: &dyn Fn() -> bool) {
    let mut bytes = [0; 16_384];
    loop {
        let count = from.read(&mut bytes).unwrap_or(0);
        while is_silent() {
            thread::sleep(MS(100));
        }
        if count == 0 || to.write_all(&bytes[..count]).is_err() {
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
}
