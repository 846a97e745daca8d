//! Random steps, faults and crashes against a model.

use super::model::{Model, frame};
use crate::folder::write_all;
use crate::planted::{Fault, PLANTED};
use crate::simulated::{Dice, Disk, Faults, OpenFile};
use crate::{Error, File, Folder, Log, OpenError, Sync, Synced, base_name};

/// Steps of one seed.
const STEPS: u64 = 500;

/// Seeds of one run: a million steps, and ten with `TIDEWHEEL_DEEP=1`.
fn seeds() -> u64 {
    match std::env::var_os("TIDEWHEEL_DEEP") {
        Some(_) => 20_000,
        None => 2_000,
    }
}

#[test]
fn a_crash_takes_nothing_that_was_promised() {
    let mut seen = Seen::default();
    for seed in 0..seeds() {
        match World::run(seed) {
            Ok(of) => seen.add(&of),
            Err(why) => panic!("seed {seed}: {why}"),
        }
    }
    println!("{seen:?}");
    let Seen {
        crashes,
        torn,
        poisoned,
        full,
        rebased,
        behind_holes,
        lost,
    } = seen;
    for count in [crashes, torn, poisoned, full, rebased, behind_holes, lost] {
        assert!(
            count > seeds() / 20,
            "the test no longer reaches everything: {seen:?}"
        );
    }
}

#[test]
fn each_planted_fault_is_found() {
    let faults = [
        Fault::ManifestNotSynced,
        Fault::ManifestNameNotSynced,
        Fault::SegmentNameNotSynced,
        Fault::SyncLeftOut,
        Fault::SyncRetried,
        Fault::FailureForgotten,
        Fault::NoChecksum,
        Fault::NoChain,
        Fault::NotRewritten,
        Fault::HoleNotMarked,
        Fault::NotFinished,
        Fault::RemovedEarly,
    ];
    for fault in faults {
        PLANTED.set(Some(fault));
        // Only a world whose frames fill a sector each meets this one, and seldom.
        let step = if fault == Fault::NoChain { 8 } else { 1 };
        let mut seeds = (0..4_000).map(|at| at * step);
        let found = seeds.find_map(|seed| Some((seed, World::run(seed).err()?)));
        PLANTED.set(None);
        println!("{fault:?}: {found:?}");
        assert!(found.is_some(), "nobody finds {fault:?}");
    }
}

/// How often something happened.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    crashes: u64,
    torn: u64,
    poisoned: u64,
    full: u64,
    rebased: u64,
    behind_holes: u64,
    lost: u64,
}

impl Seen {
    fn add(&mut self, other: &Self) {
        self.crashes += other.crashes;
        self.torn += other.torn;
        self.poisoned += other.poisoned;
        self.full += other.full;
        self.rebased += other.rebased;
        self.behind_holes += other.behind_holes;
        self.lost += other.lost;
    }
}

struct World {
    disk: Disk,
    dice: Dice,
    model: Model,
    log: Option<Log<Disk>>,
    /// What a thread beside would do.
    asked: Option<Sync<OpenFile>>,
    done: Option<Synced>,
    /// A segment that began, and how many frames a base in front of it holds.
    rolled: Option<(u64, usize)>,
    has_faults: bool,
    seen: Seen,
}

type Outcome<T = ()> = Result<T, String>;

impl World {
    fn run(seed: u64) -> Outcome<Seen> {
        let mut world = Self {
            disk: Disk::new(seed),
            dice: Dice::new(!seed),
            model: Model::new(seed.is_multiple_of(8)),
            log: None,
            asked: None,
            done: None,
            rolled: None,
            has_faults: false,
            seen: Seen::default(),
        };
        for _ in 0..STEPS {
            world.step()?;
        }
        world.set_faults(Faults::default());
        world.end_process(true);
        world.reopen()?;
        world.heal()?;
        Ok(world.seen)
    }

    fn step(&mut self) -> Outcome {
        if self.disk.is_off() || self.log.is_none() {
            if self.disk.is_off() || self.dice.once_in(2) {
                self.end_process(true);
            } else {
                self.end_process(false);
            }
            return self.reopen();
        }
        match self.dice.below(100) {
            0..55 => self.append()?,
            55..65 => {
                let log = self.log.as_mut().expect("it is open");
                let result = log.sync();
                self.note(result);
            }
            65..75 => self.sync_aside(),
            75..79 => self.roll(),
            79..85 => {
                self.rebase();
            }
            85..88 => {
                let faults = self.faults();
                self.set_faults(faults);
            }
            88..93 => self.set_faults(Faults::default()),
            93..96 => self.disk.cut_power_after(self.dice.below(40)),
            96 => self.end_process(true),
            97 => self.end_process(false),
            98 if !self.has_faults => self.heal()?,
            _ => {}
        }
        if let Some(log) = &self.log {
            self.model.promise(log.synced());
        }
        Ok(())
    }

    fn faults(&mut self) -> Faults {
        let dice = &mut self.dice;
        let mut sometimes = |n| if dice.once_in(2) { n } else { 0 };
        let mut faults = Faults {
            short_writes: sometimes(3),
            failed_writes: sometimes(5),
            failed_syncs: sometimes(4),
            failed_names: sometimes(6),
            ..Faults::default()
        };
        if dice.once_in(3) {
            faults.capacity = Some(dice.below(80_000));
        }
        faults
    }

    fn set_faults(&mut self, faults: Faults) {
        self.has_faults = format!("{faults:?}") != format!("{:?}", Faults::default());
        self.disk.set_faults(faults);
    }

