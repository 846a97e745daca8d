//! The SQL statements. Times are microseconds since 1970, by the database's clock.

/// Has the planner look at the tasks.
pub(super) const ANALYZE: &str = "ANALYZE tidewheel_tasks";

pub(super) const NOW: &str = "SELECT tidewheel_now()";

pub(super) const COUNT: &str = "SELECT count(*) FROM tidewheel_tasks WHERE queue = $1";

/// Space, id, wait, point in time, payload, priority, period, terms, checksum, queue, for how long
/// it is to be unique or null. Workers are told about what is due within two seconds. No row if it
/// is not unique.
pub(super) const SCHEDULE: &str = "
WITH mark AS (
    INSERT INTO tidewheel_unique AS u (queue, id, until)
    SELECT $1, $2, tidewheel_now() + $11 WHERE $11::bigint IS NOT NULL
    ON CONFLICT (queue, id) DO UPDATE SET until = excluded.until WHERE u.until <= tidewheel_now()
    RETURNING true
),
put AS (
    INSERT INTO tidewheel_tasks AS t (queue, id, due, began, payload, priority, every, terms, checksum, lane)
    SELECT $1, $2, d.due, d.due, $5, $6, $7, $8, $9, $10
    FROM (SELECT COALESCE($4::bigint, tidewheel_after($3::bigint)) AS due) AS d
    WHERE $11 IS NULL OR EXISTS (SELECT FROM mark)
    ON CONFLICT (queue, id) DO UPDATE SET
        due = excluded.due, began = excluded.due, payload = excluded.payload,
        priority = excluded.priority, every = excluded.every, terms = excluded.terms,
        checksum = excluded.checksum, lane = excluded.lane, attempt = 1, lost = 0, start = 0, progress = NULL,
        fence = NULL, held_until = NULL, held_by = NULL
    RETURNING due
)
SELECT due, CASE WHEN due < tidewheel_now() + 2000000 THEN pg_notify('tidewheel_tasks', $1) END
FROM put";

/// Space; ids, waits, points in time, payloads, priorities, periods, terms, checksums, queues, for
/// how long each is to be unique or null. No row of what is not unique.
pub(super) const SCHEDULE_MANY: &str = "
WITH mark AS (
    INSERT INTO tidewheel_unique AS u (queue, id, until)
    SELECT $1, n.id, (SELECT tidewheel_now()) + n.unique_for
    FROM unnest($2::text[], $11::bigint[]) AS n (id, unique_for) WHERE n.unique_for IS NOT NULL
    ON CONFLICT (queue, id) DO UPDATE SET until = excluded.until WHERE u.until <= tidewheel_now()
    RETURNING u.id
),
put AS (
    INSERT INTO tidewheel_tasks AS t (queue, id, due, began, payload, priority, every, terms, checksum, lane)
    SELECT $1, n.id, n.due, n.due, n.payload, n.priority, n.every, n.terms, n.checksum, n.lane
    FROM (
        SELECT u.id, COALESCE(u.at, least((SELECT tidewheel_now()) + u.wait, 253402300799999999)) AS due,
            u.payload, u.priority, u.every, u.terms, u.checksum, u.lane, u.unique_for
        FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bytea[], $6::smallint[], $7::bigint[],
            $8::text[], $9::bigint[], $10::text[], $11::bigint[])
            AS u (id, wait, at, payload, priority, every, terms, checksum, lane, unique_for)
    ) AS n
    WHERE n.unique_for IS NULL OR n.id IN (SELECT id FROM mark)
    ON CONFLICT (queue, id) DO UPDATE SET
        due = excluded.due, began = excluded.due, payload = excluded.payload,
        priority = excluded.priority, every = excluded.every, terms = excluded.terms,
        checksum = excluded.checksum, lane = excluded.lane, attempt = 1, lost = 0, start = 0, progress = NULL,
        fence = NULL, held_until = NULL, held_by = NULL
    RETURNING t.id, t.due
), told AS (
    SELECT pg_notify('tidewheel_tasks', $1)
    WHERE EXISTS (SELECT FROM put WHERE due < tidewheel_now() + 2000000)
)
SELECT put.id, put.due, told FROM put LEFT JOIN told ON true";

