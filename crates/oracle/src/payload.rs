//! RESTORE of any bytes: they are refused, or what was read from them is written, read again and
//! written as the same members. What is held stays in proportion to the input.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_resp::{Protocol, Reply};

use crate::rig::Rig;

/// Three compressed bytes stand for 264, and an element of a byte may take a slot of a table.
const BYTES_PER_BYTE: u64 = 100 * 100;
const BYTES_MIN: u64 = 1 << 20;

/// Restores bytes, of which the first chooses the version that they claim to be of.
pub fn check(bytes: &[u8]) {
    let Some((choice, value)) = bytes.split_first() else {
        return;
    };
    let mut rig = Rig::new(Protocol::Resp2, 4);
    rig.keyspace.rules().skip_checksums.store(true, Relaxed);
    let version = [10, 12, 80][usize::from(*choice) % 3];
    let payload = [value, &[version, 0], &[0; 8]].concat();
    if !restore(&mut rig, payload) {
        return;
    }
    assert!(rig.keyspace.used_memory() <= BYTES_MIN + BYTES_PER_BYTE * bytes.len() as u64);
    // Fields whose deadline is over are left out: nothing may be left.
    let Some(first) = dump(&mut rig) else {
        return;
    };
    assert!(restore(&mut rig, first.clone()));
    let second = dump(&mut rig).expect("what was taken");
    assert_eq!(content(first), content(second));
}

/// The bytes without the checksum, in their own order: members of a large set have none.
fn content(mut payload: Vec<u8>) -> Vec<u8> {
    payload.truncate(payload.len() - 8);
    payload.sort_unstable();
    payload
}

fn restore(rig: &mut Rig, payload: Vec<u8>) -> bool {
    let words = [
        b"RESTORE".to_vec(),
        b"k".to_vec(),
        b"0".to_vec(),
        payload,
        b"REPLACE".to_vec(),
    ];
    match rig.command(&words) {
        Reply::Simple(_) => true,
        Reply::Error(error) => {
            assert!(error == "ERR Bad data format" || error.starts_with("ERR DUMP payload"));
            false
        }
        other => panic!("{other:?}"),
    }
}

fn dump(rig: &mut Rig) -> Option<Vec<u8>> {
    match rig.command(&[b"DUMP".to_vec(), b"k".to_vec()]) {
        Reply::Bulk(payload) => Some(payload),
        Reply::Null => None,
        other => panic!("{other:?}"),
    }
}
