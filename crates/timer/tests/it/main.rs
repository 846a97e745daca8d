//! The timers as their users see them: one binary, so that their generics are compiled once.

#[macro_use]
mod common;
mod forecast;
mod layers;
mod model;
mod traps;
