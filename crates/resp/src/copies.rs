//! Commands that outlive the buffer that they arrived in.
//!
//! A vector that doubles may hold twice what is in it, and while it moves three times as much. So
//! what is copied lies in blocks. A block that has [`BLOCK`] bytes is cut to its size, and the next
//! begins; a longer command has a block of its own. So memory grows with what is copied, in steps
//! of a block.

use crate::args::{Args, Span};

/// The bytes after which a block is full.
const BLOCK: usize = 64 << 10;

/// Copies of commands, in their order, each with something that its owner knows of it.
///
/// ```
/// use tidewheel_resp::{Args, Copies};
///
/// let mut copies = Copies::default();
/// copies.push("a read", Args::from_slices(&[b"GET", b"k"]));
/// copies.push("a write", Args::from_slices(&[b"DEL", b"k"]));
/// let (what, args) = copies.iter().nth(1).unwrap();
/// assert_eq!((what, &args[0]), ("a write", &b"DEL"[..]));
/// ```
#[derive(Debug)]
pub struct Copies<T> {
    blocks: Vec<Block<T>>,
    /// Bytes of all blocks but the last.
    full_bytes: usize,
    len: usize,
}

#[derive(Debug)]
struct Block<T> {
    /// The arguments of all commands, one after the other.
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// Each command, and where its spans end.
    commands: Vec<(T, u32)>,
}

impl<T> Default for Copies<T> {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            full_bytes: 0,
            len: 0,
        }
    }
}

impl<T> Default for Block<T> {
    fn default() -> Self {
        Self {
            bytes: Vec::new(),
            spans: Vec::new(),
            commands: Vec::new(),
        }
    }
}

impl<T: Copy> Copies<T> {
    /// Copies a command.
    pub fn push(&mut self, what: T, args: Args<'_>) {
        let size = CommandSize::of(args);
        if self.open(size).is_none() {
            if let Some(full) = self.blocks.last_mut() {
                full.cut();
                self.full_bytes += full.held();
            }
            self.blocks.push(Block::default());
        }
        if let Some(block) = self.blocks.last_mut() {
            block.push(what, args, size);
        }
        self.len += 1;
    }

    /// The last block, if it has room for a command of this size.
    fn open(&self, size: CommandSize) -> Option<&Block<T>> {
        let last = self.blocks.last()?;
        (last.used() + size.total::<T>() <= BLOCK).then_some(last)
    }

    /// Returns the number of commands.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no commands.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory held.
    pub fn held_bytes(&self) -> usize {
        let last = self.blocks.last().map_or(0, Block::held);
        self.blocks.capacity() * size_of::<Block<T>>() + self.full_bytes + last
    }

    /// Bytes of memory that are held at most once this command is copied, too.
    pub fn held_bytes_with(&self, args: Args<'_>) -> usize {
        let size = CommandSize::of(args);
        let more = match self.open(size) {
            Some(block) => block.held_with(size) - block.held(),
            // The list of blocks at least doubles: its smallest has four.
            None => size_of::<Block<T>>() * (self.blocks.capacity() + 4) + size.total::<T>(),
        };
        self.held_bytes().saturating_add(more)
    }

    /// The commands in their order.
    pub fn iter(&self) -> impl Iterator<Item = (T, Args<'_>)> + Clone {
        self.blocks.iter().flat_map(|block| {
            let mut start = 0;
            block.commands.iter().map(move |&(what, end)| {
                let spans = &block.spans[start..end as usize];
                start = end as usize;
                (what, Args::from_spans(&block.bytes, spans))
            })
        })
    }
}

/// The memory that a command takes.
#[derive(Clone, Copy)]
struct CommandSize {
    bytes: usize,
    spans: usize,
}

impl CommandSize {
    fn of(args: Args<'_>) -> Self {
        Self {
            bytes: args.iter().map(<[u8]>::len).sum(),
            spans: args.len(),
        }
    }

    fn total<T>(self) -> usize {
        self.bytes + self.spans * size_of::<Span>() + size_of::<(T, u32)>()
    }
}

