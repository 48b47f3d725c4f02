//! Reading records: at once if there are any, else when some come or the client's patience ends.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use lazuli_engine::Error;
use lazuli_kafka_wire::{Reader, Writer};
use lazuli_log::{Batch, Form, Hub, LogState, ReadLimit, Waiter};
use tokio::time::Instant;

use crate::Front;
use crate::connection::{Asked, Session};
use crate::error::{Code, Hangup, code_of};
use crate::limits::{FETCH_BATCHES_MAX, FETCH_BYTES_MAX, FETCH_WAIT_MAX};
use crate::produce::check_count;
use crate::records::as_record_batch;

struct Part {
    index: i32,
    epoch: i32,
    offset: i64,
    bytes_max: i32,
}

struct Topic {
    name: String,
    parts: Vec<Part>,
}

struct FetchRequest {
    wait: Duration,
    bytes_least: usize,
    bytes_max: usize,
    topics: Vec<Topic>,
}

/// What was found for one partition.
struct Found {
    code: Code,
    state: LogState,
    pieces: Vec<Bytes>,
}

impl Found {
    fn refused(code: Code) -> Self {
        Self { code, state: LogState::default(), pieces: Vec::new() }
    }

    fn bytes(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }
}

fn read_request(version: i16, request: &mut Reader) -> Result<FetchRequest, Hangup> {
    request.i32()?;
    let (wait_ms, least, most) = (request.i32()?, request.i32()?, request.i32()?);
    request.i8()?;
    if version >= 7 {
        // Sessions are not offered: every answer has session 0, and clients name all their partitions again.
        request.i32()?;
        request.i32()?;
    }
    let topics = request.array(|it| {
        let name = it.text()?;
        let parts = it.array(|it| {
            let index = it.i32()?;
            let epoch = if version >= 9 { it.i32()? } else { -1 };
            let offset = it.i64()?;
            if version >= 5 {
                it.i64()?;
            }
            Ok(Part { index, epoch, offset, bytes_max: it.i32()? })
        })?;
        Ok(Topic { name, parts })
    })?;
    check_count(topics.len(), topics.iter().map(|topic| topic.parts.len()))?;
    let size = |number: i32| usize::try_from(number).unwrap_or(0);
    let wait = Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)).min(FETCH_WAIT_MAX);
    let (bytes_least, bytes_max) = (size(least), size(most).min(FETCH_BYTES_MAX));
    Ok(FetchRequest { wait, bytes_least: bytes_least.min(bytes_max.max(1)), bytes_max, topics })
}

impl Front {
    pub(crate) async fn fetch(
        &self,
        session: &Session,
        asked: &Asked,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let wanted = read_request(asked.version, request)?;
        let namespace = session.namespace()?;
        let deadline = Instant::now() + wanted.wait;
        let mut waiter = self.logs.waiter();
        let mut hubs = Vec::with_capacity(wanted.topics.len());
        for topic in &wanted.topics {
            let hub = self.logs.hub(namespace, &topic.name).await;
            if let Ok(hub) = &hub {
                let parts = topic.parts.iter().filter_map(|part| u32::try_from(part.index).ok());
                parts.for_each(|partition| waiter.watch(hub.id(), partition));
            }
            hubs.push(hub);
        }
        let found = loop {
            let found = self.look(&wanted, &hubs).await;
            let all = || found.iter().flatten();
            let bytes: usize = all().map(Found::bytes).sum();
            let is_done = bytes >= wanted.bytes_least || all().any(|it| it.code != Code::NONE);
            if is_done || !self.wait(&waiter, deadline).await {
                break found;
            }
        };
        Ok(write_answer(asked.version, &wanted.topics, found, response))
    }

    /// Waits for an append. False if the time is over.
    async fn wait(&self, waiter: &Waiter, deadline: Instant) -> bool {
        let now = Instant::now();
        if now >= deadline {
            return false;
        }
        let until = self.logs.poll().map_or(deadline, |poll| deadline.min(now + poll));
        tokio::select! {
            biased;
            () = waiter.woken() => {}
            () = tokio::time::sleep_until(until) => {}
        }
        true
    }

