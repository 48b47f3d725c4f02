//! The beginning of a session: encryption, who the client is, its parameters.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use lazuli_net::{Connection, Stream};
use lazuli_pg::ClientMessage;
use lazuli_pg::limits::{MESSAGE_BYTES_MAX, STRANGER_BYTES_MAX};
use lazuli_pg::scram::{Exchange, MECHANISM, MECHANISM_PLUS, ScramError, Secret, read_initial};
use lazuli_pg::server::{
    write_authentication_ok, write_backend_key, write_negotiate, write_parameter_status,
    write_sasl, write_sasl_continue, write_sasl_final,
};
use lazuli_pg::startup::{STARTUP_BYTES_MAX, Startup, StartupPacket};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::own::{is_utf8, search_path};
use super::{CancelSlot, Client, Gone, Own, Session, Settings, Transaction};
use crate::Front;
use crate::error::{SqlError, code};
use crate::limits::STARTUP_TIME_MAX;
use crate::space::Space;

pub(crate) async fn serve(front: Arc<Front>, connection: Connection) {
    let Connection { stream, secure, mut stop, .. } = connection;
    let begun = timeout(STARTUP_TIME_MAX, begin(&front, stream, secure)).await;
    let Ok(Ok(Some((mut session, key)))) = begun else { return };
    // However it ends, nobody can cancel it any more.
    let _ = session.run(&mut stop).await;
    front.cancels.remove(key);
    if !session.tx.is_idle() {
        session.roll_back().await;
    }
}

/// Lets a client in. None if it has come for something else, or was not let in.
async fn begin(
    front: &Arc<Front>,
    stream: Stream,
    secure: bool,
) -> Result<Option<(Session, (u32, u32))>, Gone> {
    let Some((stream, secure, startup)) = negotiate(front, stream, secure).await? else {
        return Ok(None);
    };
    let mut client = Client::new(stream, STRANGER_BYTES_MAX);
    match let_in(front, &mut client, &startup, secure).await? {
        Ok((database, role)) => {
            client.message_bytes_max = MESSAGE_BYTES_MAX;
            open(front, client, &startup, database, role).await
        }
        Err(error) => {
            error.fatal().write(&mut client.out);
            client.send().await?;
            Ok(None)
        }
    }
}

/// Reads packets until the client says who it is.
async fn negotiate(
    front: &Front,
    mut stream: Stream,
    mut secure: bool,
) -> Result<Option<(Stream, bool, Startup)>, Gone> {
    // A client asks for TLS once and for GSS once.
    for _ in 0..3 {
        let length = stream.read_u32().await? as usize;
        if !(8..=STARTUP_BYTES_MAX).contains(&length) {
            return Ok(None);
        }
        let mut body = BytesMut::zeroed(length - 4);
        stream.read_exact(&mut body).await?;
        match StartupPacket::read(body.freeze()) {
            Ok(StartupPacket::Gss) => stream.write_all(b"N").await?,
            Ok(StartupPacket::Ssl) => match &front.tls {
                Some(tls) if !secure => {
                    stream.write_all(b"S").await?;
                    stream.flush().await?;
                    stream = stream.start_tls(tls).await?;
                    secure = true;
                }
                _ => stream.write_all(b"N").await?,
            },
            Ok(StartupPacket::Cancel { process, secret }) => {
                front.cancels.cancel((process, secret)).await;
                return Ok(None);
            }
            Ok(StartupPacket::Startup(startup)) => return Ok(Some((stream, secure, startup))),
            Err(malformed) => {
                let mut out = BytesMut::new();
                SqlError::from(malformed).write(&mut out);
                stream.write_all(&out).await?;
                stream.flush().await?;
                return Ok(None);
            }
        }
        stream.flush().await?;
    }
    Ok(None)
}

type LetIn = Result<(String, Option<String>), SqlError>;

