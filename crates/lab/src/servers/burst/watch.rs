//! Looking at the server while the keys fall due: when they are gone, when their memory is back.

use anyhow::Result;

use super::plan::Plan;
use crate::clock;
use crate::proc::{self, Meter};
use crate::progress;
use crate::schedule::Schedule;
use crate::servers::client::Connection;
use crate::servers::server;

const NS_PER_S: f64 = 1e9;
/// Memory is asked for at every tenth poll: INFO costs a server more than DBSIZE.
const POLLS_PER_INFO: usize = 10;

/// One look at the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Poll {
    /// When the question was sent and when its answer was there.
    pub(crate) sent_ns: u64,
    pub(crate) at_ns: u64,
    pub(crate) stored: u64,
    pub(crate) used_bytes: Option<f64>,
    pub(crate) rss_bytes: Option<u64>,
    pub(crate) cpu_ns: Option<f64>,
}

/// Memory at one stage, as the server and as the system see it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) rss_bytes: Option<u64>,
    pub(crate) used_bytes: Option<f64>,
}

/// Memory before, between and after the loading, and so how far it must fall before the dying count as
/// given back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Release {
    pub(crate) empty: Memory,
    pub(crate) live_only: Option<Memory>,
    pub(crate) loaded: Memory,
    /// What the loaded server takes, and what the dying take of it.
    rss: Option<(f64, f64)>,
    used: Option<(f64, f64)>,
}

impl Release {
    pub(super) fn new(
        (dying, live): (u64, u64),
        empty: Memory,
        live_only: Option<Memory>,
        loaded: Memory,
    ) -> Self {
        let share = dying as f64 / (dying + live).max(1) as f64;
        // Mixed keys were never loaded apart: the dying's part of the growth is by their number.
        let of = |empty: Option<f64>, live: Option<f64>, loaded: Option<f64>| {
            let (empty, loaded) = (empty?, loaded?);
            let dying = live.map_or((loaded - empty) * share, |live| loaded - live);
            (dying > 0.0).then_some((loaded, dying))
        };
        let rss = |memory: Memory| memory.rss_bytes.map(|bytes| bytes as f64);
        let used = |memory: Memory| memory.used_bytes;
        Self {
            empty,
            live_only,
            loaded,
            rss: of(rss(empty), live_only.and_then(rss), rss(loaded)),
            used: of(used(empty), live_only.and_then(used), used(loaded)),
        }
    }

    /// Whether at least this part of the dying's resident memory is back.
    pub(crate) fn rss_back(&self, poll: &Poll, part: f64) -> bool {
        back(self.rss, poll.rss_bytes.map(|bytes| bytes as f64), part)
    }

    pub(crate) fn used_back(&self, poll: &Poll, part: f64) -> bool {
        back(self.used, poll.used_bytes, part)
    }
}

fn back(from: Option<(f64, f64)>, now: Option<f64>, part: f64) -> bool {
    matches!((from, now), (Some((loaded, dying)), Some(now)) if now <= loaded - part * dying)
}

/// Polls from now until the keys (and the memory) are back or the time is up.
pub(super) fn watch(
    plan: &Plan,
    connection: &mut Connection,
    (pid, meter): (Option<u32>, &mut Meter),
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
        let asks = polls.len().is_multiple_of(POLLS_PER_INFO);
        let used = asks.then(|| server::info_number(connection, "memory", "used_memory"));
        let poll = Poll {
            sent_ns,
            at_ns,
            stored,
            used_bytes: used.flatten(),
            rss_bytes: pid.and_then(proc::rss_bytes),
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
            rss_is_back |= !plan.mass || pid.is_none() || release.rss_back(&poll, 0.9);
            let done = gone_ns.is_some_and(|gone| at_ns >= gone + after_ns) && rss_is_back;
            if done || at_ns >= give_up_ns {
                return Ok(polls);
            }
        }
        next_ns = (next_ns + plan.args.poll_ms * 1_000_000).max(at_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_survivors_keep_their_share_of_the_memory() {
        let at = |rss| Memory {
            rss_bytes: Some(rss),
            used_bytes: None,
        };
        let release = Release::new((900, 100), at(1_000), None, at(11_000));
        let back = |rss, part| back(release.rss, Some(f64::from(rss)), part);
        // The dying took 9,000 of the 10,000.
        assert!(back(2_900, 0.9) && !back(2_901, 0.9) && back(6_500, 0.5));
    }
}
