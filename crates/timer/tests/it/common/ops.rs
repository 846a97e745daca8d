//! Operations, deadlines and clocks that look for trouble in a queue.

use proptest::prelude::*;

/// Where a deadline lies, seen from the clock or from the timer that is moved.
#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    /// Ticks ahead of the clock.
    Ahead(u64),
    /// Ticks behind the clock.
    Behind(u64),
    /// Distance `2^bits`, and one off.
    Power { bits: u32, off: i64 },
    /// The clock's next multiple of `256^level`, and one off.
    Boundary { level: u32, off: i64 },
    /// Ticks before the end of time.
    End(u64),
    /// The tick itself.
    Tick(u64),
    /// The deadline of another timer: many share one tick.
    SameAs(usize),
    /// Later than the deadline that the timer has. Ahead of the clock for a new one.
    Later(u64),
    /// Earlier than the deadline that the timer has. Behind the clock for a new one.
    Earlier(u64),
    /// The same 32 low bits, `2^32` ticks or a multiple later: records look alike.
    Alias(u32),
}

/// The ways in which the clock moves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Jump {
    /// Ticks forward; 0 is the same moment again.
    Ahead(u64),
    /// Whole slots of `256^level` ticks, and one off.
    Slots { level: u32, count: u64, off: i64 },
    /// To the next multiple of `256^level`, and one off.
    Boundary { level: u32, off: i64 },
    /// To the earliest deadline, and one off.
    Deadline { off: i64 },
    /// To what `next_deadline` says.
    Next,
    /// Years of milliseconds.
    Years(u64),
    /// Backwards.
    Back(u64),
    /// `2^bits` forward, and one off.
    Power { bits: u32, off: i64 },
}

#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// The clock moves and nobody tells the queue.
    Clock(Jump),
    Insert(When),
    /// Many timers from one deadline on, `gap` ticks apart.
    Burst {
        when: When,
        count: u16,
        gap: u64,
    },
    Reschedule {
        pick: usize,
        when: When,
    },
    Cancel {
        pick: usize,
    },
    /// Every `nth` timer is cancelled.
    Storm {
        nth: usize,
    },
    /// One call; what is left stays for later operations.
    Advance {
        jump: Jump,
        budget: u32,
    },
    /// Calls at one moment until there is no backlog.
    Finish {
        jump: Jump,
        budgets: Vec<u32>,
    },
    /// The clock runs forward tick by tick.
    Ticks {
        count: u16,
        budget: u32,
    },
    /// Sleeps to `next_deadline` until something fires.
    Sleep,
    Drain,
    Maintain {
        budget: u32,
    },
    /// Tidies until nothing is worth doing.
    Tidy {
        budget: u32,
    },
    /// One timer is moved earlier, a tick at a time, or many are set and cancelled: dead records.
    Churn {
        when: When,
        count: u16,
        gap: u64,
        cancel: bool,
    },
    /// A handle whose timer is gone is used.
    Gone {
        pick: usize,
        when: When,
    },
}

/// Moments that have broken timers elsewhere.
pub(crate) fn start() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1 << 30),
        Just(1 << 32),
        Just((1 << 36) - 1),
        Just(1 << 40),
        Just((1 << 48) - 1),
        Just(u64::MAX - (1 << 33)),
        Just(u64::MAX - 70_000),
        Just(u64::MAX - 300),
        // Just before a roll-over of levels 1, 2, 3 and 4.
        (
            prop_oneof![Just(8), Just(16), Just(24), Just(32), Just(40)],
            1..40_u64
        )
            .prop_map(|(bits, before)| (0x5a5a_u64 << bits) - before),
        any::<u64>(),
    ]
}

fn off() -> impl Strategy<Value = i64> {
    -1..=1_i64
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        6 => (0..700_u64).prop_map(When::Ahead),
        2 => (0..200_000_u64).prop_map(When::Ahead),
        2 => (0..64_u32, off()).prop_map(|(bits, off)| When::Power { bits, off }),
        2 => (0..8_u32, off()).prop_map(|(level, off)| When::Boundary { level, off }),
        1 => prop_oneof![0..4_u64, Just(300), Just(1 << 33), Just(1 << 62)].prop_map(When::Behind),
        1 => (0..3_u64).prop_map(When::End),
        1 => prop_oneof![Just(0), Just(1 << 30), Just(1 << 32), any::<u64>()].prop_map(When::Tick),
        3 => any::<usize>().prop_map(When::SameAs),
        2 => (0..600_u64).prop_map(When::Later),
        2 => (0..600_u64).prop_map(When::Earlier),
        1 => (1..4_u32).prop_map(When::Alias),
    ]
}