async fn let_in(
    front: &Front,
    client: &mut Client,
    startup: &Startup,
    secure: bool,
) -> Result<LetIn, Gone> {
    let unknown: Vec<_> = startup.protocol_options().collect();
    if startup.minor > 0 || !unknown.is_empty() {
        write_negotiate(&mut client.out, &unknown);
    }
    let Some(user) = startup.get("user").filter(|user| !user.is_empty()) else {
        return Ok(Err(SqlError::new(code::NO_LOGIN, "no PostgreSQL user name specified")));
    };
    if startup.get("replication").is_some() {
        return Ok(Err(SqlError::refused("replication is not supported by the router")));
    }
    if front.requires_tls && !secure {
        let error = SqlError::new(code::NO_LOGIN, "this server is reached over TLS only");
        return Ok(Err(error.hint("Connect with sslmode=require.")));
    }
    let database = startup.get("database").filter(|it| !it.is_empty()).unwrap_or(user);
    let snapshot = front.databases.snapshot(database);
    let login = snapshot.as_ref().and_then(|snapshot| snapshot.logins.get(user)).cloned();
    let secret = login.as_ref().and_then(|login| Secret::parse(&login.secret));
    let secret = secret.unwrap_or_else(|| Secret::of_nobody(user, &front.seed));
    if let Err(error) = authenticate(front, client, secret, secure).await? {
        return Ok(Err(error.unwrap_or_else(|| {
            let message = format!("password authentication failed for user \"{user}\"");
            SqlError::new(code::BAD_LOGIN, message)
        })));
    }
    match login {
        Some(login) => Ok(Ok((database.to_owned(), login.role))),
        // Nobody can prove a password that nobody has.
        None => Ok(Err(SqlError::new(code::BAD_LOGIN, "password authentication failed"))),
    }
}

/// SCRAM. An error without words is a wrong password.
async fn authenticate(
    front: &Front,
    client: &mut Client,
    secret: Secret,
    secure: bool,
) -> Result<Result<(), Option<SqlError>>, Gone> {
    let binding = front.certificate_hash.as_deref().filter(|_| secure);
    let mechanisms: &[&str] =
        if binding.is_some() { &[MECHANISM_PLUS, MECHANISM] } else { &[MECHANISM] };
    write_sasl(&mut client.out, mechanisms);
    let told = |error: ScramError| match error {
        ScramError::WrongProof => None,
        ScramError::Malformed(why) => {
            Some(SqlError::new(code::PROTOCOL, format!("malformed SCRAM message: {why}")))
        }
        ScramError::Downgrade => Some(SqlError::new(
            code::NO_LOGIN,
            "SCRAM channel binding was left out though we offer it",
        )),
    };
    let not_asked = || Some(SqlError::new(code::PROTOCOL, "a SCRAM message is expected"));
    let Ok(ClientMessage::Password(body)) = client.next().await? else {
        return Ok(Err(not_asked()));
    };
    let (mechanism, first) = match read_initial(body) {
        Ok(read) => read,
        Err(error) => return Ok(Err(told(error))),
    };
    if !mechanisms.contains(&mechanism.as_str()) {
        return Ok(Err(not_asked()));
    }
    let nonce = front.nonce();
    let begun = Exchange::begin(&mechanism, &first, secret, &nonce, binding);
    let (exchange, said) = match begun {
        Ok(begun) => begun,
        Err(error) => return Ok(Err(told(error))),
    };
    write_sasl_continue(&mut client.out, &said);
    let Ok(ClientMessage::Password(last)) = client.next().await? else {
        return Ok(Err(not_asked()));
    };
    match exchange.finish(&last) {
        Ok(said) => {
            write_sasl_final(&mut client.out, &said);
            write_authentication_ok(&mut client.out);
            Ok(Ok(()))
        }
        Err(error) => {
            // Slows guessing down; a client that knows its password never waits.
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(Err(told(error)))
        }
    }
}

/// The session of a client that was let in.
async fn open(
    front: &Arc<Front>,
    client: Client,
    startup: &Startup,
    database: String,
    role: Option<String>,
) -> Result<Option<(Session, (u32, u32))>, Gone> {
    let cancel = Arc::new(CancelSlot::default());
    let mut session = Session {
        front: front.clone(),
        client,
        database,
        role,
        settings: Arc::default(),
        first_settings: Arc::default(),
        own: Own::default(),
        search_path: search_path(None),
        statements: HashMap::new(),
        portals: HashMap::new(),
        tx: Transaction::default(),
        space: Arc::new(Space::default()),
        pools: Vec::new(),
        cancel: cancel.clone(),
        recent: Vec::new(),
        recent_bytes: 0,
        batch: None,
        is_skipping: false,
        has_begun: false,
        has_copied: false,
        turn: 0,
    };
    if let Err(error) = first_settings(&mut session, startup) {
        error.fatal().write(&mut session.client.out);
        session.client.send().await?;
        return Ok(None);
    }
    let parameters = match parameters(&mut session).await {
        Ok(parameters) => parameters,
        Err(error) => {
            error.fatal().write(&mut session.client.out);
            session.client.send().await?;
            return Ok(None);
        }
    };
    for (name, value) in parameters {
        write_parameter_status(&mut session.client.out, &name, &value);
    }
    let key = front.cancels.add(cancel);
    write_backend_key(&mut session.client.out, key.0, key.1);
    session.ready();
    session.client.send().await?;
    Ok(Some((session, key)))
}

