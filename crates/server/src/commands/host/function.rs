//! FCALL, FCALL_RO and FUNCTION: libraries of functions, which all loops share.
//!
//! A call runs as a script does (`script.rs`).

use std::sync::Arc;

use tidewheel_keyspace::{CommandError, glob_match, read_functions, write_functions};
use tidewheel_resp::{Args, parse_i64};

use super::script::{Code, is_full, key_count, refused};
use super::{HandlerResult, error};
use crate::clients::connection::Connection;
use crate::commands::turn::{CommandStep, Turn};
use crate::scripts::LOAD_ALL_NS;
use crate::scripts::libraries::{BYTES_MAX, Library, Table};
use crate::scripts::running::Kind;

const NOT_FOUND: &str = "ERR Function not found";
const BAD_KEYS: &str = "ERR Bad number of keys provided";
const NO_LIBRARY: &str = "ERR Library not found";
const NO_NAME: &str = "ERR library name argument was not given";
const FLUSH_MODES: &str = "ERR FUNCTION FLUSH only supports SYNC|ASYNC option";
const POLICIES: &str =
    "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.";
const NO_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

fn unknown(subcommand: &str) -> CommandError {
    CommandError::quoting(format!(
        "ERR unknown subcommand or wrong number of arguments for '{subcommand}'. Try FUNCTION HELP."
    ))
}

fn unknown_option(what: &str, option: &[u8]) -> CommandError {
    let option = String::from_utf8_lossy(option);
    CommandError::quoting(format!("ERR {what}{option}"))
}

