//! Clients that mean harm, or die at the worst moment, and their lack of effect on others.

mod tools;

mod clients;
mod clock;
mod collisions;
mod events;
mod foreign_protocols;
mod idling;
mod memory;
mod numbers;
mod passwords;
mod protected;
mod replies;
mod subscribers;
mod swaps;
mod turns;
