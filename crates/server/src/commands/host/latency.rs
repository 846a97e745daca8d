//! LATENCY: events that took long, and the distribution of commands' times.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use tidewheel_keyspace::{Command, CommandError};
use tidewheel_resp::Args;

use super::HandlerResult;
use super::graph::graph;
use crate::commands::turn::{CommandStep, Turn};
use crate::counters::latency::{LatencyEvent, LatencySeries};
use crate::counters::times::CallTimes;

impl Turn<'_> {
    pub(super) fn latency_latest(&mut self) -> HandlerResult {
        let all = self.state.server.latency.all();
        self.out.array(all.len());
        for (event, series) in all {
            let newest = series.samples.back();
            self.out.array(4);
            self.out.bulk(event.name().as_bytes());
            self.out.integer(newest.map_or(0, |sample| sample.at_s));
            self.milliseconds(newest.map_or(0, |sample| sample.ms));
            self.milliseconds(series.worst_ms);
        }
        Ok(CommandStep::Done)
    }

    pub(super) fn latency_history(&mut self, args: Args<'_>) -> HandlerResult {
        let series = self.series(&args[2]).unwrap_or_default();
        self.out.array(series.samples.len());
        for sample in series.samples {
            self.out.array(2);
            self.out.integer(sample.at_s);
            self.milliseconds(sample.ms);
        }
        Ok(CommandStep::Done)
    }

    pub(super) fn latency_reset(&mut self, args: Args<'_>) -> HandlerResult {
        let latency = &self.state.server.latency;
        let forgotten = if args.len() == 2 {
            let all = LatencyEvent::ALL.into_iter();
            all.filter(|event| latency.reset(*event)).count()
        } else {
            let named = args.iter().skip(2).filter_map(LatencyEvent::named);
            named.filter(|event| latency.reset(*event)).count()
        };
        self.out.integer(forgotten as i64);
        Ok(CommandStep::Done)
    }

    pub(super) fn latency_graph(&mut self, args: Args<'_>) -> HandlerResult {
        let event = LatencyEvent::named(&args[2]);
        let Some((event, series)) = event.zip(self.series(&args[2])) else {
            let name = String::from_utf8_lossy(&args[2]);
            return Err(CommandError::quoting(format!(
                "ERR No samples available for event '{name}'"
            )));
        };
        let text = graph(event.name(), &series, self.state.time.wall_ms() / 1_000);
        self.out.verbatim("txt", text.as_bytes());
        Ok(CommandStep::Done)
    }

    pub(super) fn latency_doctor(&mut self) -> HandlerResult {
        let text = self.diagnose();
        self.out.verbatim("txt", text.as_bytes());
        Ok(CommandStep::Done)
    }

    fn diagnose(&self) -> String {
        let settings = &self.state.settings.diagnosis;
        if settings.latency_ms == 0 {
            return "Nothing is watched: latency-monitor-threshold is 0. Set it to the milliseconds from which on \
                    an event is too slow for you, for example CONFIG SET latency-monitor-threshold 100.\n"
                .to_owned();
        }
        let all = self.state.server.latency.all();
        if all.is_empty() {
            let ms = settings.latency_ms;
            return format!("No event has taken {ms} ms or more since the last reset.\n");
        }
        let mut text = String::new();
        for (event, series) in &all {
            describe(*event, series, &mut text);
        }
        let commands = [LatencyEvent::Command, LatencyEvent::FastCommand];
        if all.iter().any(|(event, _)| commands.contains(event)) && !settings.is_slow(u64::MAX) {
            text.push_str(
                "The slow log is off, so it cannot name the calls: see slowlog-log-slower-than.\n",
            );
        }
        text
    }

    pub(super) fn latency_histogram(&mut self, args: Args<'_>) -> HandlerResult {
        self.publish_counters();
        let mut times = BTreeMap::new();
        if self.state.settings.diagnosis.tracking {
            for handle in self.state.server.loops.iter() {
                handle.command_counts.add_times(&mut times);
            }
        }
        // The call that is running has no time yet.
        if let Some(own) = times.get_mut("latency|histogram") {
            own.calls = own.calls.saturating_sub(1);
        }
        times.retain(|_, times| times.calls > 0);
        // Who names a command twice gets it once: a map has no key twice.
        let names: BTreeSet<&str> = if args.len() == 2 {
            times.keys().copied().collect()
        } else {
            args.iter().skip(2).flat_map(names_of).collect()
        };
        let known: Vec<(&str, &CallTimes)> = names
            .into_iter()
            .filter_map(|name| times.get(name).map(|times| (name, times)))
            .collect();
        self.out.map(known.len());
        for (name, times) in known {
            self.histogram(name, times);
        }
        Ok(CommandStep::Done)
    }

    fn histogram(&mut self, name: &str, times: &CallTimes) {
        let powers = times.by_power();
        self.out.bulk(name.as_bytes());
        self.out.map(2);
        self.out.bulk(b"calls");
        self.out
            .integer(i64::try_from(times.calls).unwrap_or(i64::MAX));
        self.out.bulk(b"histogram_usec");
        self.out.map(powers.len());
        for (power, calls) in powers {
            self.out.integer(bound_us(power));
            self.out.integer(i64::try_from(calls).unwrap_or(i64::MAX));
        }
    }

    fn series(&self, name: &[u8]) -> Option<LatencySeries> {
        LatencyEvent::named(name).and_then(|event| self.state.server.latency.of(event))
    }

    fn milliseconds(&mut self, ms: u64) {
        self.out.integer(i64::try_from(ms).unwrap_or(i64::MAX));
    }
}

