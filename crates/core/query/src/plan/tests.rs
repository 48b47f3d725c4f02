//! Tests of plans: which index serves which filter, and what is left to do.

use super::{
    Access, Composite, KeyRange, Order, Path, Plan, Schema, UnservedOrder, plan, plan_in_order,
};
use crate::Query;
use crate::check::Parameters;

/// Everything but `/secret` is indexed.
struct Container {
    key: Vec<Path>,
    composites: Vec<Composite>,
}

impl Schema for Container {
    fn partition_key(&self) -> &[Path] {
        &self.key
    }

    fn is_indexed(&self, path: &Path) -> bool {
        path.to_string() != "/secret"
    }

    fn is_selective(&self, path: &Path) -> bool {
        *path == Path::of(&["id"])
    }

    fn has_containers(&self) -> bool {
        true
    }

    fn finds_missing(&self) -> bool {
        true
    }

    fn composites(&self) -> &[Composite] {
        &self.composites
    }
}

fn container() -> Container {
    let composite = vec![(Path::of(&["a"]), false), (Path::of(&["b"]), true)];
    Container {
        key: vec![Path::of(&["k"]), Path::of(&["sub"])],
        composites: vec![Composite { paths: composite }],
    }
}

fn made(text: &str) -> Plan {
    let checked = Query::parse(text).expect(text).check(&Parameters::new()).expect(text);
    plan(&checked, &container())
}

fn made_in_order(text: &str) -> Option<Plan> {
    let checked = Query::parse(text).expect(text).check(&Parameters::new()).expect(text);
    plan_in_order(&checked, &container())
}

/// The paths of the indexes that a plan reads, with the number of ranges.
fn indexes(text: &str) -> Vec<String> {
    let shown = |scan: &super::IndexScan| format!("{} {}", scan.path, scan.ranges.len());
    match made(&format!("SELECT * FROM c WHERE {text}")).access {
        Access::Index(scan) => vec![shown(&scan)],
        Access::AnyOf(scans) => scans.iter().map(shown).collect(),
        Access::Items => vec!["items".into()],
        Access::Nothing => vec!["nothing".into()],
        other => vec![format!("{other:?}")],
    }
}

#[test]
fn a_filter_is_served_by_the_index_that_reads_the_least() {
    assert_eq!(indexes("c.a = 1"), ["/a 1"]);
    assert_eq!(indexes("1 < c.a.b"), ["/a/b 1"]);
    assert_eq!(indexes("c.a > 1 AND c.b = 2"), ["/b 1"]);
    assert_eq!(indexes("c.a IN (1, 'x', 1) AND c.b > 2"), ["/a 2"]);
    assert_eq!(indexes("c.k = 1 AND c.a = 1"), ["/a 1"]);
    assert_eq!(indexes("c.a = 1 AND c.id = 'x' AND c.k = 1"), ["/id 1"]);
    assert_eq!(indexes("STARTSWITH(c.a, 'x') AND c.b >= 2"), ["/a 1"]);
    assert_eq!(indexes("STARTSWITH(c.a, 'x', true)"), ["items"]);
    assert_eq!(indexes("ARRAY_CONTAINS(c.tags, 'x')"), ["/tags/[] 1"]);
    assert_eq!(indexes("c.a = 1 OR c.b LIKE 'x%'"), ["/a 1", "/b 1"]);
    assert_eq!(indexes("c.a = 1 OR c.a = 2 OR c.a > 5"), ["/a 3"]);
    assert_eq!(indexes("c.a = 1 OR c.b + 1 = 2"), ["items"]);
    assert_eq!(indexes("c.a = 1 AND c.b + 1 = 2"), ["/a 1"]);
    assert_eq!(indexes("c.a > 1 AND c.a < 0"), ["nothing"]);
    assert_eq!(indexes("c.a = 1 AND false"), ["nothing"]);
    assert_eq!(indexes("c.a < [1]"), ["nothing"]);
    assert_eq!(indexes("c.secret = 1"), ["items"]);
    assert_eq!(indexes("NOT (c.a = 1)"), ["items"]);
    assert_eq!(indexes("c.a"), ["/a 1"]);
    assert_eq!(indexes("IS_DEFINED(c.a)"), ["/a 1"]);
    assert_eq!(indexes("c.a BETWEEN 1 AND 3"), ["/a 1"]);
    assert_eq!(
        indexes("EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t.name = 'x')"),
        ["/tags/[]/name 1"]
    );
    let joined = made("SELECT VALUE t FROM c JOIN t IN c.tags WHERE t = 'x' AND t = 'y'");
    assert!(matches!(joined.access, Access::Index(scan) if scan.path.to_string() == "/tags/[]"));
}

#[test]
fn only_a_filter_that_the_index_answers_alone_is_exact() {
    let is_exact = |filter: &str| made(&format!("SELECT * FROM c WHERE {filter}")).is_exact;
    assert!(is_exact("c.a = 1"));
    assert!(is_exact("c.a > 1 AND c.a <= 5"));
    assert!(is_exact("c.a = 1 OR c.b = 2"));
    assert!(is_exact("c.a LIKE 'x%'"));
    assert!(!is_exact("c.a LIKE 'x%y'"));
    assert!(!is_exact("c.a = 1 AND c.b = 2"));
    assert!(!is_exact("c.a = [1]"));
    assert!(!is_exact(&format!("c.a = '{}'", "x".repeat(300))));
}

