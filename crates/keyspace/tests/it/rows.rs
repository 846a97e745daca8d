//! All that clients are told of the commands: COMMAND INFO and DOCS of every row, and the keys of
//! calls.
//!
//! `TIDEWHEEL_BLESS=1` writes `tests/rows.txt` anew.

use tidewheel_resp::Reply;

use crate::common::{Rig, show};
use crate::key_positions::{CALLS, calls_of_rows};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rows.txt");

/// A client's code is made from these replies, so nothing in them changes by accident.
#[test]
fn clients_are_told_the_same_of_each_command() {
    let mut rig = Rig::new();
    let Reply::Array(names) = rig.words(&[b"COMMAND", b"LIST"]) else {
        unreachable!("an array");
    };
    let mut told = String::new();
    for name in names {
        let Reply::Bulk(name) = name else {
            unreachable!("a name");
        };
        for what in ["INFO", "DOCS"] {
            let reply = rig.words(&[b"COMMAND", what.as_bytes(), &name]);
            told.push_str(&format!("{what} {}\n", show(&reply)));
        }
    }
    let lines = CALLS.split(['\n', ';']).map(|line| line.trim().to_owned());
    for line in lines.chain(calls_of_rows(&mut rig, &["a1c1e1g1"])) {
        let reply = rig.run(&format!("COMMAND GETKEYSANDFLAGS {line}"));
        told.push_str(&format!("KEYS of {line} {reply}\n"));
    }
    if std::env::var_os("TIDEWHEEL_BLESS").is_some() {
        std::fs::write(GOLDEN, &told).expect("it can be written");
    }
    let golden = std::fs::read_to_string(GOLDEN).expect("it is there");
    for (now, before) in told.lines().zip(golden.lines()) {
        assert_eq!(now, before);
    }
    assert_eq!(told.lines().count(), golden.lines().count());
}
