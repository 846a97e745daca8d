//! Tasks in a table of Postgres: claims skip what others lock, the database's clock decides, and a
//! task can be enqueued within the caller's own transaction.
//!
//! A task is a row. A claim takes rows that nobody else locks (`FOR UPDATE SKIP LOCKED`) and gives
//! each a number of one sequence, its fence. What workers call skips all locks, and says which
//! claims it has left out: they are *busy*, and are asked for again. So it never waits. Other calls
//! have a connection of their own, and wait for a second at most. `schedule_in` writes the row by
//! the caller's own transaction. A note (`NOTIFY`) wakes workers when something is due within two
//! seconds.

mod calls;
mod limits;
mod queues;
mod rhythms;
mod rows;
mod session;
mod silence;
mod sql;
mod tables;

use std::fmt;
use std::slice::from_mut;
use std::sync::Arc;

use tokio_postgres::error::SqlState;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, GenericClient, NoTls, Row, Socket};

use self::limits::Limited;
use self::rhythms::settle_in;
use self::rows::{Order, Orders, dues, number};
use self::session::{Link, StatementName, engine_error};
use crate::shape::error::StoreError;
use crate::shape::many::Many;
use crate::shape::task::{Task, check_id};
use crate::shape::timestamp::Timestamp;

/// The parameters of a statement.
type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Tasks in a table of Postgres. Clones share two connections: what workers call never waits behind
/// a call that waits for a lock. Each is made anew when it breaks, or when it has not answered for
/// five seconds.
///
/// A call waits for a lock for a second at most, and for the database for four. Then it fails.
///
/// Its tables are `tidewheel_tasks` and `tidewheel_dead`. A *space* is a name within them: stores
/// of other spaces have nothing of it, and each has queues of its own.
///
/// ```no_run
/// use tidewheel_tasks::{PostgresStore, Task};
///
/// # async fn order(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let store = PostgresStore::connect("host=/run/postgresql user=shop", "shop").await?;
/// // The task is there if, and only if, the order is.
/// let transaction = client.transaction().await?;
/// transaction.execute("INSERT INTO orders VALUES (7)", &[]).await?;
/// store.schedule_in(&transaction, Task::new("mail-7", "")).await?;
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresStore {
    /// The connection for calls that may wait for what a transaction has locked.
    link: Arc<Link>,
    /// The connection for calls of workers, which wait for nobody.
    work: Arc<Link>,
    space: String,
    limited: Arc<Limited>,
    /// Held by the one change of a queue's rules that this store makes at a time.
    changing: Arc<tokio::sync::Mutex<()>>,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("space", &self.space)
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects, without encryption, and makes the tables unless they are there. The connection
    /// runs on the current tokio runtime. `config` is what `tokio_postgres` takes.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, or the tables cannot be made.
    pub async fn connect(config: &str, space: &str) -> Result<Self, StoreError> {
        Self::connect_by(config, space, NoTls).await
    }

    /// Connects as [`connect`](Self::connect) does, encrypted by a connector such as that of
    /// `postgres-native-tls`.
    ///
    /// # Errors
    ///
    /// As `connect`.
    pub async fn connect_by<T>(config: &str, space: &str, tls: T) -> Result<Self, StoreError>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let config: Config = config.parse().map_err(StoreError::refused)?;
        let space = space.to_owned();
        let link = Arc::new(Link::new(config.clone(), tls.clone(), space.clone()));
        let work = Arc::new(Link::new(config, tls, space.clone()));
        link.session().await?;
        work.session().await?;
        Ok(Self {
            link,
            work,
            space,
            limited: Arc::default(),
            changing: Arc::default(),
        })
    }

    /// Keeps a task by the caller's own connection or transaction: with that the task comes, or
    /// not.
    ///
    /// # Errors
    ///
    /// As [`schedule`](crate::TaskStore::schedule).
    pub async fn schedule_in(
        &self,
        client: &impl GenericClient,
        mut task: Task,
    ) -> Result<Timestamp, StoreError> {
        task.check()?;
        settle_in(client, from_mut(&mut task)).await?;
        let order = Order::of(task);
        let parameters = order.parameters(&self.space);
        let row = client.query_opt(sql::SCHEDULE, &parameters).await;
        let row = row.map_err(engine_error)?.ok_or(StoreError::Duplicate)?;
        Ok(Timestamp(number(&row, 0)))
    }

    /// Schedules many tasks in one statement, as [`schedule_in`](Self::schedule_in) does one.
    ///
    /// # Errors
    ///
    /// As [`schedule_many`](crate::TaskStore::schedule_many).
    pub async fn schedule_many_in(
        &self,
        client: &impl GenericClient,
        tasks: Vec<Task>,
    ) -> Result<Vec<Option<Timestamp>>, StoreError> {
        let (ids, mut tasks) = Many::of(tasks)?.into_sorted();
        settle_in(client, &mut tasks).await?;
        let orders = Orders::of(tasks);
        let parameters = orders.parameters(&self.space);
        let rows = client.query(sql::SCHEDULE_MANY, &parameters).await;
        Ok(Many::dues(&ids, &dues(&rows.map_err(engine_error)?)))
    }

    /// The number of tasks that are pending or claimed. Its cost grows with their number.
    ///
    /// # Errors
    ///
    /// When the engine fails.
    pub async fn count(&self) -> Result<u64, StoreError> {
        let rows = self.query(StatementName::Count, &[&self.space]).await?;
        Ok(rows.first().map_or(0, |row| number(row, 0)))
    }

    async fn query(
        &self,
        of: StatementName,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let link = if of.is_of_workers() {
            &self.work
        } else {
            &self.link
        };
        let session = link.session().await?;
        let asked = session.silence.ask();
        let rows = session.client.query(session.statement(of), parameters);
        let rows = rows.await;
        session.silence.answered(asked);
        if rows.as_ref().err().and_then(tokio_postgres::Error::code)
            == Some(&SqlState::QUERY_CANCELED)
        {
            // It took too long: the planner may know the table as it was when it had other tasks.
            // The caller gets the first error, whatever becomes of this.
            let _ = session.client.batch_execute(sql::ANALYZE).await;
        }
        rows.map_err(engine_error)
    }

    /// Forgets some of what is over, and more than the call has added. Whether it did is nobody's
    /// business.
    async fn forget(&self, added: usize) {
        let most = i64::try_from(added).unwrap_or(i64::MAX).saturating_add(7);
        let _ = self.query(StatementName::Forget, &[&most]).await;
    }

    /// A call that changes one row, or none.
    async fn changes(
        &self,
        of: StatementName,
        parameters: Parameters<'_>,
    ) -> Result<bool, StoreError> {
        Ok(!self.query(of, parameters).await?.is_empty())
    }

    /// A call that ends the row of an id. That an id cannot be is no reason: somebody may have
    /// damaged it.
    async fn ends(&self, of: StatementName, id: &str) -> Result<bool, StoreError> {
        // A text has no such character.
        let is_there = !id.contains('\0') && self.changes(of, &[&self.space, &id]).await?;
        if !is_there {
            check_id(id)?;
        }
        Ok(is_there)
    }
}
