//! AUTH, HELLO and RESET: a connection's user, protocol and state.

use tidewheel_keyspace::{CommandError, Session};
use tidewheel_resp::{Args, Protocol, parse_i64};

use super::{HandlerResult, error};
use crate::clients::checks;
use crate::clients::connection::{Connection, Replies};
use crate::commands::turn::{CommandStep, Turn};
use crate::config::ClientAccess;
use crate::users::{DEFAULT, Reason};

/// The version of the public protocol and commands that clients may rely on.
pub(crate) const REDIS_VERSION: &str = "7.4.0";

const WRONG: &str = "WRONGPASS invalid username-password pair or user is disabled.";

impl Turn<'_> {
    pub(super) fn auth(&mut self, conn: &mut Connection, args: Args<'_>) -> HandlerResult {
        let (user, password) = match args.len() {
            2 => {
                if self.state.server.config.needs_no_password() {
                    return Err(error(
                        "ERR AUTH <password> called without any password configured for the \
                         default user. Are you sure your configuration is correct?",
                    ));
                }
                (DEFAULT, &args[1])
            }
            3 => (&args[1], &args[2]),
            _ => return Err(CommandError::SYNTAX),
        };
        self.authenticate(conn, (user, password), &args[0])?;
        self.done()
    }

    fn authenticate(
        &mut self,
        conn: &mut Connection,
        (name, password): (&[u8], &[u8]),
        command: &[u8],
    ) -> Result<(), CommandError> {
        let Some(user) = self.state.server.config.admitted(name, password) else {
            let (client, address) = (conn.client.id, &conn.client.peer);
            tracing::debug!(client, %address, "refused: a wrong name or password");
            self.note_denial(conn, Reason::Auth, command, name);
            return Err(error(WRONG));
        };
        conn.become_user(user);
        conn.set(checks::UNAUTHENTICATED, false);
        Ok(())
    }

    pub(super) fn hello(&mut self, conn: &mut Connection, args: Args<'_>) -> HandlerResult {
        let protocol = args.get(1).map(protocol).transpose()?;
        let (credentials, name) = hello_options(args)?;
        if let Some((user, password)) = credentials {
            self.authenticate(conn, (user, password), &args[0])?;
        }
        if conn.lacks_password(&self.state.server.config) {
            return Err(error(
                "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                 HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
                 select the RESP protocol version at the same time",
            ));
        }
        if let Some(name) = name {
            conn.client.facts.lock().names.own = name.to_vec();
        }
        if let Some(protocol) = protocol {
            self.set_protocol_of(conn, protocol);
        }
        self.write_greeting(conn);
        Ok(CommandStep::Done)
    }

    fn write_greeting(&mut self, conn: &Connection) {
        let version = match conn.protocol {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        };
        let out = &mut self.out;
        out.map(7);
        out.bulk(b"server");
        // Clients tell servers apart by this word and trust only those that they know.
        out.bulk(b"redis");
        out.bulk(b"version");
        out.bulk(REDIS_VERSION.as_bytes());
        out.bulk(b"proto");
        out.integer(version);
        out.bulk(b"id");
        out.integer(i64::try_from(conn.client.id).unwrap_or(i64::MAX));
        out.bulk(b"mode");
        out.bulk(b"standalone");
        out.bulk(b"role");
        out.bulk(b"master");
        out.bulk(b"modules");
        out.array(0);
    }

    pub(super) fn reset(&mut self, conn: &mut Connection) -> CommandStep {
        if self.unsubscribe_part(conn) == CommandStep::Begun {
            return CommandStep::Begun;
        }
        self.leave_transaction(conn);
        self.end_monitor(conn);
        self.end_tracking(conn);
        conn.session = Session {
            may_debug: conn.session.may_debug,
            waiter: conn.session.waiter,
            ..Session::default()
        };
        self.set_protocol_of(conn, Protocol::Resp2);
        // As in the public servers, CLIENT REPLY SKIP holds for this reply.
        if conn.replies != Replies::SkipThis {
            conn.replies = Replies::On;
            conn.set(checks::MUTED, false);
        }
        let access = self.state.server.config.access(&conn.client.peer);
        conn.become_user(self.state.server.config.default_user());
        conn.set(checks::UNAUTHENTICATED, access != ClientAccess::Free);
        {
            let mut facts = conn.client.facts.lock();
            facts.names.own = Vec::new();
            facts.no_evict = false;
        }
        self.out.simple("RESET");
        CommandStep::Done
    }

    fn set_protocol_of(&mut self, conn: &mut Connection, protocol: Protocol) {
        conn.protocol = protocol;
        self.out.set_protocol(protocol);
        conn.subscriptions_changed();
    }
}

/// Returns the protocol of a version that HELLO names.
fn protocol(version: &[u8]) -> Result<Protocol, CommandError> {
    match parse_i64(version) {
        Some(2) => Ok(Protocol::Resp2),
        Some(3) => Ok(Protocol::Resp3),
        Some(_) => Err(error("NOPROTO unsupported protocol version")),
        None => Err(error(
            "ERR Protocol version is not an integer or out of range",
        )),
    }
}

/// The credentials and the client's name in the options of HELLO.
type HelloOptions<'a> = (Option<(&'a [u8], &'a [u8])>, Option<&'a [u8]>);

/// Reads the options of HELLO: user and password, and the client's name.
fn hello_options(args: Args<'_>) -> Result<HelloOptions<'_>, CommandError> {
    let (mut credentials, mut name) = (None, None);
    let mut at = 2;
    while let Some(option) = args.get(at) {
        match (
            option.to_ascii_lowercase().as_slice(),
            args.get(at + 1),
            args.get(at + 2),
        ) {
            (b"auth", Some(user), Some(password)) => {
                credentials = Some((user, password));
                at += 3;
            }
            (b"setname", Some(new), _) => {
                if !is_plain(new) {
                    return Err(error(NAME));
                }
                name = Some(new);
                at += 2;
            }
            _ => {
                let option = String::from_utf8_lossy(option);
                let text = format!("ERR Syntax error in HELLO option '{option}'");
                return Err(CommandError::quoting(text));
            }
        }
    }
    Ok((credentials, name))
}

/// The error reply to a client's name that is not accepted.
pub(super) const NAME: &str =
    "ERR Client names cannot contain spaces, newlines or special characters.";

/// Returns true if a name may stand in CLIENT LIST: printable ASCII without spaces.
pub(super) fn is_plain(name: &[u8]) -> bool {
    name.iter().all(u8::is_ascii_graphic)
}
