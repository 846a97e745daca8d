//! Deadlines in, what is due out: timer wheels and a heap under one trait.
#![no_std]
extern crate alloc;
