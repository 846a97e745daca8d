//! Counts the events of an episode.

/// Counts of events, so that a test can require them: a schedule that does nothing finds nothing.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) episodes: u64,
    pub(super) commands: u64,
    pub(super) closed: u64,
    pub(super) messages: u64,
    pub(super) events: u64,
    pub(super) bytes: u64,
    /// Commands that were refused for want of a password.
    pub(super) denied: u64,
    pub(super) evicted: u64,
    /// Calls of scripts and of functions.
    pub(super) scripts: u64,
    /// Clients that were silent, or held too much.
    pub(super) given_up: u64,
}

impl Done {
    pub(super) fn add(&mut self, other: &Self) {
        self.episodes += 1;
        self.commands += other.commands;
        self.closed += other.closed;
        self.messages += other.messages;
        self.events += other.events;
        self.bytes += other.bytes;
        self.denied += other.denied;
        self.evicted += other.evicted;
        self.scripts += other.scripts;
        self.given_up += other.given_up;
    }
}
