//! The watch polls the server while the keys fall due: when they are gone, when their memory is
//! back.

use anyhow::Result;

use super::plan::Plan;
use crate::clock;
use crate::proc::{self, Meter};
use crate::progress;
use crate::schedule::Schedule;
use crate::servers::client::Connection;
use crate::servers::server;

const NS_PER_S: f64 = 1e9;
/// Between two looks.
const POLL_NS: u64 = 10_000_000;

/// One look at the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Poll {
    /// The time at which the question was sent, and that at which its answer was there.
    pub(crate) sent_ns: u64,
    pub(crate) at_ns: u64,
    pub(crate) stored: u64,
    pub(crate) rss_bytes: Option<u64>,
    pub(crate) cpu_ns: Option<f64>,
}

/// Resident bytes before, between and after the loading, and so how far they must fall before the
/// dying count as given back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    pub(crate) empty: Option<u64>,
    pub(crate) live_only: Option<u64>,
    pub(crate) loaded: Option<u64>,
    /// The memory of the loaded server, and the dying's part of it.
    from: Option<(f64, f64)>,
}

impl Release {
    pub(super) fn new(
        (dying, live): (u64, u64),
        empty: Option<u64>,
        live_only: Option<u64>,
        loaded: Option<u64>,
    ) -> Self {
        let share = dying as f64 / (dying + live).max(1) as f64;
        let from = empty.zip(loaded).map(|(empty, loaded)| {
            let grown = |from: u64| loaded as f64 - from as f64;
            // Mixed keys were never loaded apart: the dying's part of the growth is by their
            // number.
            let dying = live_only.map_or(grown(empty) * share, grown);
            (loaded as f64, dying)
        });
        Self {
            empty,
            live_only,
            loaded,
            from: from.filter(|(_, dying)| *dying > 0.0),
        }
    }

    /// True if at least 90 % of the dying's memory is back when so much is resident.
    pub(crate) fn is_back(&self, rss_bytes: Option<u64>) -> bool {
        let enough = |((loaded, dying), now)| now as f64 <= loaded - 0.9 * dying;
        self.from.zip(rss_bytes).is_some_and(enough)
    }
}

/// Polls from now until the keys (and the memory) are back or the time is up.
pub(super) fn watch(
    plan: &Plan,
    connection: &mut Connection,
    (pid, meter): (u32, &mut Meter),
    schedule: &Schedule,
    release: &Release,
) -> Result<Vec<Poll>> {
    let mut polls: Vec<Poll> = Vec::new();
    let after_ns = (plan.after_s * NS_PER_S) as u64;
    let give_up_ns = schedule.last_ns + (plan.watch_s * NS_PER_S) as u64;
    let (mut gone_ns, mut rss_is_back) = (None, false);
    let start_ns = clock::mono_ns();
    let mut next_ns = start_ns;
    progress::say("waiting for the deadlines");
    loop {
        clock::sleep_until(next_ns);
        let sent_ns = clock::mono_ns();
        let stored = server::dbsize(connection)?;
        let at_ns = clock::mono_ns();
        let poll = Poll {
            sent_ns,
            at_ns,
            stored,
            rss_bytes: proc::rss_bytes(pid),
            cpu_ns: meter.server_ns(),
        };
        polls.push(poll);
        if sent_ns >= schedule.last_ns {
            if polls.len() >= 2 && polls[polls.len() - 2].sent_ns < schedule.last_ns {
                progress::say("waiting for what is dead to go");
            }
            if gone_ns.is_none() && stored <= plan.live {
                gone_ns = Some(at_ns);
            }
            rss_is_back |=
                !plan.mass || poll.rss_bytes.is_none() || release.is_back(poll.rss_bytes);
            let done = gone_ns.is_some_and(|gone| at_ns >= gone + after_ns) && rss_is_back;
            if done || at_ns >= give_up_ns {
                return Ok(polls);
            }
        }
        next_ns = (next_ns + POLL_NS).max(at_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_survivors_keep_their_share_of_the_memory() {
        let release = Release::new((900, 100), Some(1_000), None, Some(11_000));
        // The dying took 9,000 of the 10,000.
        assert!(release.is_back(Some(2_900)) && !release.is_back(Some(2_901)));
    }
}
