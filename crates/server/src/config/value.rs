//! Reads and writes the values of settings: numbers, memory sizes, words and client classes.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::address::Address;

/// An address to listen on, with the name under which it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BindAddress {
    name: String,
    ip: IpAddr,
}

impl BindAddress {
    /// Reads an IP address, `localhost`, or `*` for all addresses of IPv4, `::*` for
    /// those of IPv6. Behind a `-` it is one that the machine need not have.
    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        let ip = match name.strip_prefix('-').unwrap_or(name) {
            "*" => Ok(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
            "::*" => Ok(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
            "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            name => name.parse(),
        };
        let ip = ip.map_err(|_| format!("'{name}' is not an IP address"))?;
        Ok(Self {
            name: name.to_owned(),
            ip,
        })
    }

    /// Returns the loopback address, at which only programs of this machine can connect.
    pub(crate) fn loopback() -> Self {
        Self {
            name: Ipv4Addr::LOCALHOST.to_string(),
            ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if the server starts without it.
    pub(crate) fn is_optional(&self) -> bool {
        self.name.starts_with('-')
    }

    pub(crate) fn ip(&self) -> IpAddr {
        self.ip
    }
}

/// A port to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Port {
    /// None: this door stays closed.
    Off,
    /// Any that is free.
    Any,
    Number(u16),
}

impl Port {
    /// Reads a number, `0` for none, or `any`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("any") {
            return Ok(Self::Any);
        }
        Ok(match integer(text, 0, u64::from(u16::MAX))? as u16 {
            0 => Self::Off,
            port => Self::Number(port),
        })
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("0"),
            Self::Any => f.write_str("any"),
            Self::Number(port) => port.fmt(f),
        }
    }
}

/// When the log is brought to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncPolicy {
    /// Before any reply tells of it.
    Always,
    EverySecond,
    /// When the system does so by itself.
    Never,
}

/// The clients that may use DEBUG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DebugAccess {
    No,
    Yes,
    /// Only clients of the loopback interface.
    Local,
}

impl DebugAccess {
    /// Returns true if a client at this address may use DEBUG.
    pub(crate) fn allows(self, peer: &Address) -> bool {
        match self {
            Self::Yes => true,
            Self::Local => peer.is_local(),
            Self::No => false,
        }
    }
}

/// The clients whose RESTORE payloads are checked in full, as settings name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SanitizeDump {
    No,
    Yes,
    Clients,
}

/// The output limit of a class of clients: a client above it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputLimit {
    /// Bytes at which it is closed at once; 0 = no limit.
    pub(crate) hard: u64,
    /// Bytes at which it is closed after `soft_seconds` above them; 0 = no limit.
    pub(crate) soft: u64,
    pub(crate) soft_seconds: u32,
}

impl OutputLimit {
    /// Returns the time that a client may be above the soft limit.
    pub(crate) fn soft_ms(&self) -> u64 {
        u64::from(self.soft_seconds) * 1000
    }
}

/// The limits of both classes of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputLimits {
    pub(crate) normal: OutputLimit,
    pub(crate) pubsub: OutputLimit,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self {
            normal: OutputLimit {
                hard: 0,
                soft: 0,
                soft_seconds: 0,
            },
            pubsub: OutputLimit {
                hard: 32 << 20,
                soft: 8 << 20,
                soft_seconds: 60,
            },
        }
    }
}

impl OutputLimits {
    /// Reads `class hard soft seconds`, once or more; classes that are not named keep their limits.
    pub(crate) fn update(mut self, text: &str) -> Result<Self, String> {
        // Single blanks only, as in Redis: between two there is an empty word. No word at all
        // changes nothing.
        let words = text.split(' ').filter(|_| !text.is_empty());
        let words: Vec<&str> = words.collect();
        if !words.len().is_multiple_of(4) {
            return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
        }
        for four in words.chunks_exact(4) {
            let invalid =
                || "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
            let limit = OutputLimit {
                hard: memory(four[1]).ok_or_else(invalid)?,
                soft: memory(four[2]).ok_or_else(invalid)?,
                soft_seconds: seconds(four[3]).ok_or_else(invalid)?,
            };
            match four[0].to_ascii_lowercase().as_str() {
                "normal" => self.normal = limit,
                "pubsub" => self.pubsub = limit,
                // There are no replicas to which these could apply, so they are refused.
                "replica" | "slave" => {
                    return Err("this server has no replicas to limit".to_owned());
                }
                _ => {
                    return Err(
                        "Invalid client class specified in buffer limit configuration.".to_owned(),
                    );
                }
            }
        }
        Ok(self)
    }
}

impl fmt::Display for OutputLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            normal: n,
            pubsub: p,
        } = self;
        write!(f, "normal {} {} {} ", n.hard, n.soft, n.soft_seconds)?;
        write!(f, "pubsub {} {} {}", p.hard, p.soft, p.soft_seconds)
    }
}

/// Reads as many seconds as Redis takes.
fn seconds(text: &str) -> Option<u32> {
    let seconds: i32 = text.parse().ok()?;
    u32::try_from(seconds).ok()
}

