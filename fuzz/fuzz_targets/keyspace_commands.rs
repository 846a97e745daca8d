//! Command sequences: strings and deadlines against a naive model, and every command of the table with
//! any arguments, which must answer one well-formed reply.

#![no_main]

use std::sync::atomic::Ordering::Relaxed;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use tidewheel_fuzz::model::{Expect, Model};
use tidewheel_fuzz::op::{Call, Key, Step};
use tidewheel_fuzz::rig::Rig;
use tidewheel_keyspace::{NotifyFlags, rows};
use tidewheel_resp::{Protocol, Reply};

/// Long enough for objects, short enough for what is quadratic in it.
const STRING_MAX: u64 = 4096;

/// Calls of one SCAN; more means that it does not end.
const SCAN_CALLS_MAX: usize = 10_000;

#[derive(Arbitrary, Debug)]
enum Input<'a> {
    /// Calls that the model knows.
    Model { resp3: bool, steps: Vec<Step> },
    /// Rows of the table with any arguments.
    Any { resp3: bool, steps: Vec<Loose<'a>> },
}

#[derive(Arbitrary, Debug)]
enum Loose<'a> {
    Row {
        row: u8,
        subcommand: Option<u8>,
        words: Vec<Word<'a>>,
    },
    Bytes(&'a [u8]),
    Step(Step),
}

#[derive(Arbitrary, Debug)]
enum Word<'a> {
    Key(Key),
    Token(u8),
    Small(i8),
    Integer(i64),
    Float(f64),
    Bytes(&'a [u8]),
}

const TOKENS: [&str; 48] = [
    "NX",
    "XX",
    "GT",
    "LT",
    "GET",
    "EX",
    "PX",
    "EXAT",
    "PXAT",
    "KEEPTTL",
    "PERSIST",
    "MATCH",
    "COUNT",
    "TYPE",
    "string",
    "*",
    "?",
    "[a-z]*",
    "[^",
    "\\",
    "key:*",
    "DB",
    "REPLACE",
    "ASYNC",
    "SYNC",
    "LEN",
    "IDX",
    "MINMATCHLEN",
    "WITHMATCHLEN",
    "SAMPLES",
    "FILTERBY",
    "MODULE",
    "ACLCAT",
    "PATTERN",
    "HELP",
    "set",
    "get",
    "0",
    "-1",
    "16",
    "1.5",
    "1e400",
    "inf",
    "nan",
    "-0",
    "+1",
    "9223372036854775807",
    "-9223372036854775808",
];

fuzz_target!(|input: Input<'_>| match input {
    Input::Model { resp3, steps } => against_model(rig(resp3), &steps),
    Input::Any { resp3, steps } => any_command(rig(resp3), &steps),
});

fn rig(resp3: bool) -> Rig {
    let rig = Rig::new(if resp3 {
        Protocol::Resp3
    } else {
        Protocol::Resp2
    });
    rig.keyspace
        .settings()
        .set_notify_flags(NotifyFlags::parse(b"KEA").expect("valid letters"));
    rig
}

fn against_model(mut rig: Rig, steps: &[Step]) {
    let mut model = Model::new();
    let mut expired = 0;
    for step in steps {
        match step {
            Step::Call(call) => {
                sync(&mut model, &rig);
                // What is dead but not removed yet is counted, and may be flushed in silence.
                if matches!(call, Call::DbSize | Call::FlushDb | Call::FlushAll) {
                    rig.expire_all();
                }
                let words = call.words(rig.wall_ms());
                let expect = model.run(call);
                let reply = rig.command(&words);
                check(&mut rig, call, &words, &expect, reply);
            }
            other => turn(&mut rig, other),
        }
        sync(&mut model, &rig);
        check_next_deadline(&rig, &model);
        expired += expired_events(&rig);
    }
    rig.expire_all();
    expired += expired_events(&rig);
    assert_eq!(expired, model.expired(), "expired events");
    let keys: usize = (0..3_u8)
        .map(|db| {
            rig.command(&[b"SELECT".to_vec(), vec![b'0' + db]]);
            match rig.command(&[b"DBSIZE".to_vec()]) {
                Reply::Integer(keys) => keys as usize,
                other => panic!("DBSIZE answered {other:?}"),
            }
        })
        .sum();
    assert_eq!(
        keys,
        model.len(),
        "keys left when all that is due has been expired"
    );
}

fn sync(model: &mut Model, rig: &Rig) {
    let (tick, begun) = rig.engine();
    model.at(tick, begun, rig.wall_ms());
}

