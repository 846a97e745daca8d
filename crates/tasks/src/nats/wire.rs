//! JetStream's calls: requests with JSON, and messages that are kept if their expectation is true.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use async_nats::{Client, HeaderMap, Message};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::shape::error::StoreError;
use crate::shape::look::PAGE_BYTES;

/// "Wrong last sequence", and the same when another message of the subject is on its way.
const WRONG_SEQUENCE: [u64; 2] = [10071, 10164];

/// "No message found".
const NO_MESSAGE: u64 = 10037;

/// "Stream not found".
pub(super) const NO_STREAM: u64 = 10059;

/// Letters of one connection that are on their way in batches: what waits for more of them at the
/// server is not answered in time.
const LETTERS: u32 = 3200;

/// The least that a batch takes of these. A server has 50 batches of a stream at most that are not
/// whole, and so one connection has 32.
const LEAST: u32 = LETTERS / 32;

/// One stream of a server.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    pub(super) client: Client,
    pub(super) stream: String,
    /// True if one node alone has the stream.
    is_alone: bool,
    letters: Arc<Semaphore>,
}

/// A message that the stream has.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) subject: String,
    pub(super) sequence: u64,
    pub(super) headers: HeaderMap,
    pub(super) payload: Bytes,
}

/// The outcome of a message that expected something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    /// It is kept under this sequence.
    Kept(u64),
    /// The expectation is not true: the subject has another last sequence, which is here if the
    /// server says it.
    Conflict(Option<u64>),
}

/// A message to be kept.
#[derive(Debug, Clone)]
pub(super) struct Letter {
    pub(super) subject: String,
    pub(super) headers: HeaderMap,
    pub(super) payload: Bytes,
}

impl Letter {
    pub(super) fn new(subject: String) -> Self {
        Self {
            subject,
            headers: HeaderMap::new(),
            payload: Bytes::new(),
        }
    }

    pub(super) fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.insert(name, value.to_string());
        self
    }

    pub(super) fn payload(mut self, payload: Bytes) -> Self {
        self.payload = payload;
        self
    }

    /// Kept only if this is the last sequence of its subject; 0 for none.
    pub(super) fn expecting(self, sequence: u64) -> Self {
        self.header("Nats-Expected-Last-Subject-Sequence", sequence)
    }

    /// Kept only if this is the last sequence of other subjects; 0 for none.
    pub(super) fn expecting_of(self, subjects: String, sequence: u64) -> Self {
        self.header("Nats-Expected-Last-Subject-Sequence-Subject", subjects)
            .expecting(sequence)
    }
}

impl Wire {
    pub(super) fn new(client: Client, stream: String, is_alone: bool) -> Self {
        let letters = Arc::new(Semaphore::new(LETTERS as usize));
        Self {
            client,
            stream,
            is_alone,
            letters,
        }
    }

    /// The number of times that a node may have forgotten its last deliveries. It writes them down
    /// a moment later, and no other node has them. A node that was restarted has new connections.
    pub(super) fn interruptions(&self) -> u64 {
        match self.is_alone {
            true => self.client.statistics().connects.load(Relaxed),
            false => 0,
        }
    }

    /// A call of JetStream's, by the part of its subject that says what it is about.
    pub(super) async fn call(&self, what: &str, body: Value) -> Result<Value, StoreError> {
        let answer = self.ask(what, body).await?;
        match answer.get("error") {
            None => Ok(answer),
            Some(error) => Err(StoreError::engine(error)),
        }
    }

    /// Makes a [`call`](Self::call), and returns the error in the answer.
    pub(super) async fn ask(&self, what: &str, body: Value) -> Result<Value, StoreError> {
        let subject = format!("$JS.API.{what}");
        let body = if body.is_null() {
            Bytes::new()
        } else {
            body.to_string().into()
        };
        let answer = self.client.request(subject, body).await;
        let answer = answer.map_err(StoreError::engine)?;
        serde_json::from_slice(&answer.payload).map_err(StoreError::engine)
    }

    /// The last message of a subject, as the stream's leader has it.
    pub(super) async fn last(&self, subject: &str) -> Result<Option<Kept>, StoreError> {
        self.get(json!({ "last_by_subj": subject })).await
    }

