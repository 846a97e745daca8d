//! Counting with WATCH: no update is lost, whoever dies.

use tidewheel_resp::Reply;

use super::crowd::{Crowd, seeds, texts};

const CLIENTS: usize = 10;
const STEPS: usize = 4_000;

/// The check that a client makes on a reply.
#[derive(Debug)]
enum Want {
    /// It may go on.
    Done,
    /// The count, to add one to it.
    Count,
    /// The count was taken.
    Taken(u64),
}

fn episode(seed: u64) -> usize {
    let mut crowd = Crowd::new(seed, CLIENTS);
    crowd.ask("SET n 0");
    // The counts that clients were told to have written.
    let mut taken = Vec::new();
    for _ in 0..STEPS {
        let at = crowd.dice.below(CLIENTS);
        let kept = crowd.dice.once_in(2);
        let member = &mut crowd.members[at];
        if member.is_idle() {
            member.say("WATCH n other", Want::Done);
            member.say("GET n", Want::Count);
        }
        if crowd.dice.once_in(150) {
            crowd.die(at);
        }
        if crowd.dice.once_in(200) {
            // Something else changes too, and dies, or everything moves.
            let line = ["SET other x PX 3", "DEL other", "SWAPDB 3 4"][crowd.dice.below(3)];
            crowd.members[at].say(line, Want::Done);
        }
        crowd.pass();
        hear(&mut crowd, &mut taken, kept);
    }
    crowd.settle();
    hear(&mut crowd, &mut taken, false);
    crowd.settle();
    hear(&mut crowd, &mut taken, false);
    check(&mut crowd, &mut taken);
    taken.len()
}

fn hear(crowd: &mut Crowd<Want>, taken: &mut Vec<u64>, in_script: bool) {
    for member in &mut crowd.members {
        while let Some((want, reply)) = member.reply() {
            match (want, reply) {
                (Want::Done, reply) => assert!(!matches!(reply, Reply::Error(_)), "{reply:?}"),
                (Want::Count, Reply::Bulk(count)) => {
                    let count: u64 = String::from_utf8_lossy(&count).parse().unwrap();
                    member.say("MULTI", Want::Done);
                    let set = match in_script {
                        true => format!("SET n {}", count + 1),
                        false => "INCR n".to_owned(),
                    };
                    member.say(&set, Want::Done);
                    member.say(&format!("RPUSH log {}", count + 1), Want::Done);
                    member.say("EXEC", Want::Taken(count + 1));
                }
                (Want::Taken(count), Reply::Array(_)) => taken.push(count),
                (Want::Taken(_), Reply::Null) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Each count was written once, one after the other. Those of clients that died may be among them.
fn check(crowd: &mut Crowd<Want>, taken: &mut Vec<u64>) {
    let Reply::Bulk(count) = crowd.ask("GET n") else {
        panic!("no count");
    };
    let count: u64 = String::from_utf8_lossy(&count).parse().unwrap();
    let log = texts(&crowd.ask("LRANGE log 0 -1"));
    let all: Vec<String> = (1..=count).map(|n| n.to_string()).collect();
    assert_eq!(log, all, "the counts, in their order");
    let told = taken.len();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), told, "a count was taken twice");
    assert!(taken.last().is_none_or(|last| *last <= count));
}

#[test]
fn no_update_that_was_watched_for_is_lost_while_clients_die() {
    let taken: usize = (0..seeds()).map(episode).sum();
    assert!(taken as u64 > seeds() * 33, "{taken} updates");
}
