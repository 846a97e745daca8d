//! Bytes of a connection that has died reach no other connection.

use super::rig::Rig;
use crate::config::Settings;

fn rig() -> Rig {
    Rig::new(1, Settings::default())
}

/// A connection that is reset after its commands were read, while their replies are written.
fn dies_while_it_is_answered(rig: &mut Rig, request: &[u8]) {
    let dying = rig.connect(0);
    dying.send(request);
    dying.wire.borrow_mut().break_writes();
    rig.settle();
    assert!(dying.is_closed());
}

#[test]
fn the_replies_of_a_connection_that_died_reach_no_other() {
    let mut rig = rig();
    let owner = rig.connect(0);
    assert_eq!(rig.ask(&owner, b"SET secret x\r\n"), b"+OK\r\n");
    let other = rig.connect(0);
    for _ in 0..200 {
        dies_while_it_is_answered(&mut rig, b"GET secret\r\n");
        assert_eq!(rig.ask(&other, b"PING\r\n"), b"+PONG\r\n");
    }
}

#[test]
fn a_command_cut_off_by_a_reset_continues_in_no_other_connection() {
    let mut rig = rig();
    let other = rig.connect(0);
    let cut: [&[u8]; 5] = [
        b"*2\r\n$3\r\nGET\r\n$6\r\nsec",
        b"*3\r\n$3\r\nSET\r\n",
        b"*1\r\n",
        b"PIN",
        b"*2\r\n$4\r\nECHO\r\n$x\r\n",
    ];
    for piece in cut {
        let dying = rig.connect(0);
        dying.send(piece);
        rig.settle();
        dying.wire.borrow_mut().reset();
        rig.settle();
        assert!(dying.is_closed());
        assert_eq!(rig.ask(&other, b"ECHO a\r\n"), b"$1\r\na\r\n");
        assert_eq!(rig.ask(&other, b"*1\r\n$4\r\nPING\r\n"), b"+PONG\r\n");
    }
}

#[test]
fn a_protocol_and_a_silence_that_a_dead_connection_chose_end_with_it() {
    let mut rig = rig();
    let other = rig.connect(0);
    dies_while_it_is_answered(&mut rig, b"HELLO 3\r\nGET missing\r\nCLIENT REPLY SKIP\r\n");
    assert_eq!(rig.ask(&other, b"GET missing\r\n"), b"$-1\r\n");
    dies_while_it_is_answered(&mut rig, b"PING\r\nCLIENT REPLY OFF\r\n");
    assert_eq!(rig.ask(&other, b"PING\r\n"), b"+PONG\r\n");
}

#[test]
fn a_panic_costs_one_connection_and_tells_no_other_anything() {
    let mut rig = rig();
    let other = rig.connect(0);
    rig.ask(&other, b"SET secret x\r\n");
    for _ in 0..3 {
        let dying = rig.connect(0);
        dying.send(b"GET secret\r\n*2\r\n$3\r\nGET\r\n$6\r\nsec");
        dying.wire.borrow_mut().plant_a_panic();
        rig.settle();
        assert!(dying.is_closed());
        assert_eq!(dying.take(), b"");
        assert_eq!(rig.ask(&other, b"PING\r\n"), b"+PONG\r\n");
    }
    assert_eq!(rig.server.clients.len(), 1);
}
