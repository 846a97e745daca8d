//! Sets: members, forms, and random ones.

use crate::common::Rig;

#[test]
fn members_are_added_asked_for_moved_and_removed() {
    let mut rig = Rig::new();
    rig.notify("KEA");
    rig.script(
        "SADD s 1 2 3 2 -> :3
         SADD s 3 4 -> :1
         SCARD s -> :4
         OBJECT ENCODING s -> 'intset'
         SISMEMBER s 4 -> :1
         SMISMEMBER s 1 9 -> [:1 :0]
         SADD s tea -> :1
         OBJECT ENCODING s -> 'listpack'
         SMOVE s t tea -> :1
         SMOVE s t nobody -> :0
         SMEMBERS t -> ['tea']
         SREM s 1 2 3 9 -> :3
         SPOP s -> '4'
         EXISTS s -> :0
         SPOP s -> nil
         SPOP s 3 -> []
         SRANDMEMBER t -> 'tea'
         SRANDMEMBER t 5 -> ['tea']
         SRANDMEMBER t -2 -> ['tea' 'tea']
         SRANDMEMBER s -> nil
         SPEXPIRE t 10 MEMBERS 2 tea x -> [:1 :-2]
         SPTTL t MEMBERS 1 tea -> [:10]
         TYPE t -> set
         pass 10
         EXISTS t -> :0
         SET str 1 -> OK
         SADD str a -> -WRONGTYPE Operation against a key holding the wrong kind of value
         SPOP t -1 -> -ERR value is out of range, must be positive",
    );
    let events = rig.events();
    let expected = [
        "0:sadd:s", "0:sadd:s", "0:sadd:s", "0:srem:s", "0:sadd:t", "0:srem:s", "0:spop:s",
        "0:del:s",
    ];
    assert_eq!(events[..expected.len()], expected);
    assert_eq!(
        events[expected.len()..expected.len() + 3],
        ["0:sexpire:t", "0:sexpired:t", "0:del:t"]
    );
}

#[test]
fn every_member_is_popped_once_whatever_the_form() {
    for members in [3_u32, 100, 3_000] {
        let mut rig = Rig::new();
        for i in 0..members {
            rig.run(&format!("SADD s member:{i}"));
        }
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..members {
            assert!(seen.insert(rig.run("SPOP s")));
        }
        rig.script("EXISTS s -> :0");
    }
}
