//! A server with its loops, without threads: a test runs their turns one by one.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::task::Waker;
use std::time::Duration;

use tidewheel_keyspace::{Seat, Served};
use tidewheel_oracle::Replica;
use tidewheel_resp::Writer;

use super::wire::{Socket, Wire};
use crate::config::{SavePoints, Settings};
use crate::loop_handle::LoopHandle;
use crate::loop_handle::inbox::{InboxItem, Target};
use crate::loops::loop_core::{LoopCore, Readiness, Shell, Sockets};
use crate::net::listener::Accepted;
use crate::process::long_work::Work;
use crate::process::reclaim::Reclaimer;
use crate::state::loop_state::LoopState;
use crate::state::observer::Observe as _;
use crate::state::server::{Server, ServerParts, StopReason};
use crate::time::clock::Clock;

/// A server whose time stands still until a test moves it.
pub(super) struct Rig {
    pub(super) server: Arc<Server>,
    pub(super) loops: Vec<LoopCore<InMemory>>,
    /// Until which tick each loop sleeps, if it does.
    asleep: Vec<Option<u64>>,
    /// The connections of each loop.
    peers: Vec<Vec<Peer>>,
    /// The seat of the thread that runs long commands.
    pub(super) long: Seat,
    /// What its records make, if nobody else takes them.
    replica: Option<Replica>,
    /// Keeps the way open on which commands ask the server to stop.
    _stopped: Receiver<StopReason>,
}

impl Drop for Rig {
    /// Whatever a test is about, what was recorded makes the same data.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check_records();
        }
    }
}

/// The client's end of a connection.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) wire: Rc<RefCell<Wire>>,
    /// The number of its loop.
    pub(super) owner: usize,
    slot: u32,
}

/// A shell where nothing happens within a turn.
struct Still;

impl Shell<Socket> for Still {
    fn look(&mut self, _: &mut dyn FnMut(u32, Readiness)) {}

    fn accept(&mut self, _: &mut LoopState, _: &mut Vec<Accepted<Socket>>) {}
}

/// A shell for turns in which a script runs for long: at each look a client says something, or
/// dies.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// What comes, in its order; `None`: the client is gone.
    pub(super) coming: VecDeque<(Peer, Option<Vec<u8>>)>,
}

impl Shell<Socket> for Beside {
    fn look(&mut self, note: &mut dyn FnMut(u32, Readiness)) {
        let Some((peer, said)) = self.coming.pop_front() else {
            return;
        };
        match said {
            Some(bytes) => peer.send(&bytes),
            None => peer.wire.borrow_mut().reset(),
        }
        let news = peer.wire.borrow_mut().news();
        if let Some(news) = news {
            note(peer.slot, news);
        }
    }

    fn accept(&mut self, _: &mut LoopState, _: &mut Vec<Accepted<Socket>>) {}
}

/// Sockets that are wires.
#[derive(Debug)]
pub(super) struct InMemory;

impl Sockets for InMemory {
    type Stream = Socket;

    fn register(&self, _: &mut Socket, _: u32, _: &Settings) -> io::Result<()> {
        Ok(())
    }

    fn deregister(&self, stream: &mut Socket) {
        stream.0.borrow_mut().close();
    }

    fn descriptor(&self, _: &Socket) -> i64 {
        -1
    }
}

impl Rig {
    pub(super) fn new(loops: usize, settings: Settings) -> Self {
        let mut rig = Self::without_records(loops, settings, Clock::manual(), 1);
        let keyspace = &rig.server.keyspace;
        keyspace.start_recording(&rig.long.exclusive());
        rig.replica = Some(Replica::new(keyspace.shards()));
        rig
    }

    /// A server whose changes are not recorded yet, with a clock and a seed for its hashes.
    pub(super) fn without_records(
        loops: usize,
        settings: Settings,
        clock: Clock,
        seed: u128,
    ) -> Self {
        // Snapshots are written by threads, to a real disk.
        let settings = Settings {
            save_points: SavePoints::parse("").expect("none"),
            ..settings
        };
        // Nobody needs to be woken: the test decides whose turn it is.
        let handles = (0..loops).map(|_| LoopHandle::woken_by(Waker::noop()));
        let (stop, stopped) = channel();
        let server = Arc::new(Server::new(ServerParts {
            settings,
            file: None,
            listeners: Vec::new(),
            own_files: 0,
            clock,
            loops: handles.collect(),
            reclaimer: Reclaimer::at_once(),
            stop,
            seed,
        }));
        let core = |index| LoopCore::new(Arc::clone(&server), index, InMemory);
        Self {
            loops: (0..loops).map(core).collect(),
            asleep: vec![None; loops],
            peers: vec![Vec::new(); loops],
            long: server.keyspace.seat(),
            replica: None,
            server,
            _stopped: stopped,
        }
    }

    /// Panics unless what was recorded makes the same data. Nothing may be locked.
    pub(super) fn check_records(&mut self) {
        let Some(replica) = &mut self.replica else {
            return;
        };
        let keyspace = &self.server.keyspace;
        let mut records = Vec::new();
        keyspace.take_records(&mut records);
        replica.replay(&records);
        let clock = self.server.clock.now();
        let times = (clock, keyspace.engine_time(clock));
        replica.compare(keyspace, &mut self.long, times);
    }

    /// A new client of the loop `owner`.
    pub(super) fn connect(&mut self, owner: usize) -> Peer {
        let peer = self.connect_from(owner, "127.0.0.1");
        peer.expect("a wire cannot be lost before it is served")
    }

