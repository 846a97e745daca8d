//! The groups of settings, under whose titles help, manual and files show them.

/// A group of settings. Their order is that of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    Network,
    Users,
    Memory,
    Persistence,
    Expiry,
    Limits,
    Diagnosis,
    General,
    Collections,
    Ignored,
}

impl Group {
    pub(crate) const ALL: [Self; 10] = [
        Self::Network,
        Self::Users,
        Self::Memory,
        Self::Persistence,
        Self::Expiry,
        Self::Limits,
        Self::Diagnosis,
        Self::General,
        Self::Collections,
        Self::Ignored,
    ];

    /// Returns the title that stands above the group.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Network => "Network",
            Self::Users => "Users and TLS",
            Self::Memory => "Memory and eviction",
            Self::Persistence => "Persistence",
            Self::Expiry => "Expiry and events",
            Self::Limits => "Limits",
            Self::Diagnosis => "Logs and diagnosis",
            Self::General => "Threads and databases",
            Self::Collections => "How collections are stored",
            Self::Ignored => "Accepted, without effect",
        }
    }
}
