//! Workers that claim jobs by scripts: each job is waiting, claimed or done, and in one of these
//! only. It is done once, whoever dies. What a dead worker has claimed is given back by a script,
//! whose push wakes a worker that waits.

use std::collections::{BTreeMap, BTreeSet};

use tidewheel_resp::Reply;

use super::crowd::{Crowd, seeds, texts};

const CLIENTS: usize = 12;
/// The first of them bring jobs and give back what the dead have claimed; the others work.
const MASTERS: usize = 3;
const STEPS: usize = 3_000;

/// The check that a client makes on a reply.
#[derive(Debug)]
enum Want {
    Done,
    /// It may begin: somebody has rung.
    Bell,
    /// A job, or none.
    Claim,
    /// Whether this job was done by it.
    Finish(u64),
    /// The jobs that were given back.
    Given,
}

const BRING: &str = "
redis.call('rpush', KEYS[1], ARGV[1])
return redis.call('rpush', KEYS[2], ARGV[1])";
const CLAIM: &str = "
local job = redis.call('lpop', KEYS[1])
if not job then return false end
redis.call('hset', 'claims', job, ARGV[1])
return job";
const FINISH: &str = "
if redis.call('hget', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('hdel', KEYS[1], ARGV[1])
redis.call('rpush', 'done', ARGV[1])
return 1";
const GIVE_BACK: &str = "
local all, given = redis.call('hgetall', KEYS[1]), {}
for at = 1, #all, 2 do
  for _, dead in ipairs(ARGV) do
    if all[at + 1] == dead then
      redis.call('hdel', KEYS[1], all[at])
      redis.call('rpush', KEYS[2], all[at])
      redis.call('rpush', 'bell', all[at])
      given[#given + 1] = all[at]
    end
  end
end
return given";

#[derive(Default)]
struct History {
    brought: u64,
    names: u64,
    /// The names of the workers, and of those that died.
    workers: Vec<u64>,
    dead: Vec<u64>,
    /// What each worker has claimed, by name.
    held: BTreeMap<u64, BTreeSet<u64>>,
    /// How often each job was claimed, and given back, as far as anybody was told.
    claimed: BTreeMap<u64, usize>,
    given: BTreeMap<u64, usize>,
    done: BTreeSet<u64>,
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

impl History {
    fn hear(&mut self, crowd: &mut Crowd<Want>) {
        for at in 0..CLIENTS {
            while let Some((want, reply)) = crowd.members[at].reply() {
                let name = self.workers[at];
                match (want, reply) {
                    (_, Reply::Error(why)) => panic!("{why}"),
                    (Want::Done, _) | (Want::Bell | Want::Claim, Reply::Null) => {}
                    (Want::Bell, bell) => assert_eq!(texts(&bell)[0], "bell"),
                    (Want::Claim, Reply::Bulk(job)) => {
                        let job = number(&String::from_utf8_lossy(&job));
                        *self.claimed.entry(job).or_default() += 1;
                        self.held.entry(name).or_default().insert(job);
                    }
                    (Want::Finish(job), Reply::Integer(1)) => {
                        assert!(self.done.insert(job), "{job} was done twice");
                    }
                    (Want::Given, reply) => {
                        for job in texts(&reply) {
                            *self.given.entry(number(&job)).or_default() += 1;
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn act(&mut self, crowd: &mut Crowd<Want>, at: usize) {
        let name = self.workers[at].to_string();
        let kind = crowd.dice.below(4);
        let member = &mut crowd.members[at];
        if at < MASTERS && kind == 0 && !self.dead.is_empty() {
            let dead: Vec<String> = self.dead.iter().map(u64::to_string).collect();
            let dead = dead.iter().map(String::as_str);
            let call = ["EVAL", GIVE_BACK, "2", "claims", "jobs"]
                .into_iter()
                .chain(dead);
            member.call(&call.collect::<Vec<_>>(), Want::Given);
        } else if at < MASTERS {
            self.brought += 1;
            let job = self.brought.to_string();
            member.call(&["EVAL", BRING, "2", "jobs", "bell", &job], Want::Done);
        } else if let Some(job) = self.held.entry(self.workers[at]).or_default().pop_first() {
            let word = job.to_string();
            let call = ["EVAL", FINISH, "1", "claims", &word, &name];
            member.call(&call, Want::Finish(job));
        } else {
            let wait = ["BLPOP bell 0", "BLPOP bell 0.003"][kind % 2];
            member.say(wait, Want::Bell);
            member.call(&["EVAL", CLAIM, "1", "jobs", &name], Want::Claim);
        }
    }

    /// A new worker takes the place of one that has died.
    fn replace(&mut self, at: usize) {
        self.names += 1;
        let dead = std::mem::replace(&mut self.workers[at], self.names);
        self.dead.push(dead);
    }

    /// Each job is in one place.
    fn check(&mut self, crowd: &mut Crowd<Want>) {
        crowd.settle();
        self.hear(crowd);
        let mut jobs: Vec<u64> = Vec::new();
        for list in ["jobs", "done"] {
            let there = texts(&crowd.ask(&format!("LRANGE {list} 0 -1")));
            jobs.extend(there.iter().map(|job| number(job)));
        }
        let done = texts(&crowd.ask("LRANGE done 0 -1"));
        let done: BTreeSet<u64> = done.iter().map(|job| number(job)).collect();
        assert!(done.is_superset(&self.done), "what was told to be done");
        let claims = texts(&crowd.ask("HGETALL claims"));
        for claim in claims.chunks(2) {
            let (job, name) = (number(&claim[0]), number(&claim[1]));
            jobs.push(job);
            let told = self.held.get(&name).is_some_and(|held| held.contains(&job));
            let is_dead = self.dead.contains(&name);
            assert!(told || is_dead, "{name} was not told of {job}");
        }
        jobs.sort_unstable();
        let all: Vec<u64> = (1..=self.brought).collect();
        assert_eq!(jobs, all, "each job in one place");
        // The dead have claimed some without being told so: fewer claims than gifts are known.
        for (job, claimed) in &self.claimed {
            let given = self.given.get(job).copied().unwrap_or(0);
            let lost = self.dead.len();
            assert!(
                *claimed <= given + 1 + lost,
                "{job}: {claimed} claims, {given} given"
            );
        }
        let waits =
            |crowd: &Crowd<Want>, at: usize| matches!(crowd.members[at].wanted(), Some(Want::Bell));
        let anybody_waits = (MASTERS..CLIENTS).any(|at| waits(crowd, at));
        let bells = texts(&crowd.ask("LRANGE bell 0 -1"));
        assert!(
            !anybody_waits || bells.is_empty(),
            "somebody waits beside {bells:?}"
        );
    }
}

fn episode(seed: u64) -> usize {
    let (mut crowd, mut history) = (Crowd::new(seed, CLIENTS), History::default());
    for _ in 0..CLIENTS {
        history.names += 1;
        history.workers.push(history.names);
    }
    for step in 0..STEPS {
        let at = crowd.dice.below(CLIENTS);
        let (is_idle, acts) = (crowd.members[at].is_idle(), crowd.dice.once_in(2));
        if is_idle && (at >= MASTERS || acts) {
            history.act(&mut crowd, at);
        } else if at >= MASTERS && crowd.dice.once_in(40) {
            crowd.die(at);
            history.replace(at);
        }
        crowd.pass();
        history.hear(&mut crowd);
        if step % 300 == 299 {
            history.check(&mut crowd);
        }
    }
    history.check(&mut crowd);
    history.done.len()
}

#[test]
fn jobs_that_are_claimed_by_scripts_are_done_once_while_workers_die() {
    let done: usize = (0..seeds()).map(episode).sum();
    assert!(done as u64 > seeds() * 40, "{done} jobs");
}
