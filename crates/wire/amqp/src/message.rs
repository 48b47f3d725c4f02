//! Messages as sections. A message is taken apart by where its sections lie: what is not asked for is never decoded, and
//! the bare message (properties, application properties, body) is handed on as the bytes that came.

use bytes::{Bytes, BytesMut};

use crate::decode::{DecodeError, Decoder, Result};
use crate::encode;
use crate::field::{Field, Timestamp, composite};
use crate::value::{Map, Symbol, Value};

const DELIVERY_ANNOTATIONS: u64 = 0x71;
const MESSAGE_ANNOTATIONS: u64 = 0x72;
const APPLICATION_PROPERTIES: u64 = 0x74;
const DATA: u64 = 0x75;
const SEQUENCE: u64 = 0x76;
const VALUE: u64 = 0x77;
const FOOTER: u64 = 0x78;

/// The message format of the specification.
pub const FORMAT: u32 = 0;

composite! {
    /// What is said about the delivery of a message.
    Header = 0x70 {
        durable: Option<bool>,
        priority: Option<u8>,
        /// Time to live in milliseconds.
        ttl: Option<u32>,
        first_acquirer: Option<bool>,
        delivery_count: Option<u32>,
    }
}

composite! {
    /// What the sender says about a message.
    Properties = 0x73 {
        message_id: Value,
        user_id: Option<Bytes>,
        to: Value,
        subject: Option<String>,
        reply_to: Value,
        correlation_id: Value,
        content_type: Option<Symbol>,
        content_encoding: Option<Symbol>,
        absolute_expiry_time: Option<Timestamp>,
        creation_time: Option<Timestamp>,
        group_id: Option<String>,
        group_sequence: Option<u32>,
        reply_to_group_id: Option<String>,
    }
}

/// A message by where its sections lie. Sections that are not there are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sections {
    header: Bytes,
    delivery_annotations: Bytes,
    message_annotations: Bytes,
    properties: Bytes,
    application_properties: Bytes,
    body: Bytes,
    footer: Bytes,
    /// From the properties to the end of the body.
    bare: Bytes,
}

impl Sections {
    /// Takes a message apart. Sections must come in the order of the specification, each at most once but those of the body.
    pub fn split(message: &Bytes) -> Result<Self> {
        let mut sections = Self::default();
        let mut decoder = Decoder::new(message);
        let (mut last, mut bare, mut body) = (0, None, None);
        while !decoder.is_empty() {
            let from = message.len() - decoder.rest().len();
            let code = decoder.clone().descriptor()?;
            decoder.skip()?;
            let to = message.len() - decoder.rest().len();
            let repeats = matches!(code, DATA | SEQUENCE) && code == last;
            let follows = code > last && !(last >= DATA && code < FOOTER);
            if !(repeats || follows) {
                return Err(DecodeError::Expected("a section in its order"));
            }
            last = code;
            if (Properties::CODE..=VALUE).contains(&code) {
                bare = Some((bare.map_or(from, |(began, _)| began), to));
            }
            let section = match code {
                Header::CODE => &mut sections.header,
                DELIVERY_ANNOTATIONS => &mut sections.delivery_annotations,
                MESSAGE_ANNOTATIONS => &mut sections.message_annotations,
                Properties::CODE => &mut sections.properties,
                APPLICATION_PROPERTIES => &mut sections.application_properties,
                FOOTER => &mut sections.footer,
                DATA..=VALUE => {
                    body = Some((body.map_or(from, |(began, _)| began), to));
                    continue;
                }
                _ => return Err(DecodeError::Expected("a section of a message")),
            };
            *section = message.slice(from..to);
        }
        let range = |range: Option<(usize, usize)>| range.map(|(from, to)| message.slice(from..to));
        sections.bare = range(bare).unwrap_or_default();
        sections.body = range(body).unwrap_or_default();
        Ok(sections)
    }

    pub fn header(&self) -> Result<Header> {
        section(&self.header).map(Option::unwrap_or_default)
    }

    pub fn delivery_annotations(&self) -> Result<Map> {
        map(&self.delivery_annotations)
    }

    pub fn message_annotations(&self) -> Result<Map> {
        map(&self.message_annotations)
    }

