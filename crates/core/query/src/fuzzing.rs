//! What a fuzzer calls: any bytes in, a panic if something that must hold does not. The targets in `fuzz/` are these
//! functions; the tests run the same ones on seeds and on changes of them.

use std::sync::Arc;

use lazuli_value::{Value, View, encode_json};

use crate::evaluate::Context;
use crate::execute::{Execution, PageOptions};
use crate::partitioned::{execution_info, required_features};
use crate::plan::{Order, Path, Schema, plan};
use crate::{Continuation, Parameters, Query};

const ITEMS: &[&str] = &[
    r#"{"id":"1","k":"a","n":3,"tags":["x","y"],"o":{"p":1}}"#,
    r#"{"id":"2","k":"b","n":null,"tags":[{"t":1}],"x":2.5}"#,
];

struct Container(Vec<Path>);

impl Schema for Container {
    fn partition_key(&self) -> &[Path] {
        &self.0
    }

    fn is_indexed(&self, _path: &Path) -> bool {
        true
    }
}

/// The text of a query: it is refused, or it reads back the same from its own printing, and can be planned and run.
pub fn query_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let query = match Query::parse(text) {
        Ok(query) => query,
        Err(errors) => {
            let shown = errors.to_json();
            Value::from_json(shown.as_bytes()).expect("errors are JSON");
            return;
        }
    };
    let printed = query.select().to_string();
    match Query::parse(&printed) {
        Ok(again) => assert_eq!(again.select().to_string(), printed),
        // Printing makes names and numbers longer, so only a text near the limit may fail.
        Err(errors) => assert!(text.len() > 100_000, "{printed}: {errors}"),
    }
    let parameters = Parameters::from([("@p".to_owned(), Value::Int64(2))]);
    let Ok(checked) = query.check(&parameters) else { return };
    let _ = required_features(query.select());
    if let Ok(info) = execution_info(&query, &parameters, &[], false) {
        let _ = info.to_json();
    }
    let made = plan(&checked, &Container(vec![Path::of(&["k"])]));
    let _ = made.explain().to_json();
    let options = PageOptions::of_rows(3);
    let context = Context::new(0, 0);
    let is_sorted = made.order == Order::Merged;
    let execution = Execution::new(Arc::new(checked), 0, context, options, is_sorted, None);
    let mut execution = execution.expect("there is no continuation to refuse");
    if execution.reads_nothing() && execution.push_nothing().is_err() {
        return;
    }
    for (place, item) in ITEMS.iter().enumerate() {
        let bytes = encode_json(item.as_bytes()).expect("the items are JSON");
        let view = View::parse(&bytes).expect("it was encoded");
        if execution.reads_nothing() || execution.push(&[place as u8], view).is_err() {
            break;
        }
    }
    if let Ok(page) = execution.finish(true) {
        assert!(page.rows.len() <= 3);
        page.rows.iter().for_each(|row| assert!(View::parse(row).is_ok()));
    }
}

/// A continuation is refused, or it is written as it was read.
pub fn query_continuation(data: &[u8]) {
    if let Ok(continuation) = Continuation::decode(data) {
        assert_eq!(continuation.encode(), data);
        let _ = continuation.is_behind(data);
        resume(continuation);
    }
}

/// What a client brings back is taken up by queries that add up, or refused.
fn resume(continuation: Continuation) {
    for text in [
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT SUM(c.n) AS a, MAX(c.k) AS b FROM c",
        "SELECT c.k, COUNT(1) AS n FROM c GROUP BY c.k",
    ] {
        let query = Query::parse(text).expect("the text is a query");
        let checked = Arc::new(query.check(&Parameters::new()).expect("it needs no parameters"));
        let (fingerprint, context) = (continuation.fingerprint, Context::new(0, 0));
        let (options, start) = (PageOptions::of_rows(3), Some(continuation.clone()));
        if let Ok(begun) = Execution::new(checked, fingerprint, context, options, false, start)
            && let Ok(page) = begun.finish(true)
        {
            page.rows.iter().for_each(|row| assert!(View::parse(row).is_ok()));
        }
    }
}

#[cfg(test)]
mod tests {
    use lazuli_env::SplitMix64;

    /// Runs a check on the seeds of a target and on random changes of them.
    fn on_seeds(seeds: &[&[u8]], check: fn(&[u8])) {
        let mut chance = SplitMix64::new(7);
        for seed in seeds {
            check(seed);
            for _ in 0..300 {
                let mut changed = seed.to_vec();
                for _ in 0..=chance.below(3) {
                    let at = chance.below(changed.len() + 1);
                    match chance.below(3) {
                        0 if at < changed.len() => changed[at] = chance.next_u64() as u8,
                        1 if at < changed.len() => drop(changed.remove(at)),
                        _ => {
                            let from = chance.below(seed.len());
                            let piece = &seed[from..(from + 8).min(seed.len())];
                            changed.splice(at..at, piece.iter().copied());
                        }
                    }
                }
                check(&changed);
            }
        }
    }

    #[test]
    fn texts_of_queries_and_changes_of_them_are_read_or_refused() {
        on_seeds(
            &[
                include_bytes!("../../../../fuzz/seeds/query_text/clauses"),
                include_bytes!("../../../../fuzz/seeds/query_text/expressions"),
                include_bytes!("../../../../fuzz/seeds/query_text/groups"),
                include_bytes!("../../../../fuzz/seeds/query_text/member_of_number"),
                include_bytes!("../../../../fuzz/seeds/query_text/rewritten"),
                include_bytes!("../../../../fuzz/seeds/query_text/subqueries"),
            ],
            super::query_text,
        );
    }

    #[test]
    fn continuations_and_changes_of_them_are_read_or_refused() {
        on_seeds(
            &[
                include_bytes!("../../../../fuzz/seeds/query_continuation/item"),
                include_bytes!("../../../../fuzz/seeds/query_continuation/key"),
                include_bytes!("../../../../fuzz/seeds/query_continuation/sums"),
            ],
            super::query_continuation,
        );
    }
}
