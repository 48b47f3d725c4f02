//! The service's query plan document: what a client has to do that sends a query to each partition by itself.
//!
//! The query is rewritten so that partitions give what the client merges: the values that it sorts by, partial
//! aggregates, and group keys.

use lazuli_value::{Object, Value};

use crate::Query;
use crate::check::{Checked, Parameters, aggregate_kind, alias, has_aggregate, implied_name};
use crate::error::{QueryError, QueryErrors, Span};
use crate::syntax::{Count, Expr, ExprKind, OrderItem, Projection, Select};
use crate::tree::AggregateKind;

/// What stands in a rewritten filter, for the client to put its own condition in.
const FILTER_PLACE: &str = "({documentdb-formattableorderbyquery-filter})";

/// A range of effective partition keys. Both ends are included if it is one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyHashRange {
    pub min: String,
    pub max: String,
    pub is_max_inclusive: bool,
}

/// The document for a query. It is refused for ORDER BY RANK and for queries over the complete result of another one: no
/// client can put their results together from those of partitions. `ranges` are those that the query has to be sent to; `is_one_key` says that they are one
/// partition key, so that the partition does everything by itself.
pub fn execution_info(
    query: &Query,
    parameters: &Parameters,
    ranges: &[KeyHashRange],
    is_one_key: bool,
) -> Result<Value, QueryErrors> {
    let checked = query.check(parameters)?;
    if !is_one_key && (query.select().is_ranked || checked.before.is_some()) {
        let message = "Partitions cannot run parts of this query. The server runs it as a whole.";
        return Err(QueryError::invalid(message).into());
    }
    let info = if is_one_key { Info::default() } else { Info::of(query.select(), &checked) };
    let ranges = ranges.iter().map(|range| {
        object([
            ("min", range.min.clone().into()),
            ("max", range.max.clone().into()),
            ("isMinInclusive", true.into()),
            ("isMaxInclusive", range.is_max_inclusive.into()),
        ])
    });
    Ok(object([
        ("partitionedQueryExecutionInfoVersion", Value::Int64(2)),
        ("queryInfo", info.into_value(query.select())),
        ("queryRanges", Value::Array(ranges.collect())),
    ]))
}

/// The features that a client must have to merge the results of a query, by the service's names.
pub fn required_features(select: &Select) -> Vec<&'static str> {
    let projected = projected(select);
    let is_value = matches!(select.projection, Projection::Value(_));
    let aggregates: Vec<AggregateKind> = projected.iter().filter_map(|(_, it)| kind(it)).collect();
    let has_aggregates = projected.iter().any(|(_, it)| has_aggregate(it));
    let mut features = Vec::new();
    let mut add = |is: bool, name: &'static str| features.extend(is.then_some(name));
    add(has_aggregates, "Aggregate");
    add(has_aggregates && !is_value, "NonValueAggregate");
    add(aggregates.len() > 1, "MultipleAggregates");
    add(aggregates.contains(&AggregateKind::CountIf), "CountIf");
    let lists = [AggregateKind::MakeList, AggregateKind::MakeSet];
    add(aggregates.iter().any(|it| lists.contains(it)), "ListAndSetAggregate");
    add(select.is_distinct, "Distinct");
    add(!select.group.is_empty(), "GroupBy");
    add(select.limit.is_some(), "OffsetAndLimit");
    add(!select.order.is_empty() && !select.is_ranked, "OrderBy");
    add(select.order.len() > 1 && !select.is_ranked, "MultipleOrderBy");
    add(is_unstreamed(select), "NonStreamingOrderBy");
    add(select.is_ranked, "HybridSearch");
    add(select.top.is_some(), "Top");
    features
}

/// An order by a distance that no index serves: a client has to hold all rows that it gives.
fn is_unstreamed(select: &Select) -> bool {
    let is_distance = |item: &OrderItem| match &item.expression.kind {
        ExprKind::Call { name, .. } => name.eq_ignore_ascii_case("VectorDistance"),
        _ => false,
    };
    !select.is_ranked && select.order.iter().any(is_distance)
}

/// What the client does with the rows of partitions.
#[derive(Default)]
struct Info {
    distinct: Option<&'static str>,
    top: Option<u64>,
    offset: Option<u64>,
    limit: Option<u64>,
    order: Vec<(bool, String)>,
    group: Vec<String>,
    group_aliases: Vec<String>,
    aggregates: Vec<AggregateKind>,
    alias_kinds: Vec<(String, Option<AggregateKind>)>,
    rewritten: Option<Select>,
}

