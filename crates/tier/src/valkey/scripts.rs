//! The scripts: each is one atomic step on one slot, of a few commands.
//!
//! In a Cluster, what reads says which node has answered: the client may have been led to another
//! one than it believes. The last argument is not empty there.
//!
//! **While a slot moves** to another node, each of its keys is at the one or at the other. The
//! engine refuses a script over two keys unless both are at one node. So there are scripts over one
//! key too. A lease is in the value's own place then: as there is one key, to look at it and to
//! write it is one step again, and whatever else is written to it ends the lease.

use std::sync::Arc;

use redis::Script;

/// The value and what it has left, of one version; and the lease, if there is no fresh value and
/// nobody has it.
///
/// The places of the envelope are those of `core/envelope.rs`. What is no envelope counts as no
/// value.
const LOOK: &str = r"
local id = ''
if ARGV[#ARGV] ~= '' then id = redis.call('CLUSTER', 'MYID') end
local v, p = redis.call('GET', KEYS[1]), 0
if v then
  p = redis.call('PTTL', KEYS[1])
  if #v >= 36 and string.byte(v, 1) == 125 then
    local grace, kept = struct.unpack('>I4I4', v, 4)
    if p > grace + kept and string.sub(v, 12, 27) ~= ARGV[3] then return {v, p, 0, 0, id} end
  end
end
if ARGV[1] == '' then return {v, p, 0, 0, id} end
if redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[2]) then return {v, p, 1, 0, id} end
return {v, p, 2, redis.call('PTTL', KEYS[2]), id}";

/// The same over the value alone. Who has the lease keeps it in the value's place, if that is
/// empty.
///
/// A value that is past its end, and kept for a loader that fails, stays where it is: whoever asks
/// gets a lease that nothing will be stored with.
const LOOK_ONE: &str = r"
local id = ''
if ARGV[#ARGV] ~= '' then id = redis.call('CLUSTER', 'MYID') end
local v, p = redis.call('GET', KEYS[1]), 0
if v then p = redis.call('PTTL', KEYS[1]) end
if v and #v >= 36 and string.byte(v, 1) == 125 then
  local kept = struct.unpack('>I4', v, 8)
  if ARGV[1] == '' then return {v, p, 0, 0, id} end
  if string.sub(v, 12, 27) ~= ARGV[3] then return {v, p, p > kept and 0 or 1, 0, id} end
elseif ARGV[1] == '' then return {false, 0, 0, 0, id}
elseif v and #v == 16 then return {false, 0, 2, p, id} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {false, 0, 1, 0, id}";

/// Stores a value, if the lease is still this one.
const FILL: &str = r"
local id = ''
if ARGV[#ARGV] ~= '' then id = redis.call('CLUSTER', 'MYID') end
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return {0, id} end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[2])
return {1, id}";

/// Stores a value in place of its lease, if that is still this one.
const FILL_ONE: &str = r"
local id = ''
if ARGV[#ARGV] ~= '' then id = redis.call('CLUSTER', 'MYID') end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {0, id} end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return {1, id}";

/// Stores a value, and ends any lease.
const PUT: &str = r"
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('DEL', KEYS[2])";

/// Removes a value, and ends any lease.
const REMOVE: &str = r"redis.call('DEL', KEYS[1], KEYS[2])";

/// Removes what is at one key.
const REMOVE_ONE: &str = r"redis.call('DEL', KEYS[1])";

/// Ends a lease, if it is still this one.
const RELEASE: &str = r"
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end";

/// Ends a lease at one key, if it is still this one.
const RELEASE_ONE: &str = r"
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end";

/// A tag's version, or this one if it has none; and what it has left.
const TAG: &str = r"
local id = ''
if ARGV[#ARGV] ~= '' then id = redis.call('CLUSTER', 'MYID') end
local v = redis.call('GET', KEYS[1])
if v then return {v, redis.call('PTTL', KEYS[1]), id} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {ARGV[1], tonumber(ARGV[2]), id}";

/// Writes to one key: another version of a tag, or a value.
const SET: &str = r"redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])";

/// All scripts, with their hashes.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) look: Script,
    pub(super) look_one: Script,
    pub(super) fill: Script,
    pub(super) fill_one: Script,
    pub(super) put: Script,
    pub(super) remove: Script,
    pub(super) remove_one: Script,
    pub(super) release: Script,
    pub(super) release_one: Script,
    pub(super) tag: Script,
    pub(super) set: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            look: Script::new(LOOK),
            look_one: Script::new(LOOK_ONE),
            fill: Script::new(FILL),
            fill_one: Script::new(FILL_ONE),
            put: Script::new(PUT),
            remove: Script::new(REMOVE),
            remove_one: Script::new(REMOVE_ONE),
            release: Script::new(RELEASE),
            release_one: Script::new(RELEASE_ONE),
            tag: Script::new(TAG),
            set: Script::new(SET),
        }
    }
}

/// The arguments of a script.
pub(super) type Arguments = Arc<[Vec<u8>]>;

/// Selects a script.
pub(super) type SelectScript = fn(&Scripts) -> &Script;

/// A script, with its keys, which are of one slot.
pub(super) struct Step {
    pub(super) which: SelectScript,
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) arguments: Arguments,
}

impl Step {
    /// Over one key.
    pub(super) fn one(which: SelectScript, key: Vec<u8>, arguments: Arguments) -> Self {
        let keys = vec![key];
        Self {
            which,
            keys,
            arguments,
        }
    }

    /// A key in its slot.
    pub(super) fn slot_key(&self) -> &[u8] {
        self.keys.first().map_or(&[], Vec::as_slice)
    }
}

/// The text of a script, for a server that has not seen it.
pub(super) fn text(script: &Script) -> &'static str {
    let all = [
        LOOK,
        LOOK_ONE,
        FILL,
        FILL_ONE,
        PUT,
        REMOVE,
        REMOVE_ONE,
        RELEASE,
        RELEASE_ONE,
        TAG,
        SET,
    ];
    let found = all
        .into_iter()
        .find(|text| Script::new(text).get_hash() == script.get_hash());
    found.unwrap_or_default()
}