fn jump() -> impl Strategy<Value = Jump> {
    prop_oneof![
        4 => (0..3_u64).prop_map(Jump::Ahead),
        4 => (0..700_u64).prop_map(Jump::Ahead),
        2 => (0..3_u32, 1..6_u64, off())
            .prop_map(|(level, count, off)| Jump::Slots { level, count, off }),
        1 => (1..5_u32, prop_oneof![Just(1), Just(2), Just(256), Just(511), Just(512), Just(9999)], off())
            .prop_map(|(level, count, off)| Jump::Slots { level, count, off }),
        3 => (1..5_u32, off()).prop_map(|(level, off)| Jump::Boundary { level, off }),
        3 => off().prop_map(|off| Jump::Deadline { off }),
        3 => Just(Jump::Next),
        1 => (1..30_u64).prop_map(Jump::Years),
        1 => prop_oneof![1..3_u64, Just(5_000), Just(1 << 40)].prop_map(Jump::Back),
        1 => (0..64_u32, off()).prop_map(|(bits, off)| Jump::Power { bits, off }),
    ]
}

fn budget() -> impl Strategy<Value = u32> {
    prop_oneof![3 => 0..8_u32, 2 => 8..400_u32, 2 => Just(u32::MAX)]
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        1 => jump().prop_map(Op::Clock),
        8 => when().prop_map(Op::Insert),
        1 => (when(), 1..400_u16, prop_oneof![Just(0), Just(1), Just(7), Just(257)])
            .prop_map(|(when, count, gap)| Op::Burst { when, count, gap }),
        7 => (any::<usize>(), when()).prop_map(|(pick, when)| Op::Reschedule { pick, when }),
        3 => any::<usize>().prop_map(|pick| Op::Cancel { pick }),
        1 => (1..4_usize).prop_map(|nth| Op::Storm { nth }),
        6 => (jump(), budget()).prop_map(|(jump, budget)| Op::Advance { jump, budget }),
        3 => (jump(), prop::collection::vec(1..30_u32, 1..5))
            .prop_map(|(jump, budgets)| Op::Finish { jump, budgets }),
        1 => (1..600_u16, prop_oneof![Just(u32::MAX), 2..30_u32])
            .prop_map(|(count, budget)| Op::Ticks { count, budget }),
        2 => Just(Op::Sleep),
        1 => Just(Op::Drain),
        2 => (0..60_u32).prop_map(|budget| Op::Maintain { budget }),
        1 => (1..60_u32).prop_map(|budget| Op::Tidy { budget }),
        1 => (when(), 1..2_500_u16, 0..2_u64, any::<bool>())
            .prop_map(|(when, count, gap, cancel)| Op::Churn { when, count, gap, cancel }),
        2 => (any::<usize>(), when()).prop_map(|(pick, when)| Op::Gone { pick, when }),
    ]
}

fn moved(from: u64, off: i64) -> u64 {
    from.saturating_add_signed(off)
}

fn next_multiple(of: u64, level: u32) -> u64 {
    (of >> (8 * level))
        .saturating_add(1)
        .saturating_mul(1 << (8 * level))
}

impl When {
    /// The tick that is meant. `others` are the deadlines of pending timers, `own` that of the
    /// timer that is moved.
    pub(crate) fn resolve(self, now: u64, own: Option<u64>, others: &[u64]) -> u64 {
        match self {
            Self::Ahead(ticks) => now.saturating_add(ticks),
            Self::Behind(ticks) => now.saturating_sub(ticks),
            Self::Power { bits, off } => moved(now.saturating_add(1 << bits), off),
            Self::Boundary { level, off } => moved(next_multiple(now, level), off),
            Self::End(before) => u64::MAX - before,
            Self::Tick(tick) => tick,
            Self::SameAs(pick) if others.is_empty() => now.saturating_add(pick as u64 % 100),
            Self::SameAs(pick) => others[pick % others.len()],
            Self::Later(ticks) => own.unwrap_or(now).saturating_add(ticks),
            Self::Earlier(ticks) => own.unwrap_or(now).saturating_sub(ticks),
            Self::Alias(times) => own.unwrap_or(now).saturating_add(u64::from(times) << 32),
        }
    }
}

impl Jump {
    /// Where the clock goes.
    pub(crate) fn resolve(self, now: u64, earliest: Option<u64>, next: Option<u64>) -> u64 {
        match self {
            Self::Ahead(ticks) => now.saturating_add(ticks),
            Self::Slots { level, count, off } => {
                moved(now.saturating_add(count << (8 * level)), off)
            }
            Self::Boundary { level, off } => moved(next_multiple(now, level), off),
            Self::Deadline { off } => moved(earliest.unwrap_or(now).max(now), off),
            Self::Next => next.unwrap_or(now).max(now),
            Self::Years(years) => now.saturating_add(years * 365 * 86_400_000),
            Self::Back(ticks) => now.saturating_sub(ticks),
            Self::Power { bits, off } => moved(now.saturating_add(1 << bits), off),
        }
    }
}
