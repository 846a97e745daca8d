//! The oracle's model beside a stock redis-server: the model expects what that answers. And the
//! keyspace chooses the same encodings.

use std::sync::atomic::Ordering::Relaxed;

use tidewheel_keyspace::PackedLimit;
use tidewheel_oracle::{Dice, Draw, Model, spell};
use tidewheel_resp::Reply;

use crate::common::Rig;
use crate::redis::Redis;

/// Bytes that commands are drawn from: about ten each. The deep tier has eight times as many.
const BYTES: usize = 20_000;

/// How collections are packed: in the server's words, and in ours.
#[derive(Clone, Copy)]
struct Packing {
    settings: &'static str,
    entries: u32,
}

const LARGE: Packing = Packing {
    settings: "--zset-max-listpack-entries 4 --set-max-intset-entries 40",
    entries: 4,
};

const PACKED: Packing = Packing {
    settings: "--set-max-intset-entries 40",
    entries: 128,
};

/// Draws commands from a seed, of which the first byte says how many members there are.
fn agree(packing: Packing, members: u8, draw_line: fn(&mut Draw<'_>) -> String) {
    if let Some(redis) = Redis::start(packing.settings) {
        agree_with(redis, packing, members, draw_line);
    }
}

fn agree_with(
    mut redis: Redis,
    packing: Packing,
    members: u8,
    draw_line: fn(&mut Draw<'_>) -> String,
) {
    let (mut model, mut rig) = (Model::default(), Rig::new());
    let entries = packing.entries;
    let of = &rig.keyspace.rules().packing;
    of.zset.set(PackedLimit { entries, value: 64 });
    of.intset_entries.store(40, Relaxed);
    // Version 7.0 packs no sets but those of integers.
    of.set.set(PackedLimit {
        entries: 0,
        value: 64,
    });
    let is_deep = std::env::var_os("TIDEWHEEL_DEEP").is_some();
    let mut bytes = Dice::new(31).fill(if is_deep { 8 * BYTES } else { BYTES });
    bytes[0] = members;
    let mut draw = Draw::new(&bytes);
    let mut lines = vec!["SET key:4 text".to_owned()];
    while !draw.is_empty() {
        let line = lines.pop().unwrap_or_else(|| draw_line(&mut draw));
        let words = spell(&line, 0);
        if is_left_out(&line) || model.is_vague(&words) {
            continue;
        }
        let theirs = without_minus_zero(redis.words(&slices(&words)));
        if matches!(&theirs, Reply::Error(text) if text.starts_with("ERR unknown command")) {
            continue;
        }
        let expect = model.run(&words, &theirs);
        // Of a scan there is one page only.
        let _ = expect.check(&line, &theirs);
        let _ = expect.check(&line, &rig.words(&slices(&words)));
        if shows_encoding(&line) {
            redis.agrees(&mut rig, &[b"OBJECT", b"ENCODING", &words[1]]);
        }
    }
}

pub(super) fn slices(words: &[Vec<u8>]) -> Vec<&[u8]> {
    words.iter().map(Vec::as_slice).collect()
}

/// Whether one key may be weighed twice. With 0 · ∞ version 7.0 has no number then, and we have 0.
fn multiplies_twice(line: &str) -> bool {
    let keys = || line.split(' ').filter(|word| word.starts_with('z'));
    line.contains("WEIGHTS") && keys().any(|key| keys().filter(|other| *other == key).count() > 1)
}

/// Version 7.0 tells −0 from 0. We do not.
fn without_minus_zero(reply: Reply) -> Reply {
    match reply {
        Reply::Bulk(text) if text == b"-0" => Reply::Bulk(b"0".to_vec()),
        Reply::Array(items) => Reply::Array(items.into_iter().map(without_minus_zero).collect()),
        other => other,
    }
}

/// What waits, needs a later version, or dies in real time, and what chance changes in one of the
/// two alone.
pub(super) fn is_left_out(line: &str) -> bool {
    let times = [" PX", " EX", " exat", "SETEX", "GETEX"];
    let waits = line.starts_with('B') && !line.starts_with("BIT");
    waits
        || multiplies_twice(line)
        || line.ends_with("WITHSCORE")
        || line.starts_with("SPOP")
        || is_timed_stream(line)
        || times.iter().any(|word| line.contains(word))
}

/// What tells or makes times of streams.
fn is_timed_stream(line: &str) -> bool {
    let is_long = line.starts_with("XPENDING") && line.len() > "XPENDING x0 g ".len();
    let waits = line.contains("CLAIM") && line.contains(" 20 ");
    line.starts_with('X') && (line.contains(" * ") || is_long || waits)
}

/// Whether the first key that a command names has the same form. Results of combinations may keep
/// the form of what they began with.
fn shows_encoding(line: &str) -> bool {
    let grows = ["ZADD", "SADD", "SINTERSTORE", "SUNIONSTORE"];
    grows.iter().any(|name| line.starts_with(name))
}

#[test]
fn sets_are_combined_as_there() {
    for members in [2, 0, 3] {
        agree(PACKED, members, |draw| draw.set());
    }
}

#[test]
fn packed_sorted_sets_answer_as_there() {
    agree(PACKED, 0, |draw| draw.zset());
}

#[test]
fn large_sorted_sets_answer_as_there() {
    agree(LARGE, 0, |draw| draw.zset());
    agree(LARGE, 3, |draw| draw.zset());
}

#[test]
fn strings_answer_as_there() {
    agree(PACKED, 0, |draw| draw.text());
    agree(PACKED, 0, |draw| draw.bits());
}

#[test]
fn lists_and_hashes_answer_as_there() {
    agree(PACKED, 0, |draw| draw.list());
    agree(LARGE, 3, |draw| draw.list());
    agree(PACKED, 0, |draw| draw.hash());
    agree(PACKED, 0, |draw| draw.sort());
}

#[test]
fn streams_answer_as_there() {
    if let Some(redis) = Redis::start_8(PACKED.settings) {
        agree_with(redis, PACKED, 0, |draw| draw.stream());
    }
}
