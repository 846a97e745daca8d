//! Twelve faulty ways to build a cache with TTLs, and a thirteenth: each fails its script here,
//! always, and Tidewheel plays the same script to the end. `docs/twelve-bugs.md` has the rules
//! behind it.
//!
//! Nothing is left to luck: time is a clock moved by hand, and where two actors must meet, the
//! second one steps in at a chosen point of the first one's operation (see `stage`).

mod bonus_read_modify_write;
mod bug_01_lazy_delete;
mod bug_02_kin;
#[cfg(feature = "system")]
mod bug_02_sweeper;
mod bug_03_lock_over_load;
mod bug_04_wall_clock;
mod bug_05_no_single_flight;
mod bug_06_stampede;
mod bug_07_long_sweep;
mod bug_08_timer_per_key;
mod bug_10_no_bounds;
mod bug_11_recursive_lock;
mod bug_12_timer_per_turn;
mod fresh_value_race;
mod stage;