#[test]
fn the_partition_key_is_taken_from_equalities() {
    let key = |text: &str| made(text).partition_key;
    assert_eq!(key("SELECT * FROM c WHERE c.k = 'x' AND c.n > 1"), [Some("x".into())]);
    assert_eq!(
        key("SELECT * FROM c WHERE 5 = c.sub AND c.k = 'x'"),
        [Some("x".into()), Some(5.into())]
    );
    assert_eq!(key("SELECT * FROM c WHERE c.sub = 5"), []);
    assert_eq!(key("SELECT * FROM c WHERE c.k = 'x' OR c.n = 1"), []);
}

#[test]
fn an_order_is_served_by_an_index_where_there_is_one() {
    let ordered = made("SELECT * FROM c ORDER BY c.a DESC");
    assert_eq!(ordered.order, Order::Merged);
    assert!(
        matches!(ordered.access, Access::Index(scan) if scan.is_descending && scan.has_missing)
    );
    let filtered = made("SELECT * FROM c WHERE c.a > 1 ORDER BY c.a");
    assert!(matches!(filtered.access, Access::Index(scan) if !scan.has_missing));
    let other = made("SELECT * FROM c WHERE c.b = 1 ORDER BY c.a");
    assert_eq!(other.order, Order::Any);
    assert!(matches!(other.access, Access::Index(scan) if scan.path.to_string() == "/b"));
    let wide = made("SELECT * FROM c WHERE c.b > 1 ORDER BY c.a");
    assert!(matches!(wide.access, Access::Index(scan) if scan.path.to_string() == "/a"));
    let composite = made("SELECT * FROM c ORDER BY c.a DESC, c.b");
    let ranges = vec![KeyRange::all()];
    assert_eq!(composite.access, Access::Composite { composite: 0, ranges, is_descending: true });
    let unserved = |text: &str| made(text).unserved_order;
    assert_eq!(unserved("SELECT * FROM c ORDER BY c.a, c.b"), Some(UnservedOrder::Composite));
    assert_eq!(unserved("SELECT * FROM c ORDER BY c.secret"), Some(UnservedOrder::Path));
    assert_eq!(unserved("SELECT * FROM c ORDER BY c.a"), None);
}

#[test]
fn an_order_behind_a_narrow_filter_can_be_asked_for() {
    let scanned = |text: &str| match made_in_order(text)?.access {
        Access::Index(scan) => Some((scan.path.to_string(), scan.ranges[0] == KeyRange::all())),
        other => panic!("{other:?}"),
    };
    let text = "SELECT * FROM c WHERE c.b = 1 ORDER BY c.n";
    assert_eq!(made(text).order, Order::Any);
    assert_eq!(scanned(text), Some(("/n".into(), true)));
    let bounded = "SELECT * FROM c WHERE c.b = 1 AND c.n > 5 ORDER BY c.n DESC";
    assert_eq!(scanned(bounded), Some(("/n".into(), false)));
    assert!(!made_in_order(bounded).unwrap().is_exact);
    assert_eq!(scanned("SELECT * FROM c WHERE c.b = 1 ORDER BY c.secret"), None);
    assert_eq!(scanned("SELECT * FROM c WHERE c.b = 1"), None);
}

#[test]
fn what_a_filter_fixes_bounds_a_composite_index() {
    let ranges = |text: &str| match made(text).access {
        Access::Composite { composite: 0, ranges, is_descending } => Some((ranges, is_descending)),
        _ => None,
    };
    let (of_one, descends) = ranges("SELECT * FROM c WHERE c.a = 1 ORDER BY c.b").unwrap();
    assert!(descends && of_one.len() == 1 && of_one[0] != KeyRange::all());
    let (same, descends) = ranges("SELECT * FROM c WHERE c.a = 1 ORDER BY c.a, c.b DESC").unwrap();
    assert_eq!((same, descends), (of_one.clone(), false));
    let several = "SELECT * FROM c WHERE c.a = 1 AND (c.b > 5 OR c.b < 2) ORDER BY c.b DESC";
    let (several, _) = ranges(several).unwrap();
    assert!(several.len() == 2 && several[0].to <= several[1].from);
    assert!(several.iter().all(|one| one.and(&of_one[0]) == *one));
    // An id finds fewer, and what is not fixed bounds nothing.
    assert_eq!(ranges("SELECT * FROM c WHERE c.a = 1 AND c.id = 'x' ORDER BY c.b"), None);
    assert_eq!(ranges("SELECT * FROM c WHERE c.a > 1 ORDER BY c.b"), None);
}

#[test]
fn counts_are_pushed_down_where_the_index_answers_the_filter() {
    let is_count = |text: &str| made(text).is_count;
    assert!(is_count("SELECT VALUE COUNT(1) FROM c"));
    assert!(is_count("SELECT VALUE COUNT(1) FROM c WHERE c.a > 5"));
    assert!(is_count("SELECT COUNT(1) AS n FROM c WHERE c.a = 5"));
    assert!(!is_count("SELECT VALUE COUNT(c.b) FROM c"));
    assert!(!is_count("SELECT VALUE COUNT(1) FROM c WHERE c.a > 5 AND c.b > 5"));
    assert!(!is_count("SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags"));
    assert!(!is_count("SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.a FROM c) AS s"));
    assert!(!is_count("SELECT c.a, COUNT(1) FROM c GROUP BY c.a"));
}

#[test]
fn a_plan_can_be_shown() {
    let shown = made("SELECT * FROM c WHERE c.k = 'x' AND c.a = 1").explain().to_json();
    assert!(shown.starts_with("{\"access\":\"index\",\"indexes\":[{\"path\":\"/a\""), "{shown}");
    assert!(shown.contains("\"partitionKey\":[\"x\"]"), "{shown}");
}
