//! Transfers between accounts, each a transaction: every reader sees the whole sum at any moment.

use tidewheel_resp::Reply;

use super::crowd::{Crowd, seeds, texts};

const CLIENTS: usize = 16;
const STEPS: usize = 4_000;
const ACCOUNTS: usize = 12;
const EACH: i64 = 100;

/// The check that a client makes on a reply.
#[derive(Debug)]
enum Want {
    /// It is no error.
    Done,
    /// All the money.
    All,
    /// All the money, in the last reply of a transaction.
    AllInTheEnd,
}

fn accounts() -> String {
    (0..ACCOUNTS).map(|n| format!(" a{n}")).collect()
}

fn opening() -> String {
    let pairs = (0..ACCOUNTS).map(|n| format!(" a{n} {EACH}"));
    format!("MSET{}", pairs.collect::<String>())
}

/// Returns a client's next calls.
fn business(crowd: &mut Crowd<Want>) -> Vec<(String, Want)> {
    let dice = &mut crowd.dice;
    let (from, to) = (dice.below(ACCOUNTS), dice.below(ACCOUNTS));
    let (n, look) = (dice.below(50), format!("MGET{}", accounts()));
    let within: Vec<String> = match dice.below(12) {
        0..3 => return vec![(look, Want::All)],
        3 => return vec![(format!("SET other{from} x PX {}", 1 + n), Want::Done)],
        4..9 => vec![format!("DECRBY a{from} {n}"), format!("INCRBY a{to} {n}")],
        9 => vec![
            format!("RENAME a{from} moved"),
            format!("RENAME moved a{from}"),
        ],
        10 => vec!["FLUSHALL".to_owned(), opening()],
        // Half of it in another database.
        _ => vec![
            format!("MOVE a{from} 1"),
            "SELECT 1".to_owned(),
            format!("MOVE a{from} 0"),
            "SELECT 0".to_owned(),
        ],
    };
    let mut calls = vec![("MULTI".to_owned(), Want::Done)];
    calls.extend(within.into_iter().map(|line| (line, Want::Done)));
    calls.extend([(look, Want::Done), ("EXEC".to_owned(), Want::AllInTheEnd)]);
    calls
}

fn check(want: &Want, reply: &Reply) {
    let sum = |reply: &Reply| {
        texts(reply)
            .iter()
            .map(|n| n.parse::<i64>().unwrap())
            .sum::<i64>()
    };
    let all = ACCOUNTS as i64 * EACH;
    match want {
        Want::Done => assert!(!matches!(reply, Reply::Error(_)), "{reply:?}"),
        Want::All => assert_eq!(sum(reply), all),
        Want::AllInTheEnd => match reply {
            Reply::Array(replies) => assert_eq!(sum(replies.last().expect("a reply")), all),
            other => panic!("EXEC answered {other:?}"),
        },
    }
}

fn episode(seed: u64) -> usize {
    let mut crowd = Crowd::new(seed, CLIENTS);
    crowd.ask(&opening());
    let mut seen = 0;
    for _ in 0..STEPS {
        let at = crowd.dice.below(CLIENTS);
        if crowd.members[at].is_idle() {
            for (line, want) in business(&mut crowd) {
                crowd.members[at].say(&line, want);
            }
        }
        if crowd.dice.once_in(100) {
            crowd.die(at);
        }
        crowd.pass();
        seen += hear(&mut crowd);
    }
    crowd.settle();
    seen += hear(&mut crowd);
    check(&Want::All, &crowd.ask(&format!("MGET{}", accounts())));
    seen
}

fn hear(crowd: &mut Crowd<Want>) -> usize {
    let mut seen = 0;
    for member in &mut crowd.members {
        while let Some((want, reply)) = member.reply() {
            check(&want, &reply);
            seen += usize::from(!matches!(want, Want::Done));
        }
    }
    seen
}

#[test]
fn the_sum_of_all_accounts_holds_at_every_read_while_clients_die() {
    let seen: usize = (0..seeds()).map(episode).sum();
    assert!(seen as u64 > seeds() * 166, "{seen} looks");
}
