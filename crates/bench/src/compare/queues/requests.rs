//! The requests of each operation, as the SDKs send them.

use std::time::Duration;

use lazuli_trial::client::{Client, Request};
use lazuli_trial::queues::{self, Received};

use crate::compare::Result;
use crate::compare::connection::Answer;
use crate::compare::load::{Requests, nonce, send_all};
use crate::compare::server::Server;

/// About as long as a job description is.
const TEXT_BYTES: usize = 200;
/// Longer than a figure takes.
const HIDDEN_SECONDS: u64 = 600;
/// The service's default time to live of a message.
const LIVES_SECONDS: u64 = 7 * 24 * 60 * 60;
const FILL_CONNECTIONS: usize = 32;
/// How long filling may take.
const FILL_WAIT: Duration = Duration::from_secs(900);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueOperation {
    Put,
    /// One message received and deleted, from a queue that has enough of them.
    GetDelete,
    /// One message put, one received, that one deleted.
    Cycle,
}

impl QueueOperation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::GetDelete => "get and delete",
            Self::Cycle => "put, get and delete",
        }
    }

    /// The requests of one piece of work.
    pub(super) fn requests(self) -> f64 {
        match self {
            Self::Put => 1.0,
            Self::GetDelete => 2.0,
            Self::Cycle => 3.0,
        }
    }
}

/// What a connection asks for next.
#[derive(Clone, Debug)]
enum Next {
    Put,
    Get,
    Delete(Received),
}

/// What one connection sends.
pub(super) struct QueueRequests {
    operation: QueueOperation,
    queue: String,
    next: Next,
}

impl QueueRequests {
    pub(super) fn new(operation: QueueOperation, queue: &str) -> Self {
        let mut requests = Self { operation, queue: queue.to_owned(), next: Next::Put };
        requests.begin();
        requests
    }

    fn begin(&mut self) {
        self.next = match self.operation {
            QueueOperation::Put | QueueOperation::Cycle => Next::Put,
            QueueOperation::GetDelete => Next::Get,
        };
    }
}

impl Requests for QueueRequests {
    fn write(&mut self, _: u64, request: &mut Vec<u8>) {
        let next = match &self.next {
            Next::Put => put(&self.queue),
            Next::Get => queues::get(&self.queue, 1, HIDDEN_SECONDS),
            Next::Delete(message) => queues::delete(&self.queue, &message.id, &message.receipt),
        };
        request.extend_from_slice(&next.signed().bytes());
    }

    fn is_expected(&mut self, answer: &Answer<'_>) -> bool {
        let Answer { status, body, .. } = *answer;
        match (&self.next, status) {
            (Next::Put, 201) if self.operation == QueueOperation::Cycle => self.next = Next::Get,
            (Next::Put, 201) => {}
            (Next::Get, 200) => match read(body) {
                Some(message) => self.next = Next::Delete(message),
                None => return false,
            },
            (Next::Delete(_), 204) => self.begin(),
            _ => return false,
        }
        true
    }
}

/// The one message of an answer, whose body may have come in chunks.
fn read(body: &[u8]) -> Option<Received> {
    let start = body.iter().position(|byte| *byte == b'<')?;
    let end = body.iter().rposition(|byte| *byte == b'>')?;
    queues::messages(body.get(start..=end)?).ok()?.pop()
}

fn put(queue: &str) -> Request {
    queues::put(queue, &"x".repeat(TEXT_BYTES), Some(LIVES_SECONDS))
}

/// Makes a queue that there is not yet, with so many messages in it.
pub(super) fn fill(server: &Server, messages: u64) -> Result<String> {
    let queue = format!("queue-{}", nonce());
    queues::create_at(server.address, &queue)?;
    let to = queue.clone();
    let put = move |_| put(&to).signed().bytes();
    let done = send_all(server, messages, FILL_CONNECTIONS, FILL_WAIT, put, |it, _| it == 201)?;
    match done == messages {
        true => Ok(queue),
        false => Err(format!("only {done} of {messages} messages were put in time")),
    }
}

/// Deletes a queue with what is left in it.
pub(super) fn remove(server: &Server, queue: &str) -> Result {
    Client::connect(server.address)?.expect(queues::remove(queue), &[204]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_deletes_what_it_received() {
        let mut requests = QueueRequests::new(QueueOperation::Cycle, "q");
        let answer = b"1a\r\n<?xml version=\"1.0\"?><QueueMessagesList><QueueMessage>\
            <MessageId>id</MessageId><PopReceipt>r+/=</PopReceipt><DequeueCount>1</DequeueCount>\
            <MessageText>x</MessageText></QueueMessage></QueueMessagesList>\r\n0\r\n\r\n";
        let mut sent = Vec::new();
        for (status, body) in [(201, &b""[..]), (200, answer), (204, b""), (201, b"")] {
            let mut request = Vec::new();
            requests.write(0, &mut request);
            let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
            sent.push(String::from_utf8_lossy(line).into_owned());
            let answer = Answer { status, body, length: body.len() };
            assert!(requests.is_expected(&answer), "{status}");
        }
        assert!(sent[0].starts_with("POST ") && sent[1].starts_with("GET "));
        let delete = "DELETE /devstoreaccount1/q/messages/id?popreceipt=r%2B%2F%3D HTTP/1.1";
        assert_eq!(sent[2], delete);
        assert!(sent[3].starts_with("POST "));
        let empty = Answer { status: 200, body: b"<QueueMessagesList/>", length: 20 };
        assert!(!requests.is_expected(&empty), "an empty answer is none");
    }
}
