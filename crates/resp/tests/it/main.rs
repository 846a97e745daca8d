//! The protocol as its users see it.

mod model_parser;
mod model_reply;
mod parser;
