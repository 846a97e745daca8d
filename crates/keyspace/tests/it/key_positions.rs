//! COMMAND GETKEYS and GETKEYSANDFLAGS of every row, beside Redis 8.2 and Valkey 9.1.

use std::collections::BTreeSet;

use tidewheel_engines::{Client, Engine, Server};
use tidewheel_resp::Reply;

use crate::common::{Rig, show};

/// Calls whose keys depend on more than their places.
pub(crate) const CALLS: &str = "\
    SET k v GET; SET k v NX GET; SET k v EX 10; SET k v EX GET; SET k v; GET; GET a b; FOO a; CLIENT KILL x
    BITFIELD k; BITFIELD k GET u8 0; BITFIELD k SET u8 0 1; BITFIELD k OVERFLOW SAT INCRBY u8 0 1
    SORT k; SORT k STORE d; SORT k BY x GET y STORE d; SORT k LIMIT 0 1 STORE d STORE e; SORT k STORE
    SORT_RO k; SORT_RO k STORE d; COPY a b DB 1 REPLACE; RENAME a b; MOVE k 1; LCS a b LEN
    ZUNIONSTORE d 2 a b; ZUNIONSTORE d 0; ZUNIONSTORE d 3 a b; ZUNIONSTORE d x a b; ZDIFFSTORE d 2 a b
    ZINTERSTORE d 2 a b WEIGHTS 1 2; ZUNION 2 a b; ZINTER 2 a b; ZINTERCARD 2 a b; SINTERCARD 2 a b LIMIT 1
    ZMPOP 2 a b MIN; LMPOP 2 a b LEFT; BLMPOP 0 2 a b LEFT; BLMPOP 0 x a b LEFT; BZMPOP 0 2 a b MIN
    GEORADIUS k 1 1 1 m; GEORADIUS k 1 1 1 m STORE; GEORADIUS k 1 1 1 m STORE d; GEORADIUS k 1 1 1 m STOREDIST d
    GEORADIUSBYMEMBER k m 1 m; GEORADIUSBYMEMBER k m 1 m STORE d; GEORADIUS_RO k 1 1 1 m STORE d
    GEOSEARCHSTORE d s FROMLONLAT 1 1 BYRADIUS 1 m; PFMERGE d; PFMERGE d a b; PFDEBUG GETREG k
    MSET a 1 b 2; MSET a 1 b; MSETNX a 1 b 2; MSETEX 2 a 1 b 2 EX 3; MSETEX 2 a 1; BITOP AND d a b; BITOP NOT d a; OBJECT HELP; OBJECT FREQ k
    DEBUG OBJECT k; DEBUG DIGEST-VALUE a b; DEBUG NO-SUCH k; MEMORY USAGE k SAMPLES 5; MEMORY DOCTOR
    HSETEX k EX 5 FIELDS 1 a 1; HGETEX k FIELDS 1 a; HGETDEL k FIELDS 1 a; COMMAND GETKEYS GET k";

/// Where Redis and Valkey differ, the row and the calls go with this one of the two.
const AS_VALKEY: &[&str] = &[
    // Redis names the key that is not written, too.
    "GEORADIUS k 1 1 1 m STORE d STOREDIST e",
];

/// For each row calls with as many arguments as it wants, and with one more. The letters and digits
/// of each pattern are their arguments.
pub(crate) fn calls_of_rows(rig: &mut Rig, patterns: &[&str]) -> Vec<String> {
    let Reply::Array(names) = rig.words(&[b"COMMAND", b"LIST"]) else {
        panic!("no list");
    };
    let mut calls = Vec::new();
    for name in &names {
        let Reply::Bulk(name) = name else {
            panic!("no name: {name:?}");
        };
        let name = String::from_utf8_lossy(name).to_uppercase();
        let Reply::Array(info) = rig.words(&[b"COMMAND", b"INFO", name.as_bytes()]) else {
            panic!("no row: {name}");
        };
        let Reply::Array(row) = &info[0] else {
            panic!("no row: {name}");
        };
        let Reply::Integer(arity) = row[1] else {
            panic!("no arity: {name}");
        };
        let words = name.replace('|', " ");
        let least = arity.unsigned_abs() as usize - words.split(' ').count();
        let more = usize::from(arity < 0);
        for count in least..=least + more {
            for pattern in patterns {
                let arguments = pattern.chars().take(count);
                let arguments: String = arguments.flat_map(|letter| [' ', letter]).collect();
                calls.push(format!("{words}{arguments}"));
            }
        }
    }
    calls
}

fn ask(engine: &mut Client, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    show(&engine.call(&words).expect("a reply"))
}

/// A dozen rows named other flags, and a key that SORT_RO does not have.
#[test]
fn the_keys_of_a_call_are_those_of_redis_and_valkey() {
    let (Some(redis), Some(valkey)) = (Engine::redis_8(), Engine::valkey()) else {
        return;
    };
    let servers = [&redis, &valkey].map(|engine| Server::start(engine, &[]));
    let [mut redis, mut valkey] = [servers[0].client(), servers[1].client()];
    let mut rig = Rig::new();
    let mut calls: BTreeSet<String> =
        calls_of_rows(&mut rig, &["abcdefgh", "a1c1e1g1", "a1111111", "1abcdefg"])
            .into_iter()
            .collect();
    let special = CALLS.lines().flat_map(|line| line.split(';'));
    calls.extend(special.map(|call| call.trim().to_owned()));
    calls.extend(AS_VALKEY.iter().map(|call| (*call).to_owned()));
    let (mut compared, mut wrong) = (0, Vec::new());
    for call in &calls {
        for question in ["GETKEYS", "GETKEYSANDFLAGS"] {
            let line = format!("COMMAND {question} {call}");
            let (theirs, others) = (ask(&mut redis, &line), ask(&mut valkey, &line));
            let expected = match AS_VALKEY.contains(&call.as_str()) {
                true => others,
                false => theirs,
            };
            let is_ours_only =
                expected == "-ERR Invalid command specified" && !call.starts_with("FOO");
            if is_ours_only {
                continue;
            }
            compared += 1;
            let ours = rig.run(&line);
            if ours != expected {
                wrong.push(format!("{line}\n    ours   {ours}\n    theirs {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 2_000, "only {compared}");
}
