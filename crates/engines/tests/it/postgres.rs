//! Postgres.

use tidewheel_engines::Postgres;

#[test]
fn it_ends_at_once_and_comes_back() {
    let Some(mut postgres) = Postgres::start() else {
        return;
    };
    let before = postgres.process.id();
    postgres.restart_immediately();
    assert_ne!(postgres.process.id(), before);
    assert!(postgres.process.is_running());
}
