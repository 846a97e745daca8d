//! Watches one server that has everything.

use std::io;
use std::sync::Arc;

use tidewheel_resp::Reply;
use tidewheel_time::Moment;

use super::primary::{Beat, Primary};
use crate::core::invalidation_stream::{InvalidationStream, Owners};
use crate::valkey::data::Data;
use crate::valkey::identity::{ROLE, is_replica};
use crate::valkey::open::{Address, Login};

/// A server that nobody else speaks for: its answer is enough, unless it says that it is a replica.
struct Alone(Arc<Data>);

impl Beat for Alone {
    fn commands(&self) -> &'static [&'static [&'static [u8]]] {
        &[&ROLE]
    }

    fn judge(&mut self, sent: Moment, replies: &[Reply]) -> io::Result<Option<Moment>> {
        let [Reply::Bulk(answer) | Reply::Verbatim(_, answer)] = replies else {
            // An error proves nothing: a server that is busy with a script answers with one, and
            // tells of changes afterwards.
            return Ok(None);
        };
        let is_replica = is_replica(answer);
        self.0.found_replica(is_replica);
        if is_replica {
            return Err(io::Error::other("it is no primary"));
        }
        Ok(Some(sent))
    }
}

pub(super) async fn watch(
    address: Address,
    login: Login,
    stream: Arc<InvalidationStream>,
    data: Arc<Data>,
) {
    let source = 0;
    stream.owned(Owners::One(source));
    let primary = Primary {
        address,
        login,
        source,
        stream,
        data,
    };
    let alone = Alone(Arc::clone(&primary.data));
    primary.watch(alone).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::valkey::open::Servers;

    fn alone() -> Alone {
        let servers = Servers::one("redis://127.0.0.1:1").expect("an address");
        Alone(Arc::new(Data::new(servers)))
    }

    fn answer(text: &str) -> Reply {
        Reply::Bulk(text.as_bytes().to_vec())
    }

    /// It counted as heard, and changes that it had not told of yet were not seen for as long as it
    /// was busy.
    #[test]
    fn an_error_proves_nothing() {
        let judge = |reply| alone().judge(Moment(5), &[reply]).expect("no break");
        assert_eq!(judge(answer("role:master\r\n")), Some(Moment(5)));
        assert_eq!(judge(Reply::Error("BUSY a script runs".into())), None);
        assert_eq!(judge(Reply::Error("LOADING".into())), None);
    }

    #[test]
    fn a_replica_is_not_watched() {
        let judged = alone().judge(Moment(5), &[answer("role:slave\r\n")]);
        assert!(judged.is_err(), "{judged:?}");
    }
}
