//! The laboratory as somebody runs it: its commands, lines, tables and pages.

mod against_redis;
mod expiry;
mod page;