fn turn(rig: &mut Rig, step: &Step) {
    match step {
        Step::Call(call) => {
            rig.command(&call.words(rig.wall_ms()));
        }
        Step::Moment(us) => rig.pass((*us).into()),
        Step::Advance(ms) => rig.pass(u64::from(*ms) * 1000),
        Step::Sleep(s) => rig.pass(u64::from(*s) * 1_000_000),
        Step::StepWall(ms) => rig.step_wall((*ms).into()),
        Step::Expire(budget) => {
            rig.expire(u32::from(*budget) + 1);
        }
        Step::Maintain(budget) => rig.maintain((*budget).into()),
        Step::Freeze => rig.freeze(),
        Step::Resume => rig.resume(),
    }
}

fn check(rig: &mut Rig, call: &Call, words: &[Vec<u8>], expect: &Expect, reply: Reply) {
    match expect {
        Expect::Reply(expect) => assert_eq!(&reply, expect, "{call:?}"),
        Expect::Keys(expect) => assert_eq!(&sorted(reply), expect, "{call:?}"),
        Expect::OneOf(keys) => match reply {
            Reply::Null => assert!(keys.is_empty(), "RANDOMKEY found none of {keys:?}"),
            Reply::Bulk(key) => assert!(keys.contains(&key), "RANDOMKEY found {key:?}"),
            other => panic!("RANDOMKEY answered {other:?}"),
        },
        Expect::Scan(expect) => {
            let mut found = Vec::new();
            let (mut cursor, keys) = page(reply);
            found.extend(keys);
            for calls in 0.. {
                if cursor == b"0" {
                    break;
                }
                assert!(calls < SCAN_CALLS_MAX, "SCAN does not end");
                let mut words = words.to_vec();
                words[1] = cursor;
                let (next, keys) = page(rig.command(&words));
                found.extend(keys);
                cursor = next;
            }
            found.sort();
            found.dedup();
            assert_eq!(&found, expect);
        }
    }
}

fn page(reply: Reply) -> (Vec<u8>, Vec<Vec<u8>>) {
    match reply {
        Reply::Array(mut parts) if parts.len() == 2 => {
            let keys = sorted(parts.remove(1));
            match parts.remove(0) {
                Reply::Bulk(cursor) => (cursor, keys),
                other => panic!("SCAN answered the cursor {other:?}"),
            }
        }
        other => panic!("SCAN answered {other:?}"),
    }
}

fn sorted(reply: Reply) -> Vec<Vec<u8>> {
    let Reply::Array(items) = reply else {
        panic!("no array of keys: {reply:?}");
    };
    let mut keys: Vec<_> = items
        .into_iter()
        .map(|item| match item {
            Reply::Bulk(key) => key,
            other => panic!("no key: {other:?}"),
        })
        .collect();
    keys.sort();
    keys
}

/// A sleeper must never sleep past a deadline.
fn check_next_deadline(rig: &Rig, model: &Model) {
    let (Some(behind), Some(earliest)) = (rig.behind(), model.next_deadline()) else {
        return;
    };
    let shards = 0..rig.keyspace.shards();
    let published = shards.map(|shard| rig.keyspace.next_deadline(shard)).min();
    let published = published.expect("at least one shard");
    assert!(
        i128::from(published) <= earliest + i128::from(behind),
        "published {published}, earliest {earliest} + {behind}"
    );
}

fn expired_events(rig: &Rig) -> u64 {
    rig.events()
        .iter()
        .filter(|event| event.name == "expired")
        .count() as u64
}

fn any_command(mut rig: Rig, steps: &[Loose<'_>]) {
    rig.keyspace
        .settings()
        .proto_max_bulk_len
        .store(STRING_MAX, Relaxed);
    for step in steps {
        match step {
            Loose::Step(step) => turn(&mut rig, step),
            Loose::Bytes(bytes) => {
                rig.bytes(bytes);
            }
            Loose::Row {
                row,
                subcommand,
                words,
            } => {
                let row = rows()[usize::from(*row) % rows().len()];
                let mut command = vec![row.name.as_bytes().to_vec()];
                if let (Some(at), false) = (subcommand, row.subcommands.is_empty()) {
                    let subcommand = &row.subcommands[usize::from(*at) % row.subcommands.len()];
                    command.push(subcommand.short_name().as_bytes().to_vec());
                }
                command.extend(words.iter().map(spell));
                let mut bytes = tidewheel_resp::Writer::new(Protocol::Resp2);
                bytes.array(command.len());
                command.iter().for_each(|word| bytes.bulk(word));
                assert!(rig.bytes(bytes.as_bytes()).len() <= 1);
            }
        }
        rig.events();
    }
    rig.expire_all();
}

fn spell(word: &Word<'_>) -> Vec<u8> {
    match word {
        Word::Key(key) => key.bytes(),
        Word::Token(at) => TOKENS[usize::from(*at) % TOKENS.len()].as_bytes().to_vec(),
        Word::Small(number) => number.to_string().into_bytes(),
        Word::Integer(number) => number.to_string().into_bytes(),
        Word::Float(number) => number.to_string().into_bytes(),
        Word::Bytes(bytes) => bytes.to_vec(),
    }
}
