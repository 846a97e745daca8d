//! Bytes to and from the Redis protocol (RESP2 and RESP3).
