//! The scripts: each is one atomic step on one slot, of a few commands.
//!
//! In a Cluster, what reads says which node has answered: the client may have been led to another one than it believes. The last
//! argument is not empty there.

use redis::Script;

/// The value and what it has left, of one version; and the lease, if there is no fresh value and nobody has it.
///
/// The places of the envelope are those of `core/envelope.rs`. What is no envelope counts as no value.
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

/// Stores a value, if the lease is still this one.
const FILL: &str = r"
local id = ''
if ARGV[#ARGV] ~= '' then id = redis.call('CLUSTER', 'MYID') end
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return {0, id} end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('DEL', KEYS[2])
return {1, id}";

/// Stores a value, and ends any lease.
const PUT: &str = r"
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('DEL', KEYS[2])";

/// Removes a value, and ends any lease.
const REMOVE: &str = r"redis.call('DEL', KEYS[1], KEYS[2])";

/// Ends a lease, if it is still this one.
const RELEASE: &str = r"
if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end";

/// A tag's version, or this one if it has none; and what it has left.
const TAG: &str = r"
local id = ''
if ARGV[#ARGV] ~= '' then id = redis.call('CLUSTER', 'MYID') end
local v = redis.call('GET', KEYS[1])
if v then return {v, redis.call('PTTL', KEYS[1]), id} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {ARGV[1], tonumber(ARGV[2]), id}";

/// Another version of a tag.
const SET_TAG: &str = r"redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])";

/// All of them, with their hashes.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) look: Script,
    pub(super) fill: Script,
    pub(super) put: Script,
    pub(super) remove: Script,
    pub(super) release: Script,
    pub(super) tag: Script,
    pub(super) set_tag: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            look: Script::new(LOOK),
            fill: Script::new(FILL),
            put: Script::new(PUT),
            remove: Script::new(REMOVE),
            release: Script::new(RELEASE),
            tag: Script::new(TAG),
            set_tag: Script::new(SET_TAG),
        }
    }
}

/// The text of a script, for a server that has not seen it.
pub(super) fn text(script: &Script) -> &'static str {
    let all = [LOOK, FILL, PUT, REMOVE, RELEASE, TAG, SET_TAG];
    let found = all
        .into_iter()
        .find(|text| Script::new(text).get_hash() == script.get_hash());
    found.unwrap_or_default()
}