    /// A new client of the loop `owner`, from this address. If it is not let in, what it is told.
    pub(super) fn connect_from(&mut self, owner: usize, from: &str) -> Result<Peer, Vec<u8>> {
        let wire = Wire::new();
        let accepted = Accepted {
            stream: Socket(Rc::clone(&wire)),
            peer: SocketAddr::new(from.parse().expect("an address"), 1).into(),
            local: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 1).into(),
        };
        self.server.connected.fetch_add(1, Ordering::Relaxed);
        let handle = &self.server.loops[owner];
        handle.connections.fetch_add(1, Ordering::Relaxed);
        self.wake(owner);
        let Some(slot) = self.loops[owner].adopt(accepted) else {
            return Err(wire.borrow_mut().take());
        };
        let peer = Peer { wire, owner, slot };
        self.peers[owner].push(peer.clone());
        Ok(peer)
    }

    /// One turn of a loop, unless it sleeps: nobody has woken it, no socket has become ready, and
    /// the tick has not come. So a wake-up that is lost is missed here too. Returns until which
    /// tick it has slept, or still does; `None`: not at all.
    pub(super) fn turn(&mut self, index: usize) -> Option<u64> {
        self.turn_with(index, &mut Still)
    }

    /// The same; this shell is asked within the turn.
    pub(super) fn turn_with(&mut self, index: usize, shell: &mut dyn Shell<Socket>) -> Option<u64> {
        self.server.observer.begin_turn();
        // Its events are published by a loop that has a turn, now or soon.
        let has_run = self.run_long();
        let asleep = self.asleep[index].filter(|_| self.server.loops[index].sleeps());
        let now = self.server.clock.now().tick;
        let quiet = self.peers[index].iter().all(Peer::is_quiet);
        if !has_run && quiet && asleep.is_some_and(|until| now < until) {
            return asleep;
        }
        self.wake(index);
        let idle = !self.note_news(index);
        self.loops[index].take_inbox();
        self.loops[index].work(idle, shell);
        self.asleep[index] = self.loops[index].prepare_sleep(None);
        asleep
    }

    /// Ends a loop's sleep.
    fn wake(&mut self, index: usize) {
        self.asleep[index] = None;
        self.loops[index].wake();
    }

    /// Runs the next long command, if one may begin. False if there was none.
    fn run_long(&mut self) -> bool {
        let server = &self.server;
        let ticket = match server.long_work.take() {
            Some(Work::Command(ticket)) => ticket,
            Some(Work::Unwatch(watching)) => {
                server.keyspace.unwatch(*watching);
                return true;
            }
            None => return false,
        };
        let time = server.clock.now();
        let served = server.keyspace.run_long(&mut self.long, time, ticket);
        let Served::Reply { ticket, reply, .. } = &served else {
            unreachable!("it has run");
        };
        let waiter = ticket.waiter;
        let target = Target {
            id: waiter.id,
            slot: waiter.slot,
        };
        let (nothing, mut out) = (Writer::default(), reply);
        if self.loops[waiter.owner].is_muted(target) {
            server.observer.take_back(reply, 0);
            out = &nothing;
        }
        server.observer.ran_long(&server.clock, time, ticket, out);
        server.loops[waiter.owner].post(InboxItem::Served(Box::new(served)));
        true
    }

    /// Tells a loop which sockets have become ready. Returns whether there are any.
    fn note_news(&mut self, index: usize) -> bool {
        let mut any = false;
        self.peers[index].retain(|peer| !peer.wire.borrow().is_closed());
        for peer in &self.peers[index] {
            let news = peer.wire.borrow_mut().news();
            if let Some(news) = news {
                self.loops[index].note(peer.slot, news);
                any = true;
            }
        }
        any
    }

    /// Serves what has arrived at a loop, as in the middle of a turn: the loop looks neither at its
    /// inbox nor at changed settings before.
    pub(super) fn serve(&mut self, index: usize) {
        self.wake(index);
        self.note_news(index);
        self.loops[index].work(true, &mut Still);
    }

    /// Runs all loops until none has anything left to do at this moment.
    pub(super) fn settle(&mut self) {
        // A turn says how the loop was before it: only a second calm round shows that the first one
        // has left nothing to do.
        let mut calm_rounds = 0;
        for _ in 0..100_000 {
            let asleep: Vec<_> = (0..self.loops.len()).map(|i| self.turn(i)).collect();
            let quiet = self.peers.iter().flatten().all(Peer::is_quiet);
            let calm = quiet && asleep.iter().all(Option::is_some);
            calm_rounds = if calm { calm_rounds + 1 } else { 0 };
            if calm_rounds == 2 {
                return;
            }
        }
        let asleep: Vec<_> = (0..self.loops.len()).map(|i| self.turn(i)).collect();
        let busy: Vec<_> = self.loops.iter().map(LoopCore::why_busy).collect();
        panic!("the loops find no rest: {asleep:?} {busy:?}");
    }

    /// The answer to a client, once no loop has anything left to do.
    pub(super) fn ask(&mut self, peer: &Peer, request: &[u8]) -> Vec<u8> {
        peer.send(request);
        self.settle();
        peer.take()
    }

    /// Lets time pass without a turn.
    pub(super) fn advance(&self, by: Duration) {
        self.server.clock.advance(by);
    }
}

impl Peer {
    pub(super) fn send(&self, bytes: &[u8]) {
        self.wire.borrow_mut().send(bytes);
    }

    pub(super) fn take(&self) -> Vec<u8> {
        self.wire.borrow_mut().take()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.wire.borrow().is_closed()
    }

    pub(super) fn end(&self) {
        self.wire.borrow_mut().end();
    }

    fn is_quiet(&self) -> bool {
        let wire = self.wire.borrow();
        wire.is_closed() || !wire.has_news()
    }
}

/// A command as clients send it.
pub(super) fn bulk(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