/// What the client wants to be set from the start.
fn first_settings(session: &mut Session, startup: &Startup) -> Result<(), SqlError> {
    let mut wanted = Vec::new();
    for (name, value) in &startup.parameters {
        let name = name.to_lowercase();
        match name.as_str() {
            "user" | "database" | "replication" => {}
            "options" => wanted.extend(options(value)?),
            "client_encoding" if !is_utf8(value) => {
                return Err(SqlError::refused("the only client encoding is UTF8"));
            }
            "client_encoding" => {}
            other if other.starts_with("_pq_.") => {}
            _ => wanted.push((name, value.clone())),
        }
    }
    let mut settings = Settings::default();
    for (name, value) in wanted {
        if name.starts_with("lazuli.") {
            session.set_own(&name, &value)?;
            continue;
        }
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')) {
            return Err(SqlError::new(
                "42704",
                format!("unrecognized configuration parameter \"{name}\""),
            ));
        }
        // A list stays a list only if each of its parts is a value of its own.
        let quoted = match name.as_str() {
            "search_path" | "datestyle" => {
                let parts = value.split(',').map(|part| quote(part.trim().trim_matches('"')));
                parts.collect::<Vec<_>>().join(", ")
            }
            _ => quote(&value),
        };
        if name == "search_path" {
            session.search_path = search_path(Some(&value));
        }
        settings.values.insert(name, quoted);
    }
    session.settings = Arc::new(settings);
    session.first_settings = session.settings.clone();
    Ok(())
}

fn quote(value: &str) -> String {
    lazuli_sharded_sql::quote_literal(value).trim_start().to_owned()
}

/// `-c name=value` and `--name=value`, with backslashes before spaces.
fn options(text: &str) -> Result<Vec<(String, String)>, SqlError> {
    let (mut words, mut word, mut escaped) = (Vec::new(), String::new(), false);
    for char in text.chars() {
        match (char, escaped) {
            ('\\', false) => escaped = true,
            (char, false) if char.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            (char, _) => {
                escaped = false;
                word.push(char);
            }
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    let (mut found, mut words) = (Vec::new(), words.into_iter());
    while let Some(word) = words.next() {
        let setting = match (word.as_str(), word.strip_prefix("-c"), word.strip_prefix("--")) {
            ("-c", ..) => words.next(),
            (_, Some(rest), _) | (_, _, Some(rest)) => Some(rest.to_owned()),
            _ => None,
        };
        let setting = setting.as_deref().and_then(|setting| setting.split_once('='));
        let Some((name, value)) = setting else {
            return Err(SqlError::new(code::INVALID_VALUE, format!("invalid option \"{word}\"")));
        };
        found.push((name.replace('-', "_").to_lowercase(), value.to_owned()));
    }
    Ok(found)
}

/// What the catalog shard says of itself, with the client's settings.
async fn parameters(session: &mut Session) -> Result<Vec<(String, String)>, SqlError> {
    let snapshot = session.snapshot().await?;
    let mut out = BytesMut::new();
    let pool = session.pools[snapshot.catalog_shard].clone();
    let mut lease = pool.lease(&session.settings, session.role.as_deref(), &mut out).await?;
    if !out.is_empty() {
        lease.write(&out).await.map_err(crate::shard::Ended::from)?;
        match super::relay::finish_setup(&mut lease).await {
            Ok(()) => lease.is_dirty = false,
            Err(super::Stop::Error(error)) => return Err(error),
            Err(_) => return Err(SqlError::new(code::CONNECTION, "the catalog shard was lost")),
        }
    }
    Ok(lease.parameters.clone())
}
