//! Where offsets are: the first, the next, and the first at or after a time.

use lazuli_kafka_wire::{Reader, Writer};
use lazuli_log::Start;

use crate::Front;
use crate::connection::{Asked, Session};
use crate::error::{Code, Hangup, code_of};
use crate::produce::check_count;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;

impl Front {
    pub(crate) async fn list_offsets(
        &self,
        session: &Session,
        asked: &Asked,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        let version = asked.version;
        request.i32()?;
        if version >= 2 {
            request.i8()?;
        }
        let topics = request.array(|it| {
            let name = it.text()?;
            let parts = it.array(|it| {
                let index = it.i32()?;
                if version >= 4 {
                    it.i32()?;
                }
                Ok((index, it.i64()?))
            })?;
            Ok((name, parts))
        })?;
        check_count(topics.len(), topics.iter().map(|(_, parts)| parts.len()))?;
        let namespace = session.namespace()?;
        let mut first_code = Code::NONE;
        if version >= 2 {
            response.i32(0);
        }
        response.count(topics.len());
        for (name, parts) in &topics {
            response.text(name);
            response.count(parts.len());
            for (index, time) in parts {
                let found = self.find(namespace, name, *index, *time).await;
                let (code, (offset, time)) = match found {
                    Ok(found) => (Code::NONE, found),
                    Err(code) => (code, (-1, -1)),
                };
                response.i32(*index);
                response.i16(code.0);
                response.i64(time);
                response.i64(offset);
                if version >= 4 {
                    response.i32(if code == Code::NONE { 0 } else { -1 });
                }
                if first_code == Code::NONE {
                    first_code = code;
                }
            }
        }
        Ok(first_code)
    }

    /// An offset and the time of the record there, each -1 if there is none.
    async fn find(
        &self,
        namespace: &str,
        topic: &str,
        index: i32,
        time: i64,
    ) -> Result<(i64, i64), Code> {
        let start = match time {
            LATEST => Start::End,
            EARLIEST => Start::First,
            time => Start::Time(u64::try_from(time).map_err(|_| Code::INVALID_REQUEST)?),
        };
        let partition = u32::try_from(index).map_err(|_| Code::UNKNOWN_TOPIC_OR_PARTITION)?;
        let find = async {
            let hub = self.logs.hub(namespace, topic).await?;
            self.logs.find(&hub, partition, start).await
        };
        let (offset, found_ms) = find.await.map_err(|error| code_of(&error))?;
        match (start, found_ms) {
            // Nothing came at that time or later.
            (Start::Time(_), None) => Ok((-1, -1)),
            (Start::Time(_), Some(ms)) => Ok((offset as i64, ms as i64)),
            (Start::First | Start::End, _) => Ok((offset as i64, -1)),
        }
    }

    /// Where the records of an epoch of leaders end. There is one epoch, so it is the end of the log.
    pub(crate) async fn offset_for_epoch(
        &self,
        session: &Session,
        asked: &Asked,
        request: &mut Reader,
        response: &mut Writer,
    ) -> Result<Code, Hangup> {
        if asked.version >= 3 {
            request.i32()?;
        }
        let topics = request.array(|it| {
            let name = it.text()?;
            let parts = it.array(|it| Ok((it.i32()?, it.i32()?, it.i32()?)))?;
            Ok((name, parts))
        })?;
        check_count(topics.len(), topics.iter().map(|(_, parts)| parts.len()))?;
        let namespace = session.namespace()?;
        let mut first_code = Code::NONE;
        response.i32(0);
        response.count(topics.len());
        for (name, parts) in &topics {
            response.text(name);
            response.count(parts.len());
            for (index, current, epoch) in parts {
                let found = self.find(namespace, name, *index, LATEST).await;
                let (code, end) = match (found, *current) {
                    (Ok(_), 1..) => (Code::UNKNOWN_LEADER_EPOCH, -1),
                    (Ok((offset, _)), _) => (Code::NONE, offset),
                    (Err(code), _) => (code, -1),
                };
                let is_known = code == Code::NONE && *epoch == 0;
                response.i16(code.0);
                response.i32(*index);
                response.i32(if is_known { 0 } else { -1 });
                response.i64(if is_known { end } else { -1 });
                if first_code == Code::NONE {
                    first_code = code;
                }
            }
        }
        Ok(first_code)
    }
}
