//! Choosing a plan: of all that would give the right items, what reads the least.

use super::condition::{Breadth, Condition, Entry, Reader};
use super::path::Path;
use super::range::KeyRange;
use super::{Access, Composite, IndexScan, Order, Plan, Schema, UnservedOrder};
use crate::check::Checked;
use crate::functions::rank::Ranking;
use crate::syntax::BinaryOp;
use crate::tree::{AggregateKind, Expression, Level, Source};
use lazuli_value::Value;

/// The plan of a query over a container.
pub fn plan(checked: &Checked, schema: &dyn Schema) -> Plan {
    made(checked, schema, false)
}

/// The plan that reads items in the order that the query asks for, whatever its filter is, if an index has that order.
/// Where many items pass the filter, it fills a page sooner than [`plan`], which would have all of them sorted.
pub fn plan_in_order(checked: &Checked, schema: &dyn Schema) -> Option<Plan> {
    Some(made(checked, schema, true)).filter(|plan| plan.order == Order::Merged)
}

fn made(checked: &Checked, schema: &dyn Schema, prefers_order: bool) -> Plan {
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
    let is_narrow = best.as_ref().is_some_and(|best| best.breadth <= Breadth::Prefix);
    if let Some(best) = best {
        plan.is_exact = best.is_exact;
        plan.access = best.access;
    }
    if is_whole && !level.sort.is_empty() && level.grouping.is_none() && !level.is_distinct {
        let filter = Filter { condition: &condition, is_narrow: is_narrow && !prefers_order };
        order(level, &reader, schema, &filter, &mut plan);
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

/// What a filter says, and whether its index is likely to find few items, so that it is read rather than that of the order.
struct Filter<'a> {
    condition: &'a Condition,
    is_narrow: bool,
}

/// Has an index give the order if one can, and if the filter is not better served by another one.
fn order(
    level: &Level,
    reader: &Reader<'_>,
    schema: &dyn Schema,
    filter: &Filter<'_>,
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
    let [(path, is_descending)] = paths.as_slice() else {
        match composite_order(&paths, filter, schema) {
            None => plan.unserved_order = Some(UnservedOrder::Composite),
            Some(served) => served.take(filter, plan),
        }
        return;
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
    if let Some(served) = composite_order(&paths, filter, schema) {
        served.take(filter, plan);
    }
    if plan.order == Order::Merged || filter.is_narrow {
        return;
    }
    let bounds = filter.condition.entry(path).map(|entry| entry.scan(*is_descending));
    let is_everywhere = schema.is_everywhere(path);
    if bounds.is_none() && !is_everywhere && !schema.finds_missing() {
        return;
    }
    plan.access = Access::Index(bounds.unwrap_or(IndexScan {
        path: path.clone(),
        ranges: vec![KeyRange::all()],
        is_descending: *is_descending,
        has_missing: !is_everywhere,
    }));
    plan.order = Order::Merged;
    plan.is_exact = level.filter.is_none();
}

impl Condition {
    /// What it demands of the values at one path, beside what it demands of others.
    pub(super) fn entry(&self, path: &Path) -> Option<&Entry> {
        let parts = match self {
            Self::All(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        parts.iter().find_map(|part| match part {
            Self::Entry(entry) if entry.path == *path && !path.has_elements() => Some(entry),
            _ => None,
        })
    }

    /// The order keys of the values that it fixes for these paths, from the first one on.
    pub(super) fn fixed(&self, paths: &[(Path, bool)]) -> Vec<Vec<u8>> {
        let value = |(path, _): &(Path, bool)| match self.entry(path)?.ranges.as_slice() {
            [range] if range.is_one_value() => Some(range.from.clone()),
            _ => None,
        };
        paths.iter().map_while(value).collect()
    }
}

/// A composite index that has an order.
struct Served {
    access: Access,
    /// The paths at its beginning whose values the filter fixes: only their entries are read.
    fixed: Vec<Path>,
}

impl Served {
    /// Reads by this index, unless the filter has a better one.
    fn take(self, filter: &Filter<'_>, plan: &mut Plan) {
        let is_as_narrow =
            matches!(&plan.access, Access::Index(scan) if self.fixed.contains(&scan.path));
        if filter.is_narrow && !is_as_narrow {
            return;
        }
        plan.access = self.access;
        plan.order = Order::Merged;
        plan.is_exact = false;
    }
}

/// A composite index that ends with the paths of an order, all in its directions or all in the opposite ones. The paths in
/// front of them must be fixed by the filter.
fn composite_order(
    paths: &[(Path, bool)],
    filter: &Filter<'_>,
    schema: &dyn Schema,
) -> Option<Served> {
    let fits = |composite: &Composite| {
        let head = composite.paths.len().checked_sub(paths.len())?;
        let tail = &composite.paths[head..];
        let is_opposite = tail.iter().zip(paths).all(|(one, two)| one.0 == two.0 && one.1 != two.1);
        let values = filter.condition.fixed(&composite.paths);
        let fits = (tail == paths || is_opposite) && values.len() >= head;
        fits.then_some((is_opposite, values))
    };
    // The one of which the least is read comes first.
    let all = schema.composites().iter().enumerate();
    let found = all.filter_map(|(place, composite)| Some((place, fits(composite)?)));
    let (place, (is_descending, values)) = found.max_by_key(|(_, (_, values))| values.len())?;
    let composite = &schema.composites()[place].paths;
    let mut front = Vec::new();
    for (value, (_, descends)) in values.iter().zip(composite) {
        let turned = value.iter().map(|byte| if *descends { !*byte } else { *byte });
        front.extend(turned);
    }
    let next = composite.get(values.len());
    let bounds = next.and_then(|(path, down)| Some((filter.condition.entry(path)?, *down)));
    let ranges = match bounds {
        Some((entry, is_turned)) => {
            let mut ranges: Vec<KeyRange> =
                entry.ranges.iter().map(|range| range.behind_key(&front, is_turned)).collect();
            if is_turned {
                ranges.reverse();
            }
            ranges
        }
        None => vec![KeyRange::all().behind_key(&front, false)],
    };
    let fixed = composite[..values.len()].iter().map(|(path, _)| path.clone()).collect();
    Some(Served { access: Access::Composite { composite: place, ranges, is_descending }, fixed })
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
