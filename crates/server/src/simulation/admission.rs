//! The model of the password: decides which clients must give it, and which have given it.

use tidewheel_resp::Protocol;

use super::model::{Answer, Model, Talker, is_no_command};
use super::recorder::Ran;
use crate::time::clock::micros;

const WRONG: &[u8] = b"-WRONGPASS ";

impl Model {
    /// Somebody connects, and lacks the password while one is asked for.
    pub(super) fn connect(&mut self, client: u64) {
        let mut talker = Talker::default();
        talker.lacks_password = self.asks_password();
        self.talkers.insert(client, talker);
    }

    pub(super) fn asks_password(&self) -> bool {
        !self.password.is_empty()
    }

    /// Returns true if a client has to give the password before anything else.
    pub(super) fn lacks_password(&self, client: u64) -> bool {
        let talker = self.talkers.get(&client);
        self.asks_password() && talker.is_some_and(|talker| talker.lacks_password)
    }

    /// Returns true if a command is refused because its client has not given the password.
    pub(super) fn denies(&self, ran: &Ran, word: &[u8]) -> bool {
        let open = matches!(word, b"AUTH" | b"HELLO" | b"QUIT" | b"RESET") || is_no_command(word);
        // A walk that had begun before the password was asked goes on.
        let walked = word == b"KEYS" && micros(ran.clock) <= self.password_since;
        !open && !walked && self.lacks_password(ran.client)
    }

    /// Somebody gives a password.
    pub(super) fn auth(&mut self, ran: &Ran) -> Answer {
        if !self.asks_password() {
            return Answer::Like(b"-ERR AUTH <password> called without");
        }
        match self.admit(ran, &ran.words[1]) {
            true => Answer::Like(b"+OK\r\n"),
            false => Answer::Like(WRONG),
        }
    }

    /// HELLO with or without a password.
    pub(super) fn hello(&mut self, ran: &Ran) -> Answer {
        // HELLO 3 AUTH default password
        if let Some(password) = ran.words.get(4)
            && !self.admit(ran, password)
        {
            return Answer::Like(WRONG);
        }
        if self.lacks_password(ran.client) {
            return Answer::Like(b"-NOAUTH HELLO must be called");
        }
        let (wants, start): (_, &[u8]) = match ran.words[1] == b"3" {
            true => (Protocol::Resp3, b"%7\r\n$6\r\nserver"),
            false => (Protocol::Resp2, b"*14\r\n$6\r\nserver"),
        };
        self.talker(ran).protocol = wants;
        Answer::Like(start)
    }

    /// CONFIG SET requirepass.
    pub(super) fn ask_password(&mut self, ran: &Ran) {
        self.password.clone_from(&ran.words[3]);
        self.password_since = micros(ran.clock);
    }

    fn admit(&mut self, ran: &Ran, given: &[u8]) -> bool {
        let right = !self.asks_password() || given == self.password;
        if right {
            self.talker(ran).lacks_password = false;
        }
        right
    }
}
