//! The whole server below its sockets, in one thread and in virtual time: real parser, dispatcher,
//! keyspace, hub and outboxes over streams in memory.

mod activity;
mod admission;
mod bank;
mod behind_answers;
mod claims;
mod client;
mod client_memory;
mod closing;
mod crowd;
mod data;
mod disk;
mod done;
mod episodes;
mod events;
mod expired_streams;
mod fan_out;
mod half_close;
mod hand_over;
mod listener;
mod loading;
mod log_waits;
mod long;
mod long_scripts;
mod max_memory;
mod model;
mod near_cache;
mod parts;
mod pause;
mod protected;
mod queues;
mod readers;
pub(crate) mod recorder;
mod reply_limits;
mod rig;
mod scripted_bank;
mod scripts;
mod settings;
mod subscribers;
mod talk;
mod terms;
mod time;
mod waiting;
mod watched;
mod wire;
mod world;

/// Returns true if the deep tier asks for all seeds: `TIDEWHEEL_DEEP=1`.
fn is_deep() -> bool {
    std::env::var_os("TIDEWHEEL_DEEP").is_some()
}
