//! SET, DELEX and DELIFEQ on a condition, and CL.THROTTLE.

use crate::common::Rig;

#[test]
fn who_holds_a_lock_renews_and_releases_it_and_nobody_else_does() {
    let mut rig = Rig::new();
    rig.script(
        "SET lock mine NX PX 100 -> OK
         SET lock theirs NX -> nil
         SET lock mine IFEQ theirs PX 500 -> nil
         PTTL lock -> :100
         SET lock mine IFEQ mine PX 500 -> OK
         PTTL lock -> :500
         DELIFEQ lock theirs -> :0
         DELEX lock IFEQ theirs -> :0
         DELEX lock IFNE mine -> :0
         DELIFEQ lock mine -> :1
         DELIFEQ lock mine -> :0
         SET lock mine IFEQ mine -> nil
         SET lock mine IFNE mine -> OK
         SET lock other IFNE other GET -> 'mine'
         SET lock other IFNE other GET -> 'other'
         SET lock x IFEQ -> -ERR syntax error
         SET lock x IFEQ a NX -> -ERR syntax error
         DELEX lock IFEQ -> -ERR syntax error
         DELEX lock -> :1
         RPUSH l a -> :1
         SET l x IFEQ a -> -WRONGTYPE Operation against a key holding the wrong kind of value
         DELIFEQ l a -> -WRONGTYPE Operation against a key holding the wrong kind of value
         DELEX l -> :1",
    );
}

#[test]
fn a_value_beside_its_key_and_a_long_one_are_compared_alike() {
    let mut rig = Rig::new();
    let long = "x".repeat(100_000);
    for value in ["", "short", &long] {
        if !value.is_empty() {
            assert_eq!(rig.run(&format!("SET k {value}")), "OK");
            assert_eq!(rig.run(&format!("DELIFEQ k {value}y")), ":0");
            assert_eq!(rig.run(&format!("DELIFEQ k {value}")), ":1");
        }
    }
}

/// Five at once, then one a second.
#[test]
fn a_limit_lets_a_burst_through_and_then_its_rate() {
    let mut rig = Rig::new();
    let call = "CL.THROTTLE user 4 60 60";
    for left in (0..5).rev() {
        let full = 5 - left;
        assert_eq!(rig.run(call), format!("[:0 :5 :{left} :-1 :{full}]"));
    }
    assert_eq!(rig.run(call), "[:1 :5 :0 :1 :5]");
    rig.pass(999);
    assert_eq!(rig.run(call), "[:1 :5 :0 :1 :5]");
    rig.pass(1);
    assert_eq!(rig.run(call), "[:0 :5 :0 :-1 :5]");
    assert_eq!(rig.run(&format!("{call} 0")), "[:0 :5 :0 :-1 :5]", "a look");
    // More than the burst at once is never allowed.
    assert_eq!(rig.run("CL.THROTTLE big 4 60 60 6"), "[:1 :5 :5 :-1 :0]");
    rig.pass(5_000);
    assert_eq!(rig.run("EXISTS user"), ":0", "it is empty again");
}

#[test]
fn a_limit_of_which_the_numbers_make_no_sense_is_refused() {
    let mut rig = Rig::new();
    let range = "-ERR burst, count, period or quantity is out of range";
    for numbers in [
        "-1 1 1",
        "1 0 1",
        "1 1 0",
        "1 1 -1",
        "1 1 1 -1",
        "9223372036854775807 1 1",
        "1 1 9223372036854775807",
        "9223372036854775806 1 1000000",
        "1 1 1000000 9223372036854775807",
    ] {
        assert_eq!(
            rig.run(&format!("CL.THROTTLE k {numbers}")),
            range,
            "{numbers}"
        );
    }
    rig.run("SET k text");
    let reply = rig.run("CL.THROTTLE k 1 1 1");
    assert_eq!(reply, "-ERR the key holds no limit of CL.THROTTLE");
    rig.run("SET k 9223372036854775807");
    assert_eq!(rig.run("CL.THROTTLE k 1 1 1"), range);
}