    /// Reads every partition once, until the answer is full.
    async fn look(
        &self,
        wanted: &FetchRequest,
        hubs: &[Result<Arc<Hub>, Error>],
    ) -> Vec<Vec<Found>> {
        let mut left = wanted.bytes_max;
        let mut is_first = true;
        let mut all = Vec::with_capacity(wanted.topics.len());
        for (topic, hub) in wanted.topics.iter().zip(hubs) {
            let mut found = Vec::with_capacity(topic.parts.len());
            for part in &topic.parts {
                let one = match hub {
                    Ok(hub) => self.read_part(hub, part, left, is_first).await,
                    Err(error) => Found::refused(code_of(error)),
                };
                is_first &= one.pieces.is_empty();
                left = left.saturating_sub(one.bytes());
                found.push(one);
            }
            all.push(found);
        }
        all
    }

    async fn read_part(&self, hub: &Hub, part: &Part, left: usize, is_first: bool) -> Found {
        if part.epoch > 0 {
            return Found::refused(Code::UNKNOWN_LEADER_EPOCH);
        }
        let Ok(partition) = u32::try_from(part.index) else {
            return Found::refused(Code::UNKNOWN_TOPIC_OR_PARTITION);
        };
        let Ok(offset) = u64::try_from(part.offset) else {
            return Found::refused(Code::OFFSET_OUT_OF_RANGE);
        };
        // Only the first batch of an answer may be longer than what is left; others wait for the next one.
        let bytes = left.min(usize::try_from(part.bytes_max).unwrap_or(0));
        let read = if bytes == 0 && !is_first {
            self.logs.state(hub, partition).await.map(|state| (Vec::new(), state))
        } else {
            let limit = ReadLimit { bytes, batches: FETCH_BATCHES_MAX };
            self.logs.read(hub, partition, offset, limit).await.map(|it| (it.batches, it.state))
        };
        let (mut batches, state) = match read {
            Ok(read) => read,
            Err(error) => return Found::refused(code_of(&error)),
        };
        if offset < state.first || offset > state.next {
            return Found { code: Code::OFFSET_OUT_OF_RANGE, state, pieces: Vec::new() };
        }
        if !is_first && batches.first().is_some_and(|batch| batch.body.len() > bytes) {
            batches.clear();
        }
        Found { code: Code::NONE, state, pieces: batches.iter().map(piece).collect() }
    }
}

fn piece(batch: &Batch) -> Bytes {
    match batch.form {
        Form::Kafka => batch.body.clone(),
        Form::Amqp => as_record_batch(batch),
    }
}

fn write_answer(
    version: i16,
    topics: &[Topic],
    found: Vec<Vec<Found>>,
    response: &mut Writer,
) -> Code {
    let mut first_code = Code::NONE;
    response.i32(0);
    if version >= 7 {
        response.i16(0);
        response.i32(0);
    }
    response.count(topics.len());
    for (topic, found) in topics.iter().zip(found) {
        response.text(&topic.name);
        response.count(topic.parts.len());
        for (part, one) in topic.parts.iter().zip(found) {
            let is_known =
                !matches!(one.code, Code::UNKNOWN_TOPIC_OR_PARTITION | Code::UNKNOWN_LEADER_EPOCH);
            let offset = |offset: u64| if is_known { offset as i64 } else { -1 };
            response.i32(part.index);
            response.i16(one.code.0);
            response.i64(offset(one.state.next));
            response.i64(offset(one.state.next));
            if version >= 5 {
                response.i64(offset(one.state.first));
            }
            // Aborted transactions: there are none.
            response.i32(-1);
            if version >= 11 {
                response.i32(-1);
            }
            response.pieces(&one.pieces);
            if first_code == Code::NONE {
                first_code = one.code;
            }
        }
    }
    first_code
}
