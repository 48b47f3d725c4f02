//! Appending records, and ids for idempotent producers.

use bytes::Bytes;
use lazuli_kafka_wire::batch::{Fault, Head};
use lazuli_kafka_wire::{Reader, Writer};
use lazuli_log::{Appended, NewBatch, Producer};

use crate::Front;
use crate::connection::{Asked, Session};
use crate::error::{Code, Hangup, code_of};
use crate::limits::{BATCH_BYTES_MAX, DECOMPRESSED_BYTES_MAX, PARTITIONS_MAX, TOPICS_MAX};

/// The records for one partition.
struct Part {
    index: i32,
    records: Option<Bytes>,
}

struct Topic {
    name: String,
    parts: Vec<Part>,
}

impl Front {
    pub(crate) async fn produce(
        &self,
        session: &Session,
        asked: &Asked,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Option<Code>, Hangup> {
        let transaction = request.nullable_text()?;
        let (acks, _timeout_ms) = (request.i16()?, request.i32()?);
        let topics = request.array(|it| {
            let name = it.text()?;
            let part =
                |it: &mut Reader| Ok(Part { index: it.i32()?, records: it.nullable_bytes()? });
            Ok(Topic { name, parts: it.array(part)? })
        })?;
        check_count(topics.len(), topics.iter().map(|topic| topic.parts.len()))?;
        let namespace = session.namespace()?;
        let refusal = match acks {
            _ if transaction.is_some() => Some(Code::TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
            -1..=1 => None,
            _ => Some(Code::INVALID_REQUIRED_ACKS),
        };
        let mut first_code = Code::NONE;
        response.count(topics.len());
        for topic in &topics {
            response.text(&topic.name);
            response.count(topic.parts.len());
            let mut appends = Vec::with_capacity(topic.parts.len());
            for part in &topic.parts {
                appends.push(self.append(namespace, &topic.name, part, refusal));
            }
            // All at once: the logs are independent, and their commits share the disk's time.
            for (part, appended) in topic.parts.iter().zip(join_all(appends).await) {
                let (code, appended) = match appended {
                    Ok(appended) => (Code::NONE, Some(appended)),
                    Err(code) => (code, None),
                };
                if first_code == Code::NONE {
                    first_code = code;
                }
                write_part(response, asked.version, part.index, code, appended);
            }
        }
        response.i32(0);
        // Without acknowledgement nothing is answered, whatever came of it.
        Ok((acks != 0).then_some(first_code))
    }

    async fn append(
        &self,
        namespace: &str,
        topic: &str,
        part: &Part,
        refusal: Option<Code>,
    ) -> Result<Appended, Code> {
        if let Some(code) = refusal {
            return Err(code);
        }
        let records = part.records.as_ref().ok_or(Code::INVALID_RECORD)?;
        if records.len() > BATCH_BYTES_MAX {
            return Err(Code::MESSAGE_TOO_LARGE);
        }
        let head = Head::check(records).map_err(|fault| match fault {
            Fault::Corrupt => Code::CORRUPT_MESSAGE,
            Fault::OldVersion => Code::UNSUPPORTED_FOR_MESSAGE_FORMAT,
            Fault::Control => Code::INVALID_RECORD,
        })?;
        if head.is_transactional {
            return Err(Code::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
        }
        let producer = (head.producer_id >= 0).then_some(Producer {
            id: head.producer_id,
            epoch: head.producer_epoch,
            sequence: head.first_sequence,
        });
        if producer.is_some_and(|producer| producer.sequence < 0 || producer.epoch < 0) {
            return Err(Code::INVALID_RECORD);
        }
        let partition = u32::try_from(part.index).map_err(|_| Code::UNKNOWN_TOPIC_OR_PARTITION)?;
        let batch = NewBatch::kafka(records.clone(), head.records, producer);
        let append = async {
            let hub = self.logs.hub(namespace, topic).await?;
            if hub.settings.cleanup.compacts() && !self.has_keys(records).await {
                return Ok(Err(Code::INVALID_RECORD));
            }
            self.logs.append(&hub, partition, batch).await.map(Ok)
        };
        append.await.unwrap_or_else(|error| {
            tracing::debug!(topic, partition, %error, "an append was refused");
            Err(code_of(&error))
        })
    }

    /// Whether every record of a batch has a key, as topics want it that are compacted.
    async fn has_keys(&self, batch: &Bytes) -> bool {
        // Not many at a time: what was compressed may be long.
        let Ok(_turn) = self.decompressing.acquire().await else { return false };
        let records = lazuli_kafka_wire::batch::read(batch, DECOMPRESSED_BYTES_MAX);
        records.is_ok_and(|records| records.iter().all(|record| record.key.is_some()))
    }

    pub(crate) fn init_producer(
        &self,
        session: &Session,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        session.namespace()?;
        let transaction = request.nullable_text()?;
        request.i32()?;
        let code = match transaction {
            None => Code::NONE,
            Some(_) => Code::TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        };
        response.i32(0);
        response.i16(code.0);
        if code == Code::NONE {
            // Chosen at random among 2^62: no two producers get the same one.
            let random = self.logs.engine().env().random.next_u64();
            response.i64((random >> 2) as i64);
            response.i16(0);
        } else {
            response.i64(-1);
            response.i16(-1);
        }
        Ok(code)
    }
}

fn write_part(
    response: &mut Writer,
    version: i16,
    index: i32,
    code: Code,
    appended: Option<Appended>,
) {
    response.i32(index);
    response.i16(code.0);
    response.i64(appended.map_or(-1, |it| it.first as i64));
    // The time of appending is told only where records take it for their own.
    response.i64(-1);
    if version >= 5 {
        response.i64(appended.map_or(-1, |it| it.log_start as i64));
    }
    if version >= 8 {
        response.count(0);
        response.nullable_text((code != Code::NONE).then_some(code.1));
    }
}

/// Refuses requests that name more topics or partitions than any client does.
pub(crate) fn check_count(
    topics: usize,
    partitions: impl Iterator<Item = usize>,
) -> Result<(), Hangup> {
    if topics > TOPICS_MAX || partitions.sum::<usize>() > PARTITIONS_MAX {
        return Err(Hangup::Malformed);
    }
    Ok(())
}

/// The answers of all, in their order.
async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|one| (Some(Box::pin(one)), None)).collect();
    std::future::poll_fn(|context| {
        let mut is_waiting = false;
        for (future, output) in &mut futures {
            if let Some(running) = future {
                match running.as_mut().poll(context) {
                    std::task::Poll::Ready(done) => {
                        *output = Some(done);
                        *future = None;
                    }
                    std::task::Poll::Pending => is_waiting = true,
                }
            }
        }
        if is_waiting { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
    })
    .await;
    futures.into_iter().filter_map(|(_, output)| output).collect()
}
