//! The stores as their users see them: one binary, so that their generics are compiled once.

mod hostile_hashes;
mod model_store;
mod model_typed;
mod small;
mod timed;
