//! What a key may hold.
//!
//! A type implements [`Kind`] and has one arm in each `match` here. How it is persisted is said by two of its methods: `rows`
//! gives its elements as rows, `load` takes them back. Commands report the rows that they change one by one through
//! [`crate::Log`], so that a key with a million elements is never written whole.

use crate::types::{Hash, List, Set, SortedSet, Stream};

/// The value of one key, as long as it is not a string that lies with its key.
pub enum Value {
    String(Vec<u8>),
    List(List),
    Set(Set),
    Hash(Hash),
    Sorted(SortedSet),
    Stream(Box<Stream>),
}

/// The key holds a value of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;

/// A row of the store that is none of this type's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRow;

/// A type of values with elements. An empty value is a key that does not exist, except where the type says otherwise.
pub trait Kind: Sized {
    /// An empty value, as the first command on a key makes it.
    fn empty() -> Value;
    fn of(value: &Value) -> Option<&Self>;
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    /// Whether the key goes with its last element.
    fn is_gone(&self) -> bool;
    /// About what it takes in memory, in constant time.
    fn bytes(&self) -> usize;
    /// As OBJECT ENCODING names it.
    fn encoding(&self) -> &'static str;
    /// What is kept in the row of the key itself; for most types nothing.
    fn head(&self, _out: &mut Vec<u8>) {}
    fn load_head(&mut self, _head: &[u8]) -> Result<(), BadRow> {
        Ok(())
    }
    /// All elements as rows: the id of the element, which need not be ordered, and its bytes.
    fn rows(&self, row: &mut dyn FnMut(&[u8], &[u8]));
    /// Takes one row back. Rows come in the order of their ids.
    fn load(&mut self, element: &[u8], row: &[u8]) -> Result<(), BadRow>;
}

/// Calls a method of whichever type with elements it is.
macro_rules! on_kind {
    ($value:expr, $string:ident => $of_string:expr, $kind:ident => $call:expr) => {
        match $value {
            Value::String($string) => $of_string,
            Value::List($kind) => $call,
            Value::Set($kind) => $call,
            Value::Hash($kind) => $call,
            Value::Sorted($kind) => $call,
            Value::Stream($kind) => $call,
        }
    };
}

impl Value {
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::String(_) => "string",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::Hash(_) => "hash",
            Self::Sorted(_) => "zset",
            Self::Stream(_) => "stream",
        }
    }

    pub fn encoding(&self) -> &'static str {
        on_kind!(self, _string => "raw", it => it.encoding())
    }

    pub fn bytes(&self) -> usize {
        on_kind!(self, string => string.capacity(), it => it.bytes())
    }

    /// The same value once more.
    pub fn copy(&self) -> Self {
        match self {
            Self::String(string) => Self::String(string.clone()),
            Self::List(it) => Self::List(it.clone()),
            Self::Set(it) => Self::Set(it.clone()),
            Self::Hash(it) => Self::Hash(it.clone()),
            Self::Sorted(it) => Self::Sorted(it.clone()),
            Self::Stream(it) => Self::Stream(it.clone()),
        }
    }

    /// Whether a key with this value does not exist.
    pub fn is_gone(&self) -> bool {
        on_kind!(self, _string => false, it => it.is_gone())
    }

    /// The type, in the row of a key.
    pub(crate) fn tag(&self) -> u8 {
        match self {
            Self::String(_) => 0,
            Self::List(_) => 1,
            Self::Set(_) => 2,
            Self::Hash(_) => 3,
            Self::Sorted(_) => 4,
            Self::Stream(_) => 5,
        }
    }

    pub(crate) fn of_tag(tag: u8) -> Result<Self, BadRow> {
        Ok(match tag {
            0 => Self::String(Vec::new()),
            1 => List::empty(),
            2 => Set::empty(),
            3 => Hash::empty(),
            4 => SortedSet::empty(),
            5 => Stream::empty(),
            _ => return Err(BadRow),
        })
    }

    pub(crate) fn head(&self, out: &mut Vec<u8>) {
        on_kind!(self, string => out.extend_from_slice(string), it => it.head(out));
    }

    pub(crate) fn load_head(&mut self, head: &[u8]) -> Result<(), BadRow> {
        on_kind!(self, string => {
            string.extend_from_slice(head);
            Ok(())
        }, it => it.load_head(head))
    }

    pub fn rows(&self, row: &mut dyn FnMut(&[u8], &[u8])) {
        on_kind!(self, _string => (), it => it.rows(row));
    }

    pub(crate) fn load(&mut self, element: &[u8], row: &[u8]) -> Result<(), BadRow> {
        on_kind!(self, string => {
            // A long string continues in rows that are ordered by number.
            string.extend_from_slice(row);
            Ok(())
        }, it => it.load(element, row))
    }
}
