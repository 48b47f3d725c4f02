//! Evaluation without plans, pages and bounded memory: all rows are made, then filtered, grouped, sorted and cut.
//!
//! It shares the evaluation of expressions with the executor and nothing else.

use lazuli_query::Checked;
use lazuli_query::evaluate::{Context, Datum, Frame, evaluate, is_true};
use lazuli_query::tree::{Aggregate, AggregateKind, Expression, Grouping, Level, Source};
use lazuli_value::{Kind, Value, ValueRef, View, canonical, compare, order_key, undefined_key};

/// A row: the values of its slots, and the place of its item.
struct Row {
    slots: Vec<Option<Value>>,
    place: usize,
}

type Failed = String;

/// The key of a group in bytes, its values, and its rows.
type GroupOfRows<'r> = (Vec<u8>, Vec<Option<Value>>, Vec<&'r Row>);

/// The rows of a query over these items, as JSON.
pub(crate) fn rows(checked: &Checked, items: &[Vec<u8>]) -> Result<Vec<String>, Failed> {
    let level = &checked.level;
    let context = Context::new(0, 0);
    let mut rows = Vec::new();
    for (place, item) in items.iter().enumerate() {
        let item = View::parse(item).expect("an item").to_value();
        rows.push(Row { slots: vec![Some(item)], place });
    }
    assert_eq!(level.sources.first(), Some(&Source::Items));
    for source in &level.sources[1..] {
        let Source::Each(array) = source else { panic!("no such source is generated") };
        let mut joined = Vec::new();
        for row in rows {
            if let Some(Value::Array(elements)) = of_row(array, &row.slots, &context)? {
                for element in elements {
                    let mut slots = row.slots.clone();
                    slots.push(Some(element));
                    joined.push(Row { slots, place: row.place });
                }
            }
        }
        rows = joined;
    }
    if let Some(filter) = &level.filter {
        let mut passed = Vec::new();
        for row in rows {
            if with_frame(&row.slots, None, &mut |frame| is_true(filter, frame, &context))
                .map_err(|error| error.to_string())?
            {
                passed.push(row);
            }
        }
        rows = passed;
    }
    let mut outputs = match &level.grouping {
        Some(grouping) => grouped(level, grouping, &rows, &context)?,
        None => sorted(level, &rows, &context)?,
    };
    if level.is_distinct {
        let mut keyed: Vec<(Vec<u8>, Value)> = Vec::new();
        for output in outputs {
            let key = key_of(Some(&output));
            if !keyed.iter().any(|(known, _)| *known == key) {
                keyed.push((key, output));
            }
        }
        keyed.sort_by(|one, two| one.0.cmp(&two.0));
        outputs = keyed.into_iter().map(|(_, output)| output).collect();
    }
    let limit = level.limit.map_or(usize::MAX, |limit| limit as usize);
    let cut = outputs.iter().skip(level.offset as usize).take(limit);
    Ok(cut.map(Value::to_json).collect())
}

fn with_frame<T>(
    slots: &[Option<Value>],
    below: Option<&Frame<'_>>,
    then: &mut dyn FnMut(Option<&Frame<'_>>) -> T,
) -> T {
    match slots.split_first() {
        None => then(below),
        Some((first, rest)) => {
            let frame = Frame::on(below, first.as_ref().map(ValueRef::from));
            with_frame(rest, Some(&frame), then)
        }
    }
}

fn of_row(
    expression: &Expression,
    slots: &[Option<Value>],
    context: &Context,
) -> Result<Option<Value>, Failed> {
    with_frame(slots, None, &mut |frame| {
        let value = evaluate(expression, frame, context).map_err(|error| error.to_string())?;
        Ok(value.map(Datum::into_value))
    })
}

fn key_of(value: Option<&Value>) -> Vec<u8> {
    let mut key = Vec::new();
    match value {
        Some(value) => order_key(value.into(), &mut key),
        None => undefined_key(&mut key),
    }
    key
}

/// The outputs of rows in the order that the query asks for. Ties go by item, backwards if the last part of it does.
fn sorted(level: &Level, rows: &[Row], context: &Context) -> Result<Vec<Value>, Failed> {
    let mut keyed = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        let Some(output) = of_row(&level.output, &row.slots, context)? else { continue };
        let mut keys = Vec::new();
        for sort in &level.sort {
            let by = of_row(&sort.expression, &row.slots, context)?;
            keys.push((key_of(by.as_ref()), sort.is_descending));
        }
        keyed.push((keys, row.place, number, output));
    }
    let is_descending = level.sort.last().is_some_and(|sort| sort.is_descending);
    keyed.sort_by(|one, two| {
        let mut order = std::cmp::Ordering::Equal;
        for ((first, down), (second, _)) in one.0.iter().zip(&two.0) {
            let by = if *down { second.cmp(first) } else { first.cmp(second) };
            order = order.then(by);
        }
        let place = if is_descending { two.1.cmp(&one.1) } else { one.1.cmp(&two.1) };
        order.then(place).then(one.2.cmp(&two.2))
    });
    Ok(keyed.into_iter().map(|(_, _, _, output)| output).collect())
}