    /// The first message of a subject from a sequence on.
    pub(super) async fn next(&self, subject: &str, from: u64) -> Result<Option<Kept>, StoreError> {
        self.get(json!({ "seq": from, "next_by_subj": subject }))
            .await
    }

    async fn get(&self, which: Value) -> Result<Option<Kept>, StoreError> {
        let what = format!("STREAM.MSG.GET.{}", self.stream);
        let answer = self.ask(&what, which).await?;
        match answer.get("error") {
            Some(error) if code(error) == NO_MESSAGE => Ok(None),
            Some(error) => Err(StoreError::engine(error)),
            None => kept(&answer["message"]).map(Some),
        }
    }

    /// Removes the messages of a subject that come before a sequence. Returns how many there were.
    pub(super) async fn purge(
        &self,
        subject: &str,
        before: Option<u64>,
    ) -> Result<u64, StoreError> {
        let what = format!("STREAM.PURGE.{}", self.stream);
        let mut body = json!({ "filter": subject });
        if let Some(before) = before {
            body["seq"] = before.into();
        }
        let answer = self.call(&what, body).await?;
        Ok(answer["purged"].as_u64().unwrap_or(0))
    }

    /// Keeps a message.
    pub(super) async fn put(&self, letter: Letter) -> Result<Put, StoreError> {
        let Letter {
            subject,
            headers,
            payload,
        } = letter;
        let answer = self
            .client
            .request_with_headers(subject, headers, payload)
            .await;
        became(answer.map_err(StoreError::engine)?)
    }

    /// Keeps several messages, or none of them.
    pub(super) async fn put_all(&self, letters: Vec<Letter>) -> Result<Put, StoreError> {
        let count = letters.len();
        let share = u32::try_from(count).unwrap_or(LETTERS);
        let turn = self.letters.acquire_many(share.clamp(LEAST, LETTERS));
        let _turn = turn.await.map_err(StoreError::engine)?;
        let batch = self.client.new_inbox();
        for (at, letter) in letters.into_iter().enumerate() {
            let mut letter = letter
                .header("Nats-Batch-Id", batch.trim_start_matches("_INBOX."))
                .header("Nats-Batch-Sequence", at + 1);
            if at + 1 == count {
                letter = letter.header("Nats-Batch-Commit", 1);
                return self.put(letter).await;
            }
            let Letter {
                subject,
                headers,
                payload,
            } = letter;
            let sent = self
                .client
                .publish_with_headers(subject, headers, payload)
                .await;
            sent.map_err(StoreError::engine)?;
        }
        Err(StoreError::refused("nothing is no batch"))
    }

    /// The last messages of many subjects, as some node has them: perhaps not the latest.
    pub(super) async fn direct(&self, subjects: &[String]) -> Result<Vec<Message>, StoreError> {
        self.several(json!({ "multi_last": subjects })).await
    }

    /// The messages of a subject from a sequence on, so many at most, as some node has them: fewer
    /// if they are large.
    pub(super) async fn page(
        &self,
        subject: &str,
        from: u64,
        most: usize,
    ) -> Result<Vec<Kept>, StoreError> {
        let page = json!({
            "seq": from, "batch": most, "max_bytes": PAGE_BYTES, "next_by_subj": subject
        });
        match self.several(page).await {
            // Headers that are none end the client's connection, and with it what it has asked.
            Err(StoreError::TimedOut) => self.page_one_by_one(subject, from, most).await,
            messages => Ok(messages?.into_iter().filter_map(kept_directly).collect()),
        }
    }

    async fn page_one_by_one(
        &self,
        subject: &str,
        from: u64,
        most: usize,
    ) -> Result<Vec<Kept>, StoreError> {
        let (mut page, mut from, mut bytes) = (Vec::new(), from, 0);
        while page.len() < most && bytes < PAGE_BYTES {
            let Some(kept) = self.next(subject, from).await? else {
                break;
            };
            (from, bytes) = (kept.sequence + 1, bytes + kept.payload.len());
            page.push(kept);
        }
        Ok(page)
    }

