//! Checks that no element is lost or served twice while a third of the waiting clients die.
//!
//! Eight connections push numbered elements. A crowd of clients waits for them, half with BLPOP,
//! half with BLMOVE into a list of the client's own. Each client lives for a few elements. Two of
//! three then leave with nothing outstanding. The third dies while it waits, in one of six ways. In
//! the end each element that was acknowledged is accounted for:
//!
//! - it was received, once;
//! - or it is in the list of a client that died, as the last one there: it was served before the
//!   death;
//! - or it is still where it was pushed to;
//! - or it was popped for a client that died by force before it could read the reply: at most one
//!   for each such death, and none for the others.
//!
//! `TIDEWHEEL_PUSHES` says how many elements are pushed. The figure of a million comes from
//! `TIDEWHEEL_PUSHES=1000000 cargo test -p tidewheel-server --test it blocking_deaths --
//! --nocapture`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{scope, yield_now};

use crate::common::{Client, Reply, Server, command, text};

const PUSHERS: u64 = 8;
const THREADS: u64 = 16;
/// Clients that a thread has at a time.
const EACH: usize = 24;
/// Elements that a client waits for at most, before it leaves or dies.
const LIFE: u64 = 40;
/// Pushers wait while more elements than this lie there, so that most are handed over to somebody
/// who waits.
const ENOUGH: i64 = 64;
/// The element that ends a waiting client when all is pushed.
const STOP: u64 = u64::MAX;

/// Small random numbers, the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)) % end
    }
}

/// The ways in which a client ends while it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    /// Its socket is closed.
    Socket,
    /// CLIENT KILL.
    Killed,
    /// CLIENT UNBLOCK, and then it leaves.
    Unblocked,
    /// CLIENT UNBLOCK with an error.
    Refused,
    /// A time-out of milliseconds.
    TimeOut,
    /// It closes its sending side, and reads to the end.
    HalfClose,
}

const DEATHS: [Death; 6] = [
    Death::Socket,
    Death::Killed,
    Death::Unblocked,
    Death::Refused,
    Death::TimeOut,
    Death::HalfClose,
];

impl Death {
    /// Returns true if a reply on its way may be lost.
    fn is_by_force(self) -> bool {
        matches!(self, Self::Socket | Self::Killed)
    }
}

/// The history of one client.
struct Life {
    /// Its own list, if it moves elements there.
    own: Option<String>,
    received: Vec<u64>,
    death: Option<Death>,
}

/// One client that waits.
struct Waiter {
    client: Client,
    id: String,
    life: Life,
    /// Elements that it still waits for.
    left: u64,
    dies: Option<Death>,
}

impl Waiter {
    fn new(port: u16, number: u64, dice: &mut Dice) -> Self {
        let mut client = Client::connect(port);
        let Reply::Integer(id) = client.call(&["CLIENT", "ID"]) else {
            panic!("a number")
        };
        let dies = (dice.below(3) == 0).then(|| DEATHS[dice.below(6) as usize]);
        Self {
            client,
            id: id.to_string(),
            life: Life {
                own: (dice.below(2) == 0).then(|| format!("own:{number}")),
                received: Vec::new(),
                death: None,
            },
            left: 1 + dice.below(LIFE),
            dies,
        }
    }

    /// Returns the client's death, if it is about to die.
    fn is_due(&self) -> Option<Death> {
        self.dies.filter(|_| self.left == 1)
    }

    fn begin_wait(&mut self) {
        let timeout = match self.is_due() {
            Some(Death::TimeOut) => "0.002",
            _ => "0",
        };
        let call = match &self.life.own {
            Some(own) => command(&["BLMOVE", "queue", own, "LEFT", "RIGHT", timeout]),
            None => command(&["BLPOP", "queue", "other", timeout]),
        };
        self.client.send(&call);
    }

