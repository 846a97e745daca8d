//! Workers and stores as their users see them: one binary.

mod common;
mod conformance;
mod journal;
mod memory;
mod simulation;
mod skew;
mod worker;
