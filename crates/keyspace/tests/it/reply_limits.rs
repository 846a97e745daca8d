//! Replies that are longer than anybody lets them be.

use crate::common::Rig;
use tidewheel_keyspace::resolve;
use tidewheel_resp::{Args, Protocol, Writer};

const LIMIT: usize = 100_000;

/// What a command writes if `word` is said `times`, with a limit.
fn limited(command: &[&[u8]], word: &[u8], times: usize) -> Writer {
    let mut rig = Rig::new();
    let words = [command, &vec![word; times]].concat();
    let args = Args::from_slices(&words);
    let row = resolve(args).expect("a command");
    let mut out = Writer::new(Protocol::Resp2);
    out.set_limit(LIMIT);
    let (seat, session) = (&mut rig.seat, &mut rig.session);
    rig.keyspace
        .execute(seat, row, session, rig.time, args, &mut out);
    out
}

/// COMMAND INFO with a hundred thousand names made a reply of more than a gigabyte, whatever the
/// limit.
#[test]
fn a_command_that_is_asked_for_again_and_again_is_described_as_far_as_the_limit() {
    for command in ["DOCS", "INFO"] {
        for word in ["client", "get"] {
            let out = limited(&[b"COMMAND", command.as_bytes()], word.as_bytes(), 20_000);
            let taken = out.capacity();
            assert!(out.is_over(), "{command} {word}: {} bytes", out.len());
            assert!(taken <= 2 * LIMIT, "{command} {word}: {taken} bytes");
        }
    }
}

#[test]
fn nothing_repeated_takes_memory_beyond_the_limit() {
    let calls: [(&[&[u8]], &[u8]); 4] = [
        (&[b"MGET"], b"nobody"),
        (&[b"COMMAND", b"INFO"], b"nobody"),
        (&[b"COMMAND", b"GETKEYS", b"DEL"], b"key"),
        (&[b"COMMAND", b"GETKEYSANDFLAGS", b"DEL"], b"key"),
    ];
    for (command, word) in calls {
        let out = limited(command, word, 50_000);
        assert!(out.is_over(), "{command:?}: {} bytes", out.len());
        assert!(out.capacity() <= 2 * LIMIT, "{command:?}");
    }
}