impl<T: Copy> Block<T> {
    fn push(&mut self, what: T, args: Args<'_>, size: CommandSize) {
        make_room(&mut self.bytes, size.bytes);
        make_room(&mut self.spans, size.spans);
        make_room(&mut self.commands, 1);
        for arg in args {
            // A command is shorter than 4 GiB, and nothing lies before a long one.
            self.spans.push(Span {
                start: self.bytes.len() as u32,
                len: arg.len() as u32,
            });
            self.bytes.extend_from_slice(arg);
        }
        self.commands.push((what, self.spans.len() as u32));
    }

    /// Bytes that commands have taken.
    fn used(&self) -> usize {
        let commands = self.commands.len() * size_of::<(T, u32)>();
        self.bytes.len() + self.spans.len() * size_of::<Span>() + commands
    }

    /// Bytes of memory held.
    fn held(&self) -> usize {
        self.held_with(CommandSize { bytes: 0, spans: 0 })
    }

    /// Bytes of memory held once a command of this size is added.
    fn held_with(&self, size: CommandSize) -> usize {
        let commands = usize::from(size.spans > 0);
        with_room(&self.bytes, size.bytes)
            + with_room(&self.spans, size.spans) * size_of::<Span>()
            + with_room(&self.commands, commands) * size_of::<(T, u32)>()
    }

    /// Gives back what no command will take.
    fn cut(&mut self) {
        self.bytes.shrink_to_fit();
        self.spans.shrink_to_fit();
        self.commands.shrink_to_fit();
    }
}

/// The capacity with which so many elements more fit.
fn with_room<E>(vector: &Vec<E>, more: usize) -> usize {
    match vector.len() + more {
        len if len <= vector.capacity() => vector.capacity(),
        len => len.max(2 * vector.capacity()),
    }
}

fn make_room<E>(vector: &mut Vec<E>, more: usize) {
    vector.reserve_exact(with_room(vector, more) - vector.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command of so many arguments, all of this length.
    fn with_command<R>(arguments: usize, length: usize, then: impl FnOnce(Args<'_>) -> R) -> R {
        let argument = vec![b'x'; length];
        then(Args::from_slices(&vec![&argument[..]; arguments]))
    }

    #[test]
    fn copies_are_what_was_copied_in_its_order() {
        let mut copies = Copies::default();
        let shapes = [
            (1, 3),
            (3, 100_000),
            (70, 1_000),
            (40_000, 0),
            (2, 1),
            (5, 30_000),
        ];
        for (i, (arguments, length)) in shapes.into_iter().enumerate() {
            with_command(arguments, length, |args| copies.push(i, args));
        }
        assert_eq!((copies.len(), copies.is_empty()), (shapes.len(), false));
        assert_eq!(copies.iter().count(), shapes.len());
        for ((i, args), (arguments, length)) in copies.iter().zip(shapes) {
            assert_eq!(shapes[i], (arguments, length));
            assert_eq!(args.len(), arguments);
            assert!(args.iter().all(|arg| arg == vec![b'x'; length]));
        }
    }

    /// Vectors that double held twice as much.
    #[test]
    fn memory_exceeds_what_was_copied_by_a_block_at_most() {
        for (arguments, length) in [
            (1, 4),
            (3, 1),
            (50, 1),
            (3, 1_000),
            (2, 40_000),
            (2, 3 << 20),
        ] {
            let (mut copies, mut need) = (Copies::default(), 0);
            while need < 8 << 20 {
                let foretold = with_command(arguments, length, |args| {
                    let foretold = copies.held_bytes_with(args);
                    copies.push((), args);
                    need += CommandSize::of(args).total::<()>();
                    foretold
                });
                let held = copies.held_bytes();
                assert!((need..=foretold).contains(&held), "{held} of {need}");
                let most = need + need / 200 + BLOCK;
                assert!(held <= most, "{held} of {need}: {arguments} of {length}");
            }
        }
    }

    #[test]
    fn a_few_short_commands_take_little() {
        let mut copies = Copies::default();
        for _ in 0..3 {
            with_command(3, 3, |args| copies.push(0_u64, args));
        }
        assert!(copies.held_bytes() < 1_024, "{}", copies.held_bytes());
    }
}
