//! Generates the commands of simulated clients.

use tidewheel_keyspace::resolve;
use tidewheel_keyspace::rows::Flags;
use tidewheel_oracle::{Dice, Draw, spell};
use tidewheel_resp::Args;
use tidewheel_scripts::Sha;

use super::client::Client;

/// The facts that clients know of each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Town<'a> {
    /// The number of clients so far.
    pub(super) clients: u64,
    /// Passwords are asked for.
    pub(super) passwords: bool,
    /// The scripts of the episode, each with the words that follow it in a call.
    pub(super) scripts: &'a [Vec<Vec<u8>>],
}

/// Adds some commands to what a client is about to send.
pub(super) fn talk(client: &mut Client, dice: &mut Dice, town: Town<'_>) {
    let pipelined = if dice.once_in(8) {
        dice.below(100)
    } else {
        dice.below(4)
    };
    // Many clients say the same again and again.
    let theme = dice.once_in(3).then(|| command(dice, town, client.id));
    for _ in 0..=pipelined {
        let command = match &theme {
            Some(theme) => theme.clone(),
            None => command(dice, town, client.id),
        };
        let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"'\"".contains(byte);
        let plain = |word: &&[u8]| (1..100).contains(&word.len()) && word.iter().all(is_plain);
        let plain = words.iter().all(plain);
        client.say(&words, plain && dice.once_in(10));
        if dice.once_in(50) {
            client.push([&b"\r\n"[..], b"*0\r\n"][dice.below(2)]);
        }
    }
}

fn command(dice: &mut Dice, town: Town<'_>, me: u64) -> Vec<Vec<u8>> {
    if town.passwords && dice.once_in(20) {
        return admission(dice);
    }
    if !town.scripts.is_empty() && dice.once_in(8) {
        return script(dice, town.scripts);
    }
    match dice.below(100) {
        0..80 => data(dice),
        80..95 => message(dice),
        _ => control(dice, town.clients, me),
    }
}

/// Few passwords, so that a guess is often right.
pub(super) const PASSWORDS: [&str; 3] = ["one", "two", "three"];

fn admission(dice: &mut Dice) -> Vec<Vec<u8>> {
    let password = PASSWORDS[dice.below(3)];
    match dice.below(16) {
        0 => words(&["CONFIG", "SET", "requirepass", password]),
        1 => words(&["CONFIG", "SET", "requirepass", ""]),
        2 => words(&["RESET"]),
        3 => words(&["QUIT"]),
        4..7 => words(&["HELLO", "3", "AUTH", "default", password]),
        _ => words(&["AUTH", password]),
    }
}

fn data(dice: &mut Dice) -> Vec<Vec<u8>> {
    let (a, b) = (key(dice), key(dice));
    let ms = (1 + dice.below(60)).to_string();
    match dice.below(24) {
        20.. => drawn(dice),
        0..4 => words(&["GET", &a]),
        4..6 => vec![b"SET".to_vec(), a.into(), value(dice)],
        6..8 => {
            let mut set = vec![b"SET".to_vec(), a.into(), value(dice)];
            set.extend(words(&["PX", &ms]));
            set
        }
        8 => words(&["MGET", &a, &b, &key(dice)]),
        9 => {
            let mut set = vec![b"MSET".to_vec()];
            for _ in 0..=dice.below(20) {
                set.extend([key(dice).into(), value(dice)]);
            }
            set
        }
        10 => words(&["DEL", &a, &b]),
        11 => words(&["PEXPIRE", &a, &ms]),
        12 => words(&["PERSIST", &a]),
        13 => words(&["PTTL", &a]),
        14 => words(&["RENAME", &a, &b]),
        15 => words(&["STRLEN", &a]),
        16 => words(&["EXISTS", &a]),
        17 if dice.once_in(3) => words(&["APPEND", &key(dice), "tail"]),
        18 if dice.once_in(3) => words(&["KEYS", ["nobody*", "f1*"][dice.below(2)]]),
        _ => words(&["INCR", &format!("n{}", dice.below(6))]),
    }
}

/// Draws the scripts of an episode.
pub(super) fn scripts(dice: &mut Dice) -> Vec<Vec<Vec<u8>>> {
    let script = |_| {
        let bytes = dice.fill(400);
        spell(&Draw::new(&bytes).script(&mut line), 0)
    };
    (0..8).map(script).collect()
}

