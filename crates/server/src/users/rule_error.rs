//! What is wrong with a rule.

use std::fmt;

/// The most passwords and selectors of a user, and patterns, databases and first arguments of a
/// selector.
pub(super) const PARTS_MAX: usize = 1 << 10;

/// What is wrong with a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleError {
    UnknownCommand,
    Syntax,
    KeyAfterAll,
    ChannelAfterAll,
    NoSuchPassword,
    BadHash,
    FirstArgumentOfSubcommand,
    DatabaseOutOfRange,
    TooMany,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownCommand => "Unknown command or category name in ACL",
            Self::Syntax => "Syntax error",
            Self::KeyAfterAll => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does \
                 not have any effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            Self::ChannelAfterAll => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and \
                 does not have any effect. Try 'resetchannels' to start with an empty list of \
                 channels"
            }
            Self::NoSuchPassword => {
                "The password you are trying to remove from the user does not exist"
            }
            Self::BadHash => {
                "The password hash must be exactly 64 characters and contain only lowercase \
                 hexadecimal characters"
            }
            Self::FirstArgumentOfSubcommand => {
                "Allowing first-arg of a subcommand is not supported"
            }
            Self::DatabaseOutOfRange => "The provided database ID is out of range",
            Self::TooMany => {
                "A user has at most 1024 passwords, selectors, patterns, databases and first \
                 arguments"
            }
        })
    }
}