impl Turn<'_> {
    pub(super) fn fcall(
        &mut self,
        conn: &mut Connection,
        args: Args<'_>,
        reads: bool,
    ) -> HandlerResult {
        self.show_call(conn, args);
        let state = &mut *self.state;
        let found = (state.scripts).function(&state.server.libraries, &args[1]);
        let (library, at) = found.ok_or_else(|| error(NOT_FOUND))?;
        let number = parse_i64(&args[2]).ok_or_else(|| error(BAD_KEYS))?;
        let keys = key_count(number, args)?;
        self.run_code(conn, Code::Function(&library, at), args, keys, reads)
    }

    pub(super) fn function_load(&mut self, args: Args<'_>) -> HandlerResult {
        let last = args.len() - 1;
        let mut replaces = false;
        for option in args.from(2).iter().take(last - 2) {
            if !option.eq_ignore_ascii_case(b"REPLACE") {
                return Err(unknown_option("Unknown option given: ", option));
            }
            replaces = true;
        }
        self.admit_libraries(args)?;
        let name = self.change_libraries(|turn, loaded| {
            let server = Arc::clone(&turn.state.server);
            let present = |name: &str| !replaces && server.libraries.look(|table| table.has(name));
            let library = turn.load(&args[last], present, u64::MAX)?;
            loaded.push(Arc::clone(&library));
            let name = library.name.clone();
            let added = server.libraries.add(library, replaces);
            added.map(|()| name).map_err(|why| refused(&why))
        })?;
        self.record_libraries();
        self.out.bulk(name.as_bytes());
        Ok(CommandStep::Done)
    }

    /// Has all libraries recorded, as they are by now.
    fn record_libraries(&self) {
        let (server, time) = (&self.state.server, self.state.time);
        server.libraries.look(|table| {
            let codes = table.all().map(|library| &*library.code);
            let words: Vec<&[u8]> = std::iter::once(&b"FUNCTION"[..]).chain(codes).collect();
            server.keyspace.record(time, &words);
        });
    }

    /// Loads a library, but for one whose name is `present`.
    fn load(
        &mut self,
        code: &[u8],
        present: impl Fn(&str) -> bool,
        ends_ns: u64,
    ) -> Result<Arc<Library>, CommandError> {
        let state = &mut *self.state;
        let loaded = (state.scripts).load(&state.server, code, present, ends_ns);
        loaded.map(Arc::new).map_err(|why| refused(&why))
    }

    /// Runs what may load libraries. If it fails, this loop drops those again.
    fn change_libraries<T>(
        &mut self,
        change: impl FnOnce(&mut Self, &mut Vec<Arc<Library>>) -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        let mut loaded = Vec::new();
        let changed = change(self, &mut loaded);
        if changed.is_err() {
            self.state.scripts.unload(&loaded);
        }
        self.state.note_slow();
        self.follow_clock();
        changed
    }

    fn admit_libraries(&mut self, args: Args<'_>) -> Result<(), CommandError> {
        match is_full(self.state, args) {
            true => Err(error(NO_MEMORY)),
            false => Ok(()),
        }
    }

    pub(super) fn function_delete(&mut self, args: Args<'_>) -> HandlerResult {
        match self.state.server.libraries.remove(&args[2]) {
            true => {
                self.record_libraries();
                self.done()
            }
            false => Err(error(NO_LIBRARY)),
        }
    }

    pub(super) fn function_flush(&mut self, args: Args<'_>) -> HandlerResult {
        let is_known =
            |mode: &[u8]| mode.eq_ignore_ascii_case(b"SYNC") || mode.eq_ignore_ascii_case(b"ASYNC");
        if args.len() > 3 {
            return Err(unknown(&String::from_utf8_lossy(&args[1])));
        }
        if args.get(2).is_some_and(|mode| !is_known(mode)) {
            return Err(error(FLUSH_MODES));
        }
        self.state.server.libraries.clear();
        self.record_libraries();
        self.done()
    }

    pub(super) fn function_list(&mut self, args: Args<'_>) -> HandlerResult {
        let (mut pattern, mut with_code) = (None, false);
        let mut options = args.from(2).iter();
        while let Some(option) = options.next() {
            if !with_code && option.eq_ignore_ascii_case(b"WITHCODE") {
                with_code = true;
            } else if pattern.is_none() && option.eq_ignore_ascii_case(b"LIBRARYNAME") {
                pattern = Some(options.next().ok_or_else(|| error(NO_NAME))?);
            } else {
                return Err(unknown_option("Unknown argument ", option));
            }
        }
        let pattern = pattern.map(<[u8]>::to_ascii_lowercase);
        let matches = |library: &&Arc<Library>| match &pattern {
            Some(pattern) => glob_match(pattern, library.name.to_ascii_lowercase().as_bytes()),
            None => true,
        };
        let libraries = &self.state.server.libraries;
        let shown: Vec<_> = libraries.look(|table| table.all().filter(matches).cloned().collect());
        self.out.array(shown.len());
        for library in &shown {
            self.show_library(library, with_code);
        }
        Ok(CommandStep::Done)
    }

    fn show_library(&mut self, library: &Library, with_code: bool) {
        let out = &mut *self.out;
        out.map(3 + usize::from(with_code));
        out.bulk(b"library_name");
        out.bulk(library.name.as_bytes());
        out.bulk(b"engine");
        out.bulk(b"LUA");
        out.bulk(b"functions");
        out.array(library.functions.len());
        for function in &library.functions {
            let registered = &function.registered;
            out.map(3);
            out.bulk(b"name");
            out.bulk(registered.name.as_bytes());
            out.bulk(b"description");
            match &registered.description {
                Some(text) => out.bulk(text),
                None => out.null(),
            }
            out.bulk(b"flags");
            out.set(registered.flags.names().count());
            registered.flags.names().for_each(|name| out.simple(name));
        }
        if with_code {
            out.bulk(b"library_code");
            out.bulk(&library.code);
        }
    }

    pub(super) fn function_dump(&mut self) -> HandlerResult {
        let libraries = &self.state.server.libraries;
        let libraries: Vec<_> = libraries.look(|table| table.all().cloned().collect());
        let payload = write_functions(libraries.iter().map(|library| &*library.code));
        self.out.bulk(&payload);
        Ok(CommandStep::Done)
    }

    pub(super) fn function_restore(&mut self, args: Args<'_>) -> HandlerResult {
        if args.len() > 4 {
            return Err(unknown(&String::from_utf8_lossy(&args[1])));
        }
        let (flushes, replaces) = match args.get(3).map(<[u8]>::to_ascii_uppercase).as_deref() {
            None | Some(b"APPEND") => (false, false),
            Some(b"REPLACE") => (false, true),
            Some(b"FLUSH") => (true, false),
            Some(_) => return Err(error(POLICIES)),
        };
        self.admit_libraries(args)?;
        let rules = self.state.server.keyspace.rules();
        let codes = read_functions(&args[2], rules, BYTES_MAX)?;
        self.change_libraries(|turn, loaded| {
            let server = Arc::clone(&turn.state.server);
            let ends_ns = server.clock.monotonic_ns() + LOAD_ALL_NS;
            let mut fresh = Table::default();
            for code in &codes {
                let library = turn.load(code, |name| fresh.has(name), ends_ns)?;
                loaded.push(Arc::clone(&library));
                fresh.add(library, false).map_err(|why| refused(&why))?;
            }
            let restored = (server.libraries).restore(loaded.clone(), flushes, replaces);
            restored.map_err(|why| refused(&why))
        })?;
        self.record_libraries();
        self.done()
    }

    pub(super) fn function_kill(&mut self) -> HandlerResult {
        self.kill(Kind::Function)
    }

    pub(super) fn function_stats(&mut self) -> HandlerResult {
        let (libraries, functions, _) = self.state.server.libraries.look(Table::totals);
        let server = &self.state.server;
        let now_ns = server.clock.monotonic_ns();
        let out = &mut *self.out;
        out.map(2);
        out.bulk(b"running_script");
        let mut running = server.loops.iter().filter_map(|each| each.script.shown());
        match running.next() {
            Some(running) => {
                out.map(3);
                out.bulk(b"name");
                out.bulk(running.name.as_bytes());
                out.bulk(b"command");
                out.array(running.command.len());
                running.command.iter().for_each(|word| out.bulk(word));
                out.bulk(b"duration_ms");
                let ran_ns = now_ns.saturating_sub(running.began_ns);
                out.integer((ran_ns / 1_000_000) as i64);
            }
            None => out.null(),
        }
        out.bulk(b"engines");
        out.map(1);
        out.bulk(b"LUA");
        out.map(2);
        out.bulk(b"libraries_count");
        out.integer(libraries as i64);
        out.bulk(b"functions_count");
        out.integer(functions as i64);
        Ok(CommandStep::Done)
    }
}
