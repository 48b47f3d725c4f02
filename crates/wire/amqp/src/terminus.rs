//! Sources and targets of links. They are kept as they were sent, because clients compare what comes back with them.

use bytes::BytesMut;

use crate::decode::{DecodeError, Decoder, Result};
use crate::encode;
use crate::field::Field;
use crate::value::{Map, Value};

const SOURCE: u64 = 0x28;
const TARGET: u64 = 0x29;
const COORDINATOR: u64 = 0x30;
/// How many fields a source has, and at which place its filter is.
const SOURCE_FIELDS: usize = 11;
const SOURCE_FILTER: usize = 7;
const TARGET_FIELDS: usize = 7;
const COORDINATOR_FIELDS: usize = 1;

/// One end of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Terminus {
    code: u64,
    fields: Vec<Value>,
}

impl Terminus {
    /// A source with nothing but an address.
    pub fn source(address: &str) -> Self {
        Self::with_address(SOURCE, SOURCE_FIELDS, address)
    }

    /// A target with nothing but an address.
    pub fn target(address: &str) -> Self {
        Self::with_address(TARGET, TARGET_FIELDS, address)
    }

    /// The target of a link that controls transactions.
    pub fn coordinator() -> Self {
        Self { code: COORDINATOR, fields: vec![Value::Null] }
    }

    fn with_address(code: u64, count: usize, address: &str) -> Self {
        let mut fields = vec![Value::Null; count];
        fields[0] = address.into();
        Self { code, fields }
    }

    /// The address, if it is a text.
    pub fn address(&self) -> Option<&str> {
        match self.code {
            COORDINATOR => None,
            _ => self.fields.first()?.as_text(),
        }
    }

    /// Whether it controls transactions.
    pub fn is_coordinator(&self) -> bool {
        self.code == COORDINATOR
    }

    /// The filters of a source by name, each perhaps behind a descriptor.
    pub fn filters(&self) -> Option<&Map> {
        if self.code != SOURCE {
            return None;
        }
        self.fields.get(SOURCE_FILTER)?.as_map()
    }

    /// The same source with one filter set to another value, in the place of the one of this name.
    #[must_use]
    pub fn with_filter(mut self, name: &str, value: Value) -> Self {
        if self.code == SOURCE {
            self.fields.resize(SOURCE_FIELDS.max(self.fields.len()), Value::Null);
            let mut filters = self.filters().cloned().unwrap_or_default();
            filters.set(name, value);
            self.fields[SOURCE_FILTER] = Value::Map(filters);
        }
        self
    }
}

impl Field for Terminus {
    fn read(decoder: &mut Decoder<'_>) -> Result<Self> {
        let code = decoder.descriptor()?;
        let count = match code {
            SOURCE => SOURCE_FIELDS,
            TARGET => TARGET_FIELDS,
            COORDINATOR => COORDINATOR_FIELDS,
            _ => return Err(DecodeError::Expected("a source or a target")),
        };
        let Value::List(mut fields) = decoder.value()? else {
            return Err(DecodeError::Expected("a list"));
        };
        fields.resize(count, Value::Null);
        Ok(Self { code, fields })
    }

    fn write(&self, out: &mut BytesMut) {
        encode::descriptor(out, self.code);
        let count = u32::try_from(self.fields.len()).unwrap_or(u32::MAX);
        let list = encode::begin(out, 0xd0, count);
        self.fields.iter().for_each(|field| encode::value(out, field));
        encode::end(out, &list);
    }
}
