//! Planned execution with indexes against evaluation over all items: the same rows for random items and queries.
//!
//! Every case follows from its seed. A failure names the seed, the query and the plan.

mod container;
mod generate;
mod naive;

use std::collections::BTreeMap;
use std::sync::Arc;

use lazuli_env::SplitMix64;
use lazuli_query::evaluate::Context;
use lazuli_query::execute::{Execution, PageOptions, Wants};
use lazuli_query::plan::{Access, KeyRange, Order, Plan, plan, plan_in_order};
use lazuli_query::{Checked, Continuation, Parameters, Query};
use lazuli_value::View;

use container::Container;
use generate::{Comparison, random_items, random_query};

const CASES: u64 = 4_000;

#[test]
fn plans_give_the_rows_that_a_look_at_every_item_gives() {
    let mut used = BTreeMap::<&str, u32>::new();
    for seed in 0..CASES {
        let access = check(seed);
        *used.entry(access).or_default() += 1;
    }
    // The test is worth something only if plans of every kind were made.
    let kinds = [
        "any of",
        "bounded composite",
        "composite",
        "count",
        "index",
        "items",
        "merged",
        "nothing",
    ];
    for access in kinds {
        assert!(used.get(access).is_some_and(|count| *count > 10), "{access}: {used:?}");
    }
}

/// Runs one case and names the kind of its plan.
fn check(seed: u64) -> &'static str {
    let mut chance = SplitMix64::new(seed);
    let container = Container::new(random_items(&mut chance), &mut chance);
    let (text, comparison) = random_query(&mut chance);
    let query = Query::parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {text}: {error}"));
    let parameters = Parameters::new();
    let checked = query.check(&parameters);
    let checked = Arc::new(checked.unwrap_or_else(|error| panic!("seed {seed}: {text}: {error}")));
    let in_order = plan_in_order(&checked, &container).filter(|_| chance.below(2) == 0);
    let made = in_order.unwrap_or_else(|| plan(&checked, &container));
    let expected = naive::rows(&checked, &container.items);
    let expected = expected.map(|rows| rows.into_iter().map(one_number_type).collect::<Vec<_>>());
    let mut options = PageOptions::of_rows(1 + chance.below(5));
    if chance.below(3) == 0 {
        options.bytes = 20 + chance.below(500);
    }
    let found = all_rows(&checked, &container, &made, &options, &mut chance);
    let (mut expected, mut found) = match (expected, found) {
        (Ok(expected), Ok(found)) => (expected, found),
        (Err(_), Err(_)) => return "error",
        (expected, found) => panic!("seed {seed}: {text}: {expected:?} but {found:?}"),
    };
    if comparison == Comparison::Count {
        expected.iter_mut().chain(&mut found).for_each(String::clear);
    }
    if comparison == Comparison::AnyOrder {
        expected.sort_unstable();
        found.sort_unstable();
    }
    assert_eq!(found, expected, "seed {seed}: {text}\n{}", made.explain().to_json());
    name(&made)
}

fn name(plan: &Plan) -> &'static str {
    match (&plan.access, plan.order) {
        _ if plan.is_count => "count",
        (Access::Composite { ranges, .. }, _) if *ranges != [KeyRange::all()] => {
            "bounded composite"
        }
        (Access::Composite { .. }, _) => "composite",
        (_, Order::Merged) => "merged",
        (Access::AnyOf(_), _) => "any of",
        (Access::Index(_), _) => "index",
        (Access::Items, _) => "items",
        (Access::Nothing, _) => "nothing",
        (Access::OneRow, _) => "one row",
    }
}

/// Of equal numbers of two types it is left open which one stands for both.
fn one_number_type(row: String) -> String {
    row.replace("2.0", "2")
}

/// All rows of a query in pages, as JSON.
fn all_rows(
    checked: &Arc<Checked>,
    container: &Container,
    plan: &Plan,
    options: &PageOptions,
    chance: &mut SplitMix64,
) -> Result<Vec<String>, String> {
    let places = container.places(plan);
    let mut rows = Vec::new();
    let mut continuation: Option<Continuation> = None;
    loop {
        // A continuation goes through its bytes, as between two requests.
        let bytes = continuation.as_ref().map(Continuation::encode);
        let start = bytes.map(|bytes| Continuation::decode(&bytes).expect("it was encoded"));
        let mut execution = Execution::new(
            checked.clone(),
            1,
            Context::new(0, 0),
            options.clone(),
            plan.order == Order::Merged,
            start.clone(),
        )
        .map_err(|error| error.to_string())?;
        let first = start.as_ref().map_or(0, |start| container.first_place(&places, start));
        let is_end = push(&mut execution, container, plan, &places[first..], chance)?;
        let page = execution.finish(is_end).map_err(|error| error.to_string())?;
        let texts = page.rows.iter().map(|row| View::parse(row).expect("a row").to_json());
        rows.extend(texts.map(one_number_type));
        match page.continuation {
            Some(next) => continuation = Some(next),
            None => return Ok(rows),
        }
    }
}

/// Pushes what is left, unless the page is full or, by chance, out of time.
fn push(
    execution: &mut Execution,
    container: &Container,
    plan: &Plan,
    places: &[usize],
    chance: &mut SplitMix64,
) -> Result<bool, String> {
    if plan.access == Access::OneRow {
        execution.push_nothing().map_err(|error| error.to_string())?;
        return Ok(true);
    }
    let mut is_late = |execution: &Execution| chance.below(8) == 0 && execution.can_pause();
    if plan.is_count {
        for place in places {
            execution.push_count(1, Some(&container::key(*place)));
            if is_late(execution) {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    for place in places {
        let item = &container.items[*place];
        let view = View::parse(item).expect("an item");
        let wants = execution.push(&container::key(*place), view);
        if wants.map_err(|error| error.to_string())? == Wants::NoMore || is_late(execution) {
            return Ok(false);
        }
    }
    Ok(true)
}
