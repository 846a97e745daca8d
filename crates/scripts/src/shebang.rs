//! The first line of a script that says what it needs: `#!lua flags=no-writes,allow-stale`.

use crate::ScriptError;

/// What a script's first line says of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScriptFlags {
    /// There is such a line. Scripts without one may do what the caller of EVAL may.
    pub has_shebang: bool,
    /// `no-writes`: it only reads.
    pub no_writes: bool,
    /// `allow-oom`: it runs also if memory is short.
    pub allow_oom: bool,
    /// `allow-stale`: it runs also on a replica that has lost its primary.
    pub allow_stale: bool,
    /// `no-cluster`: it does not run on a cluster.
    pub no_cluster: bool,
    /// `allow-cross-slot-keys`: its keys may be of several slots.
    pub allow_cross_slot_keys: bool,
}

/// A script's first line, and where the script itself begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shebang<'a> {
    /// What it says.
    pub flags: ScriptFlags,
    /// The body behind the line. It begins with the line's end, so lines keep their numbers.
    pub code: &'a [u8],
}

impl<'a> Shebang<'a> {
    /// Reads the first line of a body, if it is one.
    ///
    /// # Errors
    /// If the line names another engine, or an option or a flag that is not known.
    pub fn of(body: &'a [u8]) -> Result<Self, ScriptError> {
        let mut flags = ScriptFlags::default();
        if !body.starts_with(b"#!") {
            return Ok(Self { flags, code: body });
        }
        let Some(end) = body.iter().position(|byte| *byte == b'\n') else {
            return Err(ScriptError::new("ERR Invalid script shebang"));
        };
        let (line, code) = body.split_at(end);
        flags.has_shebang = true;
        let mut parts = line
            .split(u8::is_ascii_whitespace)
            .filter(|part| !part.is_empty());
        let engine = parts.next().unwrap_or_default();
        if engine != b"#!lua" {
            return Err(refusal("Unexpected engine in script shebang", engine));
        }
        for part in parts {
            let Some(list) = part.strip_prefix(b"flags=") else {
                return Err(refusal("Unknown lua shebang option", part));
            };
            for flag in list
                .split(|byte| *byte == b',')
                .filter(|flag| !flag.is_empty())
            {
                *flags.named(flag)? = true;
            }
        }
        Ok(Self { flags, code })
    }
}

impl ScriptFlags {
    fn named(&mut self, name: &[u8]) -> Result<&mut bool, ScriptError> {
        Ok(match name {
            b"no-writes" => &mut self.no_writes,
            b"allow-oom" => &mut self.allow_oom,
            b"allow-stale" => &mut self.allow_stale,
            b"no-cluster" => &mut self.no_cluster,
            b"allow-cross-slot-keys" => &mut self.allow_cross_slot_keys,
            _ => return Err(refusal("Unexpected flag in script shebang", name)),
        })
    }
}

/// The flags of a body's first line.
///
/// # Errors
/// If the line names another engine, or an option or a flag that is not known.
pub fn shebang(body: &[u8]) -> Result<ScriptFlags, ScriptError> {
    Shebang::of(body).map(|shebang| shebang.flags)
}

fn refusal(what: &str, text: &[u8]) -> ScriptError {
    ScriptError::new(format!("ERR {what}: {}", String::from_utf8_lossy(text)))
}
