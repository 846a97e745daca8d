//! A session is one connection, which is made anew when it breaks or falls silent. It has the
//! prepared statements, and hears the notifications of arrivals.

use std::error::Error as _;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Socket, Statement};

use super::silence::Silence;
use super::{sql, tables};
use crate::shape::error::StoreError;
use crate::wakes::Wakes;

/// The time limit of connecting.
const PATIENCE: Duration = Duration::from_secs(2);

/// The interval at which the session checks that the server still answers.
const LOOK: Duration = Duration::from_millis(500);

/// The limits of a statement's wait for a lock, and of the statement, in milliseconds.
///
/// Every statement walks an index. The planner is to choose that always: where it last saw a table
/// nearly empty, it would walk all of it for each claim, though it has ten thousand rows by now.
const LIMITS: &str = "SET lock_timeout = 1000; SET statement_timeout = 4000;
    SET enable_seqscan = off; SET enable_bitmapscan = off";

/// The name of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatementName {
    Now,
    Count,
    Schedule,
    ScheduleMany,
    Cancel,
    Reschedule,
    Claim,
    Extend,
    NoteStart,
    Done,
    Release,
    Retry,
    Bury,
    Letters,
    Letter,
    Requeue,
    RemoveDead,
    Rules,
    ChangeQueue,
    Limit,
    Spend,
    Forget,
    Progress,
    Look,
    LookAhead,
    ListTasks,
    ListDone,
    ListDead,
    Counts,
}

impl StatementName {
    /// True if workers call it, and it waits for nobody's lock.
    pub(super) fn is_of_workers(self) -> bool {
        use StatementName::{
            Bury, Claim, Done, Extend, Forget, Limit, Look, LookAhead, NoteStart, Now, Progress,
            Release, Retry, Rules, Spend,
        };
        matches!(
            self,
            Now | Claim
                | Extend
                | NoteStart
                | Done
                | Release
                | Retry
                | Bury
                | Progress
                | Rules
                | Limit
                | Look
                | LookAhead
                | Spend
                | Forget
        )
    }
}

/// All statements, in the order of [`StatementName`].
const STATEMENTS: [&str; 29] = [
    sql::NOW,
    sql::COUNT,
    sql::SCHEDULE,
    sql::SCHEDULE_MANY,
    sql::CANCEL,
    sql::RESCHEDULE,
    sql::CLAIM,
    sql::EXTEND,
    sql::NOTE_START,
    sql::DONE,
    sql::RELEASE,
    sql::RETRY,
    sql::BURY,
    sql::LETTERS,
    sql::LETTER,
    sql::REQUEUE,
    sql::REMOVE_DEAD,
    sql::RULES,
    sql::CHANGE_QUEUE,
    sql::LIMIT,
    sql::SPEND,
    sql::FORGET,
    sql::PROGRESS,
    sql::LOOK,
    sql::LOOK_AHEAD,
    sql::LIST_TASKS,
    sql::LIST_DONE,
    sql::LIST_DEAD,
    sql::COUNTS,
];

/// A connection, and its prepared statements.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) silence: Arc<Silence>,
    statements: Vec<Statement>,
}

impl Session {
    pub(super) fn statement(&self, of: StatementName) -> &Statement {
        &self.statements[of as usize]
    }
}

/// A client, and what tells whether its server answers.
type Connected = Result<(Client, Arc<Silence>), tokio_postgres::Error>;
type Connecting = Pin<Box<dyn Future<Output = Connected> + Send>>;

/// The way to the server.
pub(super) struct Link {
    connect: Box<dyn Fn() -> Connecting + Send + Sync>,
    runtime: Handle,
    session: tokio::sync::Mutex<Option<Arc<Session>>>,
    pub(super) wakes: Arc<Wakes>,
}

