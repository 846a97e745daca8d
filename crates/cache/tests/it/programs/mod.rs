//! Whole programs over the cache: each asserts what its users see.

mod rate_limit;
mod sessions;
mod web_service;
