//! Which segments follow the base, each in front of the next.

use crate::error::OpenError;
use crate::folder::Folder;
use crate::frame::Id;
use crate::manifest::Manifest;
use crate::names::{MANIFEST, base_of, segment_name, segments};
use crate::segment::{HEADER, Header, NoHeader};
use crate::window::Window;

/// The segments of a log.
#[derive(Debug)]
pub(crate) struct Chain {
    /// `None` for a new log.
    pub(crate) manifest: Option<Manifest>,
    pub(crate) links: Vec<Link>,
    /// How much of the last segment is known to have been on disk, from the header of one that does
    /// not count.
    pub(crate) floor: u64,
    /// Segments behind the last one that do not count, ascending: they have no frames, or come
    /// behind a hole.
    pub(crate) ignored: Vec<u64>,
}

/// One segment of a log.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) header: Header,
    /// Where its frames end. The last segment does not know.
    pub(crate) end: Option<u64>,
}

impl Chain {
    /// Reads the manifest and the headers of all segments.
    pub(crate) fn of<D: Folder>(folder: &D) -> Result<Self, OpenError> {
        // The manifest first: what it names is in the list, also if somebody writes meanwhile.
        let manifest = Manifest::load(folder)?;
        let names = folder.list().map_err(OpenError::io("the folder"))?;
        let mut numbers = segments(&names);
        let Some(manifest) = manifest else {
            let has_base = names.iter().any(|name| base_of(name).is_some());
            return Self::without_manifest(folder, numbers, has_base);
        };
        if let Some(base) = manifest.base().filter(|base| !names.contains(base)) {
            let why = "the manifest says that it is in force";
            return Err(OpenError::Missing { file: base, why });
        }
        numbers.retain(|&number| number >= manifest.first);
        if numbers.first() != Some(&manifest.first) {
            return Err(OpenError::Missing {
                file: segment_name(manifest.first),
                why: "the manifest says that it follows the base",
            });
        }
        let newest = numbers.last().copied().unwrap_or(manifest.first);
        if newest < manifest.last {
            return Err(OpenError::Missing {
                file: segment_name(newest + 1),
                why: "the manifest says that it is there",
            });
        }
        let named = manifest.last;
        let mut chain = Self {
            manifest: Some(manifest),
            links: Vec::with_capacity(numbers.len()),
            floor: 0,
            ignored: Vec::new(),
        };
        chain.follow(folder, &numbers, named)?;
        Ok(chain)
    }

    /// A log without manifest is new, or was when its first process ended.
    fn without_manifest<D: Folder>(
        folder: &D,
        numbers: Vec<u64>,
        has_base: bool,
    ) -> Result<Self, OpenError> {
        let is_new = match *numbers {
            [] => true,
            [1] => read_header(folder, 1)?.1 <= HEADER,
            _ => false,
        };
        if !is_new || has_base {
            return Err(OpenError::Missing {
                file: MANIFEST.to_owned(),
                why: "there are segments or bases, and nothing says which of them count",
            });
        }
        Ok(Self {
            manifest: None,
            links: Vec::new(),
            floor: 0,
            ignored: numbers,
        })
    }

    /// Reads the headers of these segments. Those up to `named` have one.
    fn follow<D: Folder>(
        &mut self,
        folder: &D,
        numbers: &[u64],
        named: u64,
    ) -> Result<(), OpenError> {
        for (place, &number) in numbers.iter().enumerate() {
            let name = segment_name(number);
            let before = place.checked_sub(1).and_then(|before| numbers.get(before));
            if before.is_some_and(|before| before + 1 != number) {
                return Err(OpenError::Missing {
                    file: segment_name(number - 1),
                    why: "a segment behind it is there",
                });
            }
            let (header, len) = read_header(folder, number)?;
            let is_empty = len <= HEADER && place > 0 && place + 1 == numbers.len();
            let header = match header {
                Ok(header) => header,
                Err(_) if is_empty && number > named => {
                    self.ignored.push(number);
                    return Ok(());
                }
                Err(NoHeader::Version(version)) => {
                    return Err(OpenError::UnknownVersion {
                        file: name,
                        version,
                    });
                }
                Err(NoHeader::Magic) => {
                    return Err(OpenError::damaged(
                        name,
                        0,
                        "it does not begin as a segment",
                    ));
                }
                Err(NoHeader::Crc) => {
                    return Err(OpenError::damaged(
                        name,
                        0,
                        "the checksum of its header is wrong",
                    ));
                }
            };
            if header.number != number {
                return Err(OpenError::damaged(name, 16, "it is another segment"));
            }
            if let Some(last) = self.links.last_mut() {
                if header.previous != last.header.id {
                    let what = "it does not follow the segment in front of it";
                    return Err(OpenError::damaged(name, 40, what));
                }
                if is_empty || !header.is_all {
                    self.floor = header.length;
                    self.ignored.extend(&numbers[place..]);
                    return Ok(());
                }
                last.end = Some(header.length);
            }
            self.links.push(Link { header, end: None });
        }
        Ok(())
    }

    /// The number of the segment that comes next, and the id of the last one.
    pub(crate) fn next(&self) -> Option<(u64, Id)> {
        match self.links.last() {
            Some(last) => Some((last.header.number.checked_add(1)?, last.header.id)),
            None => Some((1, Id([0; 16]))),
        }
    }
}

/// The header of a segment, and the length of its file.
fn read_header<D: Folder>(
    folder: &D,
    number: u64,
) -> Result<(Result<Header, NoHeader>, u64), OpenError> {
    let name = segment_name(number);
    let file = folder.open(&name).map_err(OpenError::io(&name))?;
    let mut window = Window::new(file).map_err(OpenError::io(&name))?;
    let len = window.len();
    let bytes = window
        .get(0, len.min(HEADER))
        .map_err(OpenError::io(&name))?;
    Ok((Header::read(bytes), len))
}
