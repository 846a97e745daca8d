//! Any row of the table with any arguments: one well-formed reply, and no panic.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_keyspace::all_rows;

use crate::draw::{Draw, spell_word};
use crate::hex::hex;
use crate::rig::Rig;
use crate::step::Step;

/// Long enough for objects, short enough for what is quadratic in it.
const STRING_MAX: u64 = 4096;

/// One step of a run.
#[derive(Clone, Debug)]
pub(crate) enum Loose {
    /// A command of the table with any words, [spelled](crate::draw::spell).
    Row(Vec<String>),
    /// Any bytes.
    Bytes(Vec<u8>),
    /// Anything else.
    Step(Step),
}

impl Loose {
    /// Draws steps until the bytes are used up.
    pub(crate) fn draw_all(draw: &mut Draw<'_>) -> Vec<Self> {
        let mut steps = Vec::new();
        while !draw.is_empty() {
            steps.push(match draw.byte() {
                0..200 => Self::Row(call(draw)),
                200..210 => Self::Bytes(draw.bytes(200).to_vec()),
                _ => Self::Step(Step::draw(draw)),
            });
        }
        steps
    }
}

fn call(draw: &mut Draw<'_>) -> Vec<String> {
    let row = &all_rows()[draw.wide::<2>() as usize % all_rows().len()];
    // A subcommand's row has both words.
    let mut words: Vec<_> = row.name.split('|').map(str::to_owned).collect();
    words.extend(draw.few(7, |draw| match draw.below(8) {
        0..3 => draw.any_key(),
        3 | 4 => draw.pick(&TOKENS).to_owned(),
        5 => draw.near(127).to_string(),
        6 if draw.once_in(2) => f64::from_bits(draw.wide::<8>() as u64).to_string(),
        6 => draw.wide::<8>().to_string(),
        _ => hex(draw.bytes(60)),
    }));
    words
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
pub(crate) fn any_command(mut rig: Rig, steps: &[Loose]) {
    let longest = &rig.keyspace.rules().proto_max_bulk_len;
    longest.store(STRING_MAX, Relaxed);
    for step in steps {
        match step {
            Loose::Step(step) => rig.step(step),
            Loose::Bytes(bytes) => {
                rig.bytes(bytes);
            }
            Loose::Row(words) => {
                let words: Vec<_> = words.iter().map(|word| spell_word(word, 0)).collect();
                assert!(rig.replies(&words).len() <= 1);
            }
        }
        rig.events();
    }
    rig.keyspace.assert_counted();
    rig.check_records();
    rig.check_snapshot();
    rig.expire_all();
    rig.keyspace.assert_counted();
}
