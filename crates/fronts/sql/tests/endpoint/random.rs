//! Random queries over the tables of the fixture.

/// A small generator of numbers, so that a seed is a run.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) ^ (self.0 >> 7)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A query over the tables, and whether all its rows have one order.
pub(crate) fn random_query(chance: &mut Chance) -> (String, bool) {
    match chance.below(10) {
        0 => set_operation(chance),
        1 => over_rows(chance),
        2 => windows(chance),
        _ => simple(chance),
    }
}

/// UNION, INTERSECT and EXCEPT of two or three arms.
fn set_operation(chance: &mut Chance) -> (String, bool) {
    let (first, second) = (column(chance), column(chance));
    let arm = |chance: &mut Chance| {
        let filter = condition(chance);
        match chance.below(5) {
            0 => format!("SELECT DISTINCT {first}, {second} FROM orders o WHERE {filter}"),
            1 => format!(
                "(SELECT {first}, {second} FROM orders o WHERE {filter} ORDER BY 1, 2 LIMIT 5)"
            ),
            2 => format!(
                "SELECT {first}, {second} FROM orders o JOIN items i ON i.tenant = o.tenant AND i.order_id = o.id"
            ),
            _ => format!("SELECT {first}, {second} FROM orders o WHERE {filter}"),
        }
    };
    let operator = |chance: &mut Chance| {
        chance.pick(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"])
    };
    let mut text = format!("{} {} {}", arm(chance), operator(chance), arm(chance));
    if chance.below(3) == 0 {
        text = format!("{text} {} {}", operator(chance), arm(chance));
    }
    match chance.below(3) {
        0 => (text, false),
        1 => (format!("{text} ORDER BY 1, 2"), true),
        _ => (format!("{text} ORDER BY 1 DESC, 2 LIMIT 4 OFFSET 1"), true),
    }
}

/// Queries over the rows of others: in WITH, in FROM, and through a view.
fn over_rows(chance: &mut Chance) -> (String, bool) {
    let filter = condition(chance);
    let inner = match chance.below(5) {
        0 => format!("SELECT o.tenant, o.id, o.note, o.amount FROM orders o WHERE {filter}"),
        1 => format!("SELECT o.tenant, o.id, o.note, o.amount FROM orders o WHERE {filter} ORDER BY o.id LIMIT 20"),
        2 => "SELECT o.note, count(*) AS id, sum(o.amount) AS amount, min(o.tenant) AS tenant FROM orders o GROUP BY o.note".to_owned(),
        3 => format!("SELECT o.tenant, i.qty AS id, i.sku AS note, o.amount FROM orders o JOIN items i ON i.tenant = o.tenant AND i.order_id = o.id WHERE {filter}"),
        _ => "SELECT tenant, id, note, amount FROM large".to_owned(),
    };
    let (with, from) = match chance.below(3) {
        0 => (format!("WITH x AS ({inner}) "), "x".to_owned()),
        1 => (
            format!(
                "WITH x (tenant, id, note, amount) AS (SELECT tenant, id, note, amount FROM ({inner}) y) "
            ),
            "x".to_owned(),
        ),
        _ => (String::new(), format!("({inner}) x")),
    };
    let limit = chance.pick(&["", " LIMIT 3", " LIMIT 2 OFFSET 2"]);
    match chance.below(5) {
        0 => (
            format!(
                "{with}SELECT x.tenant, x.id, x.note, x.amount FROM {from} ORDER BY 1, 2, 3, 4{limit}"
            ),
            true,
        ),
        1 => (format!("{with}SELECT count(*), sum(x.amount), max(x.note) FROM {from}"), true),
        2 => (
            format!(
                "{with}SELECT x.note, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY x.id) FROM {from} GROUP BY x.note ORDER BY 1"
            ),
            true,
        ),
        3 => (
            format!(
                "{with}SELECT x.id, row_number() OVER (ORDER BY x.tenant, x.id, x.note, x.amount) FROM {from}"
            ),
            false,
        ),
        _ => (
            format!(
                "{with}SELECT x.id, c.name FROM {from} LEFT JOIN countries c ON c.code = x.note WHERE x.id > 3"
            ),
            false,
        ),
    }
}

/// Window functions, some of them partitioned by the key.
fn windows(chance: &mut Chance) -> (String, bool) {
    let by =
        chance.pick(&["o.tenant", "o.tenant", "o.tenant, o.note", "o.note", "o.tenant, o.id % 2"]);
    let over = format!("OVER (PARTITION BY {by} ORDER BY o.id)");
    let window = chance.pick(&[
        "row_number()",
        "rank()",
        "lag(o.id)",
        "sum(o.amount)",
        "count(*)",
        "first_value(o.note)",
    ]);
    let filter = condition(chance);
    match chance.below(4) {
        0 => (
            format!(
                "SELECT o.tenant, o.id, {window} {over} FROM orders o WHERE {filter} ORDER BY 1, 2 LIMIT 7"
            ),
            true,
        ),
        1 => (
            "SELECT o.tenant, count(*), rank() OVER (PARTITION BY o.tenant ORDER BY count(*)) FROM orders o GROUP BY o.tenant".to_owned(),
            false,
        ),
        2 => (
            format!("SELECT DISTINCT o.tenant, {window} {over} FROM orders o WHERE {filter}"),
            false,
        ),
        _ => (format!("SELECT o.id, {window} {over} FROM orders o WHERE {filter}"), false),
    }
}

fn simple(chance: &mut Chance) -> (String, bool) {
    let from = chance.pick(&[
        "orders o",
        "orders o",
        "orders o",
        "orders o JOIN items i ON i.tenant = o.tenant AND i.order_id = o.id",
        "orders o LEFT JOIN items i ON i.tenant = o.tenant AND i.order_id = o.id AND i.qty > 2",
        "orders o JOIN items i USING (tenant)",
        "orders o CROSS JOIN countries c",
        "orders o LEFT JOIN countries c ON c.code = o.note",
        "orders o, items i",
        "countries c LEFT JOIN orders o ON o.note = c.code",
    ]);
    let mut conditions = Vec::new();
    for _ in 0..chance.below(3) {
        conditions.push(condition(chance));
    }
    let filter = if conditions.is_empty() {
        String::new()
    } else {
        format!(" WHERE {}", conditions.join(chance.pick(&[" AND ", " AND ", " OR "])))
    };
    if chance.below(2) == 0 {
        let (first, second) = (column(chance), column(chance));
        let distinct = chance.pick(&["", "", "DISTINCT "]);
        let limit =
            chance.pick(&["", "", " LIMIT 5", " LIMIT 3 OFFSET 2", " LIMIT 0", " OFFSET 4"]);
        let (one, two) = (
            chance.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]),
            chance.pick(&["", " DESC"]),
        );
        // A limit without an order of all columns may give any rows.
        let order = if limit.is_empty() && chance.below(2) == 0 {
            String::new()
        } else {
            format!(" ORDER BY 1{one}, 2{two}")
        };
        // Rows that are equal in both columns are the same row here.
        let is_ordered = !order.is_empty();
        return (
            format!("SELECT {distinct}{first}, {second} FROM {from}{filter}{order}{limit}"),
            is_ordered,
        );
    }
    grouped(chance, from, &filter)
}

