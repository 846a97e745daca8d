//! Typed values and the command table of a Redis-protocol server.
