//! The figures of a burst, from the polls and the log of reads.

use super::plan::Plan;
use super::watch::{Poll, Release};
use crate::latency::Latencies;
use crate::proc::Taken;
use crate::report::Figures;
use crate::schedule::Schedule;
use crate::servers::getter::Seen;

const MS: f64 = 1e6;
const S: f64 = 1e9;
const MB: f64 = 1e6;

/// All observations of a burst.
#[derive(Debug)]
pub(crate) struct Course<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) schedule: &'a Schedule,
    pub(crate) polls: &'a [Poll],
    pub(crate) seen: &'a Seen,
    /// The time at which the reader was warm.
    pub(crate) before_ns: u64,
    pub(crate) release: &'a Release,
    /// The server's own count of expired keys.
    pub(crate) expired: Option<f64>,
    pub(crate) taken: Taken,
}

pub(crate) fn figures(course: &Course<'_>) -> Figures {
    let mut figures = Figures::default();
    let gone_ns = course.gone().map(|poll| poll.at_ns);
    let last = course.polls.last();
    let end_ns = last.map_or(course.schedule.last_ns, |poll| poll.at_ns);
    reads(&mut figures, course, gone_ns.unwrap_or(end_ns));
    keys(&mut figures, course, gone_ns);
    memory(&mut figures, course);
    processor(&mut figures, course, gone_ns.unwrap_or(end_ns));
    figures
}

impl Course<'_> {
    fn dead_held(&self, poll: &Poll) -> u64 {
        let alive = self.plan.dying - self.schedule.due_at(poll.sent_ns);
        poll.stored.saturating_sub(self.plan.live + alive)
    }

    /// The first look at or after the last deadline that finds nothing dead.
    fn gone(&self) -> Option<&Poll> {
        self.first_after(self.schedule.last_ns, |poll| poll.stored <= self.plan.live)
    }

    fn first_after(&self, at_ns: u64, wanted: impl Fn(&Poll) -> bool) -> Option<&Poll> {
        let mut polls = self.polls.iter();
        polls.find(|poll| poll.sent_ns >= at_ns && wanted(poll))
    }

    fn ms_after_last(&self, poll: Option<&Poll>) -> Option<f64> {
        poll.map(|poll| (poll.at_ns as f64 - self.schedule.last_ns as f64) / MS)
    }

    /// Dead keys at the first look that long after the last deadline; the last look stands for any
    /// later time.
    fn dead_after(&self, ms: f64) -> Option<f64> {
        let at_ns = self.schedule.last_ns + (ms * MS) as u64;
        let poll = self.first_after(at_ns, |_| true).or(self.polls.last())?;
        Some(self.dead_held(poll) as f64)
    }

    /// Processor time of the server between two polls that enclose the span as nearly as they can.
    fn cpu_between(&self, from_ns: u64, to_ns: u64) -> Option<Span> {
        let polls = self.polls;
        let from = polls.iter().rev().find(|poll| poll.at_ns <= from_ns)?;
        let to = polls.iter().find(|poll| poll.at_ns >= to_ns);
        let to = to.or(polls.last())?;
        Some(Span {
            cpu_s: (to.cpu_ns? - from.cpu_ns?) / S,
            gets: self.seen.log.ended_within(from.at_ns, to.at_ns),
            wall_s: (to.at_ns - from.at_ns) as f64 / S,
        })
    }
}

struct Span {
    cpu_s: f64,
    gets: u64,
    wall_s: f64,
}

fn reads(figures: &mut Figures, course: &Course<'_>, gone_ns: u64) {
    let (first, last) = (course.schedule.first_ns, course.schedule.last_ns);
    if !course.seen.log.iter().any(|_| true) {
        return;
    }
    let log = &course.seen.log;
    let before_ns = course.before_ns;
    let per_s = |count: u64, from: u64, to: u64| {
        let seconds = to.saturating_sub(from) as f64 / S;
        (seconds > 0.0).then(|| count as f64 / seconds)
    };
    let (before, window) = (log.within(before_ns, first), log.touching(first, last));
    latencies(figures, "before", &before);
    latencies(figures, "in_window", &window);
    latencies(figures, "until_reclaimed", &log.touching(first, gone_ns));
    for (name, summary, from, to) in [
        ("before", &before, before_ns, first),
        ("in_window", &window, first, last),
    ] {
        let slow = per_s(summary.over_1ms, from, to);
        figures.push(format!("gets_over_1ms_per_s_{name}"), slow);
    }
    let rate = |from: u64, to: u64| per_s(log.ended_within(from, to), from, to);
    figures.push("gets_per_s_before", rate(before_ns, first));
    figures.push("gets_per_s_until_reclaimed", rate(first, gone_ns));
    let faults = course.seen.missing + course.seen.wrong;
    figures.push("gets_missing_or_wrong", faults as f64);
}

