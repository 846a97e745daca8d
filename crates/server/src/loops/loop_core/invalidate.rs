//! Tells clients that keys which they have read are invalid.
//!
//! The messages wait in the inbox of the loop that owns the client, and are taken between two
//! turns: so each follows the replies that were written before it, in the output of its client.
//! That loop knows in which way the client tracks now. One that redirects costs a second step, to
//! the loop of the client that is told instead.

use std::sync::Arc;

use tidewheel_resp::{Protocol, Writer};

use super::parts::LoopCore;
use super::sockets::Sockets;
use crate::loop_handle::inbox::{ALL, Invalidations, Target};

/// A push of RESP3, up to the keys.
const PUSH: &[u8] = b">2\r\n$10\r\ninvalidate\r\n";

/// A message of RESP2 to a client that is told instead of another, up to the keys.
const MESSAGE: &[u8] = b"*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n";

/// All keys, in RESP2.
const ALL_RESP2: &[u8] = b"$-1\r\n";

impl<K: Sockets> LoopCore<K> {
    /// Tells clients of this loop what is invalid.
    pub(super) fn invalidate(&mut self, invalid: &Invalidations) {
        for target in &invalid.targets {
            match invalid.redirected {
                true => self.push_invalid(*target, &invalid.keys, true),
                false => self.invalidate_for(*target, &invalid.keys),
            }
        }
    }

    /// Tells one client of this loop, or the one that is to be told instead.
    pub(super) fn invalidate_for(&mut self, target: Target, keys: &Arc<[u8]>) {
        let Some(link) = self.table.find(target) else {
            return;
        };
        let Some(tracking) = &mut link.conn.tracking else {
            return;
        };
        if tracking.redirect == 0 {
            return self.push_invalid(target, keys, false);
        }
        let Some(other) = self.state.server.clients.get(tracking.redirect) else {
            tracking.broken = true;
            if link.conn.protocol == Protocol::Resp3 {
                let id = i64::try_from(tracking.redirect).unwrap_or(i64::MAX);
                let mut out = Writer::new(Protocol::Resp3);
                out.push(2);
                out.bulk(b"tracking-redir-broken");
                out.integer(id);
                self.push_bytes(target, &[out.as_bytes()]);
            }
            return;
        };
        if other.owner == self.state.index {
            self.push_invalid(other.target(), keys, true);
        } else {
            let invalid = Invalidations {
                targets: vec![other.target()],
                keys: Arc::clone(keys),
                redirected: true,
            };
            self.state.server.loops[other.owner].invalidate(invalid);
        }
    }

    fn push_invalid(&mut self, target: Target, keys: &[u8], redirected: bool) {
        let Some(link) = self.table.find(target) else {
            return;
        };
        match link.conn.protocol {
            Protocol::Resp3 => self.push_bytes(target, &[PUSH, keys]),
            Protocol::Resp2 if redirected && link.conn.subscriptions.is_some() => {
                let keys = if keys == ALL { ALL_RESP2 } else { keys };
                self.push_bytes(target, &[MESSAGE, keys]);
            }
            // There is no way to tell it.
            Protocol::Resp2 => {}
        }
    }

    /// Appends a message to a client's output.
    fn push_bytes(&mut self, target: Target, parts: &[&[u8]]) {
        let link = self.table.find(target);
        let Some(link) = link.filter(|link| !link.conn.closing && !link.conn.is_killed()) else {
            return;
        };
        let before = link.conn.output.capacity();
        parts.iter().for_each(|part| link.conn.output.append(part));
        if !link.keeps_up(&mut self.state) {
            let address = &link.conn.client.peer;
            tracing::warn!(client = target.id, %address, "closed: it does not read its messages");
            self.state.tally.output_limit_closes += 1;
            return self.close(target.slot);
        }
        let grown = link.conn.output.capacity().saturating_sub(before);
        if !link.conn.fresh {
            link.conn.fresh = true;
            self.table.fresh.push(target.slot);
        }
        self.note_copied(grown);
    }
}
