//! User code that calls the cache it is called from, and user code that panics: neither blocks nor
//! breaks the cache.

mod calls;
mod drivers;
mod drops;
mod hooks;
