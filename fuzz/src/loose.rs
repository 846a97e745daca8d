//! Any row of the table with any arguments: one well-formed reply, and no panic.

use std::sync::atomic::Ordering::Relaxed;

use arbitrary::{Arbitrary, Result, Unstructured};

use crate::op::{Key, Step};
use crate::rig::Rig;
use tidewheel_keyspace::rows;
use tidewheel_resp::{Protocol, Writer};

/// Long enough for objects, short enough for what is quadratic in it.
const STRING_MAX: u64 = 4096;

/// One step of a run.
#[derive(Debug)]
#[allow(missing_docs, reason = "each is what its name says")]
pub enum Loose<'a> {
    Row {
        row: u8,
        subcommand: Option<u8>,
        words: Vec<Word<'a>>,
    },
    Bytes(&'a [u8]),
    Step(Step),
}

impl<'a> Arbitrary<'a> for Loose<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.arbitrary::<u8>()? {
            0..200 => Self::Row {
                row: u.arbitrary()?,
                subcommand: u.arbitrary()?,
                words: u.arbitrary()?,
            },
            200..210 => Self::Bytes(u.arbitrary()?),
            _ => Self::Step(u.arbitrary()?),
        })
    }
}

/// An argument.
#[derive(Arbitrary, Debug)]
#[allow(missing_docs, reason = "each is what its name says")]
pub enum Word<'a> {
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

/// Runs the steps.
pub fn any_command(mut rig: Rig, steps: &[Loose<'_>]) {
    rig.keyspace
        .rules()
        .proto_max_bulk_len
        .store(STRING_MAX, Relaxed);
    for step in steps {
        match step {
            Loose::Step(step) => rig.step(step),
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
                let mut bytes = Writer::new(Protocol::Resp2);
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