/// Reads a memory size: digits and a unit (`b`, `k`, `kb`, `m`, `mb`, `g`, `gb`; a `b` at the end
/// means powers of 1024, as in Redis). Without digits it is 0, as there.
pub(crate) fn memory(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    let number = if number.is_empty() { "0" } else { number };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Reads an integer within `min..=max`, or says what is wrong as Redis does.
pub(crate) fn integer(text: &str, min: u64, max: u64) -> Result<u64, String> {
    within(whole(text)?, min.into(), max.into()).map(|value| value as u64)
}

/// Reads an integer as [`integer`] does, but one that may be negative.
pub(crate) fn signed(text: &str, min: i64, max: i64) -> Result<i64, String> {
    within(whole(text)?, min.into(), max.into()).map(|value| value as i64)
}

fn whole(text: &str) -> Result<i128, String> {
    let value = plain(text).ok_or("argument couldn't be parsed into an integer")?;
    Ok(value.into())
}

/// Reads an integer that is written in the one usual way: no plus, no zeros before it.
fn plain(text: &str) -> Option<i64> {
    let value: i64 = text.parse().ok()?;
    (value.to_string() == text).then_some(value)
}

/// Reads a memory size within `min..=max`, or says what is wrong as Redis does.
pub(crate) fn memory_within(text: &str, min: u64, max: u64) -> Result<u64, String> {
    let value = memory(text).ok_or_else(|| "argument must be a memory value".to_owned())?;
    within(value.into(), min.into(), max.into()).map(|value| value as u64)
}

/// Reads `yes` or `no`.
pub(crate) fn yes_or_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("argument must be 'yes' or 'no'".to_owned()),
    }
}

/// Writes a value so that `yes_or_no` reads it back.
pub(crate) fn name_of_bool(value: bool) -> String {
    let name = if value { "yes" } else { "no" };
    name.to_owned()
}

/// Reads a percentage, written `5%`. `None` if it is not written so.
pub(crate) fn percentage(text: &str) -> Option<Result<u64, String>> {
    let percent = text.strip_suffix('%')?.parse::<u64>().ok()?;
    Some(match percent {
        0..=100 => Ok(percent),
        _ => Err("percentage argument must be less or equal to 100".to_owned()),
    })
}

/// Finds the value that goes by the name `text`, or lists the names.
pub(crate) fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        format!(
            "argument(s) must be one of the following: {}",
            names.join(", ")
        )
    })
}

/// Returns the name that `word` reads as `value`.
pub(crate) fn name_of<T: PartialEq>(value: T, words: &[(&'static str, T)]) -> String {
    let found = words.iter().find(|(_, known)| *known == value);
    found.map_or(String::new(), |(name, _)| (*name).to_owned())
}

fn within(value: i128, min: i128, max: i128) -> Result<i128, String> {
    if (min..=max).contains(&value) {
        return Ok(value);
    }
    Err(format!(
        "argument must be between {min} and {max} inclusive"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_sizes_have_units() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("1k", 1000),
            ("1KB", 1024),
            ("2mb", 2 << 20),
            ("1Gb", 1 << 30),
            ("007", 7),
            ("", 0),
            ("gb", 0),
        ] {
            assert_eq!(memory(text), Some(bytes), "{text}");
        }
        for text in [
            "-1",
            " 1",
            "1.5gb",
            "1 kb",
            "1tb",
            "99999999999gb",
            "18446744073709551616",
        ] {
            assert_eq!(memory(text), None, "{text}");
        }
    }

    #[test]
    fn output_limits_are_read_by_class_and_written_back() {
        let limits = OutputLimits::default().update("pubsub 1mb 2kb 3").unwrap();
        assert_eq!(limits.to_string(), "normal 0 0 0 pubsub 1048576 2048 3");
        assert_eq!(
            OutputLimits::default().update(&limits.to_string()),
            Ok(limits)
        );
        assert_eq!(limits.update(""), Ok(limits), "nothing is changed");
        let longest = limits.update("normal 0 1 2147483647").unwrap();
        assert_eq!(longest.normal.soft_seconds, i32::MAX as u32);
        for bad in [
            "normal  1 2 3",
            "normal 1 2 3 ",
            " normal 1 2 3",
            "normal 1 2 2147483648",
            "normal 1 2 9223372036854775807",
            "normal 1 2",
            "normal x 2 3",
            "normal 1 2 -3",
            "chatty 1 2 3",
            "replica 1 2 3",
        ] {
            assert!(OutputLimits::default().update(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn integers_are_written_in_one_way() {
        for text in [
            "+5",
            "007",
            "-0",
            " 5",
            "5 ",
            "0x5",
            "5.0",
            "",
            "9223372036854775808",
        ] {
            let refused = integer(text, 0, 9).expect_err(text);
            assert!(refused.contains("parsed into an integer"), "{text}");
        }
        assert_eq!(integer("0", 0, 9), Ok(0));
    }

    #[test]
    fn integers_outside_their_range_are_named() {
        assert_eq!(integer("5", 1, 9), Ok(5));
        assert_eq!(
            integer("0", 1, 9),
            Err("argument must be between 1 and 9 inclusive".to_owned())
        );
        assert_eq!(
            integer("-1", 0, 9),
            Err("argument must be between 0 and 9 inclusive".to_owned())
        );
        assert!(
            integer("five", 0, 9)
                .unwrap_err()
                .contains("parsed into an integer")
        );
    }
}
