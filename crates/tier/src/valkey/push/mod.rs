//! The watching plane: connections of its own, on which primaries tell of every change.

mod cluster;
mod connection;
mod one;
mod primary;
mod sentinel;

use std::sync::Arc;

use super::data::Data;
use super::open::{Kind, Servers};
use crate::core::plane::Plane;
pub(super) use sentinel::primary_of;

/// Watches until it is dropped.
pub(super) async fn watch(servers: Servers, plane: Arc<Plane>, data: Arc<Data>) {
    let Servers { kind, login } = servers;
    match kind {
        Kind::One(address) => one::watch(address, login, plane, data).await,
        Kind::Sentinel(sentinels, name) => {
            sentinel::watch(sentinels, name, login, plane, data).await;
        }
        Kind::Cluster(nodes) => cluster::watch(nodes, login, plane, data).await,
    }
}
