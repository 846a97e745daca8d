//! The SQL statements. Times are microseconds since 1970, by the database's clock.

/// Has the planner look at the tasks.
pub(super) const ANALYZE: &str = "ANALYZE tidewheel_tasks";

pub(super) const NOW: &str = "SELECT tidewheel_now()";

pub(super) const COUNT: &str = "SELECT count(*) FROM tidewheel_tasks WHERE queue = $1";

/// Queue, id, wait, point in time, payload, priority, period, terms, checksum. Workers are told
/// about what is due within two seconds.
pub(super) const SCHEDULE: &str = "
WITH put AS (
    INSERT INTO tidewheel_tasks AS t (queue, id, due, began, payload, priority, every, terms, checksum)
    SELECT $1, $2, d.due, d.due, $5, $6, $7, $8, $9
    FROM (SELECT COALESCE($4::bigint, tidewheel_after($3::bigint)) AS due) AS d
    ON CONFLICT (queue, id) DO UPDATE SET
        due = excluded.due, began = excluded.due, payload = excluded.payload,
        priority = excluded.priority, every = excluded.every, terms = excluded.terms,
        checksum = excluded.checksum, attempt = 1,
        fence = NULL, held_until = NULL, held_by = NULL
    RETURNING due
)
SELECT due, CASE WHEN due < tidewheel_now() + 2000000 THEN pg_notify('tidewheel_tasks', $1) END
FROM put";

/// Queue; ids, waits, points in time, payloads, priorities, periods, terms, checksums.
pub(super) const SCHEDULE_MANY: &str = "
WITH put AS (
    INSERT INTO tidewheel_tasks AS t (queue, id, due, began, payload, priority, every, terms, checksum)
    SELECT $1, n.id, n.due, n.due, n.payload, n.priority, n.every, n.terms, n.checksum
    FROM (
        SELECT u.id, COALESCE(u.at, least((SELECT tidewheel_now()) + u.wait, 253402300799999999)) AS due,
            u.payload, u.priority, u.every, u.terms, u.checksum
        FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bytea[], $6::smallint[], $7::bigint[],
            $8::text[], $9::bigint[]) AS u (id, wait, at, payload, priority, every, terms, checksum)
    ) AS n
    ON CONFLICT (queue, id) DO UPDATE SET
        due = excluded.due, began = excluded.due, payload = excluded.payload,
        priority = excluded.priority, every = excluded.every, terms = excluded.terms,
        checksum = excluded.checksum, attempt = 1,
        fence = NULL, held_until = NULL, held_by = NULL
    RETURNING t.id, t.due
), told AS (
    SELECT pg_notify('tidewheel_tasks', $1)
    WHERE EXISTS (SELECT FROM put WHERE due < tidewheel_now() + 2000000)
)
SELECT put.id, put.due, told FROM put LEFT JOIN told ON true";

pub(super) const CANCEL: &str =
    "DELETE FROM tidewheel_tasks WHERE queue = $1 AND id = $2 RETURNING id";

/// Queue, id, wait, point in time.
pub(super) const RESCHEDULE: &str = "
WITH moved AS (
    UPDATE tidewheel_tasks SET
        (due, began) = (SELECT d, d FROM (SELECT COALESCE($4::bigint, tidewheel_after($3::bigint))) AS n (d)),
        attempt = 1, fence = NULL, held_until = NULL, held_by = NULL
    WHERE queue = $1 AND id = $2
    RETURNING due
)
SELECT due, CASE WHEN due < tidewheel_now() + 2000000 THEN pg_notify('tidewheel_tasks', $1) END
FROM moved";

/// Queue, lookahead, lease, worker, how many. First what a lease has ended of, then by priority.
/// Each part is an ordered walk of an index, and ends when there are enough. The rows are found
/// again by where they are: whatever the planner believes of the table, that costs the same for
/// each.
pub(super) const CLAIM: &str = "
UPDATE tidewheel_tasks AS t SET
    fence = nextval('tidewheel_fences'), held_until = tidewheel_now() + $3::bigint, held_by = $4
WHERE t.ctid = ANY (ARRAY(
    SELECT at FROM (
        SELECT * FROM (
            SELECT ctid AS at FROM tidewheel_tasks
            WHERE queue = $1 AND held_until <= (SELECT tidewheel_now())
            ORDER BY held_until LIMIT $5 FOR UPDATE SKIP LOCKED) AS ended
        UNION ALL SELECT * FROM (
            SELECT ctid FROM tidewheel_tasks
            WHERE queue = $1 AND held_until IS NULL AND priority = 0
                AND due <= (SELECT tidewheel_now()) + $2::bigint
            ORDER BY due LIMIT $5 FOR UPDATE SKIP LOCKED) AS high
        UNION ALL SELECT * FROM (
            SELECT ctid FROM tidewheel_tasks
            WHERE queue = $1 AND held_until IS NULL AND priority = 1
                AND due <= (SELECT tidewheel_now()) + $2::bigint
            ORDER BY due LIMIT $5 FOR UPDATE SKIP LOCKED) AS normal
        UNION ALL SELECT * FROM (
            SELECT ctid FROM tidewheel_tasks
            WHERE queue = $1 AND held_until IS NULL AND priority = 2
                AND due <= (SELECT tidewheel_now()) + $2::bigint
            ORDER BY due LIMIT $5 FOR UPDATE SKIP LOCKED) AS low
    ) AS soon LIMIT $5
))
RETURNING t.id, t.due, t.began, t.payload, t.priority, t.every, t.attempt, t.fence,
    t.checksum, t.terms";

