//! The model: a plain map of the expected state, updated with every answer that its one client got.
//!
//! A client writes its own keys, one transaction at a time. While an outcome is unknown, two states are allowed: the
//! one before the transaction and the one after it, and nothing in between. The next audit resolves it.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::answer::Answer;
use crate::ensure;
use crate::scenario::Found;

/// Keys with their values.
pub type Contents = BTreeMap<Bytes, Bytes>;

#[derive(Clone, Debug, Default)]
pub struct Model {
    state: Contents,
    /// The state if the transaction with the unknown outcome did happen.
    perhaps: Option<Contents>,
}

impl Model {
    /// The expected state. Used only when no outcome is unknown.
    pub fn state(&self) -> &Contents {
        &self.state
    }

    pub fn is_settled(&self) -> bool {
        self.perhaps.is_none()
    }

    /// Records the writes of a transaction (`None` deletes) and its answer.
    pub fn wrote<T>(&mut self, writes: &[(Bytes, Option<Bytes>)], answer: &Answer<T>) {
        assert!(self.is_settled(), "a client that does not know must look before it writes");
        let mut after = self.state.clone();
        for (key, value) in writes {
            match value {
                Some(value) => after.insert(key.clone(), value.clone()),
                None => after.remove(key),
            };
        }
        match answer {
            Answer::Done(_) => self.state = after,
            Answer::Refused(_) => {}
            Answer::Unknown => self.perhaps = Some(after),
        }
    }

    /// Compares with all keys of the client as found, while it has no running request.
    pub fn audit(&mut self, found: &Contents) -> Found {
        if let Some(perhaps) = self.perhaps.take() {
            if *found == perhaps {
                self.state = perhaps;
                return Ok(());
            }
            let what = difference(&perhaps, found);
            let whole = *found == self.state;
            ensure!(
                whole,
                "neither before nor after: against after {what}, against before {}",
                difference(&self.state, found)
            );
            return Ok(());
        }
        ensure!(
            *found == self.state,
            "answered and found differ: {}",
            difference(&self.state, found)
        );
        Ok(())
    }
}

/// The first few keys that differ.
fn difference(expected: &Contents, found: &Contents) -> String {
    let keys: std::collections::BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    let differ = keys.into_iter().filter(|key| expected.get(*key) != found.get(*key));
    let lines = differ.take(5).map(|key| {
        format!("{key:?} should be {:?} and is {:?}", expected.get(key), found.get(key))
    });
    lines.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(key: &str, value: &str) -> (Bytes, Option<Bytes>) {
        (key.to_owned().into(), Some(value.to_owned().into()))
    }

    fn state(pairs: &[(&str, &str)]) -> Contents {
        pairs.iter().map(|(k, v)| ((*k).to_owned().into(), (*v).to_owned().into())).collect()
    }

    #[test]
    fn an_unknown_transaction_happened_wholly_or_not_at_all() {
        let mut model = Model::default();
        model.wrote(&[write("a", "1"), write("b", "1")], &Answer::Done(()));
        model.wrote(&[write("a", "2"), write("b", "2")], &Answer::<()>::Unknown);
        assert!(model.clone().audit(&state(&[("a", "1"), ("b", "1")])).is_ok());
        assert!(model.clone().audit(&state(&[("a", "2"), ("b", "1")])).is_err());
        assert!(model.audit(&state(&[("a", "2"), ("b", "2")])).is_ok());
        // It is resolved now: the state before is no longer allowed.
        assert!(model.audit(&state(&[("a", "1"), ("b", "1")])).is_err());
    }

    #[test]
    fn a_lost_answered_write_and_a_refused_one_that_happened_are_found() {
        let mut model = Model::default();
        model.wrote(&[write("a", "1")], &Answer::Done(()));
        assert!(model.audit(&Contents::new()).is_err());
        let refused = lazuli_store::Error::moved("old map");
        model.wrote(&[write("a", "2")], &Answer::<()>::Refused(refused));
        assert!(model.audit(&state(&[("a", "2")])).is_err());
        assert!(model.audit(&state(&[("a", "1")])).is_ok());
    }
}
