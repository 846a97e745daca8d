//! What the fuzz targets share: operations, and the naive keyspace that they are checked against.

pub mod check;
pub mod draw;
pub mod loose;
pub mod model;
pub mod op;
pub mod rig;
mod walk;
