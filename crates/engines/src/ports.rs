//! Free loopback ports.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that the kernel gives to outgoing connections, so that none of those takes one
/// in between.
const FIRST: u32 = 11_000;
const COUNT: u32 = 20_000;

/// A port that nobody listens on. No two calls of one process return the same one, before thousands
/// of them.
///
/// # Panics
///
/// If all are taken.
#[must_use]
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Processes that run at the same time begin at places that lie apart.
    let offset = std::process::id().wrapping_mul(613);
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = (FIRST + offset.wrapping_add(step) % COUNT) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no loopback port is free");
}

/// Finds so many different free ports.
#[must_use]
pub fn free_ports(count: usize) -> Vec<u16> {
    (0..count).map(|_| free_port()).collect()
}
