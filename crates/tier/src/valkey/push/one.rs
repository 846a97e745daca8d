//! One server that has everything.

use std::io;
use std::sync::Arc;

use tidewheel_resp::Reply;
use tidewheel_time::Moment;

use super::primary::{Beat, Primary};
use crate::core::plane::{Owners, Plane};
use crate::valkey::data::Data;
use crate::valkey::open::{Address, Login};

/// A server that nobody else speaks for: its answer is enough.
struct Ping;

impl Beat for Ping {
    fn commands(&self) -> &'static [&'static [&'static [u8]]] {
        &[&[b"PING"]]
    }

    fn judge(&mut self, sent: Moment, replies: &[Reply]) -> io::Result<Option<Moment>> {
        // An error proves nothing: a server that is busy with a script answers with one, and tells of changes afterwards.
        let is_answered = matches!(replies, [Reply::Simple(said)] if said == "PONG");
        Ok(is_answered.then_some(sent))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// It counted as heard, and changes that it had not told of yet were not seen for as long as it was busy.
    #[test]
    fn an_error_proves_nothing() {
        let said = |reply| Ping.judge(Moment(5), &[reply]).expect("no break");
        assert_eq!(said(Reply::Simple("PONG".into())), Some(Moment(5)));
        assert_eq!(said(Reply::Error("BUSY a script runs".into())), None);
        assert_eq!(said(Reply::Error("LOADING".into())), None);
    }
}