/// The outputs of groups in the order of their keys.
fn grouped(
    level: &Level,
    grouping: &Grouping,
    rows: &[Row],
    context: &Context,
) -> Result<Vec<Value>, Failed> {
    let mut groups: Vec<GroupOfRows<'_>> = Vec::new();
    if grouping.keys.is_empty() {
        groups.push((Vec::new(), Vec::new(), Vec::new()));
    }
    for row in rows {
        let mut keys = Vec::new();
        for key in &grouping.keys {
            keys.push(of_row(key, &row.slots, context)?);
        }
        let bytes: Vec<u8> = keys.iter().flat_map(|key| key_of(key.as_ref())).collect();
        match groups.iter_mut().find(|(known, _, _)| *known == bytes) {
            Some((_, _, rows)) => rows.push(row),
            None => groups.push((bytes, keys, vec![row])),
        }
    }
    groups.sort_by(|one, two| one.0.cmp(&two.0));
    let mut outputs = Vec::new();
    for (_, keys, rows) in groups {
        let mut slots = keys;
        for aggregate in &grouping.aggregates {
            let mut values = Vec::new();
            for row in &rows {
                values.extend(of_row(&aggregate.argument, &row.slots, context)?);
            }
            slots.push(aggregated(aggregate, &values));
        }
        outputs.extend(of_row(&level.output, &slots, context)?);
    }
    Ok(outputs)
}

fn aggregated(aggregate: &Aggregate, values: &[Value]) -> Option<Value> {
    let numbers: Option<Vec<f64>> =
        values.iter().map(|value| ValueRef::from(value).as_f64()).collect();
    let sum = |numbers: &[f64]| {
        // Exact in the numbers that are generated, whatever their order.
        let whole: i128 = numbers.iter().map(|number| (number * 2.0) as i128).sum();
        whole as f64 / 2.0
    };
    let has_container = values
        .iter()
        .any(|value| matches!(ValueRef::from(value).kind(), Kind::Array | Kind::Object));
    let by = |one: &&Value, two: &&Value| compare((*one).into(), (*two).into());
    match aggregate.kind {
        AggregateKind::Count => Some(Value::Int64(values.len() as i64)),
        AggregateKind::CountIf => {
            let is_true = |value: &&Value| **value == Value::Bool(true);
            Some(Value::Int64(values.iter().filter(is_true).count() as i64))
        }
        AggregateKind::Sum => Value::number(sum(&numbers?)),
        AggregateKind::Average => match numbers?.as_slice() {
            [] => None,
            numbers => Value::number(sum(numbers) / numbers.len() as f64),
        },
        AggregateKind::Max | AggregateKind::Min if has_container => None,
        AggregateKind::Max => values.iter().max_by(by).cloned(),
        AggregateKind::Min => values.iter().min_by(by).cloned(),
        AggregateKind::MakeList => Some(Value::Array(values.to_vec())),
        AggregateKind::MakeSet => {
            let mut seen: Vec<Vec<u8>> = Vec::new();
            let mut is_new = |value: &&Value| {
                let mut bytes = Vec::new();
                canonical((*value).into(), &mut bytes);
                let is_new = !seen.contains(&bytes);
                if is_new {
                    seen.push(bytes);
                }
                is_new
            };
            Some(Value::Array(values.iter().filter(|value| is_new(value)).cloned().collect()))
        }
    }
}
