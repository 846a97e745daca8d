//! The pictures of each experiment: which figures, over what, on which axes.

mod parts;
mod seeds;
mod servers;

/// One picture, or one for each cell, of an experiment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Picture {
    pub(super) workload: &'static str,
    /// Name of its file; no other picture has it.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) caption: &'static str,
    pub(super) kind: Kind,
}

/// How a picture is made of figures. Labels come without units, which the ticks carry.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A figure over a parameter of the runs, all cells that are wanted in one picture.
    Sweep {
        only: Only,
        param: &'static str,
        key: &'static str,
        /// Labels of the axes, the one across first.
        axes: [&'static str; 2],
        log: [bool; 2],
    },
    /// Figures of one run whose names differ in a number between `prefix` and `suffix`; one for each cell.
    Keys {
        prefix: &'static str,
        suffix: &'static str,
        axes: [&'static str; 2],
        log: [bool; 2],
    },
    /// A curve of each subject; one for each cell.
    Curve { key: &'static str, log: [bool; 2] },
    /// Latency over percentiles, with a control under a second set of names; one for each cell.
    Percentiles {
        points: &'static [Percentile],
        control: &'static [Percentile],
        label: &'static str,
    },
    /// A bar for each subject; one for each cell.
    Bars {
        key: &'static str,
        label: &'static str,
        log: bool,
    },
    /// A row for each cell, a mark for each subject.
    Cells {
        key: &'static str,
        label: &'static str,
        log: bool,
    },
    /// A row for each figure whose name begins so, a mark for each subject; one for each cell.
    Figures {
        prefix: &'static str,
        label: &'static str,
        log: bool,
    },
}

/// Which runs are wanted, by a parameter and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Only {
    All,
    With(&'static str, &'static str),
    Without(&'static str, &'static str),
}

/// What is written under a percentile and the figure that it is.
pub(super) type Percentile = (&'static str, &'static str);

const fn bars(key: &'static str, label: &'static str) -> Kind {
    Kind::Bars {
        key,
        label,
        log: false,
    }
}

const READ: &[Percentile] = &[
    ("p50", "read_p50_us"),
    ("p99", "read_p99_us"),
    ("p99.9", "read_p999_us"),
    ("p99.99", "read_p9999_us"),
    ("max", "read_max_us"),
];

const CONTROL_READ: &[Percentile] = &[
    ("p50", "control_read_p50_us"),
    ("p99", "control_read_p99_us"),
    ("p99.9", "control_read_p999_us"),
    ("p99.99", "control_read_p9999_us"),
    ("max", "control_read_max_us"),
];

/// What readers of a cache feel, beside the control.
const fn reads() -> Kind {
    Kind::Percentiles {
        points: READ,
        control: CONTROL_READ,
        label: "latency of a read",
    }
}

const fn picture(
    workload: &'static str,
    name: &'static str,
    title: &'static str,
    caption: &'static str,
    kind: Kind,
) -> Picture {
    Picture {
        workload,
        name,
        title,
        caption,
        kind,
    }
}

/// All pictures, in the order in which they are shown.
pub(super) fn all() -> impl Iterator<Item = &'static Picture> {
    [seeds::PICTURES, parts::PICTURES, servers::PICTURES]
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain_and_no_two_are_equal() {
        let names: Vec<&str> = all().map(|picture| picture.name).collect();
        for (at, name) in names.iter().enumerate() {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.chars().all(plain), "{name}");
            assert!(!names[..at].contains(name), "{name}");
        }
    }
}
