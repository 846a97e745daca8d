//! When the server is asked what. A thread asks, so that keys are heard while it waits.
//!
//! Most questions cost a server the same, whatever it holds. The forecast looks at all slots of its
//! wheels, and the prefixes are counted in a walk over all keys. So these two are timed, and asked
//! again when five hundred times that time has passed: each takes 0.2 % of a core at most.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, Sender};
use std::time::Duration;

use tidewheel_resp::Reply;
use tidewheel_time::monotonic_nanos;

use super::ask::{Asker, NoEntry};
use super::questions::{COMMANDS, FORECAST, NUMBERS, News, PREFIXES, Question, SLOW};
use crate::config::TopCall;

/// A costly question rests for this many times of what it has taken.
const REST: u32 = 500;

/// A question that was refused is asked again after this: each refusal is an entry of ACL LOG.
const REFUSED: Duration = Duration::from_secs(60);

/// After this a user who was refused tries again.
const DENIED: Duration = Duration::from_secs(10);

/// What a viewer wants to see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Wish {
    /// Nothing is asked.
    pub(super) paused: bool,
    /// The second tab.
    pub(super) commands: bool,
}

/// Why nothing is asked any more.
#[derive(Debug)]
pub(super) enum Stop {
    /// The viewer has gone.
    Unheard,
    /// The connection is of no use, for this reason.
    Lost(String),
}

impl From<SendError<News>> for Stop {
    fn from(_: SendError<News>) -> Self {
        Self::Unheard
    }
}

/// The questions, and when each is asked next.
#[derive(Debug)]
pub(super) struct Rounds {
    interval: Duration,
    next: [Duration; QUESTIONS.len()],
}

const QUESTIONS: [&Question; 5] = [&NUMBERS, &FORECAST, &SLOW, &PREFIXES, &COMMANDS];
const COMMANDS_AT: usize = 4;

impl Rounds {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            next: [Duration::ZERO; QUESTIONS.len()],
        }
    }

    /// Asks what is due, and tells what comes.
    pub(super) fn ask(
        &mut self,
        asker: &mut Asker,
        wish: Wish,
        mut tell: impl FnMut(News) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        // The shortest time of a question in this round: most of it is the way.
        let mut least = None;
        let began = now();
        for (at, question) in QUESTIONS.iter().enumerate() {
            if began < self.next[at] || (at == COMMANDS_AT && !wish.commands) {
                continue;
            }
            let asked = now();
            let reply = asker.ask(question.words).map_err(Stop::Lost)?;
            let took = now() - asked;
            let pause = if is_refused(&reply) {
                REFUSED
            } else {
                let rest = question.costly.map(|costly| {
                    let rest = took.saturating_sub(least.unwrap_or_default()) * REST;
                    tell(News::Every(costly, rest)).map(|()| rest)
                });
                // A round that begins a little early is one still.
                let shortest = self.interval * 9 / 10;
                rest.transpose()?.unwrap_or_default().max(shortest)
            };
            self.next[at] = now() + pause;
            least = Some(least.map_or(took, |least: Duration| least.min(took)));
            tell(question.news(&reply))?;
        }
        Ok(())
    }
}

/// True if the user lacks a right.
fn is_refused(reply: &Reply) -> bool {
    matches!(reply, Reply::Error(why) if why.starts_with("NOPERM"))
}

/// Asks until the viewer has gone.
pub(super) fn ask_on(
    call: &TopCall,
    password: Option<&str>,
    wishes: &Receiver<Wish>,
    news: &Sender<News>,
) -> Stop {
    let mut wish = Wish::default();
    loop {
        let (told, pause) = match Asker::connect(call, password) {
            Err(NoEntry::Lost(why)) => (News::Lost(why), call.interval),
            Err(NoEntry::Denied(why)) => (News::Denied(why), DENIED),
            Ok(asker) => match ask_one(call, asker, &mut wish, wishes, news) {
                Err(Stop::Lost(why)) => (News::Lost(why), call.interval),
                Err(Stop::Unheard) | Ok(()) => return Stop::Unheard,
            },
        };
        let heard = news.send(told).map_err(Stop::from);
        if let Err(stop) = heard.and_then(|()| rest(pause, &mut wish, wishes)) {
            return stop;
        }
    }
}

/// Asks over one connection, for as long as it serves.
fn ask_one(
    call: &TopCall,
    mut asker: Asker,
    wish: &mut Wish,
    wishes: &Receiver<Wish>,
    news: &Sender<News>,
) -> Result<(), Stop> {
    let mut rounds = Rounds::new(call.interval);
    loop {
        let began = now();
        if !wish.paused {
            rounds.ask(&mut asker, *wish, |told| Ok(news.send(told)?))?;
        }
        rest((began + call.interval).saturating_sub(now()), wish, wishes)?;
    }
}

/// Sleeps, until the time is over or there is another wish.
fn rest(time: Duration, wish: &mut Wish, wishes: &Receiver<Wish>) -> Result<(), Stop> {
    match wishes.recv_timeout(time) {
        Ok(new) => *wish = new,
        Err(RecvTimeoutError::Timeout) => {}
        Err(RecvTimeoutError::Disconnected) => return Err(Stop::Unheard),
    }
    Ok(())
}

/// The time, by the clock of this machine.
pub(super) fn now() -> Duration {
    Duration::from_nanos(monotonic_nanos())
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Write};

    use super::*;
    use crate::tools::top::questions::Costly;

    /// A server that takes this long for each reply.
    struct Slow(Duration);

    impl Read for Slow {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            std::thread::sleep(self.0);
            let reply = b"*0\r\n";
            into[..reply.len()].copy_from_slice(reply);
            Ok(reply.len())
        }
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Its own time was taken for what the way costs, so it was asked in every round.
    #[test]
    fn a_costly_question_that_is_the_first_of_its_round_rests() {
        let mut rounds = Rounds::new(Duration::from_millis(100));
        for (at, question) in QUESTIONS.iter().enumerate() {
            if question.costly.is_none() {
                rounds.next[at] = Duration::MAX;
            }
        }
        let took = Duration::from_millis(5);
        let mut asker = Asker::over(Box::new(Slow(took)));
        let mut rests = Vec::new();
        let asked = rounds.ask(&mut asker, Wish::default(), |news| {
            if let News::Every(costly, rest) = news {
                rests.push((costly, rest));
            }
            Ok(())
        });
        assert!(asked.is_ok(), "{asked:?}");
        let (first, rest) = rests[0];
        assert_eq!(first, Costly::Forecast);
        assert!(rest >= took * REST, "{rest:?}");
        assert!(rounds.next[1] > now() + took * (REST - 1), "{rounds:?}");
    }
}
