//! Begins a session on a shard: TLS, password, parameters.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use lazuli_pg::Reader;
use lazuli_pg::client::write_password;
use lazuli_pg::server::{ErrorFields, read_parameter_status, tag};
use lazuli_pg::startup::{ssl_request, startup};
use lazuli_sharded_sql::ShardServer;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::connection::{Connection, ShardStream};
use crate::error::{SqlError, code};
use crate::limits::CONNECT_TIME_MAX;

fn unreachable(server: &ShardServer, why: impl std::fmt::Display) -> SqlError {
    tracing::warn!(shard = ?server, %why, "a shard cannot be reached");
    SqlError::new(code::CONNECTION, format!("shard {server:?} cannot be reached: {why}"))
}

/// Opens a session, within a bounded time.
pub(super) async fn connect(server: &ShardServer) -> Result<Connection, SqlError> {
    match timeout(CONNECT_TIME_MAX, open(server)).await {
        Ok(opened) => opened,
        Err(_) => Err(unreachable(server, "it takes too long")),
    }
}

async fn open(server: &ShardServer) -> Result<Connection, SqlError> {
    let failed = |why: std::io::Error| unreachable(server, why);
    let stream = socket(server).await?;
    let mut connection = Connection::new(stream);
    let mut out = BytesMut::new();
    startup(
        &mut out,
        &[
            ("user", &server.user),
            ("database", &server.database),
            ("client_encoding", "UTF8"),
            ("application_name", "lazuli"),
        ],
    );
    connection.write(&out).await.map_err(failed)?;
    let mut scram = None;
    loop {
        let frame = connection.next().await.map_err(|why| unreachable(server, why))?;
        match frame.tag {
            tag::AUTHENTICATION => {
                let answer = authenticate(server, frame.body(), &mut scram);
                let answer = answer.map_err(|why| unreachable(server, why))?;
                if let Some(answer) = answer {
                    let mut out = BytesMut::new();
                    write_password(&mut out, &answer);
                    connection.write(&out).await.map_err(failed)?;
                }
            }
            tag::PARAMETER_STATUS => {
                connection.parameters.push(read_parameter_status(frame.body())?);
            }
            tag::BACKEND_KEY => {
                let mut reader = Reader::new(frame.body());
                connection.key = (reader.u32()?, reader.u32()?);
            }
            tag::ERROR => {
                let error = ErrorFields::read(frame.body())?;
                return Err(unreachable(server, error.message()));
            }
            tag::READY => break,
            _ => {}
        }
    }
    if connection.parameter("server_encoding").is_some_and(|encoding| encoding != "UTF8") {
        return Err(unreachable(server, "its encoding is not UTF8"));
    }
    Ok(connection)
}

async fn socket(server: &ShardServer) -> Result<ShardStream, SqlError> {
    let failed = |why: std::io::Error| unreachable(server, why);
    let mut stream =
        TcpStream::connect((server.host.as_str(), server.port)).await.map_err(failed)?;
    let _ = stream.set_nodelay(true);
    let config = super::tls::config(&server.tls).map_err(|why| unreachable(server, why))?;
    let Some(config) = config else { return Ok(ShardStream::Plain(stream)) };
    stream.write_all(&ssl_request()).await.map_err(failed)?;
    if stream.read_u8().await.map_err(failed)? != b'S' {
        return Err(unreachable(server, "it does not speak TLS"));
    }
    let name = ServerName::try_from(server.host.clone())
        .map_err(|_| unreachable(server, "its name is no host name"))?;
    let connector = TlsConnector::from(Arc::clone(&config));
    let stream = connector.connect(name, stream).await.map_err(failed)?;
    Ok(ShardStream::Tls(Box::new(stream)))
}

/// What is sent to a request for authentication; none if nothing is.
fn authenticate(
    server: &ShardServer,
    body: Bytes,
    scram: &mut Option<ScramSha256>,
) -> Result<Option<Vec<u8>>, String> {
    let mut reader = Reader::new(body);
    let kind = reader.u32().map_err(|error| error.to_string())?;
    let password = || server.password.as_deref().ok_or("it wants a password, and none is known");
    let zero_ended = |mut bytes: Vec<u8>| {
        bytes.push(0);
        Some(bytes)
    };
    match kind {
        0 => Ok(None),
        3 => Ok(zero_ended(password()?.as_bytes().to_vec())),
        5 => {
            let salt = reader.bytes(4).map_err(|error| error.to_string())?;
            let salt = salt[..].try_into().map_err(|_| "a bad salt")?;
            let hash = md5_hash(server.user.as_bytes(), password()?.as_bytes(), salt);
            Ok(zero_ended(hash.into_bytes()))
        }
        10 => {
            let exchange = ScramSha256::new(password()?.as_bytes(), ChannelBinding::unsupported());
            let mut answer = b"SCRAM-SHA-256\0".to_vec();
            let first = exchange.message();
            answer.extend_from_slice(&u32::try_from(first.len()).unwrap_or(0).to_be_bytes());
            answer.extend_from_slice(first);
            *scram = Some(exchange);
            Ok(Some(answer))
        }
        11 => {
            let exchange = scram.as_mut().ok_or("it continues what was not begun")?;
            exchange.update(&reader.rest()).map_err(|error| error.to_string())?;
            Ok(Some(exchange.message().to_vec()))
        }
        12 => {
            let exchange = scram.as_mut().ok_or("it ends what was not begun")?;
            exchange.finish(&reader.rest()).map_err(|error| error.to_string())?;
            Ok(None)
        }
        other => Err(format!("it wants authentication of kind {other}")),
    }
}