    fn append(&mut self) -> Outcome {
        let log = self.log.as_mut().expect("it is open");
        for _ in 0..=self.dice.below(4) {
            let (serial, moment, payload) = self.model.next_frame();
            match log.append(moment, &payload) {
                Ok(position) => self.model.append(serial, Some(position)),
                Err(Error::Poisoned) => {}
                Err(error) => {
                    self.model.append(serial, None);
                    self.seen.full += u64::from(matches!(error, Error::Full(_)));
                    if !self.has_faults && !self.disk.is_off() {
                        return Err(format!("an append fails without a reason: {error}"));
                    }
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, result: Result<(), Error>) {
        self.seen.poisoned += u64::from(matches!(result, Err(Error::Failed(_))));
    }

    /// A sync on another thread goes one step on.
    fn sync_aside(&mut self) {
        let log = self.log.as_mut().expect("it is open");
        match (self.asked.take(), self.done.take()) {
            (_, Some(done)) => {
                let result = log.end_sync(done);
                self.note(result);
            }
            (Some(asked), None) => self.done = Some(asked.run()),
            (None, None) => self.asked = Some(log.begin_sync()),
        }
    }

    fn roll(&mut self) {
        let log = self.log.as_mut().expect("it is open");
        let was_poisoned = self.dice.once_in(2) && matches!(log.sync(), Err(Error::Poisoned));
        match log.roll() {
            Ok(segment) => {
                self.rolled = Some((segment, self.model.len()));
                self.seen.behind_holes += u64::from(was_poisoned);
            }
            Err(error) => self.note(Err(error)),
        }
    }

    /// Writes the base for the segment that began last, and puts it in force.
    fn rebase(&mut self) -> bool {
        let (Some((segment, frames)), Some(log)) = (self.rolled.take(), self.log.as_mut()) else {
            return false;
        };
        // What has its name is of a life in which it was not put in force.
        let _ = self.disk.remove(&base_name(segment));
        let written = (self.disk.create_new(&base_name(segment))).and_then(|file| {
            write_all(&file, 0, frames.to_string().as_bytes())?;
            file.sync_data()
        });
        if written.is_err() {
            return false;
        }
        // A rebase that failed may be tried again.
        let is_done = log.rebase(segment).is_ok() || log.rebase(segment).is_ok();
        self.seen.rebased += u64::from(is_done);
        is_done
    }

    /// Without faults whatever was poisoned is well after a new base.
    fn heal(&mut self) -> Outcome {
        if self.disk.is_off() {
            return Ok(());
        }
        if let (Some(done), Some(log)) = (self.done.take(), self.log.as_mut()) {
            let _ = log.end_sync(done);
        }
        self.asked = None;
        self.rolled = None;
        self.roll();
        if self.rolled.is_none() {
            self.roll();
        }
        let is_based = self.rebase();
        let log = self.log.as_mut().expect("it is open");
        let result = log.sync();
        self.model.promise(log.synced());
        let is_well = is_based && result.is_ok() && self.model.has_promised(self.model.len());
        if !is_well && !self.disk.is_off() {
            return Err(format!("the log stays ill: {is_based}, {result:?}"));
        }
        Ok(())
    }

    fn end_process(&mut self, is_crash: bool) {
        (self.log, self.asked, self.done, self.rolled) = (None, None, None, None);
        match is_crash {
            true => self.disk.crash(),
            false => self.disk.kill(),
        }
        self.seen.crashes += u64::from(is_crash);
    }

    /// Opens the log and compares it. What fails because of a fault is tried again later.
    fn reopen(&mut self) -> Outcome {
        let mut read = Vec::new();
        match self.read(&mut read) {
            Ok(()) => Ok(()),
            Err(OpenError::Io { error, .. }) if error.kind() == std::io::ErrorKind::InvalidData => {
                Err(error.to_string())
            }
            Err(OpenError::Io { .. }) if self.has_faults || self.disk.is_off() => {
                if self.dice.once_in(4) {
                    self.set_faults(Faults::default());
                }
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn read(&mut self, read: &mut Vec<u64>) -> Result<(), OpenError> {
        let io = |error| OpenError::io("a file")(error);
        let wrong = |why| io(std::io::Error::new(std::io::ErrorKind::InvalidData, why));
        let mut opened = Log::open(self.disk.clone())?;
        let based = match opened.base() {
            None => 0,
            Some(name) => {
                let file = self.disk.open(&name).map_err(io)?;
                let mut text = vec![0; file.len().map_err(io)? as usize];
                let mut filled = 0;
                while filled < text.len() {
                    filled += file
                        .read_at(filled as u64, &mut text[filled..])
                        .map_err(io)?;
                }
                let text = String::from_utf8(text)
                    .ok()
                    .and_then(|text| text.parse().ok());
                text.ok_or_else(|| wrong(format!("{name} is altered")))?
            }
        };
        while let Some(found) = opened.next_frame()? {
            let serial = found.moment.tick;
            if frame(serial) != (found.moment, found.payload.to_owned()) {
                return Err(wrong(format!("frame {serial} is altered")));
            }
            read.push(serial);
        }
        self.model.check(based, read).map_err(wrong)?;
        let cut = opened.cut();
        let log = opened.begin_writing(b"rows")?;
        self.seen.torn += u64::from(cut > 0);
        self.seen.lost += u64::from(based + read.len() < self.model.len());
        self.model.go_on(based, read);
        self.log = Some(log);
        Ok(())
    }
}
