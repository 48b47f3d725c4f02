//! Random items and random queries.

use lazuli_env::SplitMix64;
use lazuli_value::encode_json;

/// How the rows of two executions are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Exactly,
    AnyOrder,
    /// The query leaves open which rows it gives, but not how many.
    Count,
}

fn pick<'a>(chance: &mut SplitMix64, choices: &[&'a str]) -> &'a str {
    choices[chance.below(choices.len())]
}

/// Strings that differ only behind what an order key holds.
fn long(chance: &mut SplitMix64) -> String {
    format!("\"{}{}\"", "x".repeat(300), chance.below(3))
}

fn scalar(chance: &mut SplitMix64) -> String {
    match chance.below(8) {
        0 => "null".into(),
        1 => pick(chance, &["true", "false"]).into(),
        2 | 3 => chance.below(5).to_string(),
        4 => pick(chance, &["1.5", "2.0", "-1", "9007199254740993", "9007199254740992.0"]).into(),
        5 if chance.below(3) == 0 => long(chance),
        _ => format!("\"{}\"", pick(chance, &["a", "ab", "abc", "b", "", "é"])),
    }
}

fn tags(chance: &mut SplitMix64) -> String {
    let one = |chance: &mut SplitMix64| match chance.below(4) {
        0 => format!("{{\"t\":{}}}", scalar(chance)),
        _ => scalar(chance),
    };
    let count = chance.below(4);
    let list: Vec<String> = (0..count).map(|_| one(chance)).collect();
    format!("[{}]", list.join(","))
}

pub(crate) fn random_items(chance: &mut SplitMix64) -> Vec<Vec<u8>> {
    let count = chance.below(25);
    let mut items = Vec::with_capacity(count);
    for id in 0..count {
        let mut parts = vec![format!("\"id\":\"{id}\"")];
        let mut maybe = |name: &str, value: String, chance: &mut SplitMix64| {
            if chance.below(4) > 0 {
                parts.push(format!("\"{name}\":{value}"));
            }
        };
        let values: Vec<String> = (0..6).map(|_| scalar(chance)).collect();
        maybe("k", values[0].clone(), chance);
        maybe("n", values[1].clone(), chance);
        maybe("s", values[2].clone(), chance);
        maybe("o", format!("{{\"p\":{}}}", values[3]), chance);
        let any = if chance.below(3) == 0 { tags(chance) } else { values[4].clone() };
        maybe("x", any, chance);
        let list = if chance.below(6) == 0 { values[5].clone() } else { tags(chance) };
        maybe("tags", list, chance);
        maybe("secret", scalar(chance), chance);
        items.push(encode_json(format!("{{{}}}", parts.join(",")).as_bytes()).expect("JSON"));
    }
    items
}

fn path(chance: &mut SplitMix64) -> String {
    let paths = ["c.k", "c.n", "c.s", "c.o.p", "c.x", "c.secret", "c.o", "c.tags", "c.none"];
    pick(chance, &paths).to_owned()
}

fn constant(chance: &mut SplitMix64) -> String {
    match chance.below(20) {
        0 => "undefined".into(),
        1 => "[1, \"a\"]".into(),
        2 => "{\"p\": 1}".into(),
        _ => scalar(chance),
    }
}