/// Draws a call of a script or a function, or what brings or takes them.
fn script(dice: &mut Dice, scripts: &[Vec<Vec<u8>>]) -> Vec<Vec<u8>> {
    let at = dice.below(scripts.len());
    let (body, given) = scripts[at].split_first().expect("a script");
    let call = |name: &str, what: &[u8]| {
        let named = [name.into(), what.to_vec()].into_iter();
        named.chain(given.iter().cloned()).collect()
    };
    let function = format!("{}{at}", ["f", "f", "f", "r"][dice.below(4)]);
    let sha = Sha::of(body);
    match dice.below(32) {
        0..8 => call("EVAL", body),
        8..16 => call("EVALSHA", sha.as_bytes()),
        16 => call("EVAL_RO", body),
        17 => call("EVALSHA_RO", sha.as_bytes()),
        18 => vec![b"SCRIPT".to_vec(), b"LOAD".to_vec(), body.clone()],
        19 => words(&["SCRIPT", "FLUSH"]),
        20..24 => {
            let mut load = words(&["FUNCTION", "LOAD", "REPLACE"]);
            load.truncate(3 - dice.below(2));
            load.push(library(at, body));
            load
        }
        24 if dice.once_in(2) => words(&["FUNCTION", "FLUSH"]),
        25 => words(&["FUNCTION", "DELETE", &format!("lib{at}")]),
        26 => call("FCALL_RO", function.as_bytes()),
        _ => call("FCALL", function.as_bytes()),
    }
}

/// The code of a library with a script as its function, twice: once it may only read.
fn library(at: usize, body: &[u8]) -> Vec<u8> {
    let head = format!("#!lua name=lib{at}\nlocal function run(KEYS, ARGV)\n");
    let tail = format!(
        "end\nredis.register_function('f{at}', run)\nredis.register_function{{\
         function_name = 'r{at}', callback = run, flags = {{'no-writes'}}}}\n"
    );
    [head.as_bytes(), body, tail.as_bytes()].concat()
}

/// A command as the oracle draws it.
fn drawn(dice: &mut Dice) -> Vec<Vec<u8>> {
    let bytes = dice.fill(100);
    spell(&line(&mut Draw::new(&bytes)), 0)
}

fn line(draw: &mut Draw<'_>) -> String {
    loop {
        let line = match draw.below(3) {
            0 => draw.any(),
            1 => draw.text(),
            _ => draw.list(),
        };
        if is_said(&line) {
            return line;
        }
    }
}

/// Whether clients say a command: it is about keys that it names, waits for none, and its reply is
/// the same in both protocols. Wall times would be over before it runs.
fn is_said(line: &str) -> bool {
    let words = spell(line, 0);
    let words: Vec<_> = words.iter().map(Vec::as_slice).collect();
    let row = resolve(Args::from_slices(&words)).expect("a command");
    let is_plain = row.name != "lmpop" && !line.contains('@');
    row.keys.first > 0 && !row.flags.has(Flags::BLOCKING) && is_plain
}

fn message(dice: &mut Dice) -> Vec<Vec<u8>> {
    let channel = ["news", "sport"][dice.below(2)];
    let mut payload = dice.number().to_string();
    if dice.once_in(10) {
        payload.push_str(&"!".repeat(dice.below(5_000)));
    }
    match dice.below(40) {
        0 => words(&["SUBSCRIBE", channel]),
        1 => words(&["PSUBSCRIBE", "n*"]),
        2..6 => words(&["UNSUBSCRIBE", channel]),
        6..9 => words(&["PUNSUBSCRIBE", "n*"]),
        9..20 => words(&["PUBLISH", channel, &payload]),
        20..28 => words(&["ECHO", &payload]),
        28..30 => words(&["ECHO", ""]),
        _ => words(&["PING"]),
    }
}

fn control(dice: &mut Dice, others: u64, me: u64) -> Vec<Vec<u8>> {
    let ms = dice.below(20).to_string();
    match dice.below(24) {
        0..3 => words(&["HELLO", "3"]),
        3 => words(&["HELLO", "2"]),
        4 => words(&["RESET"]),
        5 => words(&["CLIENT", "REPLY", "OFF"]),
        6..8 => words(&["CLIENT", "REPLY", "SKIP"]),
        8..12 => words(&["CLIENT", "REPLY", "ON"]),
        12 => words(&["CLIENT", "PAUSE", &ms, "WRITE"]),
        13 => words(&["CLIENT", "PAUSE", &ms, "ALL"]),
        14 => words(&["CLIENT", "UNPAUSE"]),
        15 if dice.once_in(4) => words(&["QUIT"]),
        16 if dice.once_in(4) => {
            // Not the first ones, who have to stay.
            let id = 4 + dice.below(others as usize) as u64;
            let id = if id == me { others + 1_000 } else { id };
            words(&["CLIENT", "KILL", "ID", &id.to_string()])
        }
        17 if dice.once_in(4) => words(&["INFO"]),
        18 if dice.once_in(6) => words(&["POST", "/"]),
        18 => words(&["NONSENSE", "a"]),
        19 => words(&["CLIENT", "ID"]),
        20 => match dice.below(20) {
            0..14 => words(&["SWAPDB", "0", "1"]),
            14 => words(&["FLUSHALL"]),
            _ => words(&["FLUSHDB"]),
        },
        _ => words(&["SELECT", ["0", "1"][dice.below(2)]]),
    }
}

fn key(dice: &mut Dice) -> String {
    format!("k{}", dice.below(12))
}

fn value(dice: &mut Dice) -> Vec<u8> {
    let len = match dice.below(100) {
        0 => dice.below(100_000),
        1..10 => dice.below(2_000),
        _ => dice.below(20),
    };
    let byte = b'a' + dice.below(26) as u8;
    vec![byte; len]
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}
