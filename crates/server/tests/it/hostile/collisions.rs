//! Keys that were chosen to collide cost no more than others.

use super::tools::{flood, number};
use crate::common::{Server, ok};

/// The ending of the attack's keys: with the constants that earlier builds used, the hash is 0
/// whatever comes before it.
const ENDING: [u8; 8] = [0x17, 0x09, 0x47, 0xb5, 0xb5, 0xd5, 0x84, 0x3f];

const KEYS: u64 = 4_000;

fn set(database: u64, with: impl Fn(u64) -> [u8; 16]) -> Vec<u8> {
    let mut bytes = format!("SELECT {database}\r\n").into_bytes();
    for i in 0..KEYS {
        bytes.extend_from_slice(b"*3\r\n$3\r\nSET\r\n$16\r\n");
        bytes.extend_from_slice(&with(i));
        bytes.extend_from_slice(b"\r\n$1\r\nv\r\n");
    }
    bytes
}

fn chosen(i: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    key[8..].copy_from_slice(&ENDING);
    key
}

/// 3,585 such keys made a directory of 256 MiB, of which `used_memory` knew nothing.
#[test]
fn keys_that_were_chosen_to_collide_take_no_more_memory_than_others() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let before = number(&mut client, "memory", "used_memory_rss");
    for database in 0..4 {
        let bytes = set(database, chosen);
        assert_eq!(flood(&mut client, &bytes, 1 + KEYS as usize, &ok()), 0);
    }
    let grown = number(&mut client, "memory", "used_memory_rss").saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes for {} keys", 4 * KEYS);
}
