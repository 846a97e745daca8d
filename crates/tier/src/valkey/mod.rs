//! Valkey and Redis.
