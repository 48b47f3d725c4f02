//! One session on a shard: frames in and out, the statements that it has prepared, and the settings that it has.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use lazuli_pg::client::{write_close, write_parse, write_query, write_sync};
use lazuli_pg::limits::SERVER_MESSAGE_BYTES_MAX;
use lazuli_pg::server::{ErrorFields, read_data_row, read_parameter_status, tag};
use lazuli_pg::{Frame, Frames, Target, TxStatus};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::error::{SqlError, code};
use crate::limits::SHARD_STATEMENTS_MAX;
use crate::session::Settings;
use crate::types::{ShardTypes, on_shard, translate};

pub(crate) enum ShardStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A session that is of no use any more, and why.
#[derive(Debug)]
pub(crate) struct Ended(pub(crate) String);

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Ended> for SqlError {
    fn from(ended: Ended) -> Self {
        Self::new(code::CONNECTION, format!("the connection to a shard was lost: {ended}"))
    }
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<lazuli_pg::Malformed> for Ended {
    fn from(error: lazuli_pg::Malformed) -> Self {
        Self(error.to_string())
    }
}

pub(crate) struct Connection {
    stream: ShardStream,
    pub(crate) frames: Frames,
    /// Process and secret, for a cancel.
    pub(crate) key: (u32, u32),
    /// What the server has said of itself.
    pub(crate) parameters: Vec<(String, String)>,
    /// Statements that are prepared here, the oldest first.
    prepared: HashMap<u64, ()>,
    order: VecDeque<u64>,
    /// Statements of which nobody knows whether the server has taken them.
    doubtful: Vec<u64>,
    /// The settings that the session has now.
    pub(crate) settings: Arc<Settings>,
    pub(crate) status: TxStatus,
    /// Whether something was sent whose answer has not been read.
    pub(crate) is_dirty: bool,
    pub(crate) role: Option<String>,
    /// How the numbers of its types are translated.
    pub(crate) types: Option<Arc<ShardTypes>>,
}

impl Connection {
    pub(super) fn new(stream: ShardStream) -> Self {
        Self {
            stream,
            frames: Frames::default(),
            key: (0, 0),
            parameters: Vec::new(),
            prepared: HashMap::new(),
            order: VecDeque::new(),
            doubtful: Vec::new(),
            settings: Arc::default(),
            status: TxStatus::Idle,
            is_dirty: false,
            role: None,
            types: None,
        }
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.is_dirty = true;
        match &mut self.stream {
            ShardStream::Plain(stream) => stream.write_all(bytes).await,
            ShardStream::Tls(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// Whether the server still keeps an idle session. What it says in one is the end of it, or a notice of that.
    pub(super) fn is_alive(&self) -> bool {
        let stream = match &self.stream {
            ShardStream::Plain(stream) => stream,
            ShardStream::Tls(stream) => stream.get_ref().0,
        };
        let mut byte = [0];
        matches!(stream.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits for more bytes.
    pub(crate) async fn fill(&mut self) -> Result<(), Ended> {
        let buffer = self.frames.buffer();
        buffer.reserve(16 * 1024);
        let read = match &mut self.stream {
            ShardStream::Plain(stream) => stream.read_buf(buffer).await?,
            ShardStream::Tls(stream) => stream.read_buf(buffer).await?,
        };
        if read == 0 { Err(Ended("the server has closed it".into())) } else { Ok(()) }
    }

    pub(crate) async fn next(&mut self) -> Result<Frame, Ended> {
        loop {
            if let Some(frame) = self.frames.next(SERVER_MESSAGE_BYTES_MAX)? {
                return Ok(frame);
            }
            self.fill().await?;
        }
    }

    /// A message as the client is to see it: descriptions with the catalog shard's numbers of types.
    pub(crate) fn shown(&self, frame: &Frame) -> Result<Bytes, SqlError> {
        match &self.types {
            Some(types) if frame.tag == tag::ROW_DESCRIPTION => translate(&frame.whole, types),
            _ => Ok(frame.whole.clone()),
        }
    }

    /// The state of the transaction that a ReadyForQuery tells. Nothing is on its way then.
    pub(crate) fn ready(&mut self, frame: &Frame) -> Result<(), Ended> {
        self.status = TxStatus::read(&frame.body())?;
        self.is_dirty = false;
        Ok(())
    }

    /// The session's settings are not known any more: whoever uses it next sets them all.
    pub(crate) fn forget_settings(&mut self) {
        let values = [(String::new(), String::new())].into();
        self.settings = Arc::new(Settings { values });
    }

    /// Keeps what a server says of itself while it runs.
    pub(crate) fn note_parameter(&mut self, body: Bytes) -> Result<(String, String), Ended> {
        let (name, value) = read_parameter_status(body)?;
        match self.parameters.iter_mut().find(|(it, _)| *it == name) {
            Some(known) => known.1.clone_from(&value),
            None => self.parameters.push((name.clone(), value.clone())),
        }
        Ok((name, value))
    }

    /// Makes sure that a statement is prepared: appends what has to be sent for that. The answer is how many messages will
    /// come back for it (CloseComplete and ParseComplete).
    pub(crate) fn prepare(
        &mut self,
        out: &mut BytesMut,
        id: u64,
        text: &str,
        types: &[u32],
    ) -> usize {
        if self.prepared.contains_key(&id) {
            return 0;
        }
        let mut answers = 1;
        if self.prepared.len() >= SHARD_STATEMENTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.prepared.remove(&oldest);
            write_close(out, Target::Statement, &statement_name(oldest));
            answers += 1;
        }
        if let Some(at) = self.doubtful.iter().position(|it| *it == id) {
            self.doubtful.swap_remove(at);
            // To close one that is not there is no error.
            write_close(out, Target::Statement, &statement_name(id));
            answers += 1;
        }
        self.prepared.insert(id, ());
        self.order.push_back(id);
        let types = on_shard(types, self.types.as_deref());
        write_parse(out, &statement_name(id), text, &types);
        answers
    }

    /// Forgets a statement that the server may not have taken.
    pub(crate) fn forget(&mut self, id: u64) {
        self.prepared.remove(&id);
        if self.doubtful.len() < SHARD_STATEMENTS_MAX {
            self.doubtful.push(id);
        }
        self.order.retain(|it| *it != id);
    }

    /// Has the server forget everything that is prepared, after it has refused a stale plan.
    pub(crate) async fn forget_all(&mut self) -> Result<(), SqlError> {
        self.prepared.clear();
        self.order.clear();
        self.doubtful.clear();
        self.simple("DEALLOCATE ALL").await.map(drop)
    }

    /// Runs statements in text form and answers the rows of the last one that has some. For our own statements only.
    pub(crate) async fn simple(
        &mut self,
        text: &str,
    ) -> Result<Vec<Vec<Option<String>>>, SqlError> {
        let mut out = BytesMut::new();
        write_query(&mut out, text);
        self.write(&out).await.map_err(Ended::from)?;
        let (mut rows, mut error) = (Vec::new(), None);
        loop {
            let frame = self.next().await?;
            match frame.tag {
                tag::ROW_DESCRIPTION => rows.clear(),
                tag::DATA_ROW => {
                    let row = read_data_row(frame.body())?.into_iter();
                    let text = |value: Bytes| String::from_utf8_lossy(&value).into_owned();
                    rows.push(row.map(|value| value.map(text)).collect());
                }
                tag::ERROR => error = Some(ErrorFields::read(frame.body())?),
                tag::PARAMETER_STATUS => drop(self.note_parameter(frame.body())?),
                tag::READY => {
                    self.ready(&frame)?;
                    break;
                }
                _ => {}
            }
        }
        match error {
            None => Ok(rows),
            Some(error) => Err(foreign_error(&error)),
        }
    }

    /// Reads until the server is ready, and drops what it says.
    pub(crate) async fn drain(&mut self) -> Result<(), Ended> {
        while self.is_dirty {
            let frame = self.next().await?;
            match frame.tag {
                tag::READY => self.ready(&frame)?,
                tag::PARAMETER_STATUS => drop(self.note_parameter(frame.body())?),
                _ => {}
            }
        }
        Ok(())
    }

    /// Ends an implicit transaction without its effects: an error, then Sync.
    pub(crate) async fn spoil(&mut self) -> Result<(), Ended> {
        let mut out = BytesMut::new();
        write_parse(&mut out, "", "lazuli: undo", &[]);
        write_sync(&mut out);
        self.write(&out).await?;
        self.drain().await
    }
}

/// The name under which a statement is prepared on a shard.
pub(crate) fn statement_name(id: u64) -> String {
    format!("lz{id}")
}

/// An error of a shard in its own words, with its own code.
pub(crate) fn foreign_error(error: &ErrorFields) -> SqlError {
    let mut own = SqlError::new(interned(error.sqlstate()), error.message());
    own.detail = error.get(b'D').map(str::to_owned);
    own.hint = error.get(b'H').map(str::to_owned);
    own
}

/// A code as text that lives for ever. Codes are few: what is not five letters and digits is none.
fn interned(code: &str) -> &'static str {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, PoisonError};
    static CODES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    const CODES_MAX: usize = 2_000;
    let mut codes = CODES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = codes.get(code) {
        return known;
    }
    let is_code = code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_code || codes.len() >= CODES_MAX {
        return code::INTERNAL;
    }
    let leaked: &'static str = code.to_owned().leak();
    codes.insert(leaked);
    leaked
}
