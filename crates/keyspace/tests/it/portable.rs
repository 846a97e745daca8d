//! Keys in forms for other servers, and what of them is dead.

use tidewheel_keyspace::Dead;

use crate::common::Rig;

impl Rig {
    fn dead_of(&mut self, key: &str) -> Option<(&'static str, Dead)> {
        let (alone, time) = (self.seat.exclusive(), self.time);
        self.keyspace.dead(&alone, time, 0, key.as_bytes())
    }

    /// The keys of which something may be dead.
    fn due(&mut self) -> Vec<String> {
        let (alone, time) = (self.seat.exclusive(), self.time);
        let mut due = Vec::new();
        self.keyspace.look_at_all(&alone, time, &mut |seen| {
            if seen.is_due {
                due.push(String::from_utf8_lossy(seen.key).into_owned());
            }
        });
        due.sort();
        due
    }
}

#[test]
fn what_is_dead_of_a_key_is_told_until_it_is_removed() {
    let mut rig = Rig::new();
    for command in [
        "SET key v PX 10",
        "SET other v",
        "HSET hash f v g v",
        "HPEXPIRE hash 10 FIELDS 1 f",
        "SADD set a b",
        "SPEXPIRE set 10 MEMBERS 2 a b",
        "ZADD zset 1 a 2 b",
        "ZPEXPIRE zset 10 MEMBERS 1 b",
        "PEXPIRE zset 100",
    ] {
        rig.run(command);
    }
    rig.keyspace.set_replays(&rig.seat.exclusive(), true);
    rig.time.tick += 9;
    assert_eq!(rig.due(), [""; 0]);
    rig.time.tick += 1;
    assert_eq!(rig.due(), ["hash", "key", "set", "zset"]);
    assert_eq!(rig.dead_of("key"), Some(("string", Dead::Key)));
    assert_eq!(
        rig.dead_of("set"),
        Some(("set", Dead::Key)),
        "no member lives"
    );
    let members = |name: &str| Dead::Members(vec![Box::from(name.as_bytes())]);
    assert_eq!(rig.dead_of("hash"), Some(("hash", members("f"))));
    assert_eq!(rig.dead_of("zset"), Some(("zset", members("b"))));
    assert_eq!(rig.dead_of("other"), None);
    assert_eq!(rig.dead_of("none"), None);
    rig.run("HSET hash h v");
    assert_eq!(rig.dead_of("hash"), None);
    rig.time.tick += 90;
    assert_eq!(rig.dead_of("zset"), Some(("zset", Dead::Key)));
}

#[test]
fn a_payload_has_all_members_and_their_deadlines_stand_apart() {
    let mut rig = Rig::new();
    rig.run("SADD set a");
    let (time, plain) = (rig.time, b"set".as_slice());
    let of = |rig: &mut Rig| {
        let alone = rig.seat.exclusive();
        rig.keyspace.portable(&alone, time, 0, plain)
    };
    let without = of(&mut rig).expect("a key");
    assert_eq!((without.type_name, without.wall_ms), ("set", None));
    assert!(without.deadlines.is_empty());
    rig.run("SPEXPIRE set 10 MEMBERS 1 a");
    rig.run("PEXPIRE set 20");
    let with = of(&mut rig).expect("a key");
    assert_eq!(with.payload, without.payload);
    assert_eq!(with.wall_ms, Some(time.wall_ms() + 20));
    let deadline = (Box::from(&b"a"[..]), time.wall_ms() + 10);
    assert_eq!(with.deadlines, [deadline]);
    rig.run("DEL set");
    assert_eq!(of(&mut rig), None);
}
