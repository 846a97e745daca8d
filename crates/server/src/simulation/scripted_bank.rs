//! Transfers between accounts by scripts and functions: every reader sees the whole sum at any
//! moment, and of two keys that end together both or none. Scripts declare their keys or not, fail
//! half-way, take everything, stand in transactions, and are forgotten. Clients die while they run.

use std::sync::atomic::Ordering;

use tidewheel_resp::Reply;
use tidewheel_scripts::Sha;

use super::crowd::{Crowd, seeds, texts};

const CLIENTS: usize = 16;
const STEPS: usize = 4_000;
const ACCOUNTS: usize = 12;
const EACH: i64 = 100;

/// The check that a client makes on a reply.
#[derive(Debug, Clone)]
enum Want {
    /// It is no error.
    Done,
    /// Anything.
    Any,
    /// All the money. If the script is unknown, its text is sent.
    All(Option<Vec<String>>),
    /// All the money, in the last reply of a transaction.
    AllInTheEnd,
    /// An error half-way.
    Half,
    /// The values of two keys that end together.
    Both,
    /// They are the last two replies of a transaction.
    BothInTheEnd,
    /// The script was refused because it changes data.
    ReadOnly,
}

const LOOK: &str = "
local function look()
  local names = {}
  for n = 0, 11 do names[n + 1] = 'a' .. n end
  return redis.call('mget', unpack(names))
end
";
/// Its keys are declared, but not those that it looks at.
const DECLARED: &str = "
redis.call('decrby', KEYS[1], ARGV[1])
redis.call('incrby', KEYS[2], ARGV[1])
return look()";
/// It names its second account by the first one's answer.
const UNDECLARED: &str = "
local left = redis.call('decrby', ARGV[2], ARGV[1])
redis.call('set', 'a' .. ARGV[3], redis.call('get', 'a' .. ARGV[3]) + ARGV[1])
return look()";
/// What it declares is not all that it changes.
const HALF_DECLARED: &str = "
redis.call('decrby', KEYS[1], ARGV[1])
redis.call('incrby', ARGV[2], ARGV[1])
return look()";
const FAILS: &str = "
redis.call('decrby', KEYS[1], ARGV[1])
local caught = redis.pcall('lpush', KEYS[1], 'x')
redis.call('incrby', KEYS[2], ARGV[1])
if caught.err then redis.call('lpush', KEYS[2], 'x') end
return 'nobody comes here'";
const REOPENS: &str = "
redis.call('flushall')
for n = 0, 11 do redis.call('set', 'a' .. n, 100) end
return look()";
const LOOKS: &str = "
local first = look()
for n = 1, 3 do
  local again = look()
  for at = 1, #first do
    if first[at] ~= again[at] then return redis.error_reply('SEEN a change') end
  end
end
return first";
const LEASES: &str = "
if redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2], 'nx') then
  redis.call('set', 'q', ARGV[1], 'px', ARGV[2])
end
return redis.call('mget', KEYS[1], 'q')";
const LEASED: &str = "
local first = redis.call('get', 'p')
for n = 1, 100 do
  if redis.call('exists', 'p', 'q') ~= (first and 2 or 0) then
    return redis.error_reply('SEEN an end')
  end
end
return {first, redis.call('get', 'q')}";

fn text(body: &str) -> String {
    LOOK.to_owned() + body
}

fn library(body: &str) -> String {
    let body = text(body);
    format!("#!lua name=bank\nredis.register_function('move', function(KEYS, ARGV)\n{body}\nend)")
}

fn accounts() -> String {
    (0..ACCOUNTS).map(|n| format!(" a{n}")).collect()
}

fn opening() -> String {
    let pairs = (0..ACCOUNTS).map(|n| format!(" a{n} {EACH}"));
    format!("MSET{}", pairs.collect::<String>())
}

