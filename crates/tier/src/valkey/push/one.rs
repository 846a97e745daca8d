//! One server that has everything.

use std::io;
use std::sync::Arc;

use tidewheel_resp::Reply;
use tidewheel_time::Moment;

use super::primary::{Beat, Primary};
use crate::core::plane::{Owners, Plane};
use crate::valkey::data::Data;
use crate::valkey::open::{Address, Login};

/// A server that nobody else speaks for: an answer is enough.
struct Ping;

impl Beat for Ping {
    fn commands(&self) -> &'static [&'static [&'static [u8]]] {
        &[&[b"PING"]]
    }

    fn judge(&mut self, sent: Moment, _: &[Reply]) -> io::Result<Option<Moment>> {
        Ok(Some(sent))
    }
}

pub(super) async fn watch(address: Address, login: Login, plane: Arc<Plane>, data: Arc<Data>) {
    let source = 0;
    plane.owned(Owners::One(source));
    let primary = Primary {
        address,
        login,
        source,
        plane,
        data,
    };
    primary.watch(Ping).await;
}