impl Info {
    fn of(select: &Select, checked: &Checked) -> Self {
        let level = &checked.level;
        let mut info = Self::default();
        if select.is_distinct {
            let is_ordered = !level.sort.is_empty();
            info.distinct = Some(if is_ordered { "Ordered" } else { "Unordered" });
        }
        if select.top.is_some() {
            info.top = level.limit;
        } else if select.limit.is_some() {
            (info.offset, info.limit) = (Some(level.offset), level.limit);
        }
        let order = select.order.iter();
        info.order = order.map(|it| (it.is_descending, it.expression.to_string())).collect();
        info.group = select.group.iter().map(Expr::to_string).collect();
        let mut rewritten = select.clone();
        let mut is_rewritten = false;
        if let (Some(offset), Some(limit)) = (info.offset, info.limit) {
            rewritten.offset = Some(Count::Number(0));
            rewritten.limit = Some(Count::Number(offset.saturating_add(limit)));
            is_rewritten = true;
        }
        if level.grouping.is_some() {
            info.grouped(select, &mut rewritten);
            is_rewritten = true;
        } else if !select.order.is_empty() && !select.is_ranked {
            ordered(select, &mut rewritten);
            is_rewritten = true;
        }
        info.rewritten = is_rewritten.then_some(rewritten);
        info
    }

    /// Aggregates become parts that can be merged; with keys, each row says which group it belongs to.
    fn grouped(&mut self, select: &Select, rewritten: &mut Select) {
        let payload = match &select.projection {
            Projection::Value(value) => match kind(value) {
                Some(kind) => {
                    self.aggregates.push(kind);
                    partial(value)
                }
                None => value.clone(),
            },
            _ => {
                let mut properties = Vec::new();
                for (name, value) in projected(select) {
                    let kind = kind(value);
                    let is_aggregate = kind.is_some();
                    self.alias_kinds.push((name.clone(), kind));
                    if !is_aggregate {
                        self.group_aliases.push(name.clone());
                    }
                    properties
                        .push((name, if is_aggregate { partial(value) } else { value.clone() }));
                }
                made(ExprKind::Object(properties))
            }
        };
        let is_value = matches!(select.projection, Projection::Value(_));
        rewritten.projection = if select.group.is_empty() && is_value {
            Projection::Value(made(ExprKind::Array(vec![payload])))
        } else if select.group.is_empty() {
            Projection::List(vec![(payload, Some("payload".into()))])
        } else {
            let items = made(ExprKind::Array(select.group.iter().map(item).collect()));
            let list =
                vec![(items, Some("groupByItems".into())), (payload, Some("payload".into()))];
            Projection::List(list)
        };
    }

    fn into_value(self, select: &Select) -> Value {
        let count = |count: Option<u64>| match count {
            Some(count) => Value::Int64(i64::try_from(count).unwrap_or(i64::MAX)),
            None => Value::Null,
        };
        let names = |names: Vec<String>| Value::Array(names.into_iter().map(Value::from).collect());
        let direction = |(is_descending, _): &(bool, String)| {
            Value::from(if *is_descending { "Descending" } else { "Ascending" })
        };
        let kinds = self.alias_kinds.into_iter();
        let kinds = kinds.map(|(alias, kind)| (alias, kind.map_or(Value::Null, kind_name)));
        let is_value = matches!(select.projection, Projection::Value(_));
        let rewritten = self.rewritten.map(|select| select.to_string()).unwrap_or_default();
        object([
            ("distinctType", self.distinct.unwrap_or("None").into()),
            ("top", count(self.top)),
            ("offset", count(self.offset)),
            ("limit", count(self.limit)),
            ("orderBy", Value::Array(self.order.iter().map(direction).collect())),
            ("orderByExpressions", names(self.order.into_iter().map(|(_, text)| text).collect())),
            ("groupByExpressions", names(self.group)),
            ("groupByAliases", names(self.group_aliases)),
            ("aggregates", Value::Array(self.aggregates.into_iter().map(kind_name).collect())),
            ("groupByAliasToAggregateType", Value::Object(kinds.collect())),
            ("rewrittenQuery", rewritten.into()),
            ("hasSelectValue", is_value.into()),
            ("hasNonStreamingOrderBy", is_unstreamed(select).into()),
            ("dCountInfo", Value::Null),
        ])
    }
}

fn object<const N: usize>(properties: [(&str, Value); N]) -> Value {
    let owned = properties.into_iter().map(|(name, value)| (name.to_owned(), value));
    Value::Object(owned.collect::<Object>())
}

fn made(kind: ExprKind) -> Expr {
    let height = kind.height();
    Expr { kind, span: Span::default(), height }
}

/// `{"item": value}`.
fn item(value: &Expr) -> Expr {
    made(ExprKind::Object(vec![("item".into(), value.clone())]))
}