pub(super) const CANCEL: &str =
    "DELETE FROM tidewheel_tasks WHERE queue = $1 AND id = $2 RETURNING id";

/// Space, id, wait, point in time.
pub(super) const RESCHEDULE: &str = "
WITH moved AS (
    UPDATE tidewheel_tasks SET
        (due, began) = (SELECT d, d FROM (SELECT COALESCE($4::bigint, tidewheel_after($3::bigint))) AS n (d)),
        attempt = 1, lost = 0, start = 0, progress = NULL,
        fence = NULL, held_until = NULL, held_by = NULL
    WHERE queue = $1 AND id = $2
    RETURNING due
)
SELECT due, CASE WHEN due < tidewheel_now() + 2000000 THEN pg_notify('tidewheel_tasks', $1) END
FROM moved";

/// The rows of one priority that are due soon: those of each queue in an ordered walk of an index,
/// then together.
macro_rules! soon {
    ($priority:literal) => {
        concat!(
            "
        UNION ALL (
            SELECT s.at FROM lanes CROSS JOIN LATERAL (
                SELECT ctid AS at, due FROM tidewheel_tasks
                WHERE queue = $1 AND lane = lanes.lane AND held_until IS NULL AND priority = ",
            $priority,
            " AND due <= (SELECT tidewheel_now()) + $2::bigint
                ORDER BY due LIMIT $5 FOR UPDATE SKIP LOCKED) AS s
            ORDER BY s.due LIMIT $5)"
        )
    };
}

/// Space, lookahead, lease, worker, how many, queues or null for all, whether limited ones too.
/// First what a lease has ended of, then by priority; nothing of queues that are paused.
///
/// The queues that have tasks are found by steps over an index, a step for each. Each part is an
/// ordered walk of an index for each of them, and ends when there are enough. The rows are found
/// again by where they are: whatever the planner believes of the table, that costs the same for
/// each.
///
/// A row that was held before may have run: `start` is 1. Where a start was noted, it is 2, and
/// that run counts as an attempt.
pub(super) const CLAIM: &str = concat!(
    "
WITH RECURSIVE pending AS (
    (SELECT lane FROM tidewheel_tasks
        WHERE queue = $1 AND held_until IS NULL AND $6::text[] IS NULL ORDER BY lane LIMIT 1)
    UNION ALL
    SELECT (SELECT t.lane FROM tidewheel_tasks AS t
        WHERE t.queue = $1 AND t.held_until IS NULL AND t.lane > p.lane ORDER BY t.lane LIMIT 1)
    FROM pending AS p WHERE p.lane IS NOT NULL
), held AS (
    (SELECT lane FROM tidewheel_tasks
        WHERE queue = $1 AND held_until IS NOT NULL AND $6::text[] IS NULL ORDER BY lane LIMIT 1)
    UNION ALL
    SELECT (SELECT t.lane FROM tidewheel_tasks AS t
        WHERE t.queue = $1 AND t.held_until IS NOT NULL AND t.lane > h.lane ORDER BY t.lane LIMIT 1)
    FROM held AS h WHERE h.lane IS NOT NULL
), lanes AS MATERIALIZED (
    SELECT found.lane FROM (
        SELECT lane FROM pending WHERE lane IS NOT NULL
        UNION SELECT lane FROM held WHERE lane IS NOT NULL
        UNION SELECT a.lane FROM unnest($6::text[]) AS a (lane)
    ) AS found
    WHERE NOT EXISTS (SELECT FROM tidewheel_queues AS q
        WHERE q.queue = $1 AND q.lane = found.lane AND (q.paused OR q.limited AND NOT $7))
)
UPDATE tidewheel_tasks AS t SET
    fence = nextval('tidewheel_fences'), held_until = tidewheel_now() + $3::bigint, held_by = $4,
    attempt = attempt + (start = 2)::int, lost = lost + (start = 2)::int,
    start = CASE WHEN held_until IS NULL AND start = 0 THEN 0 ELSE 1 END
WHERE t.ctid = ANY (ARRAY(
    SELECT at FROM (
        (
            SELECT e.at FROM lanes CROSS JOIN LATERAL (
                SELECT ctid AS at, held_until FROM tidewheel_tasks
                WHERE queue = $1 AND lane = lanes.lane AND held_until <= (SELECT tidewheel_now())
                ORDER BY held_until LIMIT $5 FOR UPDATE SKIP LOCKED) AS e
            ORDER BY e.held_until LIMIT $5)",
    soon!("0"),
    soon!("1"),
    soon!("2"),
    "
    ) AS soon LIMIT $5
))
RETURNING t.id, t.due, t.began, t.payload, t.priority, t.every, t.attempt, t.fence,
    t.checksum, t.terms, t.lost, t.start"
);

