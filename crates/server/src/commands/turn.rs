//! One connection's turn: the state that its commands work with.

use tidewheel_resp::Writer;

use crate::clients::connection::Connection;
use crate::counters::command_counts::CommandCounts;
use crate::state::loop_state::LoopState;
use crate::time::clock;
use crate::upkeep::guard::Guard;

/// The time that one connection's commands may run before others have their turn. The command that
/// is running is finished.
const TURN_US: u64 = 1_000;

/// The outcome of one command, or of one step of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandStep {
    Done,
    /// The command ran, and its answer is a push: CLIENT REPLY does not concern it.
    Pushed,
    /// The command has begun, and goes on in steps.
    Walking,
    /// The command has begun, and is run again with the same arguments until all its parts are
    /// done.
    Begun,
    /// The command has begun, and waits for a key.
    Waiting,
    /// The command did not run, and is tried again when the pause is over.
    Paused,
    /// The command did not run, because shards that it needs are locked for long. It is parked, or
    /// tried again after the others.
    Blocked,
    /// The command did not run, and is tried again when more of the log is on disk.
    WaitsForLog,
    /// The command ran, and its connection is closed.
    Close,
}

/// The loop's records of the commands that it runs.
#[derive(Debug, Default)]
pub(crate) struct CommandNotes {
    pub(crate) counts: CommandCounts,
    pub(crate) guard: Guard,
    /// Subscriptions that have begun in this turn of the loop.
    pub(crate) subscriptions_begun: usize,
}

impl CommandNotes {
    /// Makes the loop's counters visible to others.
    pub(crate) fn publish_counters(&mut self, state: &mut LoopState) {
        state.publish_tally();
        self.counts.end_run(&state.handle().command_counts);
    }
}

/// The clients of a loop other than the one whose command runs.
pub(crate) trait Others: std::fmt::Debug {
    /// Serves them while a script runs for long: they are refused, but for what ends it.
    fn attend(&mut self, state: &mut LoopState);
}

/// None: commands that run beside a script attend to nobody.
#[derive(Debug)]
pub(crate) struct Nobody;

impl Others for Nobody {
    fn attend(&mut self, _: &mut LoopState) {}
}

/// One connection's turn: the state that its commands work with.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    pub(crate) state: &'a mut LoopState,
    pub(crate) notes: &'a mut CommandNotes,
    pub(crate) others: &'a mut dyn Others,
    /// The replies of this turn.
    pub(crate) out: &'a mut Writer,
    /// Engine microseconds at which the turn should end.
    ends: u64,
    /// The records that there were when it began.
    pub(crate) records: u64,
    /// The length of the running command, for CLIENT LIST.
    pub(crate) command_bytes: usize,
    /// A transaction runs: messages must not stand between its replies.
    pub(crate) in_transaction: bool,
    /// The command that has run was a short script, which has counted its time itself.
    pub(crate) ran_briefly: bool,
    /// The error of the script that has run is that of one of its calls, and was counted there.
    pub(crate) error_is_counted: bool,
    /// A reply was longer than its client may hold.
    pub(crate) over_limit: bool,
    /// A command could not run: others should have their turn before it is tried again.
    pub(crate) blocked: bool,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(
        state: &'a mut LoopState,
        notes: &'a mut CommandNotes,
        others: &'a mut dyn Others,
        out: &'a mut Writer,
    ) -> Self {
        state.renew_time();
        Self {
            ends: clock::micros(state.time) + TURN_US,
            records: state.server.keyspace.records(),
            state,
            notes,
            others,
            out,
            command_bytes: 0,
            in_transaction: false,
            ran_briefly: false,
            error_is_counted: false,
            over_limit: false,
            blocked: false,
        }
    }

    /// Returns true if the turn's time is over.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        clock::micros(self.state.time) >= self.ends
    }

    /// Ends the turn with the command that runs.
    pub(crate) fn ends_now(&mut self) {
        self.ends = 0;
        self.state.note_slow();
    }

    /// Makes the loop's counters visible to others.
    pub(crate) fn publish_counters(&mut self) {
        self.notes.publish_counters(self.state);
    }

    /// Tells the others about the connection whose command is running.
    pub(crate) fn publish_running(&self, conn: &Connection) {
        conn.publish_facts();
    }
}
