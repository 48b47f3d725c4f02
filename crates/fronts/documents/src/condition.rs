//! Conditions of patches: `from c where …` over the item as it is.

use lazuli_value::Value;

use crate::error::{Fault, Result};
use crate::query::{Prepared, page_of, prepare_text};

pub(crate) struct Condition(Prepared);

pub(crate) fn parse(text: &str) -> Result<Condition> {
    let query = format!("SELECT VALUE 1 {text}");
    let prepared = prepare_text(&query, Default::default(), &[]);
    prepared.map(Condition).map_err(|fault| {
        Fault::bad_request(format!("The condition of the patch is invalid: {}", fault.message))
    })
}

impl Condition {
    /// Whether the item meets it. One that cannot be decided is not met.
    pub(crate) fn holds(&self, item: &Value) -> bool {
        page_of(&self.0, 0, 1, std::slice::from_ref(item), None)
            .is_ok_and(|page| !page.rows.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_the_tail_of_a_query() {
        let item = Value::from_json(br#"{"id":"1","n":5}"#).unwrap();
        assert!(parse("from c where c.n > 4").unwrap().holds(&item));
        assert!(!parse("from c where c.n > 5").unwrap().holds(&item));
        assert!(!parse("FROM c WHERE c.missing").unwrap().holds(&item));
        assert!(parse("where").is_err() && parse("from c where (").is_err());
    }
}
