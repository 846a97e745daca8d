//! A disk in memory.
