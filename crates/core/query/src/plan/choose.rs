//! Choosing a plan: of all that would give the right items, what reads the least.

use super::condition::{Breadth, Condition, Entry, Reader};
use super::path::Path;
use super::range::KeyRange;
use super::{Access, IndexScan, Order, Plan, Schema, UnservedOrder};
use crate::check::Checked;
use crate::functions::rank::Ranking;
use crate::syntax::BinaryOp;
use crate::tree::{AggregateKind, Expression, Level, Source};
use lazuli_value::Value;

/// The plan of a query over a container.
pub fn plan(checked: &Checked, schema: &dyn Schema) -> Plan {
    let mut innermost = checked;
    while let Some(before) = &innermost.before {
        innermost = before;
    }
    let is_whole = checked.before.is_none();
    let level = &innermost.level;
    let mut plan = Plan {
        partition_key: Vec::new(),
        access: Access::Items,
        order: Order::Any,
        is_exact: level.filter.is_none(),
        is_count: false,
        unserved_order: None,
    };
    if level.sources.first() != Some(&Source::Items) {
        plan.access = Access::OneRow;
        return plan;
    }
    let mut reader = Reader::new(schema);
    reader.bind(level);
    let condition = match &level.filter {
        Some(filter) => reader.condition(filter),
        None => Condition::Anything,
    };
    if level.limit == Some(0) || matches!(condition, Condition::Never) {
        plan.access = Access::Nothing;
        return plan;
    }
    plan.partition_key = partition_key(level, &reader, schema);
    let best = best(&condition, schema);
    let breadth = best.as_ref().map(|best| best.breadth);
    if let Some(best) = best {
        plan.is_exact = best.is_exact;
        plan.access = best.access;
    }
    if is_whole && !level.sort.is_empty() && level.grouping.is_none() && !level.is_distinct {
        order(level, &reader, schema, breadth, &mut plan);
    }
    plan.is_count = is_whole && plan.is_exact && counts(level);
    plan
}

/// The access for a condition.
struct Best {
    access: Access,
    breadth: Breadth,
    is_exact: bool,
    /// Tells accesses of one breadth apart: less is better.
    hint: u8,
    /// Entries that are read, if that is known.
    entries: Option<u64>,
}

fn best(condition: &Condition, schema: &dyn Schema) -> Option<Best> {
    match condition {
        Condition::Anything | Condition::Never => None,
        Condition::Entry(entry) => Some(of_entry(entry, schema)),
        Condition::All(parts) => {
            let candidates = parts.iter().filter_map(|part| best(part, schema));
            candidates.min_by(|one, two| match (one.entries, two.entries) {
                (Some(one), Some(two)) => one.cmp(&two),
                _ => (one.breadth, one.hint).cmp(&(two.breadth, two.hint)),
            })
        }
        Condition::Any(parts) => {
            let mut scans = Vec::new();
            let (mut breadth, mut entries, mut is_exact) = (Breadth::Several, Some(0_u64), true);
            for part in parts {
                let best = best(part, schema)?;
                match best.access {
                    Access::Index(scan) => scans.push(scan),
                    Access::AnyOf(more) => scans.extend(more),
                    _ => return None,
                }
                breadth = breadth.max(best.breadth);
                entries = entries.zip(best.entries).map(|(one, two)| one.saturating_add(two));
                is_exact &= best.is_exact;
            }
            Some(Best { access: Access::AnyOf(scans), breadth, hint: 1, is_exact, entries })
        }
    }
}

fn of_entry(entry: &Entry, schema: &dyn Schema) -> Best {
    let scan = entry.scan(false);
    let entries = schema.estimate(&scan);
    let hint = match &entry.path {
        path if schema.is_selective(path) => 0,
        // What all items of a shardlet have in common tells none of them apart.
        path if schema.partition_key().contains(path) => 2,
        _ => 1,
    };
    let (breadth, is_exact) = (entry.breadth, entry.is_exact);
    Best { access: Access::Index(scan), breadth, hint, is_exact, entries }
}

