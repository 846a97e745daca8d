//! Counters: each loop writes its own set, and INFO adds them up.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tidewheel_keyspace::Time;

/// The length of the window of the momentary rates.
const WINDOW_MS: u64 = 100;

/// The age at which a rate no longer counts.
const STALE_MS: u64 = 2_000;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The counts that a loop has not yet published.
        #[derive(Debug, Default, Clone, Copy)]
        pub(crate) struct LoopTally { $($(#[$doc])* pub(crate) $name: u64,)* }

        /// The counts that a loop has published.
        #[derive(Debug, Default)]
        pub(crate) struct LoopCounters {
            $($name: AtomicU64,)*
            rates: RateWindow,
        }

        impl LoopCounters {
            /// Adds a tally. Only the loop itself calls this, so a load and a store do.
            pub(crate) fn publish(&self, tally: &mut LoopTally, now: Time) {
                $(if tally.$name != 0 {
                    let sum = self.$name.load(Ordering::Relaxed).wrapping_add(tally.$name);
                    self.$name.store(sum, Ordering::Relaxed);
                })*
                *tally = LoopTally::default();
                self.rates.sample(now.tick, self);
            }

            /// Adds what has been published to a sum.
            pub(crate) fn add_to(&self, sum: &mut LoopTally) {
                $(sum.$name = sum.$name.wrapping_add(self.$name.load(Ordering::Relaxed));)*
            }
        }

        impl LoopTally {
            /// Returns the counts since `earlier`.
            pub(crate) fn since(&self, earlier: &Self) -> Self {
                Self { $($name: self.$name.wrapping_sub(earlier.$name),)* }
            }
        }
    };
}

counters! {
    /// Commands run.
    commands,
    /// Bytes read from clients.
    input_bytes,
    /// Bytes written to clients.
    output_bytes,
    /// Calls that read from a socket.
    reads,
    /// Calls that wrote to a socket.
    writes,
    /// Connections accepted.
    connections,
    /// Connections refused for `maxclients`.
    rejected,
    /// Connections closed for their output.
    output_limit_closes,
    /// Connections closed for their input.
    input_limit_closes,
    /// Connections closed for memory.
    evicted_clients,
    /// Connections closed for their silence.
    idle_closes,
    /// Error replies.
    errors,
    /// Turns of the event loop.
    turns,
    /// Microseconds spent in turns.
    busy_us,
    /// Microseconds spent on what has expired.
    expiry_us,
    /// Turns that ended with expiry left to do.
    budget_hits,
    /// Keys expired on behalf of another loop.
    helped,
    /// Commands whose client was parked, because others had shards for long.
    parked_commands,
    /// Runs of scripts that began again, because they needed keys that they had not declared.
    scripts_again,
}

/// The rates over the last full window.
#[derive(Debug, Default)]
struct RateWindow {
    began: AtomicU64,
    commands: AtomicU64,
    input: AtomicU64,
    output: AtomicU64,
    turns: AtomicU64,
    busy_us: AtomicU64,
    commands_rate: AtomicU64,
    input_rate: AtomicU64,
    output_rate: AtomicU64,
    turns_rate: AtomicU64,
    busy_us_rate: AtomicU64,
}

/// Momentary rates, a second.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct MomentaryRates {
    pub(crate) commands: u64,
    pub(crate) input_bytes: u64,
    pub(crate) output_bytes: u64,
    pub(crate) turns: u64,
    pub(crate) busy_us: u64,
}

impl RateWindow {
    fn sample(&self, tick: u64, counters: &LoopCounters) {
        let began = self.began.load(Ordering::Relaxed);
        let elapsed = tick.saturating_sub(began);
        if elapsed < WINDOW_MS {
            return;
        }
        for (counter, last, rate) in [
            (&counters.commands, &self.commands, &self.commands_rate),
            (&counters.input_bytes, &self.input, &self.input_rate),
            (&counters.output_bytes, &self.output, &self.output_rate),
            (&counters.turns, &self.turns, &self.turns_rate),
            (&counters.busy_us, &self.busy_us, &self.busy_us_rate),
        ] {
            let count = counter.load(Ordering::Relaxed);
            let before = last.swap(count, Ordering::Relaxed);
            let per_second = count.wrapping_sub(before).saturating_mul(1000) / elapsed;
            rate.store(if began == 0 { 0 } else { per_second }, Ordering::Relaxed);
        }
        self.began.store(tick, Ordering::Relaxed);
    }
}

impl LoopCounters {
    /// Adds the momentary rates to a sum.
    pub(crate) fn add_rate(&self, now: Time, sum: &mut MomentaryRates) {
        if now
            .tick
            .saturating_sub(self.rates.began.load(Ordering::Relaxed))
            > STALE_MS
        {
            return;
        }
        sum.commands += self.rates.commands_rate.load(Ordering::Relaxed);
        sum.input_bytes += self.rates.input_rate.load(Ordering::Relaxed);
        sum.output_bytes += self.rates.output_rate.load(Ordering::Relaxed);
        sum.turns += self.rates.turns_rate.load(Ordering::Relaxed);
        sum.busy_us += self.rates.busy_us_rate.load(Ordering::Relaxed);
    }
}

/// Keys expired in a second, since INFO was last asked (but at least a second ago).
#[derive(Debug, Default)]
pub(crate) struct ExpiryRate(Mutex<ExpiryWindow>);

#[derive(Debug, Default)]
struct ExpiryWindow {
    began: u64,
    count: u64,
    rate: u64,
}

impl ExpiryRate {
    pub(crate) fn per_second(&self, count: u64, now: u64) -> u64 {
        let mut window = self.0.lock();
        let elapsed = now.saturating_sub(window.began);
        if elapsed >= 1_000 {
            // Counters were reset when they have become smaller.
            let grown = count.saturating_sub(window.count);
            window.rate = if window.began == 0 {
                0
            } else {
                grown.saturating_mul(1_000) / elapsed
            };
            window.began = now;
            window.count = count;
        }
        window.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tick: u64) -> Time {
        Time {
            tick,
            micros: 0,
            wall_offset_ms: 0,
        }
    }

    #[test]
    fn tallies_add_up_and_rates_cover_the_last_window() {
        let counters = LoopCounters::default();
        counters.publish(
            &mut LoopTally {
                commands: 5,
                ..LoopTally::default()
            },
            at(1 << 40),
        );
        let mut tally = LoopTally {
            commands: 50,
            ..LoopTally::default()
        };
        counters.publish(&mut tally, at((1 << 40) + 200));
        assert_eq!(tally.commands, 0);
        let mut sum = LoopTally::default();
        counters.add_to(&mut sum);
        assert_eq!(sum.commands, 55);
        let mut rate = MomentaryRates::default();
        counters.add_rate(at((1 << 40) + 300), &mut rate);
        assert_eq!(rate.commands, 250);
        let mut stale = MomentaryRates::default();
        counters.add_rate(at((1 << 40) + 5000), &mut stale);
        assert_eq!(stale.commands, 0);
    }
}
