//! Rate limits: each address may ask so often in a window of time. A counter lives exactly as long
//! as its window, and an address that asks no more costs nothing.
//!
//! `cargo run -p tidewheel --example rate_limit`

use std::net::{IpAddr, Ipv4Addr};
use std::thread::sleep;
use std::time::Duration;

use tidewheel::Cache;

const LIMIT: u32 = 3;

/// Returns whether a request may pass. A change of the counter keeps what is left of the window.
fn may_pass(windows: &Cache<IpAddr, u32>, address: IpAddr) -> bool {
    let count = windows
        .entry(address)
        .and_update(|count| count + 1)
        .or_insert(1);
    println!("request {count}, window {:?}", windows.ttl(&address));
    count <= LIMIT
}

fn main() -> Result<(), tidewheel::BuildError> {
    let windows = Cache::builder()
        .max_capacity(1_000_000) // a flood of addresses evicts, it does not exhaust memory
        .time_to_live(Duration::from_millis(200))
        .build()?;
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    for request in 1..=5 {
        assert_eq!(may_pass(&windows, address), request <= LIMIT);
    }
    sleep(Duration::from_millis(210));
    assert!(windows.is_empty());
    assert!(may_pass(&windows, address), "the next window");
    Ok(())
}