    /// Reads what it has waited for. False if it is to live no longer.
    fn end_wait(&mut self, admin: &mut Client) -> bool {
        match self.is_due() {
            Some(death) => {
                self.life.death = Some(death);
                self.die(death, admin);
                false
            }
            None => {
                let reply = self.client.read();
                self.left -= 1;
                self.take(&reply) && self.left > 0
            }
        }
    }

    /// False at the last element of all.
    fn take(&mut self, reply: &Reply) -> bool {
        let element = match reply {
            Reply::Bulk(_) => text(reply),
            Reply::Array(of) => text(&of[1]),
            other => panic!("{other:?}"),
        };
        let element = element.parse().expect("a number");
        self.life.received.push(element);
        element != STOP
    }

    fn die(&mut self, death: Death, admin: &mut Client) {
        match death {
            Death::Socket => {}
            Death::Killed => {
                admin.call(&["CLIENT", "KILL", "ID", &self.id]);
                if let Some(reply) = self.client.try_read() {
                    self.take(&reply);
                }
            }
            Death::HalfClose => {
                self.client.finish_sending();
                if let Some(reply) = self.client.try_read() {
                    self.take(&reply);
                }
            }
            Death::Unblocked | Death::Refused | Death::TimeOut => {
                let how = if death == Death::Refused {
                    "ERROR"
                } else {
                    "TIMEOUT"
                };
                let unblocked = death != Death::TimeOut
                    && admin.call(&["CLIENT", "UNBLOCK", &self.id, how]) == Reply::Integer(1);
                match self.client.read() {
                    Reply::Null => assert!(death != Death::Refused),
                    Reply::Error(_) => assert!(unblocked && death == Death::Refused),
                    reply => {
                        assert!(!unblocked, "it was unblocked, and got {reply:?}");
                        self.take(&reply);
                    }
                }
            }
        }
    }
}

/// One thread's clients, one after the other, until an element says that it is over.
fn wait(port: u16, thread: u64) -> Vec<Life> {
    let mut dice = Dice(thread);
    let mut admin = Client::connect(port);
    let mut lives = Vec::new();
    let mut next = (thread << 32)..;
    let mut crowd: Vec<Waiter> = Vec::new();
    let mut over = false;
    while !over {
        crowd.resize_with(EACH, || {
            Waiter::new(port, next.next().expect("endless"), &mut dice)
        });
        crowd.iter_mut().for_each(Waiter::begin_wait);
        let mut alive = Vec::new();
        for mut waiter in crowd.drain(..) {
            let stays = waiter.end_wait(&mut admin);
            over |= waiter.life.received.last() == Some(&STOP);
            match stays {
                true => alive.push(waiter),
                false => lives.push(waiter.life),
            }
        }
        crowd = alive;
    }
    lives.extend(crowd.into_iter().map(|waiter| waiter.life));
    lives
}

/// Pushes its share of the elements. Every one of them is acknowledged.
fn push(port: u16, pusher: u64, pushes: u64) {
    const BATCH: usize = 16;
    let mut client = Client::connect(port);
    let elements: Vec<u64> = (pusher..pushes).step_by(PUSHERS as usize).collect();
    for (round, batch) in elements.chunks(BATCH).enumerate() {
        let key = if round % 8 == 0 { "other" } else { "queue" };
        let calls = batch.iter().map(|element| {
            let element = element.to_string();
            command(&["RPUSH", key, &element])
        });
        let calls: Vec<u8> = calls.flatten().collect();
        client.send(&calls);
        for _ in batch {
            assert!(matches!(client.read(), Reply::Integer(1..)));
        }
        while !matches!(client.call(&["LLEN", key]), Reply::Integer(..=ENOUGH)) {
            yield_now();
        }
    }
}

fn list(admin: &mut Client, key: &str) -> Vec<u64> {
    let Reply::Array(elements) = admin.call(&["LRANGE", key, "0", "-1"]) else {
        panic!("a list")
    };
    let number = |reply: &Reply| text(reply).parse().expect("a number");
    elements.iter().map(number).collect()
}

