//! Scripts that run for long, and what clients say beside them: a command is refused and does
//! nothing, or runs and does it once. One that has changed nothing ends when somebody says so. The
//! clients that ask beside it die, and so does the one that has called it.

use std::collections::VecDeque;
use std::time::Duration;

use tidewheel_oracle::Dice;
use tidewheel_resp::Reply;

use super::crowd::seeds;
use super::rig::{Beside, Peer, Rig, bulk};
use crate::config::Settings;

const CLIENTS: usize = 6;
const ROUNDS: usize = 25;

/// It would last for a minute. Somebody ends it.
const READS: &str = "redis.call('get', KEYS[1]) for i = 1, 2e9 do end return 'done'";
const WRITES: &str = "redis.call('incr', KEYS[1]) for i = 1, 3e6 do end return 'done'";

/// The check that a client makes on a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Want {
    /// A count was added to, unless it was refused.
    Count,
    /// It is queued, or refused.
    Queued,
    /// As many counts were added to as were queued, or the transaction was discarded.
    Exec,
    /// It is answered, or refused.
    Any,
    /// The script.
    Ran,
}

struct Client {
    peer: Peer,
    input: Vec<u8>,
    wants: VecDeque<Want>,
    /// Commands that its transaction has queued.
    queued: usize,
}

