//! Records each command with its time and its reply, for the simulation.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tidewheel_keyspace::{Event, TakenRecords, Ticket, Time};
use tidewheel_resp::{Args, Writer};

use crate::state::log::Trouble;
use crate::state::observer::Observe;
use crate::state::server::Server;
use crate::time::clock::Clock;

/// The virtual time that a command takes.
pub(crate) type Cost = fn(Args<'_>) -> Duration;

/// Records the commands of one server in their order.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    recording: AtomicBool,
    cost: Mutex<Option<Cost>>,
    /// The virtual time of one step of a command that runs in steps.
    step: Mutex<Duration>,
    /// The running command's answer, if CLIENT REPLY suppresses it.
    suppressed: Mutex<Option<SuppressedReply>>,
    /// The clock's time before the running command's duration was added.
    before: Mutex<Option<Time>>,
    /// The time of the script that the running command has called, and whether it may add nothing.
    script: Mutex<Option<(Time, bool)>>,
    turn: AtomicU64,
    seen: Mutex<Vec<Seen>>,
    /// Keyspace events, in the order in which they were published.
    events: Mutex<Vec<Event>>,
    /// Commands that run in steps or parts, by client.
    unfinished: Mutex<BTreeMap<u64, Ran>>,
    server: Mutex<Weak<Server>>,
    /// Records that were taken to be written.
    taken: Mutex<Vec<(Vec<u8>, TakenRecords)>>,
}

/// A recorded event.
#[derive(Debug, Clone)]
pub(crate) enum Seen {
    Ran(Ran),
    /// A client has sent something that is no command.
    Refused(u64),
    /// The server has let go of a client.
    Closed(u64),
}

/// A command that was run, or refused.
#[derive(Debug, Clone)]
pub(crate) struct Ran {
    pub(crate) client: u64,
    pub(crate) words: Vec<Vec<u8>>,
    /// The bytes that were written for the client.
    pub(crate) reply: Vec<u8>,
    /// The answer, also if CLIENT REPLY has suppressed it.
    pub(crate) answer: Vec<u8>,
    /// The reply was longer than its client may hold: it was not built.
    pub(crate) too_long: bool,
    /// The time that the command was given.
    pub(crate) time: Time,
    /// The time that the clock showed.
    pub(crate) clock: Time,
    /// The number of the loop's turn.
    pub(crate) turn: u64,
    /// It ran on a thread of its own.
    pub(crate) long: bool,
    /// It is a script that found no memory.
    pub(crate) is_full: bool,
    /// The tick at its end, and how many records and events there were then.
    pub(crate) end: u64,
    pub(crate) records: u64,
    pub(crate) events: u64,
}

/// An answer that its client does not want.
#[derive(Debug)]
struct SuppressedReply {
    answer: Vec<u8>,
    too_long: bool,
}

impl Recorder {
    /// Starts to record what this server does.
    pub(crate) fn start(&self, server: &Arc<Server>) {
        *self.server.lock() = Arc::downgrade(server);
        self.recording.store(true, Ordering::Relaxed);
    }

    /// Lets commands take virtual time from now on.
    pub(crate) fn set_cost(&self, cost: Cost) {
        *self.cost.lock() = Some(cost);
    }

    /// Returns the records that were taken to be written since the last call.
    pub(crate) fn take_taken(&self) -> Vec<(Vec<u8>, TakenRecords)> {
        std::mem::take(&mut *self.taken.lock())
    }