    pub fn properties(&self) -> Result<Properties> {
        section(&self.properties).map(Option::unwrap_or_default)
    }

    pub fn has_properties(&self) -> bool {
        !self.properties.is_empty()
    }

    pub fn application_properties(&self) -> Result<Map> {
        map(&self.application_properties)
    }

    /// Properties, application properties and body, as they came.
    pub fn bare(&self) -> &Bytes {
        &self.bare
    }

    /// Application properties and body, as they came.
    pub fn bare_after_properties(&self) -> Bytes {
        self.bare.slice(self.properties.len()..)
    }

    /// The sections of the body, as they came.
    pub fn body_bytes(&self) -> &Bytes {
        &self.body
    }

    pub fn footer_bytes(&self) -> &Bytes {
        &self.footer
    }

    /// The application properties as they came.
    pub fn application_properties_bytes(&self) -> &Bytes {
        &self.application_properties
    }

    pub fn body(&self) -> Result<Body> {
        let mut decoder = Decoder::new(&self.body);
        let (mut data, mut sequences) = (Vec::new(), Vec::new());
        while !decoder.is_empty() {
            match decoder.descriptor()? {
                DATA => data.push(Bytes::copy_from_slice(decoder.binary()?)),
                SEQUENCE => sequences.push(decoder.value()?),
                VALUE => return Ok(Body::Value(decoder.value()?)),
                _ => return Err(DecodeError::Expected("a section of a body")),
            }
        }
        Ok(match (data.is_empty(), sequences.is_empty()) {
            (false, _) => Body::Data(data),
            (true, false) => Body::Sequences(sequences),
            (true, true) => Body::Empty,
        })
    }
}

/// What a message carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    Empty,
    Data(Vec<Bytes>),
    Sequences(Vec<Value>),
    Value(Value),
}

fn section<T: Field>(bytes: &[u8]) -> Result<Option<T>> {
    match bytes {
        [] => Ok(None),
        _ => T::read(&mut Decoder::new(bytes)).map(Some),
    }
}

fn map(bytes: &[u8]) -> Result<Map> {
    if bytes.is_empty() {
        return Ok(Map::default());
    }
    let mut decoder = Decoder::new(bytes);
    decoder.descriptor()?;
    match decoder.value()? {
        Value::Map(map) => Ok(map),
        Value::Null => Ok(Map::default()),
        _ => Err(DecodeError::Expected("a map")),
    }
}

/// Writes a message, section by section, in the order of the specification.
#[derive(Debug, Default)]
pub struct Writer(BytesMut);

impl Writer {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with_capacity(bytes: usize) -> Self {
        Self(BytesMut::with_capacity(bytes))
    }

    #[must_use]
    pub fn header(mut self, header: &Header) -> Self {
        header.write(&mut self.0);
        self
    }

    #[must_use]
    pub fn delivery_annotations(self, annotations: &Map) -> Self {
        self.map(DELIVERY_ANNOTATIONS, annotations)
    }

    #[must_use]
    pub fn message_annotations(self, annotations: &Map) -> Self {
        self.map(MESSAGE_ANNOTATIONS, annotations)
    }

    #[must_use]
    pub fn properties(mut self, properties: &Properties) -> Self {
        properties.write(&mut self.0);
        self
    }

    #[must_use]
    pub fn application_properties(self, properties: &Map) -> Self {
        self.map(APPLICATION_PROPERTIES, properties)
    }

    #[must_use]
    pub fn data(mut self, bytes: &[u8]) -> Self {
        encode::descriptor(&mut self.0, DATA);
        encode::binary(&mut self.0, bytes);
        self
    }

    #[must_use]
    pub fn value(mut self, value: &Value) -> Self {
        encode::descriptor(&mut self.0, VALUE);
        encode::value(&mut self.0, value);
        self
    }

    /// Sections that are written already.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn map(mut self, code: u64, map: &Map) -> Self {
        if !map.is_empty() {
            encode::descriptor(&mut self.0, code);
            encode::map(&mut self.0, map);
        }
        self
    }

    pub fn finish(self) -> Bytes {
        self.0.freeze()
    }
}
