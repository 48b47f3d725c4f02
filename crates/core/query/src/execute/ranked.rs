//! Rows of ORDER BY RANK: they are held with what is known of them, because a score depends on all rows.

use lazuli_value::Value;

use super::output::encoded;
use crate::error::QueryError;
use crate::evaluate::{Context, Datum, Frame, append_sort_key, evaluate, value_bytes};
use crate::limits::MEMORY_BYTES_MAX;
use crate::tree::Level;

pub(super) struct Ranked {
    /// What tells a row apart from others, and the encoded row.
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    /// What the expression of the order gave for each of them.
    evidence: Vec<Value>,
    bytes: usize,
    /// Keys up to this one were given by an earlier page.
    after: Option<Vec<u8>>,
}

impl Ranked {
    pub(super) fn new(after: Option<Vec<u8>>) -> Self {
        Self { rows: Vec::new(), evidence: Vec::new(), bytes: 0, after }
    }

    pub(super) fn push(
        &mut self,
        level: &Level,
        place: Vec<u8>,
        row: Option<&Frame<'_>>,
        context: &Context,
    ) -> Result<(), QueryError> {
        let Some(sort) = level.sort.first() else { return Ok(()) };
        let Some(output) = encoded(&level.output, row, context)? else { return Ok(()) };
        let evidence = evaluate(&sort.expression, row, context)?;
        let evidence = evidence.map_or(Value::Null, Datum::into_value);
        self.bytes += place.len() + output.len() + value_bytes((&evidence).into());
        if self.bytes > MEMORY_BYTES_MAX {
            let limit = MEMORY_BYTES_MAX / (1024 * 1024);
            let message = format!("The rows to be ranked need more memory than {limit} MB.");
            return Err(QueryError::too_large(message));
        }
        self.rows.push((place, output));
        self.evidence.push(evidence);
        Ok(())
    }

    /// The rows behind those of earlier pages with their sort keys, the best first.
    pub(super) fn finish(self, level: &Level) -> Vec<(Vec<u8>, Vec<u8>)> {
        let scores = level.ranking.as_ref().map(|ranking| ranking.scores(&self.evidence));
        let mut entries = Vec::with_capacity(self.rows.len());
        for ((place, row), score) in self.rows.into_iter().zip(scores.unwrap_or_default()) {
            let mut key = Vec::new();
            append_sort_key(Some((&Value::Double(score)).into()), true, &mut key);
            key.extend_from_slice(&place);
            if self.after.as_ref().is_none_or(|after| key > *after) {
                entries.push((key, row));
            }
        }
        entries.sort_unstable_by(|one, two| one.0.cmp(&two.0));
        entries
    }
}
