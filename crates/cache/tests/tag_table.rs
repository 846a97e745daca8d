//! The table of tags grows in small steps. Alone in its process, since it looks at the process's
//! memory.
#![cfg(target_os = "linux")]

use std::io::{Read, Seek};

use tidewheel::{Cache, Driver, Lifetime};

const PAGE_BYTES: u64 = 4096;

/// More than a step of any part, and a huge page or two.
const STEP_MAX: u64 = 6 << 20;

/// Bytes that the process has in memory.
fn resident(statm: &mut std::fs::File) -> u64 {
    let mut text = [0; 128];
    statm.rewind().expect("can be read again");
    let len = statm.read(&mut text).expect("readable");
    let text = std::str::from_utf8(&text[..len]).expect("digits");
    let pages = text.split(' ').nth(1).expect("the second number");
    pages.parse::<u64>().expect("a number") * PAGE_BYTES
}

/// A full table was copied at once. The thread that brought the next tag waited for 188 ms.
#[test]
fn no_new_tag_makes_its_thread_copy_the_whole_table() {
    let cache: Cache<u32, u32> = Cache::builder()
        .unbounded()
        .no_default_ttl()
        .driver(Driver::Manual)
        .build()
        .expect("valid");
    let mut statm = std::fs::File::open("/proc/self/statm").expect("Linux");
    let mut before = resident(&mut statm);
    for key in 0..500_000 {
        let lifetime = Lifetime::forever().tag(format!("user:{key}"));
        cache.insert_with(key, 0, lifetime);
        let after = resident(&mut statm);
        let step = after.saturating_sub(before);
        assert!(step < STEP_MAX, "{step} bytes at once for tag {key}");
        before = after;
    }
}