fn latencies(figures: &mut Figures, name: &str, gets: &Latencies) {
    for (figure, quantile) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)] {
        figures.push(format!("get_{figure}_us_{name}"), gets.at_us(quantile));
    }
    figures.push(format!("get_max_ms_{name}"), gets.max_ms());
    figures.push(format!("gets_over_1ms_{name}"), gets.over_1ms as f64);
}

fn keys(figures: &mut Figures, course: &Course<'_>, gone_ns: Option<u64>) {
    let (plan, schedule) = (course.plan, course.schedule);
    // A key that is due may go at any moment between question and answer; one that is not due
    // when the answer arrives must have been there.
    let early = |poll: &Poll| {
        let alive = plan.dying - schedule.due_at(poll.at_ns);
        (plan.live + alive).saturating_sub(poll.stored)
    };
    let early = course.polls.iter().map(early).max();
    let most = course.polls.iter().map(|poll| course.dead_held(poll)).max();
    figures.push("keys_gone_early", early.map(|n| n as f64));
    figures.push("dead_held_max", most.map(|n| n as f64));
    figures.push("dead_held_at_last_deadline", course.dead_after(0.0));
    figures.push("dead_held_50ms_later", course.dead_after(50.0));
    figures.push("dead_held_1s_later", course.dead_after(1_000.0));
    figures.push("dead_held_at_end", course.dead_after(f64::from(u32::MAX)));
    let gone = gone_ns.and_then(|_| course.ms_after_last(course.gone()));
    figures.push_or_never("keys_back_ms", gone);
    figures.push("expired_keys", course.expired);
}

fn memory(figures: &mut Figures, course: &Course<'_>) {
    let release = course.release;
    if course.plan.mass {
        let last = course.schedule.last_ns;
        let back = course.first_after(last, |poll| release.is_back(poll.rss_bytes));
        figures.push_or_never("rss_90_back_ms", course.ms_after_last(back));
    }
    let mb = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / MB);
    let end = course.polls.last().and_then(|poll| poll.rss_bytes);
    figures.push("rss_mb_empty", mb(release.empty));
    figures.push("rss_mb_live_only", mb(release.live_only));
    figures.push("rss_mb_loaded", mb(release.loaded));
    figures.push("rss_mb_end", mb(end));
}

fn processor(figures: &mut Figures, course: &Course<'_>, gone_ns: u64) {
    let first = course.schedule.first_ns;
    let before = course.cpu_between(course.before_ns, first);
    let reclaim = course.cpu_between(first, gone_ns);
    figures.push("cpu_s_reclaim", reclaim.as_ref().map(|span| span.cpu_s));
    if course.plan.mass {
        let net = before.as_ref().zip(reclaim.as_ref());
        net_of_reads(figures, course.plan.dying as f64, net);
    }
    let reading = before.as_ref().filter(|span| span.gets > 0);
    let per_get = reading.map(|span| span.cpu_s * 1e6 / span.gets as f64);
    figures.push("cpu_us_per_get_before", per_get);
    figures.push_noise(course.taken);
}

/// The cost of expiry without the reads'; `spans` are those before it and in it.
fn net_of_reads(figures: &mut Figures, keys: f64, spans: Option<(&Span, &Span)>) {
    // The reads' share (with the polls') at the price they had before; without reads, by time.
    let net = spans.map(|(before, span)| match before.gets {
        0 => span.cpu_s - before.cpu_s / before.wall_s * span.wall_s,
        gets => span.cpu_s - before.cpu_s / gets as f64 * span.gets as f64,
    });
    let rate = net.filter(|&net| net > 0.0).map(|net| keys / net / 1e6);
    figures.push("cpu_s_reclaim_net", net);
    figures.push("cpu_us_per_key_net", net.map(|s| s * 1e6 / keys.max(1.0)));
    figures.push("keys_per_cpu_s", rate);
}