fn kind(expression: &Expr) -> Option<AggregateKind> {
    match &expression.kind {
        ExprKind::Call { name, .. } => aggregate_kind(name),
        _ => None,
    }
}

fn kind_name(kind: AggregateKind) -> Value {
    Value::from(match kind {
        AggregateKind::Average => "Average",
        AggregateKind::Count => "Count",
        AggregateKind::CountIf => "CountIf",
        AggregateKind::Max => "Max",
        AggregateKind::Min => "Min",
        AggregateKind::Sum => "Sum",
        AggregateKind::MakeList => "MakeList",
        AggregateKind::MakeSet => "MakeSet",
    })
}

/// The projected expressions with the names of their properties.
fn projected(select: &Select) -> Vec<(String, &Expr)> {
    match &select.projection {
        Projection::Star(_) => Vec::new(),
        Projection::Value(value) => vec![(String::new(), value)],
        Projection::List(list) => {
            let mut unnamed = 0;
            let mut name = |expression: &Expr, alias: &Option<String>| {
                alias
                    .clone()
                    .or_else(|| implied_name(expression).map(str::to_owned))
                    .unwrap_or_else(|| {
                        unnamed += 1;
                        format!("${unnamed}")
                    })
            };
            list.iter().map(|(expression, alias)| (name(expression, alias), expression)).collect()
        }
    }
}

/// An aggregate in the form that can be merged: `{"item": …}`, with counts where an empty partition matters.
fn partial(aggregate: &Expr) -> Expr {
    let (Some(kind), ExprKind::Call { arguments, .. }) = (kind(aggregate), &aggregate.kind) else {
        return item(aggregate);
    };
    let call =
        |name: &str| made(ExprKind::Call { name: name.to_owned(), arguments: arguments.clone() });
    let both = |name: &str, first: Expr| {
        made(ExprKind::Object(vec![(name.to_owned(), first), ("count".into(), call("COUNT"))]))
    };
    match kind {
        AggregateKind::Average => item(&both("sum", call("SUM"))),
        AggregateKind::Min | AggregateKind::Max => {
            let name = if kind == AggregateKind::Min { "min" } else { "max" };
            let second = both(name, aggregate.clone());
            made(ExprKind::Object(vec![
                ("item".into(), aggregate.clone()),
                ("item2".into(), second),
            ]))
        }
        _ => item(aggregate),
    }
}