/// A statement about claims, named by space, ids and fences; and what `$more` names of `$claims`.
/// It never waits: what another transaction has locked, such as one that enqueues a task of the
/// same id, is left out. It answers with the fences of those that it changed, and of those left
/// out.
macro_rules! about {
    ($claims:literal, $more:literal, $act:expr) => {
        concat!(
            "
WITH c AS (",
            $claims,
            "),
mine AS (
    SELECT t.*",
            $more,
            " FROM c CROSS JOIN LATERAL (
        SELECT ctid AS at, queue, lane, id, fence FROM tidewheel_tasks
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
            "SELECT DISTINCT id, fence FROM unnest($2::text[], $3::bigint[]) AS c (id, fence)",
            "",
            $act
        )
    };
}

/// The ends of claims, with their next runs. What has one is pending again; the rest goes. Rows are
/// found again by where they are, whatever the planner believes of how many have a next run.
macro_rules! about_ends {
    ($claims:literal, $more:literal, $act:literal) => {
        about!(
            $claims,
            $more,
            concat!(
                $act,
                "
gone AS (
    DELETE FROM tidewheel_tasks AS t USING mine
    WHERE t.ctid = mine.at AND mine.next IS NULL
),
again AS (
    UPDATE tidewheel_tasks AS t SET
        due = mine.next, began = mine.next, attempt = 1, lost = 0, start = 0, progress = NULL,
        fence = NULL, held_until = NULL, held_by = NULL
    FROM mine WHERE t.ctid = mine.at AND mine.next IS NOT NULL
)"
            )
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

/// And for how long each result is kept, or null, and the results.
pub(super) const DONE: &str = about_ends!(
    "SELECT DISTINCT ON (id, fence) id, fence, next, keep, result
    FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[])
        AS c (id, fence, next, keep, result)",
    ", c.next, c.keep, c.result",
    "
kept AS (
    INSERT INTO tidewheel_done (queue, id, lane, result, ended, until)
    SELECT queue, id, lane, COALESCE(result, ''), n.now, n.now + keep
    FROM mine, (SELECT tidewheel_now() AS now) AS n WHERE keep IS NOT NULL
    ON CONFLICT (queue, id) DO UPDATE SET
        lane = excluded.lane, result = excluded.result, ended = excluded.ended, until = excluded.until
),"
);

pub(super) const NOTE_START: &str = about_claims!(
    "
noted AS (
    UPDATE tidewheel_tasks AS t SET start = 2
    FROM mine WHERE t.queue = mine.queue AND t.id = mine.id
)"
);

/// And the progress.
pub(super) const PROGRESS: &str = about_claims!(
    "
told AS (
    UPDATE tidewheel_tasks AS t SET progress = $4
    FROM mine WHERE t.queue = mine.queue AND t.id = mine.id
)"
);

/// And whether others are told.
pub(super) const RELEASE: &str = about_claims!(
    "
back AS (
    UPDATE tidewheel_tasks AS t SET
        start = least(start, 1), fence = NULL, held_until = NULL, held_by = NULL
    FROM mine WHERE t.queue = mine.queue AND t.id = mine.id
    RETURNING CASE WHEN $4 THEN pg_notify('tidewheel_tasks', $1) END
)"
);

/// And wait, point in time, and how many attempts that makes more.
pub(super) const RETRY: &str = about_claims!(
    "
again AS (
    UPDATE tidewheel_tasks AS t SET
        due = COALESCE($5::bigint, tidewheel_after($4::bigint)), attempt = attempt + $6,
        lost = 0, start = 0, progress = NULL, fence = NULL, held_until = NULL, held_by = NULL
    FROM mine WHERE t.queue = mine.queue AND t.id = mine.id
)"
);

/// And the error, the letter's terms and checksum, and the number of attempts.
pub(super) const BURY: &str = about_ends!(
    "SELECT DISTINCT ON (id, fence) id, fence, next
    FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS c (id, fence, next)",
    ", c.next",
    "
letter AS (
    INSERT INTO tidewheel_dead (queue, id, payload, attempts, error, died, terms, checksum, lane)
    SELECT t.queue, t.id, t.payload, $8, $5, tidewheel_now(), $6, $7, t.lane
    FROM tidewheel_tasks AS t JOIN mine ON t.queue = mine.queue AND t.id = mine.id
    ON CONFLICT (queue, id) DO UPDATE SET
        payload = excluded.payload, attempts = excluded.attempts, error = excluded.error,
        died = excluded.died, terms = excluded.terms, checksum = excluded.checksum,
        lane = excluded.lane
),"
);

/// Space, how many.
pub(super) const LETTERS: &str = "
SELECT id, payload, attempts, error, died, terms, checksum FROM tidewheel_dead
WHERE queue = $1 ORDER BY id LIMIT $2";

/// Space, id. The payload, terms and checksum of a letter.
pub(super) const LETTER: &str = "
SELECT payload, terms, checksum FROM tidewheel_dead WHERE queue = $1 AND id = $2";

/// Space, id, wait, point in time.
pub(super) const REQUEUE: &str = "
WITH letter AS (
    DELETE FROM tidewheel_dead AS d WHERE d.queue = $1 AND d.id = $2 AND NOT EXISTS
        (SELECT FROM tidewheel_tasks AS t WHERE t.queue = $1 AND t.id = $2)
    RETURNING payload, terms, checksum, lane
),
put AS (
    INSERT INTO tidewheel_tasks (queue, id, due, began, payload, priority, terms, checksum, lane)
    SELECT $1, $2, d.due, d.due, letter.payload, 1, letter.terms, letter.checksum, letter.lane FROM letter,
        (SELECT COALESCE($4::bigint, tidewheel_after($3::bigint)) AS due) AS d
    RETURNING due
)
SELECT due, pg_notify('tidewheel_tasks', $1) FROM put";

pub(super) const REMOVE_DEAD: &str =
    "DELETE FROM tidewheel_dead WHERE queue = $1 AND id = $2 RETURNING id";

/// Space.
pub(super) const RULES: &str = "SELECT lane, rules FROM tidewheel_queues WHERE queue = $1";

/// Space, queue, the rules as they were or null, as they are to be, whether it is paused, and
/// limited.
pub(super) const CHANGE_QUEUE: &str = "
WITH put AS (
    INSERT INTO tidewheel_queues AS q (queue, lane, rules, paused, limited)
    SELECT $1, $2, $4, $5, $6 WHERE $3::text IS NULL
    ON CONFLICT (queue, lane) DO NOTHING
    RETURNING true
), changed AS (
    UPDATE tidewheel_queues SET rules = $4, paused = $5, limited = $6
    WHERE queue = $1 AND lane = $2 AND rules = $3
    RETURNING true
)
SELECT true, pg_notify('tidewheel_tasks', $1) FROM (SELECT FROM put UNION ALL SELECT FROM changed) AS done";

/// Space, queue.
pub(super) const LIMIT: &str = "
SELECT tidewheel_now(), rules, spent FROM tidewheel_queues WHERE queue = $1 AND lane = $2";

/// Space, queue, the slots that were given away as they were, and as they are to be.
pub(super) const SPEND: &str = "
UPDATE tidewheel_queues SET spent = $4 WHERE queue = $1 AND lane = $2 AND spent = $3 RETURNING lane";

/// The most rows of each. Forgets unique ids and results whose time is over.
pub(super) const FORGET: &str = "
WITH results AS (
    DELETE FROM tidewheel_done WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM tidewheel_done WHERE until <= (SELECT tidewheel_now())
        ORDER BY until LIMIT $1 FOR UPDATE SKIP LOCKED))
)
DELETE FROM tidewheel_unique WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM tidewheel_unique WHERE until <= (SELECT tidewheel_now())
    ORDER BY until LIMIT $1 FOR UPDATE SKIP LOCKED))";