impl Link {
    pub(super) fn new<T>(config: Config, tls: T, space: String) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let wakes = Arc::new(Wakes::default());
        let wakers = Arc::clone(&wakes);
        let connect = move || -> Connecting {
            let (config, tls, space) = (config.clone(), tls.clone(), space.clone());
            let wakes = Arc::clone(&wakers);
            Box::pin(async move {
                let (client, connection) = config.connect(tls).await?;
                let silence = Arc::new(Silence::new());
                tokio::spawn(drive(connection, space, wakes, Arc::clone(&silence)));
                Ok((client, silence))
            })
        };
        Self {
            connect: Box::new(connect),
            runtime: Handle::current(),
            session: tokio::sync::Mutex::default(),
            wakes,
        }
    }

    /// Waits on the connection's runtime: a caller may have none.
    pub(super) async fn sleep(&self, time: Duration) -> Result<(), StoreError> {
        let slept = self
            .runtime
            .spawn(async move { tokio::time::sleep(time).await });
        slept.await.map_err(StoreError::engine)
    }

    /// The session; another one if it is broken.
    pub(super) async fn session(&self) -> Result<Arc<Session>, StoreError> {
        let mut session = self.session.lock().await;
        if let Some(session) = session
            .as_ref()
            .filter(|session| !session.client.is_closed())
        {
            return Ok(Arc::clone(session));
        }
        let connected = self.runtime.spawn(opened((self.connect)()));
        let fresh = Arc::new(connected.await.map_err(StoreError::engine)??);
        *session = Some(Arc::clone(&fresh));
        Ok(fresh)
    }
}

/// Connects, and prepares everything.
async fn opened(connecting: Connecting) -> Result<Session, StoreError> {
    let opening = async {
        let (client, silence) = connecting.await?;
        let found = client.query_one(tables::FOUND, &[]).await?;
        if found.get::<_, Option<&str>>(0) != Some(tables::VERSION) {
            client.batch_execute(tables::TABLES).await?;
        }
        client.batch_execute(LIMITS).await?;
        client.batch_execute("LISTEN tidewheel_tasks").await?;
        let mut statements = Vec::with_capacity(STATEMENTS.len());
        for text in STATEMENTS {
            statements.push(client.prepare(text).await?);
        }
        Ok::<_, tokio_postgres::Error>(Session {
            client,
            silence,
            statements,
        })
    };
    let opened = tokio::time::timeout(PATIENCE, opening).await;
    opened
        .map_err(|_| StoreError::TimedOut)?
        .map_err(engine_error)
}

/// The engine's error; the server's message, or the system's, is in the source of the driver's.
pub(super) fn engine_error(error: tokio_postgres::Error) -> StoreError {
    match (error.as_db_error(), error.source()) {
        (Some(message), _) => StoreError::engine(message),
        (_, Some(why)) => StoreError::engine(format!("{error}: {why}")),
        _ => StoreError::engine(error),
    }
}

/// Moves a connection's bytes, and tells workers about notes for their queue. A server that is
/// silent is left.
async fn drive<S, T>(
    mut connection: Connection<S, T>,
    space: String,
    wakes: Arc<Wakes>,
    silence: Arc<Silence>,
) where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    // An end or an error ends the connection, and what waits for it. The next call makes another
    // one.
    while !silence.is_long() {
        let next = poll_fn(|context| connection.poll_message(context));
        match tokio::time::timeout(LOOK, next).await {
            Err(_) => {}
            Ok(Some(Ok(AsyncMessage::Notification(note)))) if note.payload() == space => {
                wakes.tell();
            }
            Ok(Some(Ok(_))) => {}
            Ok(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_stands_at_its_place() {
        let at = |of: StatementName| STATEMENTS[of as usize];
        assert_eq!(
            [at(StatementName::Now), at(StatementName::Claim)],
            [sql::NOW, sql::CLAIM]
        );
        assert_eq!(
            [at(StatementName::Bury), at(StatementName::RemoveDead)],
            [sql::BURY, sql::REMOVE_DEAD]
        );
        assert_eq!(
            [at(StatementName::Done), at(StatementName::Spend)],
            [sql::DONE, sql::SPEND]
        );
    }
}