/// Values that the filter fixes for the paths of the partition key, from the first one on.
fn partition_key(level: &Level, reader: &Reader<'_>, schema: &dyn Schema) -> Vec<Option<Value>> {
    let Some(filter) = &level.filter else { return Vec::new() };
    let conditions = match filter {
        Expression::And(parts) => parts.as_slice(),
        one => std::slice::from_ref(one),
    };
    let fixed = |path: &Path| {
        conditions.iter().find_map(|condition| {
            let Expression::Binary(BinaryOp::Equal, one, two) = condition else { return None };
            let (place, value) = match (one.as_constant(), two.as_constant()) {
                (None, Some(value)) => (one, value),
                (Some(value), None) => (two, value),
                _ => return None,
            };
            (reader.path(place).as_ref() == Some(path)).then(|| Some(value.clone()))
        })
    };
    schema.partition_key().iter().map_while(fixed).collect()
}

/// Has an index give the order if one can, and if the filter is not better served by another one.
fn order(
    level: &Level,
    reader: &Reader<'_>,
    schema: &dyn Schema,
    breadth: Option<Breadth>,
    plan: &mut Plan,
) {
    let paths: Option<Vec<(Path, bool)>> = level
        .sort
        .iter()
        .map(|sort| {
            let path = reader.path(&sort.expression).filter(|path| !path.has_elements())?;
            Some((path, sort.is_descending))
        })
        .collect();
    let Some(paths) = paths else {
        // A score or a distance has no index, and needs none.
        if level.sort.iter().any(|sort| Ranking::of(&sort.expression).is_some()) {
            return;
        }
        plan.unserved_order = Some(UnservedOrder::Path);
        return;
    };
    let is_narrow = breadth.is_some_and(|breadth| breadth <= Breadth::Prefix);
    let [(path, is_descending)] = paths.as_slice() else {
        return composite_order(&paths, schema, is_narrow, plan);
    };
    if let Access::Index(scan) = &mut plan.access
        && scan.path == *path
    {
        scan.is_descending = *is_descending;
        plan.order = Order::Merged;
        return;
    }
    if path.0.is_empty() || !schema.is_indexed(path) {
        plan.unserved_order = Some(UnservedOrder::Path);
        return;
    }
    let is_everywhere = schema.is_everywhere(path);
    if is_narrow || !(is_everywhere || schema.finds_missing()) {
        return;
    }
    plan.access = Access::Index(IndexScan {
        path: path.clone(),
        ranges: vec![KeyRange::all()],
        is_descending: *is_descending,
        has_missing: !is_everywhere,
    });
    plan.order = Order::Merged;
    plan.is_exact = level.filter.is_none();
}

fn composite_order(paths: &[(Path, bool)], schema: &dyn Schema, is_narrow: bool, plan: &mut Plan) {
    let found = schema.composites().iter().enumerate().find_map(|(place, composite)| {
        let one = &composite.paths;
        let same = one.as_slice() == paths;
        let opposite = one.len() == paths.len()
            && one.iter().zip(paths).all(|(one, two)| one.0 == two.0 && one.1 != two.1);
        (same || opposite).then_some((place, opposite))
    });
    match found {
        None => plan.unserved_order = Some(UnservedOrder::Composite),
        Some(_) if is_narrow => {}
        Some((composite, is_descending)) => {
            plan.access = Access::Composite { composite, is_descending };
            plan.order = Order::Merged;
            plan.is_exact = false;
        }
    }
}

/// Whether a query gives nothing but the number of its rows, one for each item.
fn counts(level: &Level) -> bool {
    let Some(grouping) = &level.grouping else { return false };
    let is_count = grouping.aggregates.iter().all(|aggregate| {
        let is_defined = aggregate.argument.as_constant().is_some();
        aggregate.kind == AggregateKind::Count && is_defined
    });
    is_count && grouping.keys.is_empty() && level.sources.len() == 1
}
