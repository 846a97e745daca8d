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
    /// What is behind the first line of a library.
    pub(crate) fn behind(code: &'a [u8]) -> &'a [u8] {
        let end = code.iter().position(|byte| *byte == b'\n');
        end.map_or(&[], |end| &code[end..])
    }

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
                let named = flags.named(flag);
                *named.ok_or_else(|| refusal("Unexpected flag in script shebang", flag))? = true;
            }
        }
        Ok(Self { flags, code })
    }
}

impl ScriptFlags {
    /// The names of the flags that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = [
            (self.no_writes, "no-writes"),
            (self.allow_oom, "allow-oom"),
            (self.allow_stale, "allow-stale"),
            (self.no_cluster, "no-cluster"),
            (self.allow_cross_slot_keys, "allow-cross-slot-keys"),
        ];
        all.into_iter().filter(|flag| flag.0).map(|flag| flag.1)
    }

    /// The flag of that name.
    pub(crate) fn named(&mut self, name: &[u8]) -> Option<&mut bool> {
        Some(match name {
            b"no-writes" => &mut self.no_writes,
            b"allow-oom" => &mut self.allow_oom,
            b"allow-stale" => &mut self.allow_stale,
            b"no-cluster" => &mut self.no_cluster,
            b"allow-cross-slot-keys" => &mut self.allow_cross_slot_keys,
            _ => return None,
        })
    }
}

/// The first line of a library: `#!lua name=mylib`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryHead {
    /// The library's name: letters, digits and underscores.
    pub name: String,
}

impl LibraryHead {
    /// Reads the first line of a library.
    ///
    /// # Errors
    /// If the line is missing, names another engine, or no right name.
    pub fn of(code: &[u8]) -> Result<Self, ScriptError> {
        if !code.starts_with(b"#!") {
            return Err(ScriptError::new("ERR Missing library metadata"));
        }
        let invalid = || ScriptError::new("ERR Invalid library metadata");
        let end = code.iter().position(|byte| *byte == b'\n');
        let line = &code[2..end.ok_or_else(invalid)?];
        let words = words_of(line).ok_or_else(invalid)?;
        // The line may have a blank before the engine's name, which is then empty.
        let is_named = !line.first().is_none_or(u8::is_ascii_whitespace);
        let (engine, options) = words.split_at(usize::from(is_named));
        let engine = engine.concat();
        let mut name = None;
        for option in options {
            let is_name = |(key, _): &(&[u8], &[u8])| key.eq_ignore_ascii_case(b"name=");
            let Some((_, value)) = option.split_at_checked(5).filter(is_name) else {
                return Err(refusal("Invalid metadata value given", option));
            };
            if name.replace(value).is_some() {
                return Err(ScriptError::new(
                    "ERR Invalid metadata value, name argument was given multiple times",
                ));
            }
        }
        let Some(name) = name else {
            return Err(ScriptError::new("ERR Library name was not given"));
        };
        let name = name_of(name).ok_or_else(|| ScriptError::new(BAD_NAME))?;
        if !engine.eq_ignore_ascii_case(b"lua") {
            let engine = String::from_utf8_lossy(&engine);
            return Err(ScriptError::new(format!("ERR Engine '{engine}' not found")));
        }
        Ok(Self { name })
    }
}

/// What is said of a wrong name.
pub(crate) const BAD_NAME: &str = "ERR Library names can only contain letters, numbers, or \
                                   underscores(_) and must be at least one character long";

/// A name of a library or a function, if it is a right one.
pub(crate) fn name_of(name: &[u8]) -> Option<String> {
    let is_right = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let is_name = !name.is_empty() && name.iter().all(is_right);
    is_name.then(|| String::from_utf8_lossy(name).into_owned())
}

/// The words of a line. A word may be, or end with, a quoted part with blanks; `None` if such a
/// part does not end, or ends within a word.
fn words_of(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut words, mut word, mut quote) = (Vec::new(), Vec::new(), None);
    let mut bytes = line.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match quote {
            Some(mark) if byte == mark => {
                if bytes.peek().is_some_and(|next| !next.is_ascii_whitespace()) {
                    return None;
                }
                quote = None;
            }
            Some(_) => word.push(byte),
            None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
            None if !byte.is_ascii_whitespace() => word.push(byte),
            None if word.is_empty() => {}
            None => words.push(std::mem::take(&mut word)),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    quote.is_none().then_some(words)
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
