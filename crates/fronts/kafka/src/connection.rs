//! One connection: requests come in frames, one after another, and are answered in their order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use lazuli_kafka_wire::{Reader, Writer};
use lazuli_net::{Connection, Lease, Outcome, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::Front;
use crate::api::Operation;
use crate::error::{Code, Hangup};
use crate::limits::{
    IDLE_MAX, REQUEST_BYTES_MAX, REQUEST_TIME_MAX, RESPONSE_TIME_MAX, STRANGER_BYTES_MAX,
    STRANGER_TIME_MAX,
};

/// What is known of a client.
pub(crate) struct Session {
    /// The namespace whose topics it sees, once it has said who it is.
    pub(crate) namespace: Option<Arc<str>>,
    /// Whether it has said that it will say so.
    pub(crate) is_shaking_hands: bool,
    pub(crate) peer: SocketAddr,
    /// Where it has reached us.
    pub(crate) local: SocketAddr,
}

impl Session {
    pub(crate) fn namespace(&self) -> Result<&Arc<str>, Hangup> {
        self.namespace.as_ref().ok_or(Hangup::Stranger)
    }
}

/// A request without its body.
pub(crate) struct Asked {
    pub(crate) operation: Operation,
    pub(crate) version: i16,
    pub(crate) client: String,
}

pub(crate) async fn serve(front: Arc<Front>, connection: Connection) {
    let Connection { mut stream, peer, mut stop, .. } = connection;
    let Ok(local) = stream.local_address() else { return };
    let mut session = Session { namespace: None, is_shaking_hands: false, peer, local };
    if let Some(open) = front.gate.open_namespace() {
        session.namespace = Some(open.into());
    }
    loop {
        let lease = Lease::new(front.budget.clone());
        let read = tokio::select! {
            biased;
            () = stop.stopped() => return,
            read = read_frame(&mut stream, &session, &lease) => read,
        };
        let Some(frame) = read else { return };
        let Ok(response) = answer(&front, &mut session, frame).await else { return };
        drop(lease);
        for piece in response {
            match timeout(RESPONSE_TIME_MAX, stream.write_all(&piece)).await {
                Ok(Ok(())) => {}
                _ => return,
            }
        }
        if stream.flush().await.is_err() {
            return;
        }
    }
}

/// The next request; none if the client left, was silent for too long, or sends more than it may.
async fn read_frame(stream: &mut Stream, session: &Session, lease: &Lease) -> Option<Bytes> {
    let is_stranger = session.namespace.is_none();
    let patience = if is_stranger { STRANGER_TIME_MAX } else { IDLE_MAX };
    let length = timeout(patience, stream.read_i32()).await.ok()?.ok()?;
    let length = usize::try_from(length).ok()?;
    let most = if is_stranger { STRANGER_BYTES_MAX } else { REQUEST_BYTES_MAX };
    if length > most {
        return None;
    }
    // The request, and what is kept of it while it is answered. Without room the client has to connect again.
    lease.hold(2 * length as u64).ok()?;
    let mut frame = BytesMut::zeroed(length);
    timeout(REQUEST_TIME_MAX, stream.read_exact(&mut frame)).await.ok()?.ok()?;
    Some(frame.freeze())
}

/// Answers one request. Nothing is answered to a produce that wants no acknowledgement.
async fn answer(front: &Front, session: &mut Session, frame: Bytes) -> Result<Vec<Bytes>, Hangup> {
    let mut request = Reader::new(frame);
    let (key, version, id) = (request.i16()?, request.i16()?, request.i32()?);
    let client = request.nullable_text()?.unwrap_or_default();
    let operation = Operation::of_key(key).ok_or(Hangup::Unknown)?;
    let began = Instant::now();
    let mut response = Writer::new();
    response.i32(id);
    let asked = Asked { operation, version, client };
    let outcome = match operation {
        // Whatever version is asked for, the answer says which ones there are.
        Operation::ApiVersions => Ok(Some(versions(&asked, &mut response))),
        _ if !operation.versions().contains(&version) => Err(Hangup::Unknown),
        _ if session.namespace.is_none() && !operation.is_for_strangers() => Err(Hangup::Stranger),
        _ => dispatch(front, session, &asked, &mut request, &mut response).await,
    };
    let counted = match &outcome {
        Ok(code) => code.unwrap_or(Code::NONE).outcome(),
        Err(Hangup::Malformed) => Outcome::Refused("MALFORMED"),
        Err(Hangup::Stranger) => Outcome::Refused("NOT_AUTHENTICATED"),
        Err(Hangup::Unknown) => Outcome::Refused("UNSUPPORTED_VERSION"),
    };
    front.metrics.observe(operation.name(), counted, began.elapsed());
    Ok(outcome?.map(|_| response.frame()).unwrap_or_default())
}

/// The one `match` over all operations. The code is what metrics count; none means that nothing is answered.
async fn dispatch(
    front: &Front,
    session: &mut Session,
    asked: &Asked,
    request: &mut Reader,
    response: &mut Writer,
) -> Result<Option<Code>, Hangup> {
    let code = match asked.operation {
        Operation::ApiVersions => versions(asked, response),
        Operation::SaslHandshake => shake_hands(session, request, response)?,
        Operation::SaslAuthenticate => authenticate(front, session, asked, request, response)?,
        Operation::Produce => return front.produce(session, asked, request, response).await,
        Operation::Fetch => front.fetch(session, asked, request, response).await?,
        Operation::ListOffsets => front.list_offsets(session, asked, request, response).await?,
        Operation::OffsetForLeaderEpoch => {
            front.offset_for_epoch(session, asked, request, response).await?
        }
        Operation::Metadata => front.metadata(session, asked, request, response).await?,
        Operation::CreateTopics => front.create_topics(session, asked, request, response).await?,
        Operation::DeleteTopics => front.delete_topics(session, asked, request, response).await?,
        Operation::CreatePartitions => front.create_partitions(session, request, response).await?,
        Operation::DescribeConfigs => {
            front.describe_configs(session, asked, request, response).await?
        }
        Operation::AlterConfigs => front.alter_configs(session, request, response).await?,
        Operation::IncrementalAlterConfigs => {
            front.alter_some_configs(session, request, response).await?
        }
        Operation::DeleteRecords => front.delete_records(session, request, response).await?,
        Operation::InitProducerId => front.init_producer(session, request, response)?,
        Operation::OffsetCommit => front.offset_commit(session, asked, request, response).await?,
        Operation::OffsetFetch => front.offset_fetch(session, asked, request, response).await?,
        Operation::FindCoordinator => {
            front.find_coordinator(session, asked, request, response).await?
        }
        Operation::JoinGroup => front.join_group(session, asked, request, response).await?,
        Operation::SyncGroup => front.sync_group(session, asked, request, response).await?,
        Operation::Heartbeat => front.heartbeat(session, asked, request, response).await?,
        Operation::LeaveGroup => front.leave_group(session, asked, request, response).await?,
        Operation::DescribeGroups => {
            front.describe_groups(session, asked, request, response).await?
        }
        Operation::ListGroups => front.list_groups(session, asked, request, response).await?,
        Operation::DeleteGroups => front.delete_groups(session, request, response).await?,
    };
    Ok(Some(code))
}

/// Which operations there are, in which versions.
fn versions(asked: &Asked, response: &mut Writer) -> Code {
    let known = Operation::ApiVersions.versions().contains(&asked.version);
    let code = if known { Code::NONE } else { Code::UNSUPPORTED_VERSION };
    // A client that asks for a newer version reads the oldest form.
    let version = if known { asked.version } else { 0 };
    response.i16(code.0);
    let is_flexible = version >= 3;
    if is_flexible {
        response.unsigned_varint(Operation::ALL.len() as u32 + 1);
    } else {
        response.count(Operation::ALL.len());
    }
    for operation in Operation::ALL {
        let versions = operation.versions();
        response.i16(operation.key());
        response.i16(*versions.start());
        response.i16(*versions.end());
        if is_flexible {
            response.unsigned_varint(0);
        }
    }
    if version >= 1 {
        response.i32(0);
    }
    if is_flexible {
        response.unsigned_varint(0);
    }
    code
}

fn shake_hands(
    session: &mut Session,
    request: &mut Reader,
    response: &mut Writer,
) -> Result<Code, Hangup> {
    let mechanism = request.text()?;
    let code = match mechanism.as_str() {
        "PLAIN" => Code::NONE,
        _ => Code::UNSUPPORTED_SASL_MECHANISM,
    };
    session.is_shaking_hands = code == Code::NONE;
    // From here on only what it proves counts.
    session.namespace = None;
    response.i16(code.0);
    response.array(&["PLAIN"], |response, name| response.text(name));
    Ok(code)
}

fn authenticate(
    front: &Front,
    session: &mut Session,
    asked: &Asked,
    request: &mut Reader,
    response: &mut Writer,
) -> Result<Code, Hangup> {
    let message = request.bytes()?;
    let code = if session.is_shaking_hands {
        session.namespace = front.gate.namespace(&message).map(Into::into);
        match session.namespace {
            Some(_) => Code::NONE,
            None => Code::SASL_AUTHENTICATION_FAILED,
        }
    } else {
        Code::ILLEGAL_SASL_STATE
    };
    response.i16(code.0);
    let text = "the key of the connection string opens no namespace";
    response.nullable_text((code != Code::NONE).then_some(text));
    response.bytes(&Bytes::new());
    if asked.version >= 1 {
        response.i64(0);
    }
    Ok(code)
}
