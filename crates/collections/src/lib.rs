//! One collection: its members, their order, their deadlines.
#![forbid(unsafe_code)]
