//! Drawn scripts: what the oracle does without Lua, a stock redis-server does with it.

use tidewheel_oracle::{Dice, Draw, Model, spell};
use tidewheel_resp::Reply;

use super::drawn::{is_left_out, slices};
use crate::redis::Redis;

/// Scripts; the deep tier has eight times as many.
const SCRIPTS: u64 = 1_000;

/// A command of version 7.0 whose reply is one alone.
fn line_of(draw: &mut Draw<'_>) -> String {
    loop {
        let line = match draw.below(2) {
            0 => draw.list(),
            _ => draw.text(),
        };
        let names = ["MSETEX", "LPOS", "LMPOP"];
        let is_new = names.iter().any(|name| line.starts_with(name));
        if !is_left_out(&line) && !is_new {
            return line;
        }
    }
}

/// An error's text without the place where it arose.
fn without_place(reply: Reply) -> Reply {
    match reply {
        Reply::Error(text) => {
            let end = text.rfind(" script: ").unwrap_or(text.len());
            Reply::Error(text[..end].to_owned())
        }
        other => other,
    }
}

#[test]
fn scripts_do_there_what_the_oracle_expects() {
    let Some(mut redis) = Redis::start("") else {
        return;
    };
    let is_deep = std::env::var_os("TIDEWHEEL_DEEP").is_some();
    let (mut model, mut failed) = (Model::default(), 0);
    for seed in 0..SCRIPTS * if is_deep { 8 } else { 1 } {
        let bytes = Dice::new(seed).fill(300);
        let mut draw = Draw::new(&bytes);
        let name = ["EVAL", "EVAL", "EVAL_RO"][usize::from(draw.below(3))];
        let line = format!("{name} {}", draw.script(&mut line_of));
        let words = spell(&line, 0);
        let theirs = without_place(redis.words(&slices(&words)));
        failed += u64::from(matches!(theirs, Reply::Error(_)));
        let expect = model.run(&words, &Reply::Null);
        let _ = expect.check(&line, &theirs);
    }
    assert!(failed > SCRIPTS / 50, "{failed} failed");
}