/// The bucket that ends below this power of two nanoseconds, in microseconds, as the public servers
/// name it: they keep seven bits of a time, so the bucket of 65,536 ns reaches to 66,047 ns and is
/// called 66.
fn bound_us(power: u32) -> i64 {
    let power = power.min(62);
    let ns = (1_i64 << power) + (1_i64 << power.saturating_sub(7)) - 1;
    ns / 1_000
}

/// Returns the commands that a name means: for a command with subcommands, those. An unknown name
/// means none.
fn names_of(name: &[u8]) -> Vec<&'static str> {
    let mut words = name.splitn(2, |byte| *byte == b'|');
    let row = words.next().and_then(tidewheel_keyspace::lookup);
    let full = |row: &Command| row.name;
    match (row, words.next()) {
        (Some(row), Some(sub)) => row.subcommand(sub).map(full).into_iter().collect(),
        (Some(row), None) if !row.has_subcommands() => vec![row.name],
        (Some(row), None) => row.subcommands().iter().map(full).collect(),
        (None, _) => Vec::new(),
    }
}

fn describe(event: LatencyEvent, series: &LatencySeries, text: &mut String) {
    let seconds = series.samples.len() as u64;
    let sum: u64 = series.samples.iter().map(|sample| sample.ms).sum();
    let (average, worst) = (sum / seconds.max(1), series.worst_ms);
    let written = writeln!(
        text,
        "{}: slow in {seconds} of the seconds seen, on average {average} ms, at worst {worst} ms.\n    {}",
        event.name(),
        advice(event)
    );
    debug_assert!(written.is_ok(), "a String takes everything");
}

fn advice(event: LatencyEvent) -> &'static str {
    match event {
        LatencyEvent::Command => {
            "SLOWLOG GET names the calls. Ask for less at a time, or use SCAN and its like."
        }
        LatencyEvent::FastCommand => {
            "These are short by themselves. Look for processes that take the processor, and for swapping."
        }
        LatencyEvent::ExpireCycle => {
            "Lower expiry-turn-us and expiry-hold-keys, or spread the deadlines of large values."
        }
        LatencyEvent::EvictionCycle => {
            "A command had to free much memory. Raise maxmemory, or store smaller values."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_the_names_that_clients_know() {
        let names: Vec<i64> = (10..22).map(bound_us).collect();
        assert_eq!(names, [1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1056, 2113]);
    }

    #[test]
    fn a_name_means_a_command_or_its_subcommands() {
        assert_eq!(names_of(b"GET"), ["get"]);
        assert_eq!(names_of(b"config|Get"), ["config|get"]);
        assert!(names_of(b"client").contains(&"client|id"));
        assert!(names_of(b"blah").is_empty() && names_of(b"config|x").is_empty());
    }
}
