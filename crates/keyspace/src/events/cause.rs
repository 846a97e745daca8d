//! Causes of events: each change of a key has one, and the cause names the event.

use super::NotifyClass;
use crate::waiters::Change;

/// A change of a key, or a miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    Append,
    CopyTo,
    Del,
    /// The last member's deadline was reached.
    Emptied,
    Evicted,
    Expire,
    Expired,
    IncrBy,
    IncrByFloat,
    KeyMiss,
    MoveFrom,
    MoveTo,
    New,
    Persist,
    PfAdd,
    RenameFrom,
    RenameTo,
    Restore,
    Set,
    SetBit,
    SetRange,
    SortStore,
    /// A change of a collection: the class and the name of its event.
    Of(NotifyClass, &'static str),
    /// A change of who was given which entries of a stream.
    Delivery,
    /// A part of something else, which is announced for itself.
    Silent,
}

impl Cause {
    /// What the change may do to those who wait for the key.
    pub(crate) fn change(self) -> Change {
        match self {
            Self::Of(NotifyClass::Stream, "xgroup-destroy" | "xgroup-setid") => Change::Any,
            Self::Of(NotifyClass::Stream, _) | Self::Delivery => Change::KeepsGroups,
            _ => Change::Any,
        }
    }

    /// True of changes that no command has made, although one may have met them.
    pub(crate) fn is_by_itself(self) -> bool {
        match self {
            Self::Emptied | Self::Expired | Self::Evicted => true,
            Self::Of(_, name) => matches!(name, "hexpired" | "sexpired" | "zexpired"),
            _ => false,
        }
    }

    /// The class and the name of its event.
    pub(crate) fn event(self) -> Option<(NotifyClass, &'static str)> {
        Some(match self {
            Self::Of(class, name) => (class, name),
            Self::Append => (NotifyClass::String, "append"),
            Self::CopyTo => (NotifyClass::Generic, "copy_to"),
            Self::Del | Self::Emptied => (NotifyClass::Generic, "del"),
            Self::Evicted => (NotifyClass::Evicted, "evicted"),
            Self::Expire => (NotifyClass::Generic, "expire"),
            Self::Expired => (NotifyClass::Expired, "expired"),
            Self::IncrBy => (NotifyClass::String, "incrby"),
            Self::IncrByFloat => (NotifyClass::String, "incrbyfloat"),
            Self::KeyMiss => (NotifyClass::KeyMiss, "keymiss"),
            Self::MoveFrom => (NotifyClass::Generic, "move_from"),
            Self::MoveTo => (NotifyClass::Generic, "move_to"),
            Self::New => (NotifyClass::New, "new"),
            Self::PfAdd => (NotifyClass::String, "pfadd"),
            Self::Persist => (NotifyClass::Generic, "persist"),
            Self::RenameFrom => (NotifyClass::Generic, "rename_from"),
            Self::RenameTo => (NotifyClass::Generic, "rename_to"),
            Self::Restore => (NotifyClass::Generic, "restore"),
            Self::Set => (NotifyClass::String, "set"),
            Self::SetBit => (NotifyClass::String, "setbit"),
            Self::SetRange => (NotifyClass::String, "setrange"),
            Self::SortStore => (NotifyClass::List, "sortstore"),
            Self::Delivery | Self::Silent => return None,
        })
    }
}