/// Rows with what they are sorted by, and a place in the filter for where the client goes on.
fn ordered(select: &Select, rewritten: &mut Select) {
    let Some(source) = select.from.first().and_then(alias) else { return };
    let root = made(ExprKind::Name(source));
    let rid = made(ExprKind::Property(Box::new(root.clone()), "_rid".into()));
    let items = select.order.iter().map(|order| item(&order.expression)).collect();
    let payload = match &select.projection {
        Projection::Star(_) => root,
        Projection::Value(value) => value.clone(),
        Projection::List(_) => {
            let properties = projected(select).into_iter();
            made(ExprKind::Object(properties.map(|(name, it)| (name, it.clone())).collect()))
        }
    };
    rewritten.is_distinct = false;
    rewritten.projection = Projection::List(vec![
        (rid, None),
        (made(ExprKind::Array(items)), Some("orderByItems".into())),
        (payload, Some("payload".into())),
    ]);
    let place = made(ExprKind::Name(FILTER_PLACE.to_owned()));
    rewritten.filter = Some(match &select.filter {
        Some(filter) => made(ExprKind::And(vec![filter.clone(), place])),
        None => place,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(text: &str) -> Value {
        let query = Query::parse(text).unwrap();
        let all = KeyHashRange { min: String::new(), max: "FF".into(), is_max_inclusive: false };
        execution_info(&query, &Parameters::new(), &[all], false).unwrap()
    }

    #[track_caller]
    fn check(text: &str, rewritten: &str, expected: &[(&str, &str)]) {
        let info = info(text);
        let Value::Object(info) = info else { panic!("not an object") };
        let Some(Value::Object(info)) = info.get("queryInfo") else { panic!("no queryInfo") };
        let Some(Value::String(found)) = info.get("rewrittenQuery") else { panic!("no text") };
        assert_eq!(found.replace('\n', " "), rewritten);
        for (name, value) in expected {
            assert_eq!(info.get(name).unwrap().to_json(), *value, "{name} of {text}");
        }
        // A partition must be able to run what clients send it.
        if !found.is_empty() {
            let sent = found.replace(FILTER_PLACE, "(true)");
            Query::parse(&sent).unwrap().check(&Parameters::new()).unwrap();
        }
    }

    #[test]
    fn what_needs_no_merging_is_not_rewritten() {
        check(
            "SELECT * FROM c WHERE c.a = 1",
            "",
            &[("distinctType", "\"None\""), ("top", "null")],
        );
        check("SELECT TOP 5 * FROM c", "", &[("top", "5")]);
        check("SELECT DISTINCT VALUE c.a FROM c", "", &[("distinctType", "\"Unordered\"")]);
        let text = info("SELECT * FROM c").to_json();
        assert!(text.starts_with("{\"partitionedQueryExecutionInfoVersion\":2,\"queryInfo\":{"));
        let ranges = "\"queryRanges\":[{\"min\":\"\",\"max\":\"FF\",\
                      \"isMinInclusive\":true,\"isMaxInclusive\":false}]}";
        assert!(text.ends_with(ranges));
    }

    #[test]
    fn an_order_is_rewritten_so_that_clients_can_merge_it() {
        check(
            "SELECT * FROM c WHERE c.a = 1 ORDER BY c.n DESC",
            "SELECT c._rid, [{\"item\": c.n}] AS orderByItems, c AS payload FROM c \
             WHERE ((c.a = 1) AND ({documentdb-formattableorderbyquery-filter})) ORDER BY c.n DESC",
            &[("orderBy", "[\"Descending\"]"), ("orderByExpressions", "[\"c.n\"]")],
        );
        check(
            "SELECT r.x, r.y AS z FROM root r ORDER BY r.n OFFSET 2 LIMIT 3",
            "SELECT r._rid, [{\"item\": r.n}] AS orderByItems, {\"x\": r.x, \"z\": r.y} AS payload \
             FROM root AS r WHERE ({documentdb-formattableorderbyquery-filter}) ORDER BY r.n ASC \
             OFFSET 0 LIMIT 5",
            &[("offset", "2"), ("limit", "3"), ("hasSelectValue", "false")],
        );
    }

    #[test]
    fn aggregates_are_rewritten_into_parts() {
        check(
            "SELECT VALUE COUNT(1) FROM c",
            "SELECT VALUE [{\"item\": COUNT(1)}] FROM c",
            &[("aggregates", "[\"Count\"]"), ("hasSelectValue", "true")],
        );
        check(
            "SELECT VALUE AVG(c.x) FROM c",
            "SELECT VALUE [{\"item\": {\"sum\": SUM(c.x), \"count\": COUNT(c.x)}}] FROM c",
            &[("aggregates", "[\"Average\"]")],
        );
        check(
            "SELECT VALUE MIN(c.x) FROM c",
            "SELECT VALUE [{\"item\": MIN(c.x), \"item2\": {\"min\": MIN(c.x), \"count\": COUNT(c.x)}}] \
             FROM c",
            &[],
        );
        check(
            "SELECT COUNT(1) AS n, SUM(c.x) FROM c",
            "SELECT {\"n\": {\"item\": COUNT(1)}, \"$1\": {\"item\": SUM(c.x)}} AS payload FROM c",
            &[("groupByAliasToAggregateType", "{\"n\":\"Count\",\"$1\":\"Sum\"}")],
        );
        check(
            "SELECT c.k, COUNT(1) AS n FROM c GROUP BY c.k",
            "SELECT [{\"item\": c.k}] AS groupByItems, {\"k\": c.k, \"n\": {\"item\": COUNT(1)}} AS payload \
             FROM c GROUP BY c.k",
            &[
                ("groupByExpressions", "[\"c.k\"]"),
                ("groupByAliases", "[\"k\"]"),
                ("groupByAliasToAggregateType", "{\"k\":null,\"n\":\"Count\"}"),
            ],
        );
    }

    #[test]
    fn what_clients_cannot_put_together_has_no_plan() {
        for text in [
            "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c) AS s",
            "SELECT * FROM c ORDER BY RANK FullTextScore(c.text, 'a')",
        ] {
            let query = Query::parse(text).unwrap();
            assert!(execution_info(&query, &Parameters::new(), &[], false).is_err(), "{text}");
            assert!(execution_info(&query, &Parameters::new(), &[], true).is_ok(), "{text}");
        }
    }

    #[test]
    fn the_features_of_a_query_are_named() {
        let features = |text: &str| required_features(Query::parse(text).unwrap().select());
        assert!(features("SELECT * FROM c WHERE c.a = 1").is_empty());
        assert_eq!(
            features("SELECT DISTINCT TOP 3 c.a FROM c ORDER BY c.a, c.b"),
            ["Distinct", "OrderBy", "MultipleOrderBy", "Top"]
        );
        assert_eq!(
            features("SELECT c.k, COUNT(1) FROM c GROUP BY c.k"),
            ["Aggregate", "NonValueAggregate", "GroupBy"]
        );
    }
}
