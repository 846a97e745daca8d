//! The figures of a burst, from the polls and the log of reads.

use super::plan::Plan;
use super::schedule::Schedule;
use super::watch::{Memory, Poll, Release};
use crate::getter::Seen;
use crate::latency::Summary;
use crate::report::Figures;

const MS: f64 = 1e6;
const S: f64 = 1e9;
const MB: f64 = 1e6;

/// Everything that was observed.
#[derive(Debug)]
pub(crate) struct Course<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) schedule: &'a Schedule,
    pub(crate) polls: &'a [Poll],
    pub(crate) seen: &'a Seen,
    /// When the reader was warm.
    pub(crate) before_ns: u64,
    pub(crate) empty: Memory,
    pub(crate) loaded: Memory,
    pub(crate) live_only: Option<Memory>,
    pub(crate) release: &'a Release,
    pub(crate) load_s: f64,
    /// The server's own count of expired keys.
    pub(crate) expired: Option<f64>,
    pub(crate) others_ns: Option<u64>,
}

pub(crate) fn figures(course: &Course<'_>) -> Figures {
    let mut figures = Figures::default();
    let gone_ns = course.gone().map(|poll| poll.at_ns);
    let end_ns = course
        .polls
        .last()
        .map_or(course.schedule.last_ns, |poll| poll.at_ns);
    reads(&mut figures, course, gone_ns.unwrap_or(end_ns), end_ns);
    keys(&mut figures, course, gone_ns);
    memory(&mut figures, course);
    processor(&mut figures, course, gone_ns.unwrap_or(end_ns), end_ns);
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
        self.polls
            .iter()
            .find(|poll| poll.sent_ns >= at_ns && wanted(poll))
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
        let from = self.polls.iter().rev().find(|poll| poll.at_ns <= from_ns)?;
        let to = self
            .polls
            .iter()
            .find(|poll| poll.at_ns >= to_ns)
            .or(self.polls.last())?;
        let gets = self.seen.log.ended_within(from.at_ns, to.at_ns);
        let cpu_s = to.cpu_ns?.saturating_sub(from.cpu_ns?) as f64 / S;
        Some(Span {
            cpu_s,
            gets,
            wall_s: (to.at_ns - from.at_ns) as f64 / S,
        })
    }
}

struct Span {
    cpu_s: f64,
    gets: u64,
    wall_s: f64,
}

fn reads(figures: &mut Figures, course: &Course<'_>, gone_ns: u64, end_ns: u64) {
    let (first, last) = (course.schedule.first_ns, course.schedule.last_ns);
    if !course.seen.log.iter().any(|_| true) {
        return;
    }
    let log = &course.seen.log;
    let before = log.within(course.before_ns, first);
    let window = log.touching(first, last);
    let reclaim = log.touching(first, gone_ns);
    let after = log.within(gone_ns, end_ns);
    for (name, label, summary) in [
        ("before", "before", &before),
        ("in_window", "in window", &window),
        ("until_reclaimed", "until reclaimed", &reclaim),
        ("after", "after", &after),
    ] {
        latencies(figures, name, label, summary);
    }
    let rate = |summary: &Summary, from: u64, to: u64| {
        let seconds = to.saturating_sub(from) as f64 / S;
        (seconds > 0.0).then(|| summary.over_1ms as f64 / seconds)
    };
    figures.push(
        "gets_over_1ms_per_s_before",
        "GETs >1 ms per second before",
        rate(&before, course.before_ns, first),
    );
    figures.push(
        "gets_over_1ms_per_s_in_window",
        "GETs >1 ms per second in window",
        rate(&window, first, last),
    );
    figures.push(
        "gets_over_1ms_per_s_after",
        "GETs >1 ms per second after",
        rate(&after, gone_ns, end_ns),
    );
    let throughput = |from: u64, to: u64| {
        let seconds = to.saturating_sub(from) as f64 / S;
        (seconds > 0.0).then(|| log.ended_within(from, to) as f64 / seconds)
    };
    figures.push(
        "gets_per_s_before",
        "GETs/s before",
        throughput(course.before_ns, first),
    );
    figures.push(
        "gets_per_s_until_reclaimed",
        "GETs/s until reclaimed",
        throughput(first, gone_ns),
    );
    figures.push(
        "gets_missing_or_wrong",
        "GETs with no or a wrong value",
        (course.seen.missing + course.seen.wrong) as f64,
    );
}

fn latencies(figures: &mut Figures, name: &str, label: &str, summary: &Summary) {
    let ms = |us: Option<f64>| us.map(|us| us / 1e3);
    figures.push(
        format!("get_p50_us_{name}"),
        format!("GET p50 µs {label}"),
        summary.p50_us,
    );
    figures.push(
        format!("get_p99_us_{name}"),
        format!("GET p99 µs {label}"),
        summary.p99_us,
    );
    figures.push(
        format!("get_p999_us_{name}"),
        format!("GET p99.9 µs {label}"),
        summary.p999_us,
    );
    figures.push(
        format!("get_max_ms_{name}"),
        format!("GET max ms {label}"),
        ms(summary.max_us),
    );
    let counts = [
        ("gets_over_1ms", "GETs >1 ms", summary.over_1ms),
        ("gets_over_10ms", "GETs >10 ms", summary.over_10ms),
    ];
    for (key, count_label, count) in counts {
        figures.push(
            format!("{key}_{name}"),
            format!("{count_label} {label}"),
            count as f64,
        );
    }
    figures.push(
        format!("ms_in_gets_over_1ms_{name}"),
        format!("ms spent in GETs >1 ms {label}"),
        summary.over_1ms_total_ms,
    );
}

