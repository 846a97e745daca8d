//! What happens in a run: commands, clocks, expiry, clients that wait.

use crate::draw::Draw;

/// One step of a run. Commands, and the names of keys, are [spelled](crate::draw::spell).
#[derive(Clone, Debug)]
pub enum Step {
    /// A client's command.
    Line(String),
    /// A client's script: a call of EVAL or EVAL_RO.
    Script(String),
    /// DUMP of a key, and RESTORE under another one, with a time to live or none.
    Reload(String, String, u8),
    /// WATCH, what happens then, and EXEC.
    Exec {
        /// The keys that are watched.
        watched: Vec<String>,
        /// What happens between WATCH and EXEC.
        between: Vec<Self>,
        /// The transaction's commands.
        commands: Vec<Self>,
    },
    /// Another client calls a command that may wait.
    Wait(String),
    /// One of those who wait goes away.
    Leave(u8),
    /// One more page of a scan, while other steps change what it sees.
    Page(String, u8),
    /// How many members, and how long ones, a packed collection may have.
    Limits(u8),
    /// Microseconds pass.
    Moment(u16),
    /// Milliseconds pass.
    Advance(u16),
    /// A long sleep, in seconds.
    Sleep(u32),
    /// The wall clock is set forward or back by milliseconds.
    StepWall(i32),
    /// Every shard expires at most this many keys.
    Expire(u8),
    /// Every shard is maintained with this budget.
    Maintain(u8),
    /// EXPIRY FREEZE.
    Freeze,
    /// EXPIRY RESUME.
    Resume,
}

impl Step {
    /// Draws steps until the bytes are used up: every byte counts, and runs are long.
    pub fn draw_all(draw: &mut Draw<'_>) -> Vec<Self> {
        let mut steps = Vec::new();
        while !draw.is_empty() {
            steps.push(Self::draw(draw));
        }
        steps
    }

    /// Draws one step. Mostly a command; rarely a sleep, since few deadlines are left after one.
    pub fn draw(draw: &mut Draw<'_>) -> Self {
        match draw.byte() {
            194..200 => Self::Script(draw.eval()),
            200..206 => Self::Reload(draw.any_key(), draw.any_key(), draw.byte()),
            206..209 => Self::Exec {
                watched: draw.few(2, Draw::any_key),
                between: draw.few(2, |draw| {
                    let byte = draw.byte();
                    Self::plain(byte, draw)
                }),
                commands: draw.few(4, |draw| match draw.once_in(4) {
                    true => Self::Script(draw.eval()),
                    false => Self::Line(draw.line()),
                }),
            },
            209..214 => Self::Wait(match draw.once_in(3) {
                true => draw.waiting_for_zset(),
                false => draw.waiting_for_list(),
            }),
            214 => Self::Leave(draw.byte()),
            215..219 => Self::Page(draw.any_key(), draw.byte()),
            219 => Self::Limits(draw.byte()),
            byte => Self::plain(byte, draw),
        }
    }

    /// A command, or something that happens to the clocks or to the shards.
    fn plain(byte: u8, draw: &mut Draw<'_>) -> Self {
        match byte {
            0..220 => Self::Line(draw.line()),
            220..224 => Self::Moment(draw.wide::<2>() as u16),
            224..226 => Self::Advance(draw.wide::<2>() as u16),
            226..235 => Self::Advance(draw.byte().into()),
            235 => Self::Sleep(draw.wide::<4>() as u32),
            236..239 => Self::StepWall(draw.wide::<4>() as i32),
            239..246 => Self::Expire(draw.byte()),
            246..250 => Self::Maintain(draw.byte()),
            250..252 => Self::Freeze,
            _ => Self::Resume,
        }
    }
}

impl Draw<'_> {
    /// The call of a script whose commands the model knows, whatever was there before.
    fn eval(&mut self) -> String {
        let name = if self.once_in(8) { "EVAL_RO" } else { "EVAL" };
        let mut is_first = true;
        let call = self.script(&mut |draw| {
            loop {
                let line = draw.line();
                let counts = meets_dead(&line) && !std::mem::take(&mut is_first);
                is_first = false;
                let vague = ["PF", "ZUNION", "ZINTER", "BIT", "SETBIT", "GETBIT"];
                if !counts && !vague.iter().any(|name| line.starts_with(name)) {
                    return line;
                }
            }
        });
        format!("{name} {call}")
    }
}

/// Whether it counts what is dead and not removed yet, or flushes it in silence.
pub(crate) fn meets_dead(line: &str) -> bool {
    ["DBSIZE", "FLUSHDB", "FLUSHALL"].contains(&line)
}