struct World {
    rig: Rig,
    dice: Dice,
    clients: Vec<Client>,
    /// Counts that clients were told of, and those of the dead.
    counted: i64,
    lost: i64,
    refused: usize,
    ran: usize,
    killed: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let settings = Settings {
            script_ms: 5,
            ..Settings::default()
        };
        let mut world = Self {
            rig: Rig::new(1, settings),
            dice: Dice::new(seed),
            clients: Vec::new(),
            counted: 0,
            lost: 0,
            refused: 0,
            ran: 0,
            killed: 0,
        };
        for _ in 0..CLIENTS {
            let client = world.connect();
            world.clients.push(client);
        }
        world
    }

    fn connect(&mut self) -> Client {
        Client {
            peer: self.rig.connect(0),
            input: Vec::new(),
            wants: VecDeque::new(),
            queued: 0,
        }
    }

    /// The bytes of what a client says next.
    fn speak(&mut self, at: usize) -> Vec<u8> {
        let calls: &[(&str, Want)] = match self.dice.below(12) {
            0..4 => &[("INCR n", Want::Count)],
            4 => &[("GET a", Want::Any)],
            5 => &[("SET a v PX 3", Want::Any), ("GET b", Want::Any)],
            6 => &[("WATCH n", Want::Any), ("UNWATCH", Want::Any)],
            7 => &[("FUNCTION KILL", Want::Any), ("PING", Want::Any)],
            8 => &[("EVAL return(redis.call('incr','n')) 0", Want::Count)],
            9 => &[("WATCH x", Want::Any), ("INCR n", Want::Count)],
            _ => &[
                ("MULTI", Want::Any),
                ("INCR n", Want::Queued),
                ("INCR n", Want::Queued),
                ("EXEC", Want::Exec),
            ],
        };
        let client = &mut self.clients[at];
        let mut bytes = Vec::new();
        for (line, want) in calls {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            bytes.extend(bulk(&words));
            client.wants.push_back(*want);
        }
        bytes
    }

    fn round(&mut self) {
        let runner = self.dice.below(CLIENTS);
        for _ in 0..self.dice.below(4) {
            let at = self.dice.below(CLIENTS);
            let said = self.speak(at);
            self.clients[at].peer.send(&said);
        }
        let writes = self.dice.once_in(2);
        let call = match writes {
            true => bulk(&[b"EVAL", WRITES.as_bytes(), b"1", b"runs"]),
            false => bulk(&[b"EVAL", READS.as_bytes(), b"1", b"a"]),
        };
        self.clients[runner].peer.send(&call);
        self.clients[runner].wants.push_back(Want::Ran);
        let mut shell = Beside::default();
        let mut dead = Vec::new();
        for _ in 0..self.dice.below(12) {
            let at = self.dice.below(CLIENTS);
            if dead.contains(&at) {
                continue;
            }
            let said = match self.dice.once_in(8) {
                true => {
                    dead.push(at);
                    None
                }
                false => Some(self.speak(at)),
            };
            shell
                .coming
                .push_back((self.clients[at].peer.clone(), said));
        }
        let killer = self.rig.connect(0);
        shell
            .coming
            .push_back((killer.clone(), Some(bulk(&[b"SCRIPT", b"KILL"]))));
        self.rig
            .server
            .clock
            .pass_with_looks(Duration::from_millis(2));
        // A turn is short while time passes so fast.
        for _ in 0..30 {
            self.rig.turn_with(0, &mut shell);
        }
        assert!(shell.coming.is_empty(), "the script ran long enough");
        self.rig.server.clock.pass_with_looks(Duration::ZERO);
        self.rig.settle();
        let answer = killer.take();
        match writes {
            true => assert!(
                answer.starts_with(b"-UNKILLABLE"),
                "{}",
                answer.escape_ascii()
            ),
            false => assert_eq!(answer, b"+OK\r\n"),
        }
        killer.wire.borrow_mut().reset();
        for at in 0..CLIENTS {
            self.hear(at, dead.contains(&at), writes);
        }
        for at in dead {
            // It may have been counted for without being told.
            let unheard = self.clients[at]
                .wants
                .iter()
                .filter(|want| **want != Want::Any);
            self.lost += unheard.count() as i64;
            self.clients[at] = self.connect();
        }
    }

    fn hear(&mut self, at: usize, is_dead: bool, writes: bool) {
        let client = &mut self.clients[at];
        client.input.extend(client.peer.take());
        let input = std::mem::take(&mut client.input);
        let mut rest = &input[..];
        while let Some((reply, used)) = Reply::read(rest).expect("replies") {
            rest = &rest[used..];
            let want = client.wants.pop_front().expect("it has asked");
            let refused = match &reply {
                Reply::Error(why) => why.starts_with("BUSY "),
                _ => false,
            };
            self.refused += usize::from(refused);
            match (want, reply) {
                (Want::Count, Reply::Integer(_)) => self.counted += 1,
                (Want::Queued, Reply::Simple(_)) => client.queued += 1,
                (Want::Exec, Reply::Array(replies)) => {
                    assert_eq!(replies.len(), std::mem::take(&mut client.queued));
                    self.counted += replies.len() as i64;
                }
                (Want::Exec, Reply::Error(why)) => {
                    assert!(why.starts_with("EXECABORT "), "{why}");
                    client.queued = 0;
                }
                (Want::Any, _) => {}
                (Want::Ran, Reply::Bulk(_)) => {
                    assert!(writes, "it was ended");
                    self.ran += 1;
                }
                (Want::Ran, Reply::Error(why)) if why.contains("killed by user") => {
                    assert!(!writes, "half of it was done");
                    self.killed += 1;
                }
                (Want::Count | Want::Queued, _) if refused => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(rest.is_empty(), "replies are whole");
        assert!(
            is_dead || client.wants.is_empty(),
            "{:?} of {at}",
            client.wants
        );
    }
}

fn episode(seed: u64) -> (usize, usize, usize) {
    let mut world = World::new(seed);
    for _ in 0..ROUNDS {
        world.round();
    }
    let reader = world.rig.connect(0);
    let count = world.rig.ask(&reader, b"INCRBY n 0\r\n");
    let count = String::from_utf8_lossy(&count[1..])
        .trim_end()
        .parse::<i64>();
    let count = count.expect("a number");
    let (counted, lost) = (world.counted, world.lost);
    assert!(
        (counted..=counted + lost).contains(&count),
        "{count}: {counted} and {lost}"
    );
    (world.refused, world.ran, world.killed)
}

#[test]
fn what_is_refused_beside_a_long_script_does_nothing_and_the_rest_is_done_once() {
    let (mut refused, mut ran, mut killed) = (0, 0, 0);
    for seed in 0..seeds() {
        let (more, runs, kills) = episode(seed);
        refused += more;
        ran += runs;
        killed += kills;
    }
    let least = seeds() as usize * 5;
    assert!(
        refused > 4 * least && ran > least && killed > least,
        "{refused} {ran} {killed}"
    );
}