    /// Returns the keyspace events that were published since the last call.
    pub(crate) fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock())
    }

    /// Counts a turn of a loop.
    pub(crate) fn begin_turn(&self) {
        self.turn.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the events since the last call.
    pub(crate) fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock())
    }

    /// Records a command that has run on a thread of its own.
    pub(crate) fn ran_long(&self, clock: &Clock, time: Time, ticket: &Ticket, out: &Writer) {
        if self.recording.load(Ordering::Relaxed) {
            let mut ran = self.note(clock.now(), time, ticket.waiter.id, ticket.args());
            ran.long = true;
            self.answered(ran, out, 0);
        }
    }

    fn answered(&self, mut ran: Ran, out: &Writer, mark: usize) {
        let rest = out.as_bytes().get(mark..).unwrap_or_default();
        ran.reply.extend_from_slice(rest);
        ran.too_long = out.is_over();
        let server = self.server.lock().upgrade().expect("it has run a command");
        // While the log cannot be written, nothing changes, and replies wait for nothing.
        ran.records = match server.log.trouble() {
            Trouble::None => server.keyspace.records(),
            Trouble::NotWritten | Trouble::NotSynced => server.log.on_disk(),
        };
        (ran.end, ran.events) = (server.clock.now().tick, server.keyspace.events());
        ran.answer = match self.suppressed.lock().take() {
            Some(SuppressedReply { answer, too_long }) => {
                ran.too_long |= too_long;
                answer
            }
            None => ran.reply.clone(),
        };
        self.seen.lock().push(Seen::Ran(ran));
    }

    fn note(&self, clock: Time, time: Time, client: u64, args: Args<'_>) -> Ran {
        Ran {
            client,
            words: args.iter().map(<[u8]>::to_vec).collect(),
            reply: Vec::new(),
            answer: Vec::new(),
            too_long: false,
            time,
            clock,
            turn: self.turn.load(Ordering::Relaxed),
            long: false,
            is_full: false,
            end: 0,
            records: 0,
            events: 0,
        }
    }
}

impl Observe for Recorder {
    fn advance_clock(&self, clock: &Clock, args: Args<'_>, in_steps: bool) {
        let cost = *self.cost.lock();
        if let Some(cost) = cost {
            *self.before.lock() = Some(clock.now());
            let cost = cost(args);
            if in_steps {
                *self.step.lock() = cost;
            }
            clock.advance(cost);
        }
    }

    fn advance_clock_by_step(&self, clock: &Clock) {
        if self.cost.lock().is_some() {
            clock.advance(*self.step.lock());
        }
    }

    fn take_back(&self, out: &Writer, mark: usize) {
        let answer = out.as_bytes().get(mark..).unwrap_or_default().to_vec();
        let too_long = out.is_over();
        *self.suppressed.lock() = Some(SuppressedReply { answer, too_long });
    }

    fn ran(
        &self,
        clock: &Clock,
        time: Time,
        client: u64,
        args: Args<'_>,
        (out, mark): (&Writer, usize),
    ) {
        let before = self.before.lock().take().unwrap_or_else(|| clock.now());
        let (time, is_full) = self.script.lock().take().unwrap_or((time, false));
        if self.recording.load(Ordering::Relaxed) {
            let mut ran = self.note(before, time, client, args);
            ran.is_full = is_full;
            self.answered(ran, out, mark);
        }
    }

    fn began(&self, clock: &Clock, time: Time, client: u64, args: Args<'_>) {
        let before = self.before.lock().take().unwrap_or_else(|| clock.now());
        if self.recording.load(Ordering::Relaxed) {
            let ran = self.note(before, time, client, args);
            self.unfinished.lock().insert(client, ran);
        }
    }

    fn script_begins(&self, time: Time, full: bool) {
        *self.script.lock() = Some((time, full));
    }

    fn part(&self, client: u64, out: &Writer, mark: usize) {
        if let Some(ran) = self.unfinished.lock().get_mut(&client) {
            let part = out.as_bytes().get(mark..).unwrap_or_default();
            ran.reply.extend_from_slice(part);
        }
    }

    fn ended(&self, client: u64, out: &Writer, mark: usize) {
        let ran = self.unfinished.lock().remove(&client);
        if let Some(ran) = ran {
            self.answered(ran, out, mark);
        }
    }

    fn refused(&self, client: u64) {
        if self.recording.load(Ordering::Relaxed) {
            self.seen.lock().push(Seen::Refused(client));
        }
    }

    fn published(&self, event: &Event) {
        if self.recording.load(Ordering::Relaxed) {
            self.events.lock().push(event.clone());
        }
    }

    fn took(&self, records: &[u8], taken: TakenRecords) {
        self.taken.lock().push((records.to_vec(), taken));
    }

    fn closed(&self, client: u64) {
        if self.recording.load(Ordering::Relaxed) {
            self.seen.lock().push(Seen::Closed(client));
        }
    }
}