/// Says a client's next calls.
fn do_business(crowd: &mut Crowd<Want>, at: usize) {
    let dice = &mut crowd.dice;
    let (from, to) = (dice.below(ACCOUNTS), dice.below(ACCOUNTS));
    let [from, target] = [from, to].map(|n| format!("a{n}"));
    let (amount, to) = (dice.below(50).to_string(), to.to_string());
    let ms = (1 + dice.below(12)).to_string();
    let (kind, by_name) = (dice.below(24), dice.once_in(2));
    let (body, given): (&str, Vec<&str>) = match dice.below(4) {
        0 => (DECLARED, vec!["2", &from, &target, &amount]),
        1 => (UNDECLARED, vec!["0", &amount, &from, &to]),
        2 => (HALF_DECLARED, vec!["1", &from, &amount, &target]),
        _ => (LOOKS, vec!["0"]),
    };
    let body = text(body);
    let eval = [&["EVAL", body.as_str()][..], &given].concat();
    let member = &mut crowd.members[at];
    match kind {
        0..8 => {
            let again = eval.iter().map(|word| (*word).to_owned()).collect();
            match by_name {
                true => {
                    let sha = Sha::of(body.as_bytes()).to_string();
                    let call = [&["EVALSHA", sha.as_str()][..], &given].concat();
                    member.call(&call, Want::All(Some(again)));
                }
                false => member.call(&eval, Want::All(None)),
            }
        }
        8 => member.say(&format!("MGET{}", accounts()), Want::All(None)),
        9 | 10 => {
            member.say("MULTI", Want::Done);
            member.call(&eval, Want::Done);
            if by_name {
                member.call(&["EVAL", &text(LOOKS), "0"], Want::Done);
            }
            member.say(&format!("MGET{}", accounts()), Want::Done);
            member.say("EXEC", Want::AllInTheEnd);
        }
        11 => {
            let call = ["EVAL", &text(FAILS), "2", &from, &target, &amount];
            member.call(&call, Want::Half);
        }
        12 => member.call(&["EVAL", &text(REOPENS), "0"], Want::All(None)),
        13 | 14 => member.call(&["EVAL_RO", &text(LOOKS), "0"], Want::All(None)),
        15 => {
            let call = ["EVAL_RO", &text(DECLARED), "2", &from, &target, &amount];
            member.call(&call, Want::ReadOnly);
        }
        16 => member.say(
            ["SCRIPT FLUSH", "FUNCTION FLUSH"][usize::from(by_name)],
            Want::Done,
        ),
        17 => {
            let code = library(if by_name { DECLARED } else { HALF_DECLARED });
            member.call(&["FUNCTION", "LOAD", "REPLACE", &code], Want::Done);
        }
        // Either of the two knows what to do with these.
        18 => member.call(
            &["FCALL", "move", "2", &from, &from, "0", &from],
            Want::All(None),
        ),
        19 => member.say(
            ["SCRIPT KILL", "FUNCTION KILL"][usize::from(by_name)],
            Want::Any,
        ),
        20 | 21 => member.call(&["EVAL", &text(LEASES), "1", "p", &amount, &ms], Want::Both),
        22 => member.call(&["EVAL", &text(LEASED), "0"], Want::Both),
        _ => match by_name {
            true => member.say("MGET p q", Want::Both),
            false => {
                for line in ["MULTI", "GET p", "GET q"] {
                    member.say(line, Want::Done);
                }
                member.say("EXEC", Want::BothInTheEnd);
            }
        },
    }
}

/// Checks a reply. Returns a call that has to be said in full.
fn check(want: Want, reply: &Reply) -> Option<Vec<String>> {
    let all = ACCOUNTS as i64 * EACH;
    let sum = |reply: &Reply| {
        let numbers = texts(reply);
        let numbers = numbers.iter().map(|n| n.parse::<i64>().expect("a number"));
        numbers.sum::<i64>()
    };
    let both = |replies: &[Reply]| match replies {
        [.., one, other] => assert_eq!(one, other, "two that end together"),
        other => panic!("{other:?}"),
    };
    match (want, reply) {
        (Want::Any, _) => {}
        (Want::All(Some(call)), Reply::Error(why)) if why.starts_with("NOSCRIPT ") => {
            return Some(call);
        }
        (Want::All(None), Reply::Error(why)) if why == "ERR Function not found" => {}
        (Want::Half, Reply::Error(why)) => assert!(why.starts_with("WRONGTYPE "), "{why}"),
        (Want::ReadOnly, Reply::Error(why)) => assert!(why.contains("read-only scripts"), "{why}"),
        (want, Reply::Error(why)) => panic!("{why} for {want:?}"),
        (Want::Done, _) => {}
        (Want::All(_), reply) => assert_eq!(sum(reply), all),
        (Want::AllInTheEnd, Reply::Array(replies)) => {
            replies[..replies.len() - 1]
                .iter()
                .for_each(|reply| assert_eq!(sum(reply), all));
            assert_eq!(sum(replies.last().expect("a reply")), all);
        }
        (Want::Both | Want::BothInTheEnd, Reply::Array(replies)) => both(replies),
        other => panic!("{other:?}"),
    }
    None
}

fn hear(crowd: &mut Crowd<Want>) -> usize {
    let mut seen = 0;
    for member in &mut crowd.members {
        while let Some((want, reply)) = member.reply() {
            seen += usize::from(!matches!(want, Want::Done | Want::Any));
            if let Some(call) = check(want, &reply) {
                let words: Vec<&str> = call.iter().map(String::as_str).collect();
                member.call(&words, Want::All(None));
            }
        }
    }
    seen
}

fn episode(seed: u64) -> usize {
    let mut crowd = Crowd::new(seed, CLIENTS);
    if crowd.dice.once_in(2) {
        // A look is a long command then.
        let rules = crowd.rig.server.keyspace.rules();
        rules.long_ns.store(500, Ordering::Relaxed);
    }
    crowd.ask(&opening());
    let mut seen = 0;
    for _ in 0..STEPS {
        let at = crowd.dice.below(CLIENTS);
        if crowd.members[at].is_idle() {
            do_business(&mut crowd, at);
        }
        if crowd.dice.once_in(100) {
            crowd.die(at);
        }
        crowd.pass();
        seen += hear(&mut crowd);
    }
    crowd.settle();
    seen += hear(&mut crowd);
    crowd.settle();
    seen += hear(&mut crowd);
    let look = crowd.ask(&format!("MGET{}", accounts()));
    check(Want::All(None), &look);
    seen
}

#[test]
fn the_sum_of_all_accounts_holds_between_scripts_while_clients_die() {
    let seen: usize = (0..seeds()).map(episode).sum();
    assert!(seen as u64 > seeds() * 150, "{seen} looks");
}
