//! Drawn commands in virtual time beside the oracle's model: every reply, deadline, event, and who
//! is served. `TIDEWHEEL_ORACLE_SEED=n` repeats a seed.

use tidewheel_oracle::Run;

#[test]
fn drawn_commands_agree_with_the_model() {
    Run::check_seeds(0..100, Run::known);
}

#[test]
fn any_row_with_any_arguments_gives_one_reply() {
    Run::check_seeds(0..50, Run::any);
}
