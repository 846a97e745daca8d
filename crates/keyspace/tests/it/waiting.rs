//! Commands that wait for keys: in which order they are served, and that each is served once.
