//! Draws calls of scripts.

use tidewheel_keyspace::resolve;
use tidewheel_resp::Args;

use crate::draw::Draw;
use crate::script::{Act, End, Script, Statement, Word};

/// Commands in a script, at most.
const MOST: u8 = 5;

impl Draw<'_> {
    /// Draws the call of a script with commands that `line` draws: `%` and its word, the number of
    /// keys, the keys and the arguments. Some keys are not declared.
    pub fn script(&mut self, line: &mut dyn FnMut(&mut Self) -> String) -> String {
        let (mut keys, mut args) = (Vec::new(), Vec::new());
        let mut statements = Vec::new();
        for at in 0..=self.below(MOST) {
            let only_if = [None, None, None, Some(true), Some(false)][usize::from(self.below(5))];
            let only_if = only_if.filter(|_| at > 0);
            let act = match at > 0 && self.once_in(16) {
                true => Act::Half,
                false => {
                    let line = line(self);
                    let words = self.scripted(&line, &mut keys, &mut args);
                    Act::Call(words, !self.once_in(3))
                }
            };
            statements.push(Statement { only_if, act });
        }
        let end = [End::List, End::List, End::Last, End::Nothing][usize::from(self.below(4))];
        let script = Script { statements, end };
        let (word, number) = (script.word(), keys.len());
        format!("%{word} {number} {} {}", keys.join(" "), args.join(" "))
    }

    /// The words of a command in a script.
    fn scripted(
        &mut self,
        line: &str,
        keys: &mut Vec<String>,
        args: &mut Vec<String>,
    ) -> Vec<Word> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let slices: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let call = Args::from_slices(&slices);
        let positions: Vec<usize> = match resolve(call) {
            Ok(row) => row.keys.positions(call).collect(),
            Err(_) => Vec::new(),
        };
        let takes_any = ["SET", "APPEND", "GETSET"].contains(&words[0]);
        let of = |(at, word): (usize, &&str)| {
            let is_key = positions.contains(&at);
            if is_key && !self.once_in(4) {
                return Word::Key(place(keys, word));
            }
            match self.below(8) {
                0 if takes_any && at == 2 => Word::Last,
                1 if at > 0 && !is_key => Word::Argument(place(args, word)),
                _ => Word::Text(word.as_bytes().to_vec()),
            }
        };
        words.iter().enumerate().map(of).collect()
    }
}

/// The place of a word in a list, to which it is added if it is not there.
fn place(list: &mut Vec<String>, word: &str) -> usize {
    list.iter().position(|one| one == word).unwrap_or_else(|| {
        list.push(word.to_owned());
        list.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use crate::dice::Dice;
    use crate::draw::{Draw, spell};
    use crate::script::{Given, Script};

    #[test]
    fn a_script_is_read_again_from_the_lua_that_was_made_of_it() {
        let mut with_conditions = 0;
        for seed in 0..200 {
            let bytes = Dice::new(seed).fill(200);
            let line = Draw::new(&bytes).script(&mut Draw::line);
            let words = spell(&line, 1_700_000_000_000);
            let script = Script::of(&words[0]).expect("a script");
            assert_eq!(script.lua().as_bytes(), words[0]);
            let given = Given::of(&words[1..], false).expect("a number of keys");
            assert!(script.keys(given).len() >= given.keys.len());
            with_conditions += u32::from(line.contains('?') || line.contains('!'));
        }
        assert!(with_conditions > 20, "{with_conditions}");
    }
}