fn condition(chance: &mut SplitMix64, depth: usize) -> String {
    if depth > 0 && chance.below(2) == 0 {
        let count = 2 + chance.below(2);
        let parts: Vec<String> =
            (0..count).map(|_| format!("({})", condition(chance, depth - 1))).collect();
        return match chance.below(5) {
            0 => format!("NOT {}", parts[0]),
            1 | 2 => parts.join(" OR "),
            _ => parts.join(" AND "),
        };
    }
    let (place, value) = (path(chance), constant(chance));
    let exists = |chance: &mut SplitMix64| {
        let (inside, value) = (pick(chance, &["t", "t.t"]), constant(chance));
        format!("EXISTS(SELECT VALUE t FROM t IN c.tags WHERE {inside} = {value})")
    };
    match chance.below(18) {
        0..=2 => format!("{place} = {value}"),
        3 => format!("{value} {} {place}", pick(chance, &["<", "<=", ">", ">=", "!="])),
        4 | 5 => format!("{place} {} {value}", pick(chance, &["<", "<=", ">", ">=", "!="])),
        6 => format!("{place} IN ({value}, {}, {})", constant(chance), constant(chance)),
        7 => format!("{place} BETWEEN {value} AND {}", constant(chance)),
        8 => {
            format!("{place} LIKE \"{}\"", pick(chance, &["a%", "%b", "ab", "a_c", "", "x%1", "%"]))
        }
        9 => format!("IS_DEFINED({place})"),
        10 => exists(chance),
        12 => {
            let flag = pick(chance, &["", ", false", ", true"]);
            let function = pick(chance, &["STARTSWITH", "STRINGEQUALS", "CONTAINS"]);
            format!("{function}({place}, \"{}\"{flag})", pick(chance, &["a", "ab", "A", "", "x"]))
        }
        13 => {
            let list = pick(chance, &["c.tags", "c.x", "c.n"]);
            let partial = pick(chance, &["", ", true"]);
            format!("ARRAY_CONTAINS({list}, {value}{partial})")
        }
        14 => {
            let types = ["NULL", "BOOL", "NUMBER", "STRING", "ARRAY", "OBJECT", "PRIMITIVE"];
            format!("IS_{}({place})", pick(chance, &types))
        }
        15 => {
            let list: Vec<String> = (0..20).map(|_| constant(chance)).collect();
            format!("{place} IN ({})", list.join(", "))
        }
        // Two elements of one array.
        11 => format!("{} AND {}", exists(chance), exists(chance)),
        _ => place,
    }
}

fn filter(chance: &mut SplitMix64) -> String {
    if chance.below(5) == 0 {
        return String::new();
    }
    format!(" WHERE {}", condition(chance, 2))
}

/// A query, and how its rows are to be compared.
pub(crate) fn random_query(chance: &mut SplitMix64) -> (String, Comparison) {
    let (filter, place) = (filter(chance), path(chance));
    let direction = pick(chance, &["", " DESC"]);
    // Paths without arrays and objects: an index does not know the order of those.
    let by = pick(chance, &["c.n", "c.s", "c.k", "c.o.p"]);
    let window = match chance.below(3) {
        0 => format!(" OFFSET {} LIMIT {}", chance.below(4), chance.below(6)),
        _ => String::new(),
    };
    match chance.below(13) {
        12 => {
            let (fixed, by) = if chance.below(2) == 0 { ("c.n", "c.s") } else { ("c.s", "c.n") };
            let more = match chance.below(3) {
                0 => format!(" AND {by} {} {}", pick(chance, &["<", ">=", "="]), scalar(chance)),
                1 => format!(" AND {}", condition(chance, 1)),
                _ => String::new(),
            };
            let filter = format!("{fixed} = {}{more}", scalar(chance));
            (
                format!("SELECT c.id FROM c WHERE {filter} ORDER BY {by}{direction}{window}"),
                Comparison::Exactly,
            )
        }
        0 | 1 => (format!("SELECT * FROM c{filter}"), Comparison::AnyOrder),
        2 => (format!("SELECT TOP 3 c.id FROM c{filter}"), Comparison::Count),
        3 => (format!("SELECT c.id, t FROM c JOIN t IN c.tags{filter}"), Comparison::AnyOrder),
        4 | 5 => (
            format!("SELECT c.id, {by} FROM c{filter} ORDER BY {by}{direction}{window}"),
            Comparison::Exactly,
        ),
        6 => {
            let order =
                pick(chance, &["c.n, c.s", "c.n DESC, c.s DESC", "c.s DESC, c.n", "c.s, c.n"]);
            (format!("SELECT c.id FROM c{filter} ORDER BY {order}{window}"), Comparison::Exactly)
        }
        7 => (
            format!("SELECT c.id, t FROM c JOIN t IN c.tags{filter} ORDER BY {by}{direction}"),
            Comparison::Exactly,
        ),
        8 => (format!("SELECT VALUE COUNT(1) FROM c{filter}"), Comparison::Exactly),
        9 => (
            format!(
                "SELECT {place} AS g, COUNT(1) AS n, MIN({by}) AS m FROM c{filter} GROUP BY {place}{window}"
            ),
            Comparison::Exactly,
        ),
        10 => {
            (format!("SELECT DISTINCT VALUE {place} FROM c{filter}{window}"), Comparison::Exactly)
        }
        _ => (
            format!(
                "SELECT SUM(c.n) AS a, AVG(c.o.p) AS b, MAX({by}) AS d, COUNTIF({place}) AS e FROM c{filter}"
            ),
            Comparison::Exactly,
        ),
    }
}