/// Rows of looks at tasks, results and letters: which table, id, queue, time, attempt, whether it
/// is claimed, progress, result, error; payload, priority, period, terms, checksum.
macro_rules! looks {
    (tasks $which:literal) => {
        concat!(
            "
SELECT 0::smallint, id, lane, due, attempt, held_until > tidewheel_now(), progress, NULL::bytea, NULL::text,
    payload, priority, every, terms, checksum
FROM tidewheel_tasks WHERE queue = $1 AND ",
            $which
        )
    };
    (done $which:literal) => {
        concat!(
            "
SELECT 1::smallint, id, lane, ended, 0, false, NULL::bytea, result, NULL::text,
    ''::bytea, 1::smallint, NULL::bigint, NULL::text, NULL::bigint
FROM tidewheel_done WHERE queue = $1 AND until > tidewheel_now() AND ",
            $which
        )
    };
    (dead $which:literal) => {
        concat!(
            "
SELECT 2::smallint, id, lane, died, attempts, false, NULL::bytea, NULL::bytea, error,
    payload, 1::smallint, NULL::bigint, terms, checksum
FROM tidewheel_dead WHERE queue = $1 AND ",
            $which
        )
    };
}

/// Space, id.
pub(super) const LOOK: &str = concat!(
    looks!(tasks "id = $2"),
    " UNION ALL ",
    looks!(done "id = $2"),
    " UNION ALL ",
    looks!(dead "id = $2")
);

