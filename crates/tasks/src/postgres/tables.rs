//! The tables, and how they are made. A column `queue` has the name of the *space*, and `lane` that
//! of the task's queue: an older version knew no queues within a space.

/// The version of the tables, which a comment on them says. These statements take locks that an
/// open transaction of a user's holds up, so they run only where the comment is another.
pub(super) const VERSION: &str = "tidewheel 4";

pub(super) const FOUND: &str = "SELECT obj_description(to_regclass('tidewheel_tasks'), 'pg_class')";

/// Tables, indexes, the numbers of claims, the clock, and a time from now: the end of the year 9999
/// at the latest. What an older version has made is brought up to this one, and keeps its rows.
/// Several workers may start at the same time: one after another.
pub(super) const TABLES: &str = "
BEGIN;
SELECT pg_advisory_xact_lock(7023485561);
CREATE TABLE IF NOT EXISTS tidewheel_tasks (
    queue text NOT NULL,
    id text NOT NULL,
    due bigint NOT NULL,
    began bigint NOT NULL,
    payload bytea NOT NULL,
    priority smallint NOT NULL,
    every bigint,
    attempt integer NOT NULL DEFAULT 1,
    fence bigint,
    held_until bigint,
    held_by text,
    checksum bigint NOT NULL,
    PRIMARY KEY (queue, id)
);
CREATE TABLE IF NOT EXISTS tidewheel_dead (
    queue text NOT NULL,
    id text NOT NULL,
    payload bytea NOT NULL,
    attempts integer NOT NULL,
    error text NOT NULL,
    died bigint NOT NULL,
    checksum bigint NOT NULL,
    PRIMARY KEY (queue, id)
);
CREATE TABLE IF NOT EXISTS tidewheel_queues (
    queue text NOT NULL,
    lane text NOT NULL,
    paused boolean NOT NULL,
    limited boolean NOT NULL,
    rules text NOT NULL,
    spent text NOT NULL DEFAULT '',
    PRIMARY KEY (queue, lane)
);
CREATE TABLE IF NOT EXISTS tidewheel_unique (
    queue text NOT NULL,
    id text NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (queue, id)
);
CREATE TABLE IF NOT EXISTS tidewheel_done (
    queue text NOT NULL,
    id text NOT NULL,
    lane text NOT NULL,
    result bytea NOT NULL,
    ended bigint NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (queue, id)
);
CREATE INDEX IF NOT EXISTS tidewheel_done_until ON tidewheel_done (until);
CREATE INDEX IF NOT EXISTS tidewheel_unique_until ON tidewheel_unique (until);
CREATE SEQUENCE IF NOT EXISTS tidewheel_fences;
CREATE OR REPLACE FUNCTION tidewheel_now() RETURNS bigint LANGUAGE sql VOLATILE AS
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint';
CREATE OR REPLACE FUNCTION tidewheel_after(wait bigint) RETURNS bigint LANGUAGE sql VOLATILE AS
    'SELECT least(tidewheel_now() + wait, 253402300799999999)';
ALTER TABLE tidewheel_tasks ADD COLUMN IF NOT EXISTS terms text;
ALTER TABLE tidewheel_dead ADD COLUMN IF NOT EXISTS terms text;
ALTER TABLE tidewheel_tasks ADD COLUMN IF NOT EXISTS lane text NOT NULL DEFAULT '';
ALTER TABLE tidewheel_tasks ADD COLUMN IF NOT EXISTS progress bytea;
ALTER TABLE tidewheel_tasks ADD COLUMN IF NOT EXISTS lost integer NOT NULL DEFAULT 0;
ALTER TABLE tidewheel_tasks ADD COLUMN IF NOT EXISTS start smallint NOT NULL DEFAULT 0;
ALTER TABLE tidewheel_dead ADD COLUMN IF NOT EXISTS lane text NOT NULL DEFAULT '';
CREATE INDEX IF NOT EXISTS tidewheel_tasks_ready
    ON tidewheel_tasks (queue, lane, priority, due) WHERE held_until IS NULL;
CREATE INDEX IF NOT EXISTS tidewheel_tasks_leased
    ON tidewheel_tasks (queue, lane, held_until) WHERE held_until IS NOT NULL;
DROP INDEX IF EXISTS tidewheel_tasks_pending, tidewheel_tasks_held;
COMMENT ON TABLE tidewheel_tasks IS 'tidewheel 4';
COMMIT;
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_comment_says_the_version() {
        assert!(TABLES.contains(&format!("IS '{VERSION}'")));
    }
}