/// One with groups or aggregates.
fn grouped(chance: &mut Chance, from: &str, filter: &str) -> (String, bool) {
    let aggregate = |chance: &mut Chance| {
        chance.pick(&[
            "count(*)",
            "count(o.amount)",
            "sum(o.id)",
            "min(o.amount)",
            "max(o.note)",
            "avg(o.id)",
            "sum(o.amount)",
            "count(DISTINCT o.note)",
            "bool_or(o.id > 30)",
            "count(*) FILTER (WHERE o.id % 2 = 0)",
            "string_agg(o.note, '-' ORDER BY o.note)",
            "max(o.at) - min(o.at)",
            "sum(o.id) * 2 + count(*)",
            "round(avg(o.amount), 3)",
        ])
    };
    let (group, first, second) = (column(chance), aggregate(chance), aggregate(chance));
    let having = match chance.below(4) {
        0 => format!(" HAVING {} > 3", chance.pick(&["count(*)", "min(o.id)", "sum(o.id)"])),
        _ => String::new(),
    };
    let limit = chance.pick(&["", "", " LIMIT 3", " LIMIT 2 OFFSET 1"]);
    if chance.below(4) == 0 {
        return (format!("SELECT {first}, {second} FROM {from}{filter}{having}"), true);
    }
    let direction = chance.pick(&["", " DESC", " NULLS FIRST"]);
    let text = format!(
        "SELECT {group}, {first}, {second} FROM {from}{filter} GROUP BY {group}{having} ORDER BY 1{direction}{limit}"
    );
    (text, true)
}

fn column(chance: &mut Chance) -> &'static str {
    chance.pick(&[
        "o.id",
        "o.amount",
        "o.note",
        "o.tenant",
        "o.at",
        "o.id % 3",
        "lower(o.note)",
        "coalesce(o.amount, -1)",
    ])
}

fn condition(chance: &mut Chance) -> String {
    let number = chance.pick(&[0, 1, 5, 7, 30, 100]);
    match chance.below(11) {
        0 => format!("o.tenant = {}", chance.pick(&[1, 99, 100, 150, 250, 5])),
        1 => "o.tenant IN (1, 2, 99)".to_owned(),
        2 => "o.tenant IN (1, 150, 1000)".to_owned(),
        3 => format!("o.id > {number}"),
        4 => format!("o.amount IS NULL OR o.amount < {number}"),
        5 => "o.note LIKE 'a%'".to_owned(),
        6 => format!("NOT (o.id = {number})"),
        7 => "EXISTS (SELECT 1 FROM items x WHERE x.tenant = o.tenant AND x.order_id = o.id)"
            .to_owned(),
        8 => format!(
            "o.id IN (SELECT x.order_id FROM items x WHERE x.tenant = o.tenant AND x.qty > {})",
            number % 5
        ),
        9 => "o.id BETWEEN 10 AND 40".to_owned(),
        _ => format!("o.amount = {number}"),
    }
}