/// Space, ids, whether letters count. Those of the ids that are there, in their order.
pub(super) const LOOK_AHEAD: &str = "
SELECT a.id FROM unnest($2::text[]) WITH ORDINALITY AS a (id, place)
WHERE EXISTS (SELECT FROM tidewheel_tasks AS t WHERE t.queue = $1 AND t.id = a.id)
    OR $3 AND EXISTS (SELECT FROM tidewheel_dead AS d WHERE d.queue = $1 AND d.id = a.id)
ORDER BY a.place";

/// The rows of a page: those before which there are fewer bytes than `$5`. The length of what is
/// kept beside its row is known without reading it.
macro_rules! page {
    ($looks:expr) => {
        concat!(
            "
SELECT * FROM (
    SELECT l.*, sum(octet_length(payload) + COALESCE(octet_length(progress), 0)
        + COALESCE(octet_length(result), 0))
        OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes
    FROM (",
            $looks,
            ") AS l (origin, id, lane, due, attempt, is_claimed, progress, result, error,
        payload, priority, every, terms, checksum)
) AS p WHERE COALESCE(bytes, 0) < $5::bigint ORDER BY id"
        )
    };
}

/// Space, queue or null, the id before or null, how many, bytes, whether they are claimed.
pub(super) const LIST_TASKS: &str = page!(looks!(tasks
    "($2::text IS NULL OR lane = $2) AND ($3::text IS NULL OR id > $3)
    AND (held_until IS NOT NULL AND held_until > tidewheel_now()) = $6 ORDER BY id LIMIT $4"));

/// Space, queue or null, the id before or null, how many, bytes.
pub(super) const LIST_DONE: &str = page!(looks!(done
    "($2::text IS NULL OR lane = $2) AND ($3::text IS NULL OR id > $3) ORDER BY id LIMIT $4"));
pub(super) const LIST_DEAD: &str = page!(looks!(dead
    "($2::text IS NULL OR lane = $2) AND ($3::text IS NULL OR id > $3) ORDER BY id LIMIT $4"));

/// Space. Queues, states (pending, claimed, done, dead) and numbers.
pub(super) const COUNTS: &str = "
SELECT lane, CASE WHEN held_until > tidewheel_now() THEN 1 ELSE 0 END::smallint, count(*)
FROM tidewheel_tasks WHERE queue = $1 GROUP BY 1, 2
UNION ALL
SELECT lane, 2::smallint, count(*) FROM tidewheel_done
WHERE queue = $1 AND until > tidewheel_now() GROUP BY 1
UNION ALL
SELECT lane, 3::smallint, count(*) FROM tidewheel_dead WHERE queue = $1 GROUP BY 1";
