//! INFO commandstats, latencystats and errorstats: counts, times and errors by command.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tidewheel_keyspace::Stats;

use super::ratio;
use crate::state::loop_state::LoopState;

/// Times of commands with keys are extrapolated from a sample.
pub(super) fn commandstats(state: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    let mut sums = BTreeMap::new();
    for handle in state.server.loops.iter() {
        handle.command_counts.add_commands(&mut sums);
    }
    for (name, sum) in sums {
        let us = sum.ns / 1_000;
        let per_call = ratio(sum.ns, sum.calls) / 1_000.0;
        let (calls, rejected, failed) = (sum.calls, sum.rejected, sum.failed);
        if calls + rejected > 0 {
            write!(
                text,
                "cmdstat_{name}:calls={calls},usec={us},usec_per_call={per_call:.2},\
                 rejected_calls={rejected},failed_calls={failed}\r\n"
            )?;
        }
    }
    Ok(())
}

pub(super) fn latencystats(state: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    let settings = &state.settings.diagnosis;
    let mut all = BTreeMap::new();
    if settings.tracking {
        for handle in state.server.loops.iter() {
            handle.command_counts.add_times(&mut all);
        }
    }
    for (name, times) in all.into_iter().filter(|(_, times)| times.calls > 0) {
        write!(text, "latency_percentiles_usec_{name}:")?;
        for (i, (percentile, share)) in settings.percentiles.each().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let us = times.within_ns(share) as f64 / 1e3;
            write!(text, "{comma}p{percentile}={us:.3}")?;
        }
        text.push_str("\r\n");
    }
    Ok(())
}

pub(super) fn errorstats(state: &LoopState, _: &Stats, text: &mut String) -> std::fmt::Result {
    let mut sums = BTreeMap::new();
    for handle in state.server.loops.iter() {
        handle.command_counts.add_errors(&mut sums);
    }
    for (code, count) in sums {
        write!(text, "errorstat_{code}:count={count}\r\n")?;
    }
    Ok(())
}