/// A statement about claims, named by queue, ids and fences; and their next runs, if `$claims` says
/// so. It never waits: what another transaction has locked, such as one that enqueues a task of the
/// same id, is left out. It answers with the fences of those that it changed, and of those left
/// out.
macro_rules! about {
    ($claims:literal, $act:literal) => {
        concat!(
            "
WITH c AS (",
            $claims,
            "),
mine AS (
    SELECT t.*, c.next FROM c CROSS JOIN LATERAL (
        SELECT ctid AS at, queue, id, fence FROM tidewheel_tasks
        WHERE queue = $1 AND id = c.id AND fence = c.fence FOR UPDATE SKIP LOCKED
    ) AS t
),",
            $act,
            "
SELECT fence, true FROM mine
UNION ALL
SELECT t.fence, false FROM tidewheel_tasks AS t JOIN c ON t.id = c.id AND t.fence = c.fence
WHERE (SELECT count(*) FROM mine) < (SELECT count(*) FROM c)
    AND t.queue = $1 AND NOT EXISTS (SELECT FROM mine WHERE mine.fence = t.fence)"
        )
    };
}

macro_rules! about_claims {
    ($act:literal) => {
        about!(
            "SELECT DISTINCT id, fence, NULL::bigint AS next
    FROM unnest($2::text[], $3::bigint[]) AS c (id, fence)",
            $act
        )
    };
}

/// The ends of claims. What has a next run is pending again; the rest goes. Rows are found again by
/// where they are, whatever the planner believes of how many have a next run.
macro_rules! about_ends {
    ($act:literal) => {
        about!(
            "SELECT DISTINCT ON (id, fence) id, fence, next
    FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS c (id, fence, next)",
            $act
        )
    };
}

/// And the lease.
pub(super) const EXTEND: &str = about_claims!(
    "
kept AS (
    UPDATE tidewheel_tasks AS t SET held_until = tidewheel_now() + $4::bigint
    FROM mine WHERE t.queue = mine.queue AND t.id = mine.id
)"
);

pub(super) const DONE: &str = about_ends!(
    "
gone AS (
    DELETE FROM tidewheel_tasks AS t USING mine
    WHERE t.ctid = mine.at AND mine.next IS NULL
),
again AS (
    UPDATE tidewheel_tasks AS t SET
        due = mine.next, began = mine.next, attempt = 1, fence = NULL, held_until = NULL, held_by = NULL
    FROM mine WHERE t.ctid = mine.at AND mine.next IS NOT NULL
)"
);

pub(super) const RELEASE: &str = about_claims!(
    "
back AS (
    UPDATE tidewheel_tasks AS t SET fence = NULL, held_until = NULL, held_by = NULL
    FROM mine WHERE t.queue = mine.queue AND t.id = mine.id
    RETURNING pg_notify('tidewheel_tasks', $1)
)"
);

/// And wait, point in time.
pub(super) const RETRY: &str = about_claims!(
    "
again AS (
    UPDATE tidewheel_tasks AS t SET
        due = COALESCE($5::bigint, tidewheel_after($4::bigint)), attempt = attempt + 1,
        fence = NULL, held_until = NULL, held_by = NULL
    FROM mine WHERE t.queue = mine.queue AND t.id = mine.id
)"
);

/// And the error, and the letter's terms and checksum.
pub(super) const BURY: &str = about_ends!(
    "
letter AS (
    INSERT INTO tidewheel_dead (queue, id, payload, attempts, error, died, terms, checksum)
    SELECT t.queue, t.id, t.payload, t.attempt, $5, tidewheel_now(), $6, $7
    FROM tidewheel_tasks AS t JOIN mine ON t.queue = mine.queue AND t.id = mine.id
    ON CONFLICT (queue, id) DO UPDATE SET
        payload = excluded.payload, attempts = excluded.attempts, error = excluded.error,
        died = excluded.died, terms = excluded.terms, checksum = excluded.checksum
),
gone AS (
    DELETE FROM tidewheel_tasks AS t USING mine
    WHERE t.ctid = mine.at AND mine.next IS NULL
),
again AS (
    UPDATE tidewheel_tasks AS t SET
        due = mine.next, began = mine.next, attempt = 1, fence = NULL, held_until = NULL, held_by = NULL
    FROM mine WHERE t.ctid = mine.at AND mine.next IS NOT NULL
)"
);

/// Queue, how many.
pub(super) const LETTERS: &str = "
SELECT id, payload, attempts, error, died, terms FROM tidewheel_dead
WHERE queue = $1 ORDER BY id LIMIT $2";

/// Queue, id, wait, point in time.
pub(super) const REQUEUE: &str = "
WITH letter AS (
    DELETE FROM tidewheel_dead AS d WHERE d.queue = $1 AND d.id = $2 AND NOT EXISTS
        (SELECT FROM tidewheel_tasks AS t WHERE t.queue = $1 AND t.id = $2)
    RETURNING payload, terms, checksum
),
put AS (
    INSERT INTO tidewheel_tasks (queue, id, due, began, payload, priority, terms, checksum)
    SELECT $1, $2, d.due, d.due, letter.payload, 1, letter.terms, letter.checksum FROM letter,
        (SELECT COALESCE($4::bigint, tidewheel_after($3::bigint)) AS due) AS d
    RETURNING due
)
SELECT due, pg_notify('tidewheel_tasks', $1) FROM put";

pub(super) const REMOVE_DEAD: &str =
    "DELETE FROM tidewheel_dead WHERE queue = $1 AND id = $2 RETURNING id";
