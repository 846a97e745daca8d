//! Whole programs over the cache: each asserts what its users see.

mod web_service;