fn keys(figures: &mut Figures, course: &Course<'_>, gone_ns: Option<u64>) {
    let (plan, schedule) = (course.plan, course.schedule);
    // A key that is due may go at any moment between question and answer; one that is not due
    // when the answer arrives must have been there.
    let early = course
        .polls
        .iter()
        .map(|poll| {
            let alive = plan.dying - schedule.due_at(poll.at_ns);
            (plan.live + alive).saturating_sub(poll.stored)
        })
        .max();
    let most = course.polls.iter().map(|poll| course.dead_held(poll)).max();
    figures.push(
        "keys_gone_early",
        "keys gone before their deadline",
        early.map(|n| n as f64),
    );
    figures.push(
        "dead_held_max",
        "dead keys held, most",
        most.map(|n| n as f64),
    );
    figures.push(
        "dead_held_at_last_deadline",
        "dead keys held at last deadline",
        course.dead_after(0.0),
    );
    figures.push(
        "dead_held_50ms_later",
        "… 50 ms later",
        course.dead_after(50.0),
    );
    figures.push(
        "dead_held_1s_later",
        "… 1 s later",
        course.dead_after(1_000.0),
    );
    figures.push(
        "dead_held_at_end",
        "… at the end",
        course.dead_after(f64::from(u32::MAX)),
    );
    let gone = gone_ns.and_then(|_| course.ms_after_last(course.gone()));
    figures.push_or_never("keys_back_ms", "DBSIZE back, ms after last deadline", gone);
    figures.push(
        "expired_keys",
        "expired keys by the server's count",
        course.expired,
    );
    figures.push("load_k_per_s", "load k keys/s", {
        let loaded = if course.live_only.is_some() {
            plan.dying
        } else {
            plan.dying + plan.live
        };
        loaded as f64 / course.load_s / 1e3
    });
}

fn memory(figures: &mut Figures, course: &Course<'_>) {
    if course.plan.mass {
        let last = course.schedule.last_ns;
        let used = course.first_after(last, |poll| course.release.used_back(poll, 0.9));
        figures.push_or_never(
            "used_memory_90_back_ms",
            "used_memory 90 % back, ms",
            course.ms_after_last(used),
        );
        for (key, label, part) in [
            ("rss_50_back_ms", "RSS half back, ms", 0.5),
            ("rss_90_back_ms", "RSS 90 % back, ms", 0.9),
        ] {
            let poll = course.first_after(last, |poll| course.release.rss_back(poll, part));
            figures.push_or_never(key, label, course.ms_after_last(poll));
        }
    }
    let mb = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / MB);
    figures.push("rss_mb_empty", "RSS MB empty", mb(course.empty.rss_bytes));
    let live_only = course.live_only.and_then(|memory| memory.rss_bytes);
    figures.push(
        "rss_mb_live_only",
        "RSS MB live only, before load",
        mb(live_only),
    );
    figures.push(
        "rss_mb_loaded",
        "RSS MB loaded",
        mb(course.loaded.rss_bytes),
    );
    let end = course.polls.last().and_then(|poll| poll.rss_bytes);
    figures.push("rss_mb_end", "RSS MB end", mb(end));
}

fn processor(figures: &mut Figures, course: &Course<'_>, gone_ns: u64, end_ns: u64) {
    let first = course.schedule.first_ns;
    let before = course.cpu_between(course.before_ns, first);
    let reclaim = course.cpu_between(first, gone_ns);

    figures.push(
        "cpu_s_reclaim",
        "server CPU s, first deadline→reclaimed",
        reclaim.as_ref().map(|span| span.cpu_s),
    );
    if course.plan.mass {
        net_of_reads(figures, course, before.as_ref(), reclaim.as_ref());
    }
    figures.push(
        "cpu_us_per_get_before",
        "server CPU µs per GET before",
        before
            .as_ref()
            .filter(|span| span.gets > 0)
            .map(|span| span.cpu_s * 1e6 / span.gets as f64),
    );
    let wall_ns = end_ns.saturating_sub(course.before_ns);
    figures.push(
        "others_cpu_percent",
        "noise: others' CPU, % of a core",
        course
            .others_ns
            .filter(|_| wall_ns > 0)
            .map(|ns| ns as f64 / wall_ns as f64 * 100.0),
    );
}

/// What expiry cost beside the reads.
fn net_of_reads(
    figures: &mut Figures,
    course: &Course<'_>,
    before: Option<&Span>,
    reclaim: Option<&Span>,
) {
    // The reads' share (with the polls') at the price they had before; without reads, by time.
    let net = |span: Option<&Span>| {
        let (before, span) = (before?, span?);
        let reads = if before.gets > 0 {
            before.cpu_s / before.gets as f64 * span.gets as f64
        } else {
            before.cpu_s / before.wall_s * span.wall_s
        };
        Some(span.cpu_s - reads)
    };
    let per_key = |net: Option<f64>| net.map(|s| s * 1e6 / course.plan.dying.max(1) as f64);
    let net_reclaim = net(reclaim);
    figures.push("cpu_s_reclaim_net", "same net of GETs", net_reclaim);
    figures.push(
        "cpu_us_per_key_net",
        "CPU µs per expired key, net",
        per_key(net_reclaim),
    );
    figures.push(
        "keys_per_cpu_s",
        "M keys per CPU second, net",
        net_reclaim
            .filter(|&net| net > 0.0)
            .map(|net| course.plan.dying as f64 / net / 1e6),
    );
}
