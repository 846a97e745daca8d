//! Cuts a damaged log at the first damage. What is cut is kept beside it.

use std::io;

use crate::error::OpenError;
use crate::folder::{File, Folder, write_all};
use crate::manifest::Manifest;
use crate::names::{segment_name, segment_of, segments};
use crate::open::{Opened, take};
use crate::segment::{HEADER, Header};
use crate::window::Window;

/// How much is copied at once.
const COPIED: u64 = 64 * 1024;

/// What a repair has cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cut {
    /// The segment.
    pub file: String,
    /// Where it was cut. At 0 nothing is left of it.
    pub offset: u64,
    /// How much was cut off.
    pub bytes: u64,
    /// The file that has it now.
    pub kept_in: String,
}

/// Cuts a log at the first damage, so that it can be opened: what is in front of it stays, and what
/// is behind it goes to files named `segment-N.damaged`. Nothing is deleted.
///
/// Whoever calls this gives up what was acknowledged behind the damage. A log without damage stays
/// as it is.
///
/// # Errors
///
/// Those of [`Log::open`](crate::Log::open): the folder is in use, the system refuses, or the
/// manifest or the base is what is damaged or missing, which cannot be made up for.
pub fn repair<D: Folder + Clone>(folder: &D) -> Result<Vec<Cut>, OpenError> {
    let _lock = take(folder)?;
    let mut cuts = Vec::new();
    let mut last = None;
    loop {
        let Err(error) = read(folder.clone()) else {
            return Ok(cuts);
        };
        let (file, offset) = match &error {
            OpenError::Damaged(damage) => (&damage.file, damage.offset),
            OpenError::Missing { file, .. } => (file, 0),
            _ => return Err(error),
        };
        if last == Some((file.clone(), offset)) {
            // Cutting there did not help.
            return Err(error);
        }
        last = Some((file.clone(), offset));
        match (segment_of(file), Manifest::load(folder)?) {
            (Some(number), Some(manifest)) => {
                cut(folder, number, offset, &manifest, &mut cuts).map_err(OpenError::io(file))?;
            }
            _ => return Err(error),
        }
    }
}

fn read<D: Folder>(folder: D) -> Result<(), OpenError> {
    let mut opened = Opened::read(folder, None)?;
    while opened.next_frame()?.is_some() {}
    Ok(())
}

/// Cuts a segment, and everything behind it. A crash in between leaves what can be repaired again.
fn cut<D: Folder>(
    folder: &D,
    number: u64,
    offset: u64,
    manifest: &Manifest,
    cuts: &mut Vec<Cut>,
) -> io::Result<()> {
    folder.sync()?;
    let numbers = segments(&folder.list()?);
    let keeps_head = offset >= HEADER && numbers.contains(&number);
    let is_first = number == manifest.first;
    let last = if keeps_head || is_first {
        number
    } else {
        number - 1
    };
    let last = last.min(manifest.last);
    Manifest {
        last,
        ..manifest.clone()
    }
    .store(folder)?;
    if keeps_head {
        cuts.push(copy_tail(folder, number, offset)?);
    }
    for &behind in numbers.iter().rev().filter(|&&behind| behind >= number) {
        if behind > number || !keeps_head {
            cuts.push(move_aside(folder, behind)?);
        }
    }
    if keeps_head {
        let file = folder.open(&segment_name(number))?;
        file.truncate(offset)?;
        return file.sync_data();
    }
    if is_first {
        // The manifest wants one.
        Header::first(folder, number, &[]).create(folder)?;
    }
    Ok(())
}

fn copy_tail<D: Folder>(folder: &D, number: u64, offset: u64) -> io::Result<Cut> {
    let file = segment_name(number);
    let mut window = Window::new(folder.open(&file)?)?;
    let kept_in = free_name(folder, &file)?;
    let copy = folder.create_new(&kept_in)?;
    let mut from = offset;
    while from < window.len() {
        let length = COPIED.min(window.len() - from);
        write_all(&copy, from - offset, window.get(from, length)?)?;
        from += length;
    }
    copy.sync_data()?;
    folder.sync()?;
    Ok(Cut {
        file,
        offset,
        bytes: window.len().saturating_sub(offset),
        kept_in,
    })
}

fn move_aside<D: Folder>(folder: &D, number: u64) -> io::Result<Cut> {
    let file = segment_name(number);
    let bytes = folder.open(&file)?.len()?;
    let kept_in = free_name(folder, &file)?;
    folder.rename(&file, &kept_in)?;
    // One after another, so that no crash leaves a gap.
    folder.sync()?;
    Ok(Cut {
        file,
        offset: 0,
        bytes,
        kept_in,
    })
}

fn free_name<D: Folder>(folder: &D, file: &str) -> io::Result<String> {
    let names = folder.list()?;
    let mut name = format!("{file}.damaged");
    let mut number = 1;
    while names.contains(&name) {
        number += 1;
        name = format!("{file}.damaged-{number}");
    }
    Ok(name)
}