    async fn several(&self, which: Value) -> Result<Vec<Message>, StoreError> {
        use futures_util::StreamExt;
        let inbox = self.client.new_inbox();
        let subscribed = self.client.subscribe(inbox.clone()).await;
        let mut answers = subscribed.map_err(StoreError::engine)?;
        let body = which.to_string();
        let what = format!("$JS.API.DIRECT.GET.{}", self.stream);
        let asked = self
            .client
            .publish_with_reply(what, inbox, body.into())
            .await;
        asked.map_err(StoreError::engine)?;
        let mut messages = Vec::new();
        loop {
            let next = tokio::time::timeout(Duration::from_secs(2), answers.next()).await;
            let Ok(Some(message)) = next else {
                return Err(StoreError::TimedOut);
            };
            match message.status.map(|status| status.as_u16()) {
                // The end; or there is none of these subjects.
                Some(204 | 404) => return Ok(messages),
                Some(_) => return Err(StoreError::engine(message.description.unwrap_or_default())),
                None => messages.push(message),
            }
        }
    }
}

pub(super) fn code(error: &Value) -> u64 {
    error["err_code"].as_u64().unwrap_or(0)
}

/// The outcome of a message, by the server's answer.
fn became(answer: Message) -> Result<Put, StoreError> {
    if answer.status.is_some() {
        return Err(StoreError::engine(
            answer.description.unwrap_or_else(|| "no answer".to_owned()),
        ));
    }
    let said: Value = serde_json::from_slice(&answer.payload).map_err(StoreError::engine)?;
    if let Some(error) = said.get("error") {
        if !WRONG_SEQUENCE.contains(&code(error)) {
            return Err(StoreError::engine(error));
        }
        let text = error["description"].as_str().unwrap_or_default();
        let last = text.rsplit(' ').next().and_then(|word| word.parse().ok());
        return Ok(Put::Conflict(last));
    }
    let kept = said["seq"].as_u64().map(Put::Kept);
    kept.ok_or_else(|| StoreError::engine("an answer without a sequence"))
}

/// A message in the answer of a call: its headers and payload are base64.
fn kept(message: &Value) -> Result<Kept, StoreError> {
    let text = |name: &str| message[name].as_str().unwrap_or_default();
    let broken = || StoreError::engine("a message that cannot be read");
    Ok(Kept {
        subject: text("subject").to_owned(),
        sequence: message["seq"].as_u64().ok_or_else(broken)?,
        headers: headers(&base64(text("hdrs")).ok_or_else(broken)?),
        payload: base64(text("data")).ok_or_else(broken)?.into(),
    })
}

/// A message that a node has answered with.
pub(super) fn kept_directly(message: Message) -> Option<Kept> {
    let headers = message.headers?;
    Some(Kept {
        subject: headers.get("Nats-Subject")?.as_str().to_owned(),
        sequence: headers.get("Nats-Sequence")?.as_str().parse().ok()?,
        payload: message.payload,
        headers,
    })
}

/// Headers as they stand in a message.
fn headers(bytes: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in String::from_utf8_lossy(bytes).lines() {
        // Only our own are looked at.
        if let Some((name, value)) = line
            .split_once(": ")
            .filter(|(name, _)| name.starts_with("Tw-"))
        {
            headers.insert(name, value.to_owned());
        }
    }
    headers
}

/// The bytes of a base64 text.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read() {
        assert_eq!(base64("").as_deref(), Some(&b""[..]));
        assert_eq!(base64("TQ==").as_deref(), Some(&b"M"[..]));
        assert_eq!(base64("TWE=").as_deref(), Some(&b"Ma"[..]));
        assert_eq!(base64("cGF5bG9hZA==").as_deref(), Some(&b"payload"[..]));
        assert_eq!(base64("+/8=").as_deref(), Some(&[0xfb, 0xff][..]));
        assert_eq!(base64("*"), None);
    }

    #[test]
    fn only_our_headers_are_read() {
        let read = headers(b"NATS/1.0\r\nNats-TTL: 5s\r\nTw-Due: 7\r\n\r\n");
        assert_eq!(
            read.get("Tw-Due").map(ToString::to_string).as_deref(),
            Some("7")
        );
        assert_eq!(read.len(), 1);
    }
}
