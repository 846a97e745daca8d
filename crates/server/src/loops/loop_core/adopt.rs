//! Makes a new connection a loop's own.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;

use super::sockets::Sockets;
use super::table::ConnectionTable;
use crate::clients::checks;
use crate::clients::connection::{Connection, Link};
use crate::clients::registry::{Client, ClientFacts};
use crate::config::{Address, CertifiedUser, ClientAccess, DENIED};
use crate::net::byte_stream::ByteStream as _;
use crate::net::listener::Accepted;
use crate::net::output::write_some;
use crate::net::tls::certificate;
use crate::state::loop_state::LoopState;

/// Makes a connection the loop's own. Returns its slot, `None` when it was lost or may not come
/// in.
pub(super) fn adopt<K: Sockets>(
    state: &mut LoopState,
    table: &mut ConnectionTable<K::Stream>,
    sockets: &K,
    accepted: Accepted<K::Stream>,
) -> Option<u32> {
    let Accepted {
        mut stream,
        peer,
        local,
    } = accepted;
    state.tally.connections += 1;
    // The settings in force decide, not the loop's copy: they may have changed since it was
    // accepted.
    let access = state.server.config.access(&peer);
    if access == ClientAccess::Denied {
        reject(state, &mut stream, &peer);
        return None;
    }
    let now = state.time.tick;
    let slot = table.next_slot();
    let settings = &state.settings;
    if let Err(why) = sockets.register(&mut stream, slot, settings) {
        tracing::debug!(%why, "a connection was lost before it was served");
        table.unused(slot);
        note_closed(state);
        return None;
    }
    let may_debug = settings.debug_access.allows(&peer);
    let client = Arc::new(Client {
        id: state.server.clients.next_id(),
        peer,
        local,
        tls: stream.tls(),
        descriptor: sockets.descriptor(&stream),
        since: now,
        owner: state.index,
        slot,
        killed: AtomicBool::new(false),
        facts: Mutex::new(ClientFacts::new(now)),
        waiting: Mutex::default(),
    });
    tracing::debug!(client = client.id, address = %client.peer, "connected");
    state.server.clients.add(Arc::clone(&client));
    let mut conn = Connection::new(client, now);
    conn.session.may_debug = may_debug;
    conn.become_user(state.server.config.default_user());
    conn.set(checks::UNAUTHENTICATED, access != ClientAccess::Free);
    if let Some(certificate) = stream.certificate() {
        become_certified(state, &mut conn, certificate);
    }
    table.put(slot, Link { stream, conn });
    table.file(slot, &state.settings);
    table.enqueue(slot);
    Some(slot)
}

/// Makes a client the user whom its certificate names, if the settings say so and there is one.
fn become_certified(
    state: &LoopState,
    conn: &mut Connection,
    certificate: &CertificateDer<'static>,
) {
    let settings = state.server.config.current();
    if settings.tls.user == CertifiedUser::Nobody {
        return;
    }
    let names = certificate::names(certificate, settings.tls.user);
    let mut users = names
        .iter()
        .filter_map(|name| settings.users.get(name.as_bytes()));
    if let Some(user) = users.find(|user| user.is_on) {
        conn.become_user(Arc::clone(user));
        conn.set(checks::UNAUTHENTICATED, false);
    }
}

/// Refuses a connection from another machine.
#[cold]
fn reject<S: Write>(state: &mut LoopState, stream: &mut S, peer: &Address) {
    tracing::debug!(address = %peer, "refused: protected mode is on and no password is set");
    state.tally.rejected += 1;
    if let Err(why) = write_some(stream, format!("-{DENIED}\r\n").as_bytes()) {
        tracing::debug!(%why, "a client that was refused had gone already");
    }
    note_closed(state);
}

pub(super) fn note_closed(state: &LoopState) {
    state.handle().connections.fetch_sub(1, Ordering::Relaxed);
    state.server.connected.fetch_sub(1, Ordering::Relaxed);
}
