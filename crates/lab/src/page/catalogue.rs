//! What each experiment is, in a sentence or two, by its name.

/// What a reader is told of an experiment before its figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    name: &'static str,
    /// What its subjects are, in the singular.
    pub(super) noun: &'static str,
    pub(super) about: &'static str,
}

const UNKNOWN: Entry = Entry {
    name: "",
    noun: "subject",
    about: "An experiment that this page has no description of; its figures are named as its lines name them.",
};

const ENTRIES: [Entry; 18] = [
    Entry {
        name: "seeds scan",
        noun: "cache",
        about: "A cache that looks at all its entries once a second, at growing sizes: how long one look takes \
                when nothing is due and while entries expire, beside the figures that the article published.",
    },
    Entry {
        name: "seeds ticks",
        noun: "strategy",
        about: "Each way of finding what is due, driven in virtual time at growing sizes: the processor time \
                that a second of expiry takes, the memory of a timer, how late entries are found and how many \
                dead ones are held meanwhile.",
    },
    Entry {
        name: "seeds readers",
        noun: "cache",
        about: "Caches that are read by several threads: as the article ran it, while nothing is due, and while \
                a thirtieth of the entries expires each second; the control of the latter is the same cache \
                under the same readers just before.",
    },
    Entry {
        name: "simulate hits",
        noun: "policy",
        about: "Traces replayed against caches of fixed size: the share of requests that were hits.",
    },
    Entry {
        name: "simulate memory",
        noun: "strategy",
        about: "Hours of requests with times to live, replayed in virtual time: how much memory each way of \
                expiring holds, beside what is alive at all.",
    },
    Entry {
        name: "simulate limit",
        noun: "policy",
        about: "The same requests against caches that have no room for all that is alive: the share that were \
                hits, and what it is worth to let the dead go first.",
    },
    Entry {
        name: "timers",
        noun: "structure",
        about: "Timer structures by themselves, on one thread: every timer is inserted, moved, cancelled or \
                fired, and the time and bytes are divided by their number.",
    },
    Entry {
        name: "tasks",
        noun: "structure",
        about: "Tasks that are set, moved and removed by key, on one thread: time and bytes for each.",
    },
    Entry {
        name: "caches mass-expiry",
        noun: "cache",
        about: "Many entries fall due within a short window while readers ask for live ones: what the readers \
                feel, and how soon the memory is back. The control is the same load without expiry.",
    },
    Entry {
        name: "caches memory",
        noun: "cache",
        about: "Caches filled with entries that have a time to live: bytes for each beyond its key and value.",
    },
    Entry {
        name: "caches throughput",
        noun: "cache",
        about: "Operations a second that threads get out of one cache, together.",
    },
    Entry {
        name: "caches stampede",
        noun: "cache",
        about: "Many callers ask at once for a value that has to be loaded: how often it is loaded, and how \
                long the slowest caller waits.",
    },
    Entry {
        name: "mass-expiry",
        noun: "server",
        about: "Many keys of a server fall due within a short window while clients read live ones: what the \
                clients feel, and how soon keys and memory are gone.",
    },
    Entry {
        name: "sparse",
        noun: "server",
        about: "A few keys fall due among many that do not: how long the dead ones are held.",
    },
    Entry {
        name: "event-lag",
        noun: "server",
        about: "How long after its deadline a key's expired event reaches a subscriber.",
    },
    Entry {
        name: "memory",
        noun: "server",
        about: "A server filled with small keys: bytes for each.",
    },
    Entry {
        name: "throughput",
        noun: "server",
        about: "Requests of one kind at several depths of pipeline and numbers of connections. Server and \
                laboratory share the machine, so processor time for a request is the figure to compare.",
    },
    Entry {
        name: "churn",
        noun: "server",
        about: "Short-lived keys are written all the time: how many dead ones are held beside the living, and \
                what readers feel.",
    },
];

pub(super) fn entry(name: &str) -> Entry {
    ENTRIES
        .into_iter()
        .find(|entry| entry.name == name)
        .unwrap_or(UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_experiments_are_described_and_others_are_said_to_be_unknown() {
        assert_eq!(entry("timers").noun, "structure");
        assert_eq!(entry("nonsense").noun, "subject");
        for (at, known) in ENTRIES.iter().enumerate() {
            assert!(
                !ENTRIES[..at].iter().any(|other| other.name == known.name),
                "{}",
                known.name
            );
        }
    }
}
