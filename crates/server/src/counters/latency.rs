//! Events that took long, for LATENCY: the longest of each second, for a bounded number of seconds.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// Seconds that are kept of one event.
pub(crate) const SAMPLES_MAX: usize = 160;

/// The events that LATENCY knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LatencyEvent {
    /// A command.
    Command,
    /// A command that should take the same time whatever the data.
    FastCommand,
    /// Removing what has expired, in one go.
    ExpireCycle,
    /// Making room for a command.
    EvictionCycle,
}

impl LatencyEvent {
    pub(crate) const ALL: [Self; 4] = [
        Self::Command,
        Self::FastCommand,
        Self::ExpireCycle,
        Self::EvictionCycle,
    ];

    /// Returns the name that the protocol has for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::FastCommand => "fast-command",
            Self::ExpireCycle => "expire-cycle",
            Self::EvictionCycle => "eviction-cycle",
        }
    }

    /// Returns the event of that name.
    pub(crate) fn named(name: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|event| event.name().as_bytes().eq_ignore_ascii_case(name))
    }
}

/// The longest duration of one event within one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LatencySample {
    /// Wall time in seconds.
    pub(crate) at_s: i64,
    pub(crate) ms: u64,
}

/// One event's samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LatencySeries {
    /// The oldest first.
    pub(crate) samples: VecDeque<LatencySample>,
    /// The worst since the last reset.
    pub(crate) worst_ms: u64,
}

/// All events' samples. Locked only when something took long, and to be read.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    series: [Mutex<LatencySeries>; LatencyEvent::ALL.len()],
}

impl Latency {
    /// Notes that an event took long.
    pub(crate) fn note(&self, event: LatencyEvent, sample: LatencySample) {
        let mut series = self.series[event as usize].lock();
        series.worst_ms = series.worst_ms.max(sample.ms);
        if let Some(last) = series.samples.back_mut()
            && last.at_s == sample.at_s
        {
            last.ms = last.ms.max(sample.ms);
            return;
        }
        if series.samples.len() == SAMPLES_MAX {
            series.samples.pop_front();
        }
        series.samples.push_back(sample);
    }

    /// Returns an event's samples; `None` if it has never taken long.
    pub(crate) fn of(&self, event: LatencyEvent) -> Option<LatencySeries> {
        let series = self.series[event as usize].lock();
        (!series.samples.is_empty()).then(|| series.clone())
    }

    /// Returns the events that took long.
    pub(crate) fn all(&self) -> Vec<(LatencyEvent, LatencySeries)> {
        let known = |event| self.of(event).map(|series| (event, series));
        LatencyEvent::ALL.into_iter().filter_map(known).collect()
    }

    /// Forgets an event. Returns whether there was anything to forget.
    pub(crate) fn reset(&self, event: LatencyEvent) -> bool {
        let forgotten = std::mem::take(&mut *self.series[event as usize].lock());
        !forgotten.samples.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_keeps_its_worst_and_old_seconds_leave() {
        let latency = Latency::default();
        let note = |at_s, ms| latency.note(LatencyEvent::Command, LatencySample { at_s, ms });
        note(1, 900);
        note(2, 5);
        note(2, 7);
        note(2, 6);
        let series = latency.of(LatencyEvent::Command).unwrap();
        let worst: Vec<_> = series.samples.iter().map(|s| (s.at_s, s.ms)).collect();
        assert_eq!((worst, series.worst_ms), (vec![(1, 900), (2, 7)], 900));
        (3..3 + SAMPLES_MAX as i64).for_each(|at_s| note(at_s, 1));
        let series = latency.of(LatencyEvent::Command).unwrap();
        assert_eq!((series.samples.len(), series.worst_ms), (SAMPLES_MAX, 900));
        assert_eq!(series.samples[0].at_s, 3);
        assert_eq!(latency.all().len(), 1);
        assert!(latency.reset(LatencyEvent::Command));
        assert!(!latency.reset(LatencyEvent::Command));
        assert_eq!(latency.all(), []);
    }

    #[test]
    fn events_go_by_their_names() {
        for event in LatencyEvent::ALL {
            assert_eq!(LatencyEvent::named(event.name().as_bytes()), Some(event));
        }
        assert_eq!(
            LatencyEvent::named(b"FAST-command"),
            Some(LatencyEvent::FastCommand)
        );
        assert_eq!(LatencyEvent::named(b"fork"), None);
    }
}
