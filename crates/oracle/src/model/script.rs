//! Scripts: their commands, one after the other at one instant.

use tidewheel_resp::Reply;

use super::{Answered, Bytes, Expect, Model};
use crate::script::{Given, Script};

impl Model {
    pub(super) fn script(&mut self, name: &str, words: &[&[u8]]) -> Answered {
        let reads = match name {
            "EVAL" => false,
            "EVAL_RO" => true,
            _ => return None,
        };
        let script = Script::of(words[1])?;
        let rest: Vec<Bytes> = words[2..].iter().map(|word| word.to_vec()).collect();
        let given = Given {
            full: self.is_full,
            ..Given::of(&rest, reads)?
        };
        let here = self.db;
        let reply = script.run(given, &mut |words| match self.run(words, &Reply::Null) {
            Expect::Reply(reply) => reply,
            other => panic!("a script cannot go on with {other:?}"),
        });
        self.db = here;
        Some(Ok(Expect::Reply(reply)))
    }

    /// From now on scripts may add nothing: there is no memory.
    pub fn is_full(&mut self, is_full: bool) {
        self.is_full = is_full;
    }
}
