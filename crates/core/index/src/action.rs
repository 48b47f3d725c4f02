//! What is done to one document: upload, merge, merge or upload, delete.

use bytes::Bytes;
use lazuli_engine::{Item, ItemKey, Result, Tx};
use lazuli_value::{Object, Value};

use crate::Index;
use crate::index::damaged;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// The document takes the place of the one of its key.
    Upload,
    /// The fields given take the place of those of a document that must be there.
    Merge,
    MergeOrUpload,
    Delete,
}

/// One action on one document.
#[derive(Clone, Debug)]
pub struct Action {
    pub key: String,
    pub kind: ActionKind,
    /// A JSON object, checked by the definition. Empty where the document is deleted.
    pub document: Bytes,
}

/// What became of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Created,
    Updated,
    /// Also where there was no document: deletion is idempotent.
    Deleted,
    /// A merge found no document of its key.
    Missing,
    /// What is to be kept is too long.
    TooLarge,
}

impl Action {
    /// Does it, on the state that the actions before it leave behind. Answers also whether that has written anything.
    pub(crate) async fn run(&self, tx: &mut Tx<'_>, index: &Index) -> Result<(Outcome, bool)> {
        let key = index.item(&self.key)?;
        let old = tx.get(&key).await?;
        if self.kind == ActionKind::Delete {
            if let Some(old) = &old {
                forget(tx, &key, old)?;
                tx.remove(&key, old)?;
            }
            return Ok((Outcome::Deleted, old.is_some()));
        }
        let text = match (self.kind, &old) {
            (ActionKind::Merge, None) => return Ok((Outcome::Missing, false)),
            (ActionKind::Merge | ActionKind::MergeOrUpload, Some(old)) => {
                let mut merged = parse(&old.payload)?;
                merge(&mut merged, &parse(&self.document)?);
                Bytes::from(Value::Object(merged).to_json())
            }
            _ => self.document.clone(),
        };
        if text.len() > crate::limits::DOCUMENT_BYTES_MAX {
            return Ok((Outcome::TooLarge, false));
        }
        old.iter().try_for_each(|old| forget(tx, &key, old))?;
        tx.replace(&key, old.as_ref(), text, None)?;
        Ok((if old.is_some() { Outcome::Updated } else { Outcome::Created }, true))
    }
}

/// Forgets the last change of a document that is about to change again: those who follow read documents as they are, so only
/// the newest change is of use. A change of this same transaction has the same place, and is written over.
fn forget(tx: &mut Tx<'_>, key: &ItemKey, old: &Item) -> Result<()> {
    match old.version == tx.lsn() {
        true => Ok(()),
        false => tx.forget_change(key, old.version),
    }
}

fn parse(text: &[u8]) -> Result<Object> {
    match Value::from_json(text) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(damaged()),
    }
}

/// The fields given take the place of those there are. Complex fields are merged field by field; collections are replaced,
/// because the service does not merge their elements.
fn merge(into: &mut Object, from: &Object) {
    for (name, value) in from.iter() {
        match (into.get_mut(name), value) {
            (Some(Value::Object(into)), Value::Object(from)) => merge(into, from),
            _ => drop(into.insert(name.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_replaces_collections_and_merges_complex_fields() {
        let text = br#"{"id":"1","tags":["a","b"],"address":{"city":"x","zip":"1"},"rate":4}"#;
        let mut into = parse(text).unwrap();
        let from = br#"{"id":"1","tags":["c"],"address":{"city":"y"},"rate":null,"new":1}"#;
        merge(&mut into, &parse(from).unwrap());
        let expected =
            r#"{"id":"1","tags":["c"],"address":{"city":"y","zip":"1"},"rate":null,"new":1}"#;
        assert_eq!(Value::Object(into).to_json(), expected);
    }
}
