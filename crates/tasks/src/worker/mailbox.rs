//! The mailbox tells the engine loop of ends of runs, of arrivals, and of the worker's stop.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::shape::outcome::Outcome;

/// The end of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// Its handler ended it.
    Ran(Outcome),
    /// It never runs.
    Never(Outcome),
    /// It was not run, and goes back.
    Back,
}

/// The news since the engine loop last looked. It is bounded: a claim ends once, and a worker holds
/// so many.
#[derive(Debug, Default)]
pub(super) struct Mail {
    pub(super) ends: Vec<(u64, End)>,
    /// The runs that have come further: each once until the engine loop has taken what it says.
    pub(super) progress: Vec<u64>,
    pub(super) arrived: bool,
    /// True if nothing more is claimed.
    pub(super) closing: bool,
    /// All ends are in. The engine loop ends when the engine knows them, or at this time.
    pub(super) stop: Option<Duration>,
    /// True if anything of this is new.
    news: bool,
    /// True if something other than an end is new.
    urgent: bool,
}

#[derive(Debug, Default)]
pub(super) struct Mailbox {
    mail: Mutex<Mail>,
    came: Condvar,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, change: impl FnOnce(&mut Mail)) {
        let mut mail = self.lock();
        change(&mut mail);
        (mail.news, mail.urgent) = (true, true);
        drop(mail);
        self.came.notify_one();
    }

    pub(super) fn end(&self, key: u64, end: End) {
        self.note(|mail| mail.ends.push((key, end)));
    }

    pub(super) fn progress(&self, key: u64) {
        self.note(|mail| mail.progress.push(key));
    }

    fn note(&self, change: impl FnOnce(&mut Mail)) {
        let mut mail = self.lock();
        change(&mut mail);
        let wakes = !std::mem::replace(&mut mail.news, true);
        drop(mail);
        // Whoever waits for more ends is not woken by each of them.
        if wakes {
            self.came.notify_one();
        }
    }

    pub(super) fn arrived(&self) {
        self.tell(|mail| mail.arrived = true);
    }

    /// Tells the engine loop to look again at its claims.
    pub(super) fn nudge(&self) {
        self.tell(|_| ());
    }

    pub(super) fn stop_claiming(&self) {
        self.tell(|mail| mail.closing = true);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.lock().closing
    }

    pub(super) fn stop(&self, until: Duration) {
        self.tell(|mail| mail.stop = Some(until));
    }

    /// Takes what has come.
    pub(super) fn take(&self) -> Mail {
        let mut mail = self.lock();
        let (closing, stop) = (mail.closing, mail.stop);
        let kept = Mail {
            closing,
            stop,
            ..Mail::default()
        };
        std::mem::replace(&mut *mail, kept)
    }

    /// Waits until something comes, `limit` at most. If that is an end, it waits for others, for
    /// `gather` at most.
    pub(super) fn wait(&self, limit: Duration, gather: Duration) {
        let mail = self.lock();
        let waited = self.came.wait_timeout_while(mail, limit, |mail| !mail.news);
        let (mail, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if mail.news {
            let others = |mail: &mut Mail| !mail.urgent;
            drop(self.came.wait_timeout_while(mail, gather, others));
        }
    }
}