/// Pushes so many elements to a crowd. Returns what has become of each client.
fn push_to_a_crowd(server: &Server, pushes: u64) -> Vec<Life> {
    let (port, over) = (server.port, AtomicBool::new(false));
    scope(|scope| {
        let wait = |thread| scope.spawn(move || wait(port, thread));
        let waiters: Vec<_> = (0..THREADS).map(wait).collect();
        let push = |pusher| scope.spawn(move || push(port, pusher, pushes));
        let pushers: Vec<_> = (0..PUSHERS).map(push).collect();
        for pusher in pushers {
            pusher.join().expect("it has pushed");
        }
        scope.spawn(|| {
            let (mut client, stop) = (server.client(), STOP.to_string());
            while !over.load(Relaxed) {
                client.call(&["RPUSH", "queue", &stop]);
                client.call(&["RPUSH", "other", &stop]);
            }
        });
        let lives = waiters.into_iter().map(|waiter| waiter.join());
        let lives = lives
            .flat_map(|lives| lives.expect("it has waited"))
            .collect();
        over.store(true, Relaxed);
        lives
    })
}

/// The count of all elements at the end.
struct Account {
    /// The number of times that each element was found.
    found: Vec<u8>,
    deaths: u64,
    /// In the list of a client that died, and not read by it.
    moved_for_the_dead: usize,
    /// Clients whose last element may have been popped for nobody.
    may_have_popped: u64,
    left: u64,
}

impl Account {
    fn new(pushes: u64) -> Self {
        Self {
            found: vec![0; usize::try_from(pushes).expect("not so many")],
            deaths: 0,
            moved_for_the_dead: 0,
            may_have_popped: 0,
            left: 0,
        }
    }

    fn enter(&mut self, element: u64) {
        if element != STOP {
            let count = &mut self.found[usize::try_from(element).expect("a number of ours")];
            *count += 1;
            assert_eq!(*count, 1, "{element} was served twice");
        }
    }

    fn enter_life(&mut self, life: &Life, admin: &mut Client) {
        let by_force = life.death.is_some_and(Death::is_by_force);
        self.deaths += u64::from(life.death.is_some());
        let Some(own) = &life.own else {
            life.received
                .iter()
                .for_each(|element| self.enter(*element));
            self.may_have_popped += u64::from(by_force);
            return;
        };
        let moved = list(admin, own);
        let (read, more) = moved.split_at(life.received.len());
        assert_eq!(read, life.received, "{own}");
        assert!(more.len() <= usize::from(by_force), "{own} has {more:?}");
        self.moved_for_the_dead += more.len();
        moved.iter().for_each(|element| self.enter(*element));
    }

    fn enter_rest(&mut self, rest: &[u64]) {
        for element in rest {
            self.left += u64::from(*element != STOP);
            self.enter(*element);
        }
    }

    fn missing(&self) -> u64 {
        self.found.iter().filter(|count| **count == 0).count() as u64
    }
}

#[test]
fn nothing_is_lost_and_nothing_is_served_twice_while_waiters_die() {
    let pushes = std::env::var("TIDEWHEEL_PUSHES").map_or(60_000, |n| n.parse().expect("a number"));
    let server = Server::start(&[]);
    let lives = push_to_a_crowd(&server, pushes);
    let (mut admin, mut account) = (server.client(), Account::new(pushes));
    for life in &lives {
        account.enter_life(life, &mut admin);
    }
    for key in ["queue", "other"] {
        account.enter_rest(&list(&mut admin, key));
    }
    let (missing, clients) = (account.missing(), lives.len());
    let Account {
        deaths,
        moved_for_the_dead,
        may_have_popped,
        left,
        ..
    } = account;
    println!(
        "{pushes} pushed; {clients} clients, {deaths} died waiting; none twice; {left} left, {moved_for_the_dead} moved \
         for the dead, {missing} popped for the dead (at most {may_have_popped})"
    );
    assert!(missing <= may_have_popped, "{missing} are lost");
}
