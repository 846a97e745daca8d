//! The sockets of the invalidation stream: connections of its own, on which primaries tell of every
//! change.

mod cluster;
mod connection;
mod one;
mod primary;
mod sentinel;

use std::sync::Arc;

use super::data::Data;
use super::open::{Deployment, Servers};
use crate::core::invalidation_stream::InvalidationStream;
pub(super) use sentinel::primary_of;

/// Watches until it is dropped.
pub(super) async fn watch(servers: Servers, stream: Arc<InvalidationStream>, data: Arc<Data>) {
    let Servers { deployment, login } = servers;
    match deployment {
        Deployment::One(address) => one::watch(address, login, stream, data).await,
        Deployment::Sentinel(sentinels, name) => {
            sentinel::watch(sentinels, name, login, stream, data).await;
        }
        Deployment::Cluster(nodes) => cluster::watch(nodes, login, stream, data).await,
    }
}
