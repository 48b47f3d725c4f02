//! What the keyspace asks of each type ([`Kind`]), answered by the types' own methods.

use super::{Hash, List, Set, SortedSet, Stream};
use crate::entry::Entry;
use crate::space::Space;
use crate::value::{BadRow, Kind, Value, WrongType};

macro_rules! kind {
    ($type:ident, $variant:ident, $make:expr, $is_gone:expr) => {
        impl Kind for $type {
            fn empty() -> Value {
                Value::$variant($make)
            }

            fn of(value: &Value) -> Option<&Self> {
                if let Value::$variant(it) = value { Some(it) } else { None }
            }

            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                if let Value::$variant(it) = value { Some(it) } else { None }
            }

            fn is_gone(&self) -> bool {
                let is_gone: fn(&Self) -> bool = $is_gone;
                is_gone(self)
            }

            fn bytes(&self) -> usize {
                size_of::<Self>() + self.memory()
            }

            fn encoding(&self) -> &'static str {
                $type::encoding(self)
            }

            fn rows(&self, row: &mut dyn FnMut(&[u8], &[u8])) {
                $type::rows(self, row);
            }

            fn load(&mut self, element: &[u8], row: &[u8]) -> Result<(), BadRow> {
                $type::load(self, element, row)
            }
        }
    };
}

kind!(List, List, List::default(), |it| it.is_empty());
kind!(Set, Set, Set::default(), |it| it.is_empty());
kind!(Hash, Hash, Hash::default(), |it| it.is_empty());
kind!(SortedSet, Sorted, SortedSet::default(), |it| it.is_empty());
// A stream stays without entries: it remembers its last id and its groups.
kind!(Stream, Stream, Box::default(), |_| false);

impl Space<'_> {
    /// The value of a key, without counting this as a use.
    pub fn peek_kind<T: Kind>(&mut self, key: &[u8]) -> Result<Option<&T>, WrongType> {
        match self.peek(key) {
            None => Ok(None),
            Some(Entry::Packed(_)) => Err(WrongType),
            Some(Entry::Object(object)) => T::of(&object.value).map(Some).ok_or(WrongType),
        }
    }
}
